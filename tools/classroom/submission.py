"""Read a notebook that was handed in, and find the answers in it.

Nothing that is written in it is believed or run here: not its outputs, not its tags.

An answer is found by its name in a cell tagged as an exercise, in any other cell, or,
where the name was changed, in the cell that stands where the exercise stood.
"""

import ast
import json
import re
from collections import Counter
from dataclasses import dataclass

from tutorial_exercises.exercise import EXERCISES, find
from tutorial_lib.definitions import as_python

from .statements import statements

LARGEST = 50_000_000  # bytes
KIT = {"check", "hint", "solution"}


class Unusable(Exception):
    """Says why a submission cannot be graded."""


@dataclass(frozen=True)
class Cell:
    """A code cell: where it stands, its id, whether it is tagged, and its text."""

    place: int
    id: str
    tagged: bool
    source: str


def read_cells(path):
    """Return a notebook's code cells. Raises Unusable, and says why."""
    if path.exists() and not path.is_file():  # a pipe would never end
        kind = "folder" if path.is_dir() else "pipe or a device"
        raise Unusable(f"not a notebook: it is a {kind}")
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise Unusable("the file is larger than 50 MB")
        content = json.loads(content)
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise Unusable(f"not a notebook: {type(error).__name__}: {reason}") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise Unusable("not a notebook of today's format: it has no list of cells")
    cells = [cell for cell in cells if isinstance(cell, dict)]
    code = (cell for cell in cells if cell.get("cell_type") == "code")
    return [_cell(place, cell) for place, cell in enumerate(code)]


def _cell(place, cell):
    source, metadata = cell.get("source", ""), cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    lines = source if isinstance(source, list) else [source]
    source = "".join(line for line in lines if isinstance(line, str))
    tags = metadata.get("tags")
    tagged = isinstance(tags, list) and "exercise" in tags
    return Cell(place, str(cell.get("id", metadata.get("id", ""))), tagged, source)


class Submission:
    """The code of a notebook that was handed in, statement by statement."""

    def __init__(self, cells):
        self.cells, self.statements, self.broken, self.called = cells, [], {}, {}
        for cell in cells:
            try:
                self.statements += statements(cell, cell.source)
                self._note_calls(cell.source)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self.broken[cell] = _reason(error)

    def _note_calls(self, source):
        """Note which exercise the student calls which name: `check(mine, "1.1")`."""
        for node in ast.walk(ast.parse(as_python(source))):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            keys = [_key(argument) for argument in node.args]
            if getattr(node.func, "id", None) in KIT and keys[-1] and find(keys[-1]):
                names = self.called.setdefault(find(keys[-1]).name, set())
                names |= {a.id for a in node.args if isinstance(a, ast.Name)}

    def chapter(self):
        """Return the chapter whose exercises it names most. Raises Unusable."""
        named = {name for statement in self.statements for name in statement.binds}
        named |= self.called.keys()
        votes = Counter(EXERCISES[name].chapter for name in named if find(name))
        if not votes:
            raise Unusable("no exercise of the book is in it: name the --chapter")
        return max(sorted(votes), key=votes.get)

    def answers(self, task, book):
        """Yield (statement, name) for what may be the answer to a task, best first.

        ``book`` holds the structures of the book's own statements: nobody's answer.
        """
        names = {task.name} | self.called.get(task.exercise.name, set())
        found = [
            (statement, name)
            for statement in reversed(self.statements)
            for name in sorted(names & statement.binds)
            if statement.structure not in book
        ]
        yield from sorted(found, key=lambda one: not one[0].cell.tagged)

    def renamed(self, task, place, count):
        """Return (statement, name) of the last that the exercise's own cell binds.

        It is known by its id, or by its place among as many tagged cells as there are
        exercises. Returns None if there is no such cell, or nothing in it.
        """
        cell = self.cell_of(task, place, count)
        found = [
            (statement, name)
            for statement in self.statements
            for name in sorted(statement.binds)
            if statement.cell is cell and _may_answer(task, statement)
            if find(name) is None  # else it answers another exercise
        ]
        return found[-1] if found else None

    def cell_of(self, task, place, count):
        """Return the cell of the task at this place among so many, or None."""
        same = [cell for cell in self.cells if cell.id == task.stub["id"]]
        tagged = [cell for cell in self.cells if cell.tagged]
        if len(tagged) == count:
            same.append(tagged[place])
        return same[0] if same else None

    def syntax_error(self, task, cell):
        """Return what is wrong with the cell of an answer that is not Python, or ""."""
        begins = re.compile(
            rf"^[ \t]*(def |class )?{task.name}\b\s*[(:=]", re.MULTILINE
        )
        for broken, error in self.broken.items():
            if broken is cell or begins.search(broken.source):
                return error
        return ""


def _key(argument):
    name = getattr(argument, "id", getattr(argument, "value", None))
    return name if isinstance(name, str) else None


def _reason(error):
    line = getattr(error, "lineno", None)
    where = f" in line {line} of the cell" if line else ""
    return f"{type(error).__name__}: {getattr(error, 'msg', error)}{where}"


def _may_answer(task, statement):
    if task.exercise.is_value:
        return isinstance(statement.node, (ast.Assign, ast.AnnAssign))
    return isinstance(statement.node, (ast.ClassDef, ast.FunctionDef))
