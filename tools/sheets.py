"""A chapter's notebook as a sheet of exercises: where they stand, and how solved.

Nothing here runs a notebook.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from tools.notebooks import chapters, read_notebook, source_of, tags_of
from tools.sync import mirror
from tutorial_exercises import Exercise
from tutorial_exercises.check import find


@dataclass(frozen=True)
class Task:
    """An exercise in a notebook: the name to define, the cells to fill in and check."""

    exercise: Exercise
    name: str
    stub: dict
    check: dict

    def solved(self):
        """Return the stub's source with the solution in place of its blanks.

        Raises ValueError if there is no solution, or if it does not fit the stub.
        """
        answer = self.exercise.shown or ""
        stub = source_of(self.stub)
        solved, changed = mirror(stub, {self.name: answer})
        if self.exercise.is_value:
            solved = changed = _assigned(stub, self.name, answer)
        if not changed or not answer:
            raise ValueError(
                f"the stub of {self.exercise.heading} must define or assign "
                f"{self.name}, and this copy of the book must have a solution of it"
            )
        return solved


def _assigned(stub, name, answer):
    """Return a stub in which the name's value is this one, explained, or None."""
    comment, value = re.fullmatch(r"((?:#[^\n]*\n)*)(.*)", answer, re.DOTALL).groups()
    for node in ast.parse(stub).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            blank = ast.get_source_segment(stub, node)
            return comment + stub.replace(blank, f"{name} = {value}", 1)
    return None


class Sheet:
    """A chapter's number and notebook, and its tasks in order."""

    def __init__(self, path):
        self.path = Path(path)
        self.notebook = read_notebook(path)
        self.tasks = [*_tasks(self.path.name, self.notebook["cells"])]
        number = self.path.name.partition("_")[0]
        self.chapter = int(number) if number.isdigit() else None


def sheets(root, *wanted):
    """Return the sheets under ``root``: all, or of chapters ``wanted``, "3" or "03".

    An excursion without exercises is no sheet. Raises ValueError if there is no such
    chapter, or if no sheet is left.
    """
    every = [Sheet(path) for path in chapters(root, wanted)]
    kept = [sheet for sheet in every if sheet.tasks or sheet.chapter]
    if not kept:
        raise ValueError(
            f"{', '.join(wanted)} has no exercises: name a chapter that has"
        )
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
