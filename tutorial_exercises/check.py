"""Check an answer and use it; ask for a hint, the solution or the progress."""

import ast
import contextlib
import difflib
import inspect
import re
import sys
import warnings

import torch

from tutorial_lib.definitions import functions_of, tree_of
from tutorial_lib.randomness import seed, undisturbed

from .answer import Answer, Printed, error_text
from .cards import Card
from .compare import describe
from .exercise import EXERCISES, Wrong, load_chapters
from .marks import keep, kept

CHECKED = {}  # number of an exercise: (the answer last checked, its card)
ASKED = {}  # number of an exercise: how many of its hints were asked for
MISSING = "The solutions are not part of this copy of the book: ask your instructor."


def check(answer, name=None):
    """Say what is right about an answer and what is not yet.

    answer: a function or class whose name is the exercise's, or any value together with
    the exercise's number (`check(width, "2.1")`).
    Returns a card. Never raises because of an answer, and leaves random state alone.
    """
    try:
        task = None if answer is name is None else find(answer, name)
        if task is None or (isinstance(answer, str) and name is None):
            return unknown(answer, name)
        stopped = _stopped_before(task, answer)
        if stopped:
            return Card("fail", task.heading, stopped)
        card = _examined(task, answer)
        CHECKED[task.number] = answer, card
        card.note = keep(task) if card.passed else ""
        return card
    except Exception as error:  # a fault of the check, or a very odd answer
        said = f"The check itself failed: {error_text(error)}"
        return Card("unknown", "This answer", said)


def use(answer, name=None):
    """Return the answer once it passes its check, until then the library's."""
    task = find(answer, name)
    if task is None:
        print(unknown(answer, name))
        return answer
    checked, card = CHECKED.get(task.number, (None, None))
    if checked is not answer:
        card = check(answer, task.number)
    if card.passed:
        return answer
    print(f"Using the library's {task.name} until yours passes its check.")
    return task.solution if task.shown else task.definition


def hint(answer):
    """Show one more hint for an exercise (a function, a class, a name or a number)."""
    task = find(answer)
    if task is None:
        return unknown(answer)
    total = len(task.hint_list)
    shown = ASKED[task.number] = min(ASKED.get(task.number, 0) + 1, total)
    lines = [f"{n}. {text}" for n, text in enumerate(task.hint_list[:shown], 1)]
    return Card("hint", f"{shown} of {total} · {task.heading}", "\n".join(lines))


def solution(answer):
    """Show a solution of an exercise; `print(solution(…))` shows it as text."""
    task = find(answer)
    if task is None:
        return unknown(answer)
    return Card("solution", task.heading, call=task.call, source=task.shown or MISSING)


def progress(chapter=None):
    """Show which exercises pass: of one chapter, or of all that were ever begun."""
    load_chapters()
    marked, note = kept()
    rows = []
    for task in sorted({*EXERCISES.values()}, key=lambda task: task.order):
        _, card = CHECKED.get(task.number, (None, None))
        status = card.status if card else "open"
        if status == "open" and marked.get(task.number) == task.heading:
            status = "earlier"
        if task.chapter == chapter or (chapter is None and (card or status != "open")):
            rows.append((status, task.heading))
    done = sum(status in ("pass", "earlier") for status, _ in rows)
    heading = f"{done} of {len(rows)} exercises passed"
    return Card("overview", heading, rows=rows, note=note)


def find(answer, name=None):
    """Return the exercise that an answer belongs to, by its own or the given name."""
    load_chapters()
    key = getattr(answer, "__name__", answer) if name is None else str(name)
    return EXERCISES.get(key) if isinstance(key, str) else None


def unknown(answer, name=None):
    """Return a card that says why this is no exercise, and what was perhaps meant."""
    key = str(getattr(answer, "__name__", answer) if name is None else name)[:60]
    task = find(answer, name) or find(type(answer))
    close = difflib.get_close_matches(key, EXERCISES, n=1)
    said = 'Say which exercise it answers: `check(answer, "1.1")`.'
    if task:
        call = f"answer, {task.call}" if task.is_value else task.call
        said = f"Check the answer itself: `check({call})`."
    elif close:
        said = f"Did you mean `{EXERCISES[close[0]].call}`?"
    return Card("unknown", f"There is no exercise {key!r}", said)


def _examined(task, answer):
    """Run the steps until one finds something; return the card."""
    printed = Printed()
    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
        torch.inference_mode(False),
        torch.enable_grad(),
        undisturbed(),
    ):
        warnings.simplefilter("ignore")
        rows, message = _run_steps(task, answer)
    if not message:
        return Card("pass", task.heading, rows=rows)
    help = {"hints": task.hint_list, "call": task.call}
    todo = _still_open(task, answer)
    if todo:
        return Card("open", task.heading, todo, **help)
    lines = printed.getvalue().splitlines()[:5]
    return Card("fail", task.heading, message, rows, lines, **help)


def _run_steps(task, answer):
    """Return rows (status, label), and what to say of the first step that failed."""
    rows, message = {}, ""
    fits = callable(answer) and inspect.isclass(answer) == task.is_class
    if not (task.is_value or fits):
        kind = "class" if task.is_class else "function"
        message = f"This exercise asks for a {kind} {task.name}."
    for number, (label, step) in enumerate(task.steps or [("", _the_value)]):
        seed(number)
        for name, *inputs in [(label,)] if label else [*step()]:
            if message:
                rows.setdefault(name, "open")
                continue
            message = _said(step if label else _agree, Answer(task, answer), inputs)
            rows[name] = "fail" if message else "pass"
    return [(status, label) for label, status in rows.items()], message


def _the_value():
    """Give the one case of an exercise that asks for a value."""
    yield ("the right value",)


def _agree(answer, *inputs):
    """Call the answer as a case says, and compare."""
    if answer.task.is_class:
        sizes, *inputs = inputs
        answer.build(*sizes)
    answer(*inputs)
    return answer.same()


def _said(step, answer, inputs):
    """Return what a step finds, or the known mistake that it shows, or ""."""
    try:
        message = step(answer, *inputs)
    except Wrong as wrong:
        message = str(wrong)
    except Exception as error:  # the step could not use what it was given
        message = (
            f"Your code returned {describe(answer.output)}, which the check could "
        )
        message += f"not work with ({error_text(error)})."
    return message and (answer.known_mistake() or message)


def _still_open(task, answer):
    """Return what is still to be written, in words, or ""."""
    if task.is_value:
        values = [*answer.values()] if isinstance(answer, dict) else answer
        values = values if isinstance(values, (list, tuple)) else [values]
        is_open = any(value is ... for value in values)
        return "Replace the `...` by your answer." if is_open else ""
    if inspect.isclass(answer) and not functions_of(answer):
        return "Still to write: the whole class."
    tree = tree_of(answer)
    lines = [str(line) for line in sorted({*_blanks(tree)})] if tree else []
    words = f"lines {', '.join(lines)}" if lines[1:] else f"line {''.join(lines)}"
    return f"Still to write: {words} of the cell." if lines else ""


def _blanks(node):
    """Yield the lines with a `...`, but for those of an index or a default value."""
    if isinstance(node, ast.Constant) and node.value is ...:
        yield node.lineno
    for child in ast.iter_child_nodes(node):
        is_index = isinstance(node, ast.Subscript) and child is node.slice
        if not is_index and not isinstance(child, ast.arguments):
            yield from _blanks(child)


def _stopped_before(task, answer):
    """Return what to tell whoever checks an answer whose new cell stopped, or ""."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    last = getattr(shell, "last_execution_result", None)
    error = last and (last.error_before_exec or last.error_in_exec)
    if not error:
        return ""
    names = [task.name]
    if task.is_value:
        names = [name for name, value in shell.user_ns.items() if value is answer]
    bound = rf"^(?:(?:def|class) +)?(?:{'|'.join(map(re.escape, names))})\b *[:(=]"
    if not re.search(bound, last.info.raw_cell or "", re.M):
        return ""
    said = error_text(error).split("\n")[0]
    return (
        f"The cell you ran before this one stopped with `{said}`, so your answer is "
        "still the one from before. Mend that cell, run it, and check again."
    )
