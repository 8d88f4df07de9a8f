"""The chapters with exercises, as tests see them: solutions, stubs and notebooks.

An example chapter that exists only for the tests stands beside the book's.
"""

import ast
import contextlib
import copy
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

from tutorial_lib import exercises
from tutorial_lib.definitions import source_in
from tutorial_lib.exercises.check import CHECKED
from tutorial_lib.exercises.exercise import EXERCISES, find
from tutorial_lib.tools.classroom.statements import leading_to, statements

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "example_chapter"
exercises.__path__.append(str(EXAMPLE))
torch.set_num_threads(1)  # answers are small, and threads wait for each other

IMPORTS = (ast.Import, ast.ImportFrom)
WHOLE = {6}  # its answers are used on models and tables that training fills

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
        name = f"tutorial_lib.exercises.chapter_{number:02d}.solutions"
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

    def solved_notebook(self):
        """Return the notebook with every stub replaced by its solution, executed.

        What neither leads to an exercise nor uses its answer is left out: it does what
        it did in the notebook as it is, which is run elsewhere.
        """
        notebook = copy.deepcopy(self.notebook)
        for exercise, number, name in self.stubs():
            cell = notebook.cells[number]
            cell.source = self._solved(cell.source, exercise, name)
        if self.number not in WHOLE:
            keep_exercises(notebook)
        return executed(notebook)

    def _solved(self, stub, exercise, name):
        if exercise.is_value:
            blank = _blank_value(stub, name)
            answer = self._answer_source(exercise.number)
            return stub.replace(f"{name} = {blank}", f"{name} = {answer}")
        named = [n for n in ast.parse(stub).body if getattr(n, "name", "") == name]
        open_source = ast.get_source_segment(stub, named[0])
        return stub.replace(open_source, self.definitions[name])

    def _answer_source(self, number):
        """Return the text of an entry of ANSWERS."""
        for node in ast.parse(self.text).body:
            if ast.unparse(node).startswith("ANSWERS = "):
                answers = node.value
        keys = [key.value for key in answers.keys]
        return ast.unparse(answers.values[keys.index(number)])


def _blank_value(stub, name):
    """Return the text of the value with blanks that a stub assigns to a name."""
    values = [
        ast.get_source_segment(stub, node.value)
        for node in ast.parse(stub).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name
    ]
    assert len(values) == 1 and "..." in values[0], f"`{name} = ...` is not in the stub"
    return values[0]


def keep_exercises(notebook):
    """Keep the exercises, the cells that use their answers, and what leads to them.

    Of a cell that only leads to them the statements that do are kept, but cells with
    imports are kept whole: they also set seeds.
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    known = [part for cell in code for part in statements(cell.id, cell.source)]
    whole = {cell.id for cell in code if {"exercise", "check"} & set(tags(cell))}
    answers = {"progress"}
    for part in known:
        if part.cell in whole or part.needs & answers:
            whole.add(part.cell)
            answers |= part.binds
    whole |= {part.cell for part in known if isinstance(part.node, IMPORTS)}
    needed = leading_to([part for part in known if part.cell in whole], known)
    for cell in code:
        if cell.id not in whole:
            parts = [ast.unparse(part.node) for part in needed if part.cell == cell.id]
            cell.source = "\n".join(parts)
    notebook.cells = [cell for cell in code if cell.source]


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
    found = sorted((ROOT / "tutorial_lib" / "exercises").glob("chapter_??"))
    return [Chapter(99), *(Chapter(int(folder.name[-2:])) for folder in found)]
