"""Check an answer and use it; ask for a hint, the solution or the progress."""

import ast
import contextlib
import difflib
import inspect
import re
import sys
import warnings
from types import SimpleNamespace
from unittest import mock

import torch

from tutorial_lib.definitions import functions_of, tree_of
from tutorial_lib.randomness import seed, undisturbed

from .answer import ASKS, Answer, Printed, error_text
from .cards import Card
from .compare import describe
from .exercise import EXERCISES, Exercise, Fault, Wrong, load_chapters
from .marks import keep, kept

CHECKED = {}  # number of an exercise: (the answer last checked, its card's status)
ASKED = {}  # number of an exercise: how many of its hints were asked for
CALL = re.compile(r"(check|hint|solution)\((\w+)\)")
MISSING = "The solutions are not part of this copy of the book: ask your instructor."


def check(answer, name=None):
    """Say what is right about an answer and what is not yet.

    answer: a function or class whose name is the exercise's; any value together with
    the exercise's number (`check(width, "2.1")`); or only the number of a function or
    class, which is then looked for in the notebook.
    Returns a card. Never raises because of an answer, and leaves random state alone.
    """
    try:
        task = find(answer, name)
        note = ""
        if task is None:
            return unknown(answer, name)
        _refuse_what_was_before(task, answer)
        if isinstance(answer, Exercise):  # its author tries the solution
            answer = answer.solution() if task.is_value else answer.solution
        if isinstance(answer, (str, float)) and name is None:
            answer, note = _looked_for(task)
        card = _examined(task, answer)
        CHECKED[task.number] = answer, card.status
        card.note = f"{note}\n{keep(task) if card.passed else ''}".strip()
        return card
    except Wrong as wrong:
        return Card("unknown", task.heading, str(wrong))
    except Exception as error:  # a fault of the check, or a very odd answer
        return Card("unknown", "The check itself failed", error_text(error))


def use(answer, name=None):
    """Return the answer once it passes its check, until then the library's."""
    task = find(answer, name)
    if task is None:
        print(unknown(answer, name))
        return answer
    checked, status = CHECKED.get(task.number, (None, None))
    if checked is not answer:
        status = check(answer, task.number).status
    if status == "pass":
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
    chapters = {task.chapter for task in EXERCISES.values()}
    asked = None if chapter is None else str(chapter).lstrip("0")
    if asked is not None and asked not in map(str, chapters):
        said = f"There are exercises in chapters {min(chapters)} to {max(chapters)}."
        return Card("unknown", f"There is no chapter {chapter!r}", said)
    marked, note = kept()
    rows = []
    for task in sorted({*EXERCISES.values()}, key=lambda task: task.order):
        _, status = CHECKED.get(task.number, (None, "open"))
        if status == "open" and marked.get(task.number) == task.heading:
            status = "earlier"
        is_begun = task.number in CHECKED or status != "open"
        if str(task.chapter) == asked or (asked is None and is_begun):
            rows.append((status, task.heading))
    done = sum(status in ("pass", "earlier") for status, _ in rows)
    heading = f"{done} of {len(rows)} exercises passed"
    return Card("overview", heading, rows=rows, note=note)


def find(answer, name=None):
    """Return the exercise of a name, a number or an answer, or None."""
    load_chapters()
    if isinstance(answer, Exercise):
        return answer
    if isinstance(answer, float):  # a number without its quotes
        answer = str(answer)
    names = [getattr(answer, "__name__", answer) if name is None else str(name)]
    if name is None and callable(answer):  # a lambda in a variable, or a module
        names += [key for key, value in shell().user_ns.items() if value is answer]
        names += [type(answer).__name__]
    found = (EXERCISES.get(key) for key in names if isinstance(key, str))
    return next(filter(None, found), None)


def shell():
    """Return the IPython that runs the notebook, or what stands for it elsewhere."""
    names = vars(sys.modules["__main__"])
    return names.get("get_ipython", lambda: SimpleNamespace(user_ns=names))()


def by_name(lines):
    """Ask about a name, in quotes, where the notebook has lost what it stood for."""
    call = CALL.match(lines[0]) if lines else None
    if call and call[2].isidentifier() and call[2] not in shell().user_ns:
        return [lines[0].replace(call[2], f'"{call[2]}"', 1), *lines[1:]]
    return lines


if hasattr(shell(), "input_transformers_cleanup"):  # in a notebook
    shell().input_transformers_cleanup.append(by_name)


def unknown(answer, name=None):
    """Return a card that says why this is no exercise, and what was perhaps meant."""
    key = str(getattr(answer, "__name__", answer) if name is None else name)[:60]
    heading = f"There is no exercise {key!r}" if key != "<lambda>" else "A lambda"
    said = 'Say which exercise it answers: `check(answer, "1.2")`.'
    numbers = [task.number for task in {*EXERCISES.values()}]
    same = sorted(n for n in numbers if n.split(".")[0] == key.split(".")[0])
    if same and "." in key:
        said = f'That chapter has {", ".join(same)}: `check(answer, "{same[0]}")`.'
    else:
        for close in difflib.get_close_matches(key, EXERCISES, n=1):
            said = f"Did you mean `{EXERCISES[close].call}`?"
    return Card("unknown", heading, said)


def _looked_for(task):
    """Return a task's answer in the notebook and where it is, or raise Wrong."""
    if task.is_value:
        raise Wrong(f'Check your variable itself: `check(answer, "{task.number}")`.')
    names = shell().user_ns
    wanted = inspect.signature(task.solution)
    if task.name in names:
        return names[task.name], f"This is about the notebook's `{task.name}`."
    is_kind = inspect.isclass if task.is_class else inspect.isfunction
    for name, value in reversed(names.items()):  # the book's own come first
        is_own = is_kind(value) and value.__module__ == "__main__" and name[0] != "_"
        with contextlib.suppress(ValueError):  # of a class whose arguments are unknown
            arguments = [*inspect.signature(value).parameters] if is_own else ()
            if arguments == [*wanted.parameters] and not find(value):
                return value, (
                    f"There is no `{task.name}`, so this is about `{name}`, which has "
                    "the same arguments. Rename it: other cells may need it."
                )
    raise Wrong(
        f"There is no `{task.name}{wanted}` in this notebook: run the cell that "
        "defines it, or define it again if you renamed or deleted it."
    )


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
        mock.patch("builtins.input", side_effect=Wrong(ASKS)),
        mock.patch.object(shell(), "ask_exit", sys.exit, create=True),  # quit()
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
    rows = {}
    message = ""
    fits = callable(answer) and inspect.isclass(answer) == task.is_class
    if not (task.is_value or fits):
        kind = "class" if task.is_class else "function"
        message = f"This exercise asks for a {kind} {task.name}."
    for number, (label, step) in enumerate(task.steps or [("the right value", _agree)]):
        seed(number)
        for name, *inputs in [(label,)] if label else _cases(task, step):
            if message:
                rows.setdefault(name, "open")
                continue
            message = _said(step if label else _agree, Answer(task, answer), inputs)
            rows[name] = "fail" if message else "pass"
    return [(status, label) for label, status in rows.items()], message


def _cases(task, generate):
    """Return the cases that a generator makes. Raises ValueError for what is none."""
    cases = [*(generate() or [None])]
    parts = (str, tuple)[: 1 + task.is_class]
    for case in cases:
        if not (isinstance(case, tuple) and all(map(isinstance, case, parts))):
            form = f'`yield "label", {"(sizes), " * task.is_class}input, …`'
            raise task.fault(f"a case is {form}, not {describe(case)}.")
    return cases


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
    except Fault:
        raise
    except Exception as error:  # the step could not use what it was given
        got, why = describe(answer.output), error_text(error)
        if answer.inputs is None:
            said = "a demand raises an error before it calls the answer"
            raise answer.task.fault(f"{said}: {why}.") from error
        message = f"Your code returned {got}, which the check could not use ({why})."
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
    nodes = [*ast.walk(tree_of(answer) or ast.Module([], []))]
    # The dots of an index or of a default value are no blanks.
    quiet = [node for node in nodes if isinstance(node, (ast.Subscript, ast.arguments))]
    spared = {part for node in quiet for part in ast.walk(getattr(node, "slice", node))}
    dots = [node for node in nodes if getattr(node, "value", 0) is ...]
    lines = sorted({node.lineno for node in dots if node not in spared})
    words = f"line{'s' * (len(lines) > 1)} {', '.join(map(str, lines))}"
    return f"Still to write: {words} of the cell." if lines else ""


def _refuse_what_was_before(task, answer):
    """Raise Wrong where the cell that makes a new answer has just stopped."""
    last = getattr(shell(), "last_execution_result", None)
    error = last and (last.error_before_exec or last.error_in_exec)
    names = [task.name]
    if task.is_value:
        names = [name for name, value in shell().user_ns.items() if value is answer]
    bound = rf"^(?:(?:def|class) +)?(?:{'|'.join(map(re.escape, names))})\b *[:(=]"
    if error and re.search(bound, last.info.raw_cell or "", re.M):
        said = error_text(error).split("\n")[0]
        raise Wrong(
            f"The cell you ran before this one stopped with `{said}`, so your answer "
            "is still the one from before. Mend that cell, run it, and check again."
        )
