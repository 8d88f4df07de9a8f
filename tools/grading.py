"""Grade one submission: the program that the report runs in a process of its own.

For each exercise the statements that lead to the answer run in a fresh namespace, and
then the book's own check; what the notebook shows is not believed. An answer is found
by its name, or else in the cell of its stub. Code that means to can forge its own mark.
"""

import ast
import contextlib
import faulthandler
import json
import linecache
import signal
import sys
import textwrap
from collections import Counter
from pathlib import Path

import torch

from tools.notebooks import code_cells, source_of, tags_of
from tools.sheets import sheets
from tools.statements import leading_to, statements
from tutorial_exercises import check
from tutorial_exercises.check import find

MEMORY = 4 * 2**30  # bytes


def main(root, notebook, chapter, seconds, done):
    """Write what is found into the file ``marks``, a line for each exercise not done.

    The first lists the exercises, or says what is wrong with the notebook. Where
    something takes too long, the process ends, and the file ``late`` is not empty.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # else an answer might catch Ctrl-C
    with contextlib.suppress(ImportError):  # Windows has none
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    with open("marks", "w", encoding="utf-8") as marks, open("late", "w") as late:

        def say(words):
            print(json.dumps(words), file=marks, flush=True)
            faulthandler.dump_traceback_later(seconds, exit=True, file=late)

        try:
            grading = Grading(root, read_cells(notebook), chapter)
        except Exception as error:  # whatever a file may hold
            return say(f"{type(error).__name__}: {error}")
        say([*grading.tasks])
        for number in grading.tasks:
            if number not in done:
                say([number, grading.grade(number)])


def read_cells(path):
    """Return a notebook's code cells; Colab's ids stand with the metadata."""
    cells = json.loads(Path(path).read_text(encoding="utf-8-sig"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    return [{"id": cell["metadata"].get("id")} | cell for cell in code]


class Grading:
    """A submission next to the sheet that it answers."""

    def __init__(self, root, cells, chapter=""):
        self.cells, self.statements, self.broken = cells, [], {}
        for cell in cells:
            lines = source_of(cell).splitlines(keepends=True)
            linecache.cache[_file(cell)] = (1, None, lines, _file(cell))
            try:
                self.statements += statements(cell, source_of(cell))
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self.broken[id(cell)] = f"{type(error).__name__}: {error}"
        [self.sheet] = sheets(root, chapter or self._chapter())
        self.tasks = {task.exercise.number: task for task in self.sheet.tasks}
        # What a submission lacks, such as its imports, is taken from the book.
        self.book = [
            statement
            for cell in code_cells(self.sheet.notebook)
            if "exercise" not in tags_of(cell)
            for statement in statements(None, source_of(cell))
        ]

    def _chapter(self):
        """Return the chapter of most of the exercises that the notebook answers."""
        exercises = {find(name) for one in self.statements for name in one.binds}
        votes = Counter(exercise.chapter for exercise in exercises - {None})
        if not votes:
            raise ValueError("no exercise of the book is in it: name the --chapter")
        return str(votes.most_common(1)[0][0])

    def grade(self, number):
        """Return "passed", "failed" or "open" for an exercise, and a remark."""
        task, found = self.tasks[number], ("open", "not in the notebook")
        cell = self._cell_of(task)
        for statement, name in self._named(task) or self._renamed(task, cell):
            found = self._judge(task, statement, name)
            if found[0] != "open":
                return found
        if id(cell) in self.broken:
            return "failed", self.broken[id(cell)]
        return found

    def _cell_of(self, task):
        """Return the cell of a task: by its id, or its place among the tagged."""
        same = [cell for cell in self.cells if cell["id"] == task.stub["id"]]
        tagged = [cell for cell in self.cells if "exercise" in tags_of(cell)]
        if len(tagged) == len(self.tasks):
            same.append(tagged[[*self.tasks].index(task.exercise.number)])
        return same[0] if same else None

    def _named(self, task):
        """Return the (statement, name) that may answer a task, best first."""
        book = {ast.dump(statement.node) for statement in self.book}
        found = [
            (statement, task.name)
            for statement in reversed(self.statements)
            if task.name in statement.binds and ast.dump(statement.node) not in book
        ]
        return sorted(found, key=lambda one: "exercise" not in tags_of(one[0].cell))

    def _renamed(self, task, cell):
        """Return the last (statement, name) that a cell binds, in a list."""
        kinds = ast.ClassDef, ast.FunctionDef
        if task.exercise.is_value:
            kinds = ast.Assign, ast.AnnAssign
        return [
            (statement, name)
            for statement in self.statements
            if statement.cell is cell and isinstance(statement.node, kinds)
            for name in sorted(statement.binds)
            if find(name) is None  # else it answers another exercise
        ][-1:]

    def _judge(self, task, statement, name):
        """Run what leads to an answer, then check it."""
        known, wanted = [*self.book, *self.statements], [statement]
        if task.exercise.is_value:  # which may be put together bit by bit
            wanted = [one for one in known if one.cell is statement.cell]
        namespace = {"__name__": "__main__"}
        error = _run(leading_to(wanted, known), namespace)
        if name not in namespace:
            return "failed", error or f"{name} has no value"
        result = check(namespace[name], task.exercise.name)
        if result.status == "open":
            return "open", ""
        if not result.passed:
            return "failed", textwrap.shorten(result.message, 100, placeholder=" …")
        return "passed", "" if name == task.name else f"named {name}, not {task.name}"


def _run(chosen, namespace):
    """Run statements, each though one before it failed; return the first error."""
    first = ""
    for statement in chosen:
        module = ast.Module([statement.node], [])
        try:
            exec(compile(module, _file(statement.cell), "exec"), namespace)
        except BaseException as error:
            first = first or f"{type(error).__name__}: {error}"[:100]
    return first


def _file(cell):
    return f"<cell {id(cell)}>" if cell else "<the book>"


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
