"""Try an answer in an exercise's cases and demands, up to the first that fails."""

import ast
import inspect
from functools import partial

from tutorial_lib.definitions import functions_of, tree_of
from tutorial_lib.randomness import seed

from .attempt import Attempt
from .cards import Card
from .compare import describe, describe_error
from .exercise import Fault, Wrong
from .sandbox import sandbox

PRINTED_LINES = 5  # of what an answer prints, in its card


def examine(exercise, answer):
    """Return the card on an answer: passed, open, or what is not right yet."""
    with sandbox() as printed:
        rows, message = try_steps(exercise, answer)
    if not message:
        return Card("pass", exercise.heading, rows=rows)
    help = {"hints": exercise.hint_list, "call": exercise.call}
    blanks = blanks_in(exercise, answer)
    if blanks:
        return Card("open", exercise.heading, blanks, **help)
    lines = printed.getvalue().splitlines()[:PRINTED_LINES]
    return Card("fail", exercise.heading, message, rows, lines, **help)


def try_steps(exercise, answer):
    """Return rows (status, label), and what to say of the first step that failed."""
    rows = {}
    message = wrong_kind(exercise, answer)
    for label, step in steps_of(exercise):
        if message:
            rows.setdefault(label, "open")
        else:
            message = message_of(step, Attempt(exercise, answer))
            rows[label] = "fail" if message else "pass"
    return [(status, label) for label, status in rows.items()], message


def wrong_kind(exercise, answer):
    """Return what to say where a function or a class is asked for and not given."""
    is_kind = callable(answer) and inspect.isclass(answer) == exercise.is_class
    if exercise.is_value or is_kind:
        return ""
    kind = "class" if exercise.is_class else "function"
    return f"This exercise asks for a {kind} {exercise.name}."


def steps_of(exercise):
    """Yield (label, step) for every case and demand: a step takes an Attempt.

    Each block of cases, and each demand, begins with random numbers of its own.
    """
    if not exercise.steps:  # of a value
        yield "the right value", agrees
    for number, (label, function) in enumerate(exercise.steps):
        seed(number)
        if label:
            yield label, function
            continue
        for name, *inputs in cases_of(exercise, function):
            yield name, partial(agrees, inputs=inputs)


def cases_of(exercise, generate):
    """Return the cases that a generator makes. Raises Fault for what is none."""
    cases = [*(generate() or [None])]
    for case in cases:
        is_case = isinstance(case, tuple) and isinstance(case[0], str)
        if is_case and exercise.is_class:
            is_case = isinstance(case[1], tuple)
        if not is_case:
            sizes = "(sizes), " if exercise.is_class else ""
            form = f'`yield "label", {sizes}input, …`'
            raise exercise.fault(f"a case is {form}, not {describe(case)}.")
    return cases


def agrees(attempt, inputs=()):
    """Call the answer as a case says, and compare with the oracle."""
    if attempt.exercise.is_class:
        sizes, *inputs = inputs
        attempt.build(*sizes)
    attempt(*inputs)
    return attempt.same()


def message_of(step, attempt):
    """Return what a step finds wrong, or the known mistake that explains it, or ""."""
    try:
        message = step(attempt)
    except Wrong as wrong:
        message = str(wrong)
    except Fault:
        raise
    except Exception as error:  # the step could not use what the answer returned
        if attempt.inputs is None:
            reason = describe_error(error)
            fault = f"a demand raises an error before it calls the answer: {reason}."
            raise attempt.exercise.fault(fault) from error
        message = attempt.unusable(error)
    return message and (known_mistake(attempt) or message)


def known_mistake(attempt):
    """Return the known mistake that explains an answer, or ""."""
    try:
        return attempt.known_mistake()
    except Fault:
        raise
    except Exception:  # the output cannot be compared
        return ""


def blanks_in(exercise, answer):
    """Return what is still to be written, in words, or ""."""
    if exercise.is_value:
        values = [*answer.values()] if isinstance(answer, dict) else answer
        values = values if isinstance(values, (list, tuple)) else [values]
        is_open = any(value is ... for value in values)
        return "Replace the `...` by your answer." if is_open else ""
    if inspect.isclass(answer) and not functions_of(answer):
        return "Still to write: the whole class."
    lines = sorted(blank_lines(tree_of(answer) or ast.Module([], [])))
    words = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
    return f"Still to write: {words} of the cell." if lines else ""


def blank_lines(tree):
    """Return the lines with a `...` that stands for code still to be written."""
    no_blanks = set()  # the dots of an index or of a default value
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            no_blanks.update(ast.walk(node.slice))
        if isinstance(node, ast.arguments):
            no_blanks.update(ast.walk(node))
    return {
        node.lineno
        for node in ast.walk(tree)
        if getattr(node, "value", None) is ... and node not in no_blanks
    }
