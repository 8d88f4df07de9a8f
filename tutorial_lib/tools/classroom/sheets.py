"""A chapter's notebook as a sheet of exercises: where they stand, and how solved.

Nothing here runs a notebook, or knows who wants the sheet and what for.
"""

import ast
import itertools
from dataclasses import dataclass
from pathlib import Path

from tutorial_lib.definitions import definitions
from tutorial_lib.exercises.exercise import Exercise, find
from tutorial_lib.exercises.help import MISSING, solution
from tutorial_lib.tools.notebooks import chapters, read_notebook, source_of, tags_of


@dataclass(frozen=True)
class Task:
    """One exercise in a notebook.

    name: what the reader defines or assigns. stub: the cell to fill in.
    check: the cell that checks it.
    """

    exercise: Exercise
    name: str
    stub: dict
    check: dict

    def solved(self):
        """Return the stub's source with the solution in place of its blanks.

        Raises ValueError where the solutions are not installed.
        """
        answer = str(solution(self.exercise.name))
        if answer == MISSING:
            raise ValueError(
                f"there is no solution of {self.exercise.heading}: a master needs "
                f"{solutions_of(self.exercise.chapter)}"
            )
        fill = _assigned if self.exercise.is_value else _defined
        return fill(source_of(self.stub), self.name, answer)


def solutions_of(chapter):
    """Return where a chapter's solutions belong."""
    return f"tutorial_lib/exercises/chapter_{chapter:02d}/solutions.py"


def _defined(stub, name, answer):
    """Return a stub in which the name's definition is this one."""
    lines = stub.split("\n")
    [(_, first, last)] = [found for found in definitions(stub) if found[0] == name]
    lines[first:last] = answer.split("\n")
    return "\n".join(lines)


def _assigned(stub, name, answer):
    """Return a stub in which the name's value is this one, under what explains it."""
    lines = answer.split("\n")
    comment = [*itertools.takewhile(lambda line: line.startswith("#"), lines)]
    value = "\n".join(lines[len(comment) :])
    for node in ast.parse(stub).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            blank = ast.get_source_segment(stub, node)
            solved = stub.replace(blank, f"{name} = {value}", 1)
            return "\n".join([*comment, solved])
    raise ValueError(f"the stub of {name} does not assign it")


class Sheet:
    """A chapter's notebook and its tasks, in order."""

    def __init__(self, path):
        self.path, self.notebook = Path(path), read_notebook(path)
        self.tasks = list(_tasks(self.notebook["cells"]))

    @property
    def chapter(self):
        """The chapter's number."""
        return int(self.path.name[:2])


def sheets(root, chapter=""):
    """Return the sheets of the book under ``root``, or of one chapter: "3" or "03".

    An excursion without exercises is no sheet. Raises ValueError if there is no such
    chapter, or if it has none.
    """
    found = [Sheet(path) for path in chapters(root, [chapter])]
    if not any(sheet.tasks for sheet in found):
        raise ValueError(f"{chapter} has no exercises: name a chapter that has")
    return [sheet for sheet in found if sheet.tasks]


def _tasks(cells):
    stub = None
    for cell in cells:
        if "exercise" in tags_of(cell):
            stub = cell
        if "check" in tags_of(cell):
            arguments = ast.parse(source_of(cell)).body[-1].value.args
            key = getattr(arguments[-1], "value", None) or arguments[-1].id
            yield Task(find(key), arguments[0].id, stub, cell)
