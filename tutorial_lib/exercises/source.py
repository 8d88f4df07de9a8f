"""Read an answer's source: what is still blank, and on which line something happened.

Sources are found through code objects and `linecache`, because `inspect.getsource`
fails for classes that were defined in a notebook cell. Nothing here runs an answer.
"""

import ast
import inspect
import linecache
import os
import traceback


def code_of(answer):
    """Return a code object of a function or a class's first own method, or None."""
    answer = inspect.unwrap(answer) if callable(answer) else answer
    if inspect.isclass(answer):
        methods = (vars(answer)[name] for name in vars(answer))
        return next((m.__code__ for m in methods if inspect.isfunction(m)), None)
    return getattr(answer, "__code__", None)


def globals_of(answer):
    """Return the global names a function or a class's methods see."""
    answer = inspect.unwrap(answer) if callable(answer) else answer
    if inspect.isclass(answer):
        methods = [m for m in vars(answer).values() if inspect.isfunction(m)]
        answer = methods[0] if methods else None
    return getattr(answer, "__globals__", {})


def definition(answer):
    """Return the syntax tree of the `def` or `class`, or None if there is no source."""
    code = code_of(answer)
    if code is None:
        return None
    linecache.checkcache(code.co_filename)
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    name = answer.__name__ if inspect.isclass(answer) else code.co_name
    around = [node for node in ast.walk(tree) if _covers(node, name, code)]
    return around[-1] if around else None


def _covers(node, name, code):
    if getattr(node, "name", None) != name:
        return False
    first = min([node.lineno] + [d.lineno for d in node.decorator_list])
    return first <= code.co_firstlineno <= node.end_lineno


def open_lines(answer):
    """Return the lines of a function or class that are still to be written.

    Open are: a `...` anywhere but in an index (`x[..., 0]`) or a default value, a
    `raise NotImplementedError`, and a body with nothing but a docstring or `pass`.
    """
    tree = definition(answer)
    if tree is None:
        return []
    return sorted({node.lineno for node in _open(tree)})


def _open(node):
    if _is_hole(node) or _is_unwritten(node):
        yield node
        return
    for field, child in _children(node):
        if not (isinstance(node, ast.Subscript) and field == "slice"):
            yield from _open(child)


def _children(node):
    for field, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.arguments):
                yield field, child


def _is_hole(node):
    if isinstance(node, ast.Raise):
        raised = getattr(node.exc, "func", node.exc)
        return getattr(raised, "id", None) == "NotImplementedError"
    return isinstance(node, ast.Constant) and node.value is Ellipsis


def _is_unwritten(node):
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return False
    return all(isinstance(line, ast.Pass) or _is_text(line) for line in node.body)


def _is_text(line):
    value = getattr(line, "value", None) if isinstance(line, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def place(answer, lines):
    """Say where lines are: "line 3 of the cell", "lines 3 and 5 of answers.py"."""
    filename = code_of(answer).co_filename
    whole = os.path.basename(filename) if os.path.exists(filename) else "the cell"
    *first, last = map(str, lines)
    numbers = f"lines {', '.join(first)} and {last}" if first else f"line {last}"
    return f"{numbers} of {whole}"


def failing_line(answer, error):
    """Return the answer's own innermost line under an error, as text, or ""."""
    code = code_of(answer)
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if code and frame.filename == code.co_filename]
    if not mine:
        return ""
    return f"{place(answer, [mine[-1].lineno])}:  {mine[-1].line}"
