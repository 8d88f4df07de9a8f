"""Grade one submission: the program that runs in a process of its own.

It is told what to do by its standard input, and says what it found line by line on what
was its standard output; whatever a student's code prints goes nowhere. For each
exercise the statements that lead to the answer run in a fresh namespace, and then the
book's own check.

It does not know how long it may take: whoever started it ends it.
"""

import ast
import json
import linecache
import os
import sys

import torch

from tools.notebooks import code_cells, source_of, tags_of
from tutorial_exercises.check import check
from tutorial_exercises.run import error_text

from .sheets import sheets
from .statements import leading_to, statements
from .submission import Cell, Submission, Unusable
from .tampering import CELL, is_own, judges, watch


def main():
    """Grade the submission that the first line of the standard input describes."""
    job, owner = json.loads(sys.stdin.readline()), os.getpid()
    secret = job.pop("secret")
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    torch.set_num_threads(1)

    def say(**words):
        if os.getpid() == owner:  # and not a copy that the student's code made
            print(json.dumps(words | {"secret": secret}), file=channel, flush=True)

    cells = [Cell(**cell) for cell in job["cells"]]
    try:
        grading = Grading(job["root"], cells, job["chapter"])
    except Unusable as reason:
        say(unusable=str(reason))
        return
    say(chapter=grading.sheet.chapter, exercises=grading.numbers)
    watch(lambda what: say(tampered=what))
    before = judges()
    for number in grading.numbers:
        if number not in job["done"]:
            status, remark = grading.grade(number)
            if lost := before - judges():
                place = min(lost)[0]
                say(tampered=f"the check was tampered with: {place} was changed")
                return
            say(number=number, status=status, remark=remark)


class Grading:
    """A submission next to the sheet that it answers. Raises Unusable."""

    def __init__(self, root, cells, chapter=None):
        self.submission = Submission(cells)
        [self.sheet] = sheets(root, str(chapter or self.submission.chapter()))
        self.tasks = {task.exercise.number: task for task in self.sheet.tasks}
        # What a submission lacks, such as its imports, is taken from the book.
        self.book = [
            statement
            for cell in code_cells(self.sheet.notebook)
            if "exercise" not in tags_of(cell)
            for statement in statements(None, source_of(cell))
        ]
        for cell in cells:  # so that what fails can be shown by its line
            lines, name = cell.source.splitlines(keepends=True), _file(cell)
            linecache.cache[name] = (len(cell.source), None, lines, name)

    @property
    def numbers(self):
        """The numbers of the sheet's exercises."""
        return [*self.tasks]

    def grade(self, number):
        """Return "passed", "failed" or "open" for an exercise, and a remark."""
        task, place = self.tasks[number], self.numbers.index(number)
        found = None
        own = {statement.structure for statement in self.book}
        for statement, name in self.submission.answers(task, own):
            found = self._judge(task, statement, name)
            if found[0] != "open":
                return found
        cell = self.submission.cell_of(task, place, len(self.tasks))
        error = self.submission.syntax_error(task, cell)
        if error:
            return "failed", error
        if found is None:
            found = self._judge_renamed(task, place)
        return found or ("open", "not in the notebook")

    def _judge_renamed(self, task, place):
        answer = self.submission.renamed(task, place, len(self.tasks))
        if answer is None:
            return None
        status, remark = self._judge(task, *answer)
        named = f"named {answer[1]} instead of {task.name}"
        return status, f"{named}; {remark}" if remark else named

    def _judge(self, task, statement, name):
        """Run what leads to an answer, then check it."""
        known = [*self.book, *self.submission.statements]
        wanted = [statement]
        if task.exercise.is_value:  # which may be put together bit by bit
            wanted = [one for one in known if one.cell is statement.cell]
        namespace = {"__name__": "__main__"}
        error = _run(leading_to(wanted, known), namespace)
        if name not in namespace:
            return "failed", error or f"{name} has no value"
        result = check(namespace[name], task.exercise.name)
        if not result.passed:
            return ("open", "") if result.status == "open" else ("failed", result.code)
        wrong = [mistake.answer for mistake in task.exercise.mistakes[:1]] or [None]
        if check(*wrong, task.exercise.name).passed:
            return "failed", "the check was tampered with: it accepts a wrong answer"
        if not is_own(namespace[name]):
            return "failed", "its code stands in no cell of the notebook"
        return "passed", ""


def _run(chosen, namespace):
    """Run statements, each though one before it failed; return the first error."""
    first = ""
    for statement in chosen:
        try:
            exec(_compiled(statement), namespace)
        except BaseException as error:
            first = first or f"{type(error).__name__}: {error_text(error)}"
    return first


def _compiled(statement):
    """Compile a statement so that its lines are those of its cell."""
    module = ast.Module([statement.node], [])
    return compile(module, _file(statement.cell), "exec", dont_inherit=True)


def _file(cell):
    return f"{CELL}{cell.place}>" if cell else "<the book>"
