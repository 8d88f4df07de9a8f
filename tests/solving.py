"""What to run again, in a chapter's own kernel, once its exercises are solved.

The kernel has run the whole chapter. What follows in it are the stubs with their
solutions, the checks, and the cells that use an answer, in order; before each of them,
whatever gives a name back the value that it had there, if a later cell has changed it.
"""

import ast

from statements import statements

from tools.notebooks import code_cells, source_of, tags_of


def solved_cells(sheet):
    """Return ``(name, source, is a check)`` of what to run: cells, and parts of others.

    ``sheet`` is a chapter's, of whose cells only the answers' are changed.
    """
    solved = {task.stub["id"]: task.solved() for task in sheet.tasks}
    checks = {task.check["id"] for task in sheet.tasks}
    cells = code_cells(sheet.notebook)
    sources = {
        cell["id"]: solved.get(cell["id"], source_of(cell))
        for cell in cells
        if "remove-cell" not in tags_of(cell)
    }
    known = []
    for name in sources:
        known += statements(name, sources[name])
    wanted = _using_answers(known, {*solved, *checks})
    to_run = []
    for name, parts in _by_cell(_with_lost_values(known, wanted)):
        whole = name in wanted
        source = sources[name] if whole else "\n".join(map(_text, parts))
        to_run.append((name, source, name in checks))
    return to_run


def _using_answers(known, exercises):
    """Return the cells of exercises, and all that use what an exercise binds."""
    cells = set(exercises)
    answers = {"progress"}
    for part in known:
        if part.cell in cells or part.needs & answers:
            cells.add(part.cell)
            answers.update(part.binds)
    return cells


def _with_lost_values(known, wanted):
    """Return the wanted cells' statements, and those whose values they miss."""
    last = {}
    for i, part in enumerate(known):
        last.update(dict.fromkeys(part.binds, i))
    waiting = [i for i, part in enumerate(known) if part.cell in wanted]
    kept = set()
    while waiting:
        index = waiting.pop()
        if index not in kept:
            kept.add(index)
            for name in known[index].needs:
                before = [i for i in range(index) if name in known[i].binds]
                if before and before[-1] != last[name]:
                    waiting.append(before[-1])
    return [known[index] for index in sorted(kept)]


def _by_cell(parts):
    """Yield (cell, statements) for statements in order."""
    cells = dict.fromkeys(part.cell for part in parts)
    for cell in cells:
        yield cell, [part for part in parts if part.cell == cell]


def _text(part):
    return ast.unparse(part.node)
