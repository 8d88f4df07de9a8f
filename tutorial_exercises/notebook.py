"""What the notebook holds: the answer to an exercise, and the cell that ran last."""

import ast
import inspect
import re
import sys
import traceback
from types import SimpleNamespace

from .compare import describe_error
from .exercise import Wrong, find


def shell():
    """Return the IPython that runs the notebook, or what stands for it elsewhere."""
    names = vars(sys.modules["__main__"])
    return names.get("get_ipython", lambda: SimpleNamespace(user_ns=names))()


def names_of(value):
    """Return the variables of the notebook that hold this very value."""
    return [name for name, other in shell().user_ns.items() if other is value]


def answer_in_notebook(exercise):
    """Return an exercise's answer in the notebook and a note on which; or raise Wrong.

    It has the exercise's name, or else another and the same arguments.
    """
    if exercise.is_value:
        number = exercise.number
        raise Wrong(f'Check your variable itself: `check(answer, "{number}")`.')
    names = shell().user_ns
    if exercise.name in names:
        note = f"This is about the notebook's `{exercise.name}`."
        return names[exercise.name], note
    for name, value in reversed(names.items()):  # the book's own come first
        if _could_be(value, exercise) and not name.startswith("_"):
            return value, (
                f"There is no `{exercise.name}`, so this is about `{name}`, which has "
                "the same arguments. If it is your answer, rename it, since other "
                f"cells may need it; if not, run the cell of `{exercise.name}`."
            )
    raise Wrong(
        f"There is no `{exercise.name}{inspect.signature(exercise.solution)}` in this "
        "notebook: run the cell that defines it, and mend it first if it stops with an "
        "error; or define it again if you renamed or deleted it."
    )


def _could_be(value, exercise):
    """Whether a student's function or class is an answer under another name."""
    is_kind = inspect.isclass if exercise.is_class else inspect.isfunction
    if not is_kind(value) or value.__module__ != "__main__" or find(value.__name__):
        return False
    try:
        arguments = inspect.signature(value).parameters
    except ValueError:  # of a class whose arguments are unknown
        return False
    return [*arguments] == [*inspect.signature(exercise.solution).parameters]


def refuse_stale(exercise, answer):
    """Raise Wrong where the cell of a new answer has just stopped before it made it."""
    last = getattr(shell(), "last_execution_result", None)
    error = last and (last.error_before_exec or last.error_in_exec)
    if not error:
        return
    names = names_of(answer) if exercise.is_value else [exercise.name]
    name = rf"(?:{'|'.join(map(re.escape, names))})\b *"
    bound = rf"^(?:(?:def|class) +{name}[:(]|{name}(?::|=(?!=)))"  # and no call of it
    binds = re.compile(bound, re.MULTILINE).search
    source = last.info.raw_cell or ""
    if binds(source) and not _is_made(source, binds, error):
        first_line = describe_error(error).split("\n")[0]
        raise Wrong(
            f"The cell you ran before this one stopped with `{first_line}`, so your "
            "answer is still the one from before. Mend that cell, run it, and check "
            "again."
        )


def _is_made(source, binds, error):
    """Whether a cell had run all that binds an answer when it stopped with an error."""
    names = shell().user_ns
    frames = traceback.walk_tb(error.__traceback__)
    line = next((line for frame, line in frames if frame.f_globals is names), 0)
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # also of a magic
        return False
    makers = [s for s in statements if binds(ast.get_source_segment(source, s))]
    return bool(makers) and makers[-1].end_lineno < line
