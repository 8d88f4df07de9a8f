"""Exercises that tests make up for a moment."""

import contextlib

from tutorial_exercises import Exercise, check
from tutorial_exercises.check import ASKED, CHECKED
from tutorial_exercises.exercise import EXERCISES, Known


@contextlib.contextmanager
def exercise(solution, *, number="98.1", hints="", mistakes=(), **options):
    """Register an exercise, without steps, for the length of a block.

    mistakes: pairs (sentence, wrong answer).
    """
    task = Exercise(number, "Made up", **options)
    task(solution)
    task.hints = "".join(f"- {hint}\n" for hint in hints)
    task.known = [Known(*pair) for pair in mistakes]
    try:
        yield task
    finally:
        del EXERCISES[task.name], EXERCISES[task.number]
        CHECKED.pop(task.number, None)
        ASKED.pop(task.number, None)


def judge(answer, *inputs, right=lambda x: x, demand=None, **options):
    """Check an answer to a made-up exercise: by one case, or by a demand."""
    with exercise(right, **options) as task:
        if demand:
            task.demand("is right")(demand)
        else:
            task.cases(lambda: [("is right", *inputs)])
        return check(answer, task.number)
