"""The source of a class or function, as a page shows it.

Classes of a notebook's cells have a source, too, though ``inspect`` does not find it:
it is looked up through their methods.

This module knows neither what the code computes nor where it is shown.
"""

import ast
import inspect
import io
import itertools
import textwrap
import tokenize

DEFINITIONS = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef)
BLANK = (tokenize.NL, tokenize.COMMENT)
BEFORE_STATEMENT = (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


def source_of(value):
    """Return the source of a class or function, or None if there is none in Python."""
    value = inspect.unwrap(value) if callable(value) else value
    owned = vars(value).values() if inspect.isclass(value) else [value]
    for function in filter(inspect.isfunction, map(inspect.unwrap, owned)):
        try:
            lines, _ = inspect.findsource(function)
        except OSError:
            continue
        found = _definition(lines, value.__name__, function.__code__.co_firstlineno)
        if found:
            return found
    return None


def _definition(lines, name, place):
    """Return the definition of ``name`` that has line ``place`` of a file in it."""
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, DEFINITIONS) and node.name == name:
            first = min(part.lineno for part in [node, *node.decorator_list])
            if first <= place <= node.end_lineno:
                return textwrap.dedent("".join(lines[first - 1 : node.end_lineno]))
    return None


def cut_at_comments(source):
    """Return the source in parts: code, comment or docstring, code and so on."""
    starts = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]
    cuts, before = [0], tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        documents = token.type == tokenize.STRING and before in BEFORE_STATEMENT
        if documents or token.type == tokenize.COMMENT:
            cuts += [starts[row - 1] + column for row, column in token[2:4]]
        if token.type not in BLANK:
            before = token.type
    return [source[a:b] for a, b in itertools.pairwise([*cuts, len(source)])]


def lines_with(source, marks):
    """Return which lines, counted from 0, contain one of the texts ``marks``."""
    lines = enumerate(source.splitlines())
    return [i for i, line in lines if any(mark in line for mark in marks)]
