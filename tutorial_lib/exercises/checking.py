"""Check an answer, and hand out the answer or the library's version of it.

`check` and `use` are what a notebook calls. They never raise because of an answer; what
an answer looks like from the inside is the probe's business.
"""

import contextlib

from .cards import Result
from .exercise import EXERCISES, Step, Wrong, find, nearest
from .guard import Printed, quiet, seed, undisturbed
from .probe import Probe
from .source import globals_of, open_lines, place

CHECKED = {}  # exercise name: (the answer last checked, its result)


def check(answer, name=None):
    """Say what is right about an answer and what is not yet.

    answer: a function or class whose name is the exercise's, or any value together with
    the exercise's number (`check(width, "2.1")`).
    Returns a Result, which shows itself as a card. Never raises (but for a
    KeyboardInterrupt) and leaves random state, grad mode and default dtype alone.
    """
    try:
        exercise = lookup(answer, name)
        if exercise is None:
            return unknown(answer, name)
        result = _result(exercise, answer)
        CHECKED[exercise.name] = answer, result
        return result
    except Exception as error:  # a fault of the check, not of the answer
        message = f"The check itself failed: {type(error).__name__}: {error}"
        return Result(str(name or "This exercise"), "unknown", "kit", message)


def use(answer, name=None):
    """Return the answer once it passes its check, until then the library's version.

    Prints one line where it is not the answer. Checks again when the answer changed.
    """
    exercise = lookup(answer, name)
    if exercise is None:
        print(unknown(answer, name))
        return answer
    checked, result = CHECKED.get(exercise.name, (None, None))
    if checked is not answer or result is None:
        result = check(answer, name)
    if result.passed:
        return answer
    print(f"Using the library's {exercise.name} until yours passes its check.")
    return exercise.library_version()


def lookup(answer, name=None):
    """Return the exercise an answer belongs to, by its own or the given name."""
    key = getattr(answer, "__name__", answer) if name is None else str(name)
    return find(key) if isinstance(key, str) else None


def unknown(answer, name=None):
    """Return a card that says there is no such exercise, and which come near."""
    key = getattr(answer, "__name__", None) if name is None else str(name)
    if key is None:
        message = 'Which exercise is this? Say it: `check(answer, "1.1")`.'
        return Result("Not an exercise by itself", "unknown", "unknown", message)
    close = [EXERCISES[near].call for near in nearest(key)]
    message = f"Did you mean {' or '.join(close)}?" if close else ""
    heading = f"There is no exercise called {key}"
    return Result(heading, "unknown", "unknown", message)


def _result(exercise, answer):
    about = {"hints": exercise.hints, "call": exercise.call}
    todo = _still_open(exercise, answer)
    if todo:
        return Result(exercise.heading, "open", "open", todo, **about)
    printed, steps = Printed(), exercise.steps or [ONLY_STEP]
    done, wrong = _run_steps(exercise, steps, answer, printed)
    labels = [step.label for step in steps]
    marks = ["pass"] * done + ["fail"] + ["open"] * len(steps)
    about["steps"] = [*zip(marks, labels, strict=False)]
    if wrong is None:
        return Result(exercise.heading, "pass", **about)
    about["printed"] = printed.lines()
    return Result(exercise.heading, "fail", wrong.code, wrong.message, **about)


def _still_open(exercise, answer):
    """Return what is still to be written, in words, or ""."""
    if exercise.is_value:
        blanks = _holes(answer)
        return "Replace the `...` by your answer." if blanks else ""
    lines = open_lines(answer)
    return f"Still to write: {place(answer, lines)}." if lines else ""


def _holes(value):
    if isinstance(value, dict):
        return _holes([*value.values()])
    if isinstance(value, (list, tuple)):
        return any(map(_holes, value))
    return value is ...


def _run_steps(exercise, steps, answer, printed):
    """Return how many steps passed and what was Wrong with the next, or None."""
    earlier = {name: find(name).oracle for name in exercise.needs}
    with undisturbed(), _replaced(globals_of(answer), earlier):
        for number, step in enumerate(steps):
            seed(number)
            probe = Probe(exercise, answer, printed)
            try:
                with quiet(printed):
                    step.run(probe)
            except Wrong as wrong:
                return number, wrong
            except Exception as error:  # the step could not use what it was given
                return number, probe.unusable(error)
    return len(steps), None


@contextlib.contextmanager
def _replaced(names, replacements):
    """Put other values under these names, for a while."""
    before = {name: names[name] for name in replacements if name in names}
    names.update(replacements)
    try:
        yield
    finally:
        for name in replacements:
            names.pop(name, None)
        names.update(before)


def _right(probe):
    probe()
    probe.same()


ONLY_STEP = Step("the answer is right", _right)
