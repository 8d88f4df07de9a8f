"""Read an answer's source: what is still blank, where it failed, and whether it is old.

An answer is old where the cell that should have replaced it stopped with an error: a
notebook goes on, and the name keeps what it meant before.

Nothing here runs an answer, or knows what one should be.
"""

import ast
import inspect
import os
import re
import sys
import traceback

from tutorial_lib.definitions import functions_of, tree_of

BINDS = re.compile(r"^(?:(?:def|class)[ ]+(\w+)|(\w+)[ ]*(?::[^=\n]+)?=(?!=))", re.M)


def open_lines(answer):
    """Return the lines of a function or class that seem to be still to write.

    These are a `...` anywhere but in an index (`x[..., 0]`) or a default value, and of
    the function, or of the class's methods, a body with nothing but a docstring or
    `pass` and a `raise NotImplementedError` that stands under no condition.
    An answer that is right may hold such lines as well.
    """
    tree = tree_of(answer)
    if tree is None:
        return []
    parts = tree.body if isinstance(tree, ast.ClassDef) else [tree]
    functions = [part for part in parts if isinstance(part, ast.FunctionDef)]
    return sorted({*_holes(tree), *(n for part in functions for n in _unwritten(part))})


def is_bare_class(answer):
    """Whether this is a class in which no function is defined yet."""
    return inspect.isclass(answer) and not functions_of(answer)


def calls(answer, name):
    """Whether a function or class mentions a name (also if its source is unknown)."""
    tree = tree_of(answer)
    if tree is None:
        return True
    return any(getattr(node, "id", None) == name for node in ast.walk(tree))


def place(answer, lines):
    """Say where lines are: "line 3 of the cell", "lines 3 and 5 of answers.py"."""
    filename = functions_of(answer)[0].__code__.co_filename
    whole = os.path.basename(filename) if os.path.exists(filename) else "the cell"
    *first, last = map(str, lines)
    numbers = f"lines {', '.join(first)} and {last}" if first else f"line {last}"
    return f"{numbers} of {whole}"


def failing_line(answer, error):
    """Return the answer's own innermost line under an error, as text, or ""."""
    files = {function.__code__.co_filename for function in functions_of(answer)}
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if frame.filename in files]
    return f"{place(answer, [mine[-1].lineno])}: `{mine[-1].line}`" if mine else ""


def globals_of(answer):
    """Return the global names that a function, or a class's methods, can see."""
    functions = functions_of(answer)
    return functions[0].__globals__ if functions else {}


def _holes(node):
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        yield node.lineno
    for child in _children(node):
        yield from _holes(child)


def _children(node):
    """Yield the nodes below, but no index and no parameters."""
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.Subscript) and name == "slice":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.arguments):
                yield child


def _unwritten(function):
    """Yield the lines of a function that stand in for its body."""
    if all(isinstance(line, ast.Pass) or _is_text(line) for line in function.body):
        yield function.lineno
    yield from (line.lineno for line in function.body if _is_refusal(line))


def _is_refusal(line):
    raised = line.exc if isinstance(line, ast.Raise) else None
    return getattr(getattr(raised, "func", raised), "id", "") == "NotImplementedError"


def _is_text(line):
    value = line.value if isinstance(line, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def stopped_before(exercise, answer):
    """Return what to tell whoever checks an old answer, or ""."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    last = getattr(shell, "last_execution_result", None)
    error = last and (last.error_before_exec or last.error_in_exec)
    if not error or not _is_about(last.info.raw_cell, exercise, answer, shell.user_ns):
        return ""
    lines = str(error).splitlines() or [""]
    said = f"{type(error).__name__}: {lines[0]}".removesuffix(": ")
    return (
        f"The cell you ran before this one stopped with `{said}`, so your answer is "
        "still the one from before. Mend that cell, run it, and check again."
    )


def _is_about(source, exercise, answer, names):
    """Whether a cell would have given the answer its name."""
    bound = {name for names in BINDS.findall(source or "") for name in names if name}
    if not exercise.is_value:
        return exercise.name in bound
    return any(names.get(name) is answer for name in bound)
