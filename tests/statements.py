"""Cut code cells into statements, and say which names each binds and needs.

Names alone are seen, and not `table[0] = 1` in another cell. Nothing is run.
"""

import ast
import symtable
from typing import NamedTuple

from tutorial_lib.definitions import as_python


class Statement(NamedTuple):
    """A top-level statement of a cell, the names it binds and those it needs."""

    cell: object
    node: ast.stmt
    binds: set
    needs: set


def statements(cell, source):
    """Return a cell's statements; raises SyntaxError if it is not Python.

    ``cell`` is kept with each, whatever it is. IPython's magics are left out, and what
    stands in ``with claim(…):`` counts by itself.
    """
    nodes = []
    for node in ast.parse(as_python(source)).body:
        nodes += _parts(node)
    return [_statement(cell, node) for node in nodes]


def _parts(node):
    """Return the statements of a claim, or one that is none."""
    return node.body if ast.unparse(node).startswith("with claim(") else [node]


def _statement(cell, node):
    table = symtable.symtable(ast.unparse(node), "<cell>", "exec")
    symbols = table.get_symbols()
    binds = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
        binds.add("*")
    updates = [inner for inner in ast.walk(node) if isinstance(inner, ast.AugAssign)]
    updated = binds & {ast.unparse(update.target) for update in updates}  # name += 1
    return Statement(cell, node, binds, _needs(table) | updated)


def _needs(table):
    """Return the names that a scope and those within it take from outside."""
    names = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_global()
        and (symbol.is_referenced() or symbol.is_declared_global())
    }
    return names.union(*map(_needs, table.get_children()))
