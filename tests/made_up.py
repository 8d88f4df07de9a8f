"""Exercises that tests make up for a moment."""

import contextlib

from tutorial_exercises import Exercise, check
from tutorial_exercises.check import CHECKED
from tutorial_exercises.exercise import EXERCISES
from tutorial_exercises.help import ASKED
from tutorial_exercises.mistakes import Known


@contextlib.contextmanager
def exercise(*, number="98.1", name="answer", oracle=None, **options):
    """Register an exercise called `name`, without steps, for the length of a block."""
    made_up = Exercise(number, "Made up", name=name, **options)
    made_up.oracle = oracle
    try:
        yield made_up
    finally:
        del EXERCISES[made_up.name]
        CHECKED.pop(made_up.name, None)
        ASKED.pop(made_up.name, None)


def judge(answer, step=None, *, known=None, **options):
    """Check an answer by one step; by default call it with nothing and compare."""
    with exercise(**options) as made_up:
        made_up.step("is right")(step or called_with())
        made_up.mistakes = [
            Known(code, f"This is {code}.", lambda wrong=wrong: wrong)
            for code, wrong in (known or {}).items()
        ]
        return check(answer, made_up.name)


def called_with(*arguments, **named):
    """Return a step that calls the answer like this and compares with the oracle."""

    def step(probe):
        probe(*arguments, **named)
        probe.same()

    return step
