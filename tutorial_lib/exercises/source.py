"""Read an answer's source: what is still blank, and on which line something happened.

Sources are found through code objects and `linecache`, because `inspect.getsource`
fails for classes that were defined in a notebook cell. Nothing here runs an answer.
"""

import ast
import inspect
import linecache
import os
import traceback


def open_lines(answer):
    """Return the lines of a function or class that are still to be written.

    Open are: a `...` anywhere but in an index (`x[..., 0]`) or a default value, a
    `raise NotImplementedError`, and a body with nothing but a docstring or `pass`.
    """
    tree = _definition(answer)
    return sorted({node.lineno for node in _open(tree)}) if tree else []


def is_bare_class(answer):
    """Whether this is a class in which no function is defined yet."""
    return inspect.isclass(answer) and not _functions(answer)


def calls(answer, name):
    """Whether a function or class mentions a name (also if its source is unknown)."""
    tree = _definition(answer)
    if tree is None:
        return True
    return any(getattr(node, "id", None) == name for node in ast.walk(tree))


def place(answer, lines):
    """Say where lines are: "line 3 of the cell", "lines 3 and 5 of answers.py"."""
    filename = _functions(answer)[0].__code__.co_filename
    whole = os.path.basename(filename) if os.path.exists(filename) else "the cell"
    *first, last = map(str, lines)
    numbers = f"lines {', '.join(first)} and {last}" if first else f"line {last}"
    return f"{numbers} of {whole}"


def failing_line(answer, error):
    """Return the answer's own innermost line under an error, as text, or ""."""
    files = {function.__code__.co_filename for function in _functions(answer)}
    frames = traceback.extract_tb(error.__traceback__)
    mine = [frame for frame in frames if frame.filename in files]
    return f"{place(answer, [mine[-1].lineno])}:  {mine[-1].line}" if mine else ""


def globals_of(answer):
    """Return the global names that a function, or a class's methods, can see."""
    functions = _functions(answer)
    return functions[0].__globals__ if functions else {}


def _functions(answer):
    """Return the Python functions an answer consists of: itself, or its methods."""
    if inspect.isclass(answer):
        return [value for value in vars(answer).values() if inspect.isfunction(value)]
    answer = inspect.unwrap(answer) if callable(answer) else answer
    return [answer] if inspect.isfunction(answer) else []


def _definition(answer):
    """Return the syntax tree of the `def` or `class`, or None if there is no source."""
    for function in _functions(answer):
        code = function.__code__
        name = answer.__name__ if inspect.isclass(answer) else code.co_name
        for node in ast.walk(_file(code.co_filename)):
            if getattr(node, "name", None) == name and _covers(node, code):
                return node
    return None


def _file(filename):
    linecache.checkcache(filename)
    try:
        return ast.parse("".join(linecache.getlines(filename)))
    except SyntaxError:
        return ast.Module([], [])


def _covers(node, code):
    first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
    return first <= code.co_firstlineno <= node.end_lineno


def _open(node):
    if _is_hole(node) or _is_unwritten(node):
        yield node
    else:
        for child in _children(node):
            yield from _open(child)


def _children(node):
    """Yield the nodes below, but no index and no parameters."""
    for name, value in ast.iter_fields(node):
        if isinstance(node, ast.Subscript) and name == "slice":
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.arguments):
                yield child


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
    value = line.value if isinstance(line, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
