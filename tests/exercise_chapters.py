"""The chapters with exercises, as tests see them: solutions, stubs and notebooks.

An example chapter that exists only for the tests stands beside the book's.
"""

import ast
import contextlib
import functools
import importlib
import io
import itertools
import linecache
from pathlib import Path

import nbformat
import torch
from example_chapter.notebook import notebook as example_notebook
from nbclient import NotebookClient
from nbformat import v4

import tutorial_exercises as exercises
from tutorial_exercises.check import CHECKED
from tutorial_exercises.exercise import EXERCISES, find
from tutorial_lib.definitions import source_in

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "example_chapter"
exercises.__path__.append(str(EXAMPLE))
torch.set_num_threads(1)  # answers are small, and threads wait for each other

_numbers = itertools.count()


def define(source, name, names=None):
    """Run source that defines `name`, as a cell would: tracebacks can quote it."""
    namespace = dict(names or {}, __name__="answers")
    exec(compile(source, _cell(source), "exec"), namespace)
    return namespace[name]


def _cell(source):
    """Return a name under which the lines of a source are found."""
    name, lines = f"<cell {next(_numbers)}>", source.splitlines(keepends=True)
    linecache.cache[name] = (len(source), None, lines, name)
    return name


class Chapter:
    """One chapter's exercises, solutions and notebook."""

    def __init__(self, number):
        self.number = number
        name = f"tutorial_exercises.chapter_{number:02d}.solutions"
        self.solutions = importlib.import_module(name)
        self.text = Path(self.solutions.__file__).read_text(encoding="utf-8")
        found = {e.name: source_in(self.text, e.name) for e in self.exercises}
        self.definitions = {name: found[name] for name in found if found[name]}

    @property
    def exercises(self):
        """The chapter's exercises."""
        find("")  # imports all chapters
        return [e for e in EXERCISES.values() if e.chapter == self.number]

    @property
    def answers(self):
        """The right values, by the numbers of their exercises."""
        return getattr(self.solutions, "ANSWERS", {})

    def solution(self, name):
        """Return the solution of this name, run as a cell would be."""
        return define(self.text, name)

    def notebook_path(self):
        """Return the path of the chapter's notebook, or None."""
        pattern = f"{self.number:02d}_*.ipynb"
        return next((ROOT / "notebooks").glob(pattern), None)

    @functools.cached_property
    def notebook(self):
        """The notebook with its stored outputs, or the example's with what it shows."""
        path = self.notebook_path()
        if path:
            return nbformat.read(path, 4)
        assert self.number == 99, f"chapter {self.number} has no notebook"
        return shown(example_notebook())

    def stubs(self):
        """Yield (exercise, index of the stub's cell, expression that is checked)."""
        cells = self.notebook.cells
        for number, cell in enumerate(cells):
            if "check" in tags(cell):
                call = ast.parse(cell.source).body[-1].value
                key = getattr(call.args[-1], "value", None) or call.args[-1].id
                before = [i for i in range(number) if "exercise" in tags(cells[i])]
                yield find(key), before[-1], call.args[0].id


def tags(cell):
    """Return a cell's tags."""
    return cell.metadata.get("tags", [])


def shown(notebook):
    """Run a notebook's cells in this process, as in a new session; return it."""
    before, names = dict(CHECKED), {"__name__": "__main__"}
    CHECKED.clear()
    for cell in notebook.cells:
        body, file = ast.parse(cell.source).body, _cell(cell.source)
        last = [body.pop().value] if isinstance(body[-1], ast.Expr) else []
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(ast.Module(body, []), file, "exec"), names)
            value = None
            for expression in map(ast.Expression, last):
                value = eval(compile(expression, file, "eval"), names)
        data = {} if value is None else {"text/plain": repr(value)}
        cell.outputs = [
            v4.new_output("stream", text=printed.getvalue()),
            v4.new_output("execute_result", data),
        ]
    CHECKED.update(before)
    return notebook


def executed(notebook):
    """Run a notebook in a kernel and return it."""
    where = {"metadata": {"path": str(ROOT / "notebooks")}}
    return NotebookClient(notebook, timeout=300, resources=where).execute()


def text_of(cell):
    """Return everything a cell shows, as text."""
    data = (output.get("data", {}) for output in cell.outputs)
    printed = "".join(output.get("text", "") for output in cell.outputs)
    return printed + "".join(entry.get("text/plain", "") for entry in data)


def chapters():
    """Return the example chapter and every chapter of the book that has exercises."""
    found = sorted((ROOT / "tutorial_exercises").glob("chapter_??"))
    return [Chapter(99), *(Chapter(int(folder.name[-2:])) for folder in found)]
