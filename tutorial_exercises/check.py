"""Check an answer, and hand out the answer or the library's version of it.

`check` and `use` are what a notebook calls. They never raise because of an answer; what
an answer looks like from the inside is the probe's business.
"""

import contextlib
import inspect

from tutorial_lib.randomness import seed, undisturbed

from .cards import Result
from .exercise import Step, Wrong, find, lookup, unknown
from .marks import keep
from .probe import Probe
from .run import Printed, error_text, quiet, usual_settings
from .unwritten import (
    calls,
    globals_of,
    is_bare_class,
    open_lines,
    place,
    stopped_before,
)

CHECKED = {}  # name of an exercise: (the answer last checked, its result)


def check(answer, name=None):
    """Say what is right about an answer and what is not yet.

    answer: a function or class whose name is the exercise's, or any value together with
    the exercise's number (`check(width, "2.1")`).
    Returns a Result, which shows itself as a card. Never raises (but for a
    KeyboardInterrupt) and leaves random state, grad mode and default dtype alone.
    """
    try:
        only_a_name = isinstance(answer, str) and name is None
        exercise = lookup(answer, name)
        if exercise is None or only_a_name:
            return unknown(answer, name)
        stopped = stopped_before(exercise, answer)
        if stopped:
            return Result(exercise.heading, "fail", "stopped", stopped)
        result = _result(exercise, answer)
        CHECKED[exercise.name] = answer, result
        result.note = keep(exercise) if result.passed else ""
        return result
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a fault of the check, or a very odd answer
        message = f"The check itself failed: {type(error).__name__}: "
        return Result("This answer", "unknown", "kit", message + error_text(error))


def use(answer, name=None):
    """Return the answer once it passes its check, until then the library's version.

    Prints one line where it is not the answer. Checks again when the answer changed,
    and expects the earlier exercises that the answer calls to pass as well.
    """
    exercise = lookup(answer, name)
    if exercise is None:
        print(unknown(answer, name))
        return answer
    failing = _first_failing(exercise, answer)
    if failing is None:
        return answer
    theirs = "yours" if failing is exercise else f"your {failing.name}"
    print(f"Using the library's {exercise.name} until {theirs} passes its check.")
    return exercise.library_version()


def _first_failing(exercise, answer):
    """Return the first exercise that has to pass before an answer can be used."""
    for name in filter(lambda name: calls(answer, name), exercise.needs):
        failing = _first_failing(find(name), globals_of(answer).get(name))
        if failing:
            return failing
    checked, result = CHECKED.get(exercise.name, (None, None))
    if result is None or checked is not answer:
        result = check(answer, exercise.name)
    return None if result.passed else exercise


def _result(exercise, answer):
    printed = Printed()
    steps = [*exercise.steps] or [Step("the right value", _same)]
    with quiet(printed), undisturbed(), usual_settings():
        done, wrong = _run_steps(exercise, steps, answer)
    about = {"hints": exercise.hints, "call": exercise.call}
    todo = wrong and _still_open(exercise, answer)  # a right answer may have a `...`
    if todo:
        return Result(exercise.heading, "open", "open", todo, **about)
    marks = ["pass"] * done + ["fail"] + ["open"] * len(steps)
    labels = [step.label for step in steps]
    about["steps"] = [*zip(marks, labels, strict=False)]
    if wrong is None:
        return Result(exercise.heading, "pass", **about)
    about["printed"] = printed.lines()
    return Result(exercise.heading, "fail", wrong.code, wrong.message, **about)


def _still_open(exercise, answer):
    """Return what is still to be written, in words, or ""."""
    if exercise.is_value or answer is ...:
        return "Replace the `...` by your answer." if _has_hole(answer) else ""
    if is_bare_class(answer):
        return "Still to write: the whole class."
    lines = open_lines(answer)
    return f"Still to write: {place(answer, lines)}." if lines else ""


def _has_hole(value):
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, (list, tuple)):
        return any(map(_has_hole, value))
    return value is ...


def _run_steps(exercise, steps, answer):
    """Return how many steps passed and what was Wrong with the next, or None."""
    wrong = _wrong_kind(exercise, answer)
    if wrong:
        return 0, wrong
    earlier = {name: find(name).library_version() for name in exercise.needs}
    with _replaced(globals_of(answer), earlier):
        for number, step in enumerate(steps):
            wrong = _wrong_in(step, Probe(exercise, answer), number)
            if wrong:
                return number, wrong
    return len(steps), None


def _wrong_kind(exercise, answer):
    kind = "class" if inspect.isclass(exercise.oracle) else "function"
    fits = callable(answer) and inspect.isclass(answer) == (kind == "class")
    if exercise.is_value or fits:
        return None
    return Wrong("type", f"This exercise asks for a {kind} {exercise.name}.")


def _wrong_in(step, probe, number):
    seed(number)
    try:
        step.run(probe)
    except Wrong as wrong:
        return wrong
    except Exception as error:  # the step could not use what it was given
        return probe.unusable(error)
    return None


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


def _same(probe):
    probe()
    probe.same()
