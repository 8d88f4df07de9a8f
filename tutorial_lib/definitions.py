"""Definitions: where a function or class is defined, and what its source is.

They are listed of a text, or found through the code of a function or class, because
``inspect.getsource`` fails for classes of a notebook's cell before Python 3.13. What
IPython understands and Python does not is read as ``pass``. Nothing is run.
"""

import ast
import inspect
import linecache
import re
import textwrap
from functools import lru_cache

DEFINITIONS = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef)
# IPython's magics, shell commands and questions.
FOREIGN = re.compile(r"^([ \t]*)(?:[%!?].*|[\w.]+\?+[ \t]*)$", re.MULTILINE)


def as_python(source):
    """Return a cell's source with ``pass`` for what only IPython understands."""
    try:
        ast.parse(source)
    except SyntaxError:
        return FOREIGN.sub(r"\1pass", source)
    return source


def definitions(source):
    """List ``(name, first line, line after the last)`` of top-level definitions.

    Lines count from 0 and include decorators. Raises SyntaxError for what is neither
    Python nor IPython.
    """
    return [
        (node.name, first_line(node) - 1, node.end_lineno)
        for node in ast.parse(as_python(source)).body
        if isinstance(node, DEFINITIONS)
    ]


def source_of(value):
    """Return the source of a function or class, or None if there is none in Python."""
    node, file = _located(value)
    if node is None:
        return None
    lines = linecache.getlines(file)[first_line(node) - 1 : node.end_lineno]
    return textwrap.dedent("".join(lines))


def tree_of(value):
    """Return the syntax tree of a function or class, or None if there is no source."""
    return _located(value)[0]


def _located(value):
    """Return the tree of a function or class and the file it stands in, or Nones."""
    for function in functions_of(value):
        code = function.__code__
        name = value.__name__ if inspect.isclass(value) else code.co_name
        for node in ast.walk(_file(code.co_filename)):
            if getattr(node, "name", None) == name and _covers(node, code):
                return node, code.co_filename
    return None, None


def _covers(node, code):
    if not isinstance(node, DEFINITIONS):
        return False
    return first_line(node) <= code.co_firstlineno <= node.end_lineno


def functions_of(value):
    """Return the Python functions that a value consists of: itself, or its methods."""
    if inspect.isclass(value):
        owned = map(inspect.unwrap, filter(callable, vars(value).values()))
        return [part for part in owned if inspect.isfunction(part)]
    value = inspect.unwrap(value) if callable(value) else value
    return [value] if inspect.isfunction(value) else []


def first_line(node):
    """Return the line, from 1, on which a definition with its decorators begins."""
    return min([node.lineno, *(mark.lineno for mark in node.decorator_list)])


def _file(filename):
    linecache.checkcache(filename)
    return _tree("".join(linecache.getlines(filename)))


@lru_cache(maxsize=32)
def _tree(text):
    """Return the tree of a file's text, which is asked for again and again."""
    try:
        return ast.parse(text)
    except SyntaxError:
        return ast.Module([], [])
