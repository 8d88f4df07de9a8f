"""A chapter's notebook as a sheet of exercises: where they stand, and how solved.

Nothing here runs a notebook, or knows who wants the sheet and what for.
"""

import ast
import contextlib
import itertools
from dataclasses import dataclass
from pathlib import Path

from tools.notebooks import (
    chapters,
    read_notebook,
    short_name,
    source_of,
    tags_of,
)
from tutorial_exercises.exercise import Exercise, find
from tutorial_exercises.help import MISSING, solution
from tutorial_lib.definitions import definitions


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

        Raises ValueError where the solutions are not installed, or do not fit the stub.
        """
        answer = str(solution(self.exercise.name))
        if answer == MISSING:
            raise ValueError(
                f"there is no solution of {self.exercise.heading}: a master needs "
                f"exercises/chapter_{self.exercise.chapter:02d}/solutions.py"
            )
        fill = _assigned if self.exercise.is_value else _defined
        with contextlib.suppress(SyntaxError):
            if solved := fill(source_of(self.stub), self.name, answer):
                return solved
        raise ValueError(
            f"the stub of {self.exercise.heading} must define or assign {self.name}"
        )


def _defined(stub, name, answer):
    """Return a stub in which the name's definition is this one, or None."""
    lines = stub.split("\n")
    for found, first, last in definitions(stub):
        if found == name:
            lines[first:last] = answer.split("\n")
            return "\n".join(lines)
    return None


def _assigned(stub, name, answer):
    """Return a stub in which the name's value is this one, explained, or None."""
    lines = answer.split("\n")
    comment = [*itertools.takewhile(lambda line: line.startswith("#"), lines)]
    value = "\n".join(lines[len(comment) :])
    for node in ast.parse(stub).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            blank = ast.get_source_segment(stub, node)
            solved = stub.replace(blank, f"{name} = {value}", 1)
            return "\n".join([*comment, solved])
    return None


class Sheet:
    """A chapter's notebook and its tasks, in order."""

    def __init__(self, path):
        self.path, self.notebook = Path(path), read_notebook(path)
        self.tasks = list(_tasks(self.path.name, self.notebook["cells"]))

    @property
    def chapter(self):
        """The chapter's number."""
        return int(self.path.name[:2])


def sheets(root, chapter=""):
    """Return the sheets of the book under ``root``, or of one chapter: "3" or "03".

    An excursion without exercises is no sheet. Raises ValueError if there is no such
    chapter, or if no sheet is left.
    """
    found = [Sheet(path) for path in chapters(root, [chapter])]
    kept = [each for each in found if each.tasks or short_name(each.path).isdigit()]
    if not kept:
        raise ValueError(f"{chapter} has no exercises: name a chapter that has")
    return kept


def _tasks(file, cells):
    stub = None
    for cell in cells:
        if "exercise" in tags_of(cell):
            stub = cell
        if "check" in tags_of(cell):
            name, exercise = _checked(source_of(cell))
            if stub is None or exercise is None:
                raise ValueError(
                    f"{file}, cell {cell['id']} must check the exercise of a stub "
                    'above it, as in check(masked_softmax, "3.2")'
                )
            yield Task(exercise, name, stub, cell)


def _checked(source):
    """Return the name that a cell checks and its Exercise, or None twice."""
    try:
        arguments = ast.parse(source).body[-1].value.args
        key = getattr(arguments[-1], "value", None) or arguments[-1].id
        return arguments[0].id, find(key)
    except (AttributeError, IndexError, SyntaxError):
        return None, None
