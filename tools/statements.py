"""Cut code cells into statements, and find those that one statement needs.

To know what an answer is worth, only the statements that lead to it have to run, and no
training: the definition itself and whatever gives a value to a name it mentions. Names
alone are seen, and not `table[0] = 1` in another cell. This module runs nothing.
"""

import ast
import builtins
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
    parts = (_parts(node) for node in ast.parse(as_python(source)).body)
    return [_statement(cell, node) for nodes in parts for node in nodes]


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


def leading_to(wanted, known):
    """Return the ``wanted`` statements and all they need, in the order of ``known``.

    A name means what was bound to it last before the statement that needs it, or else
    first after it, as for a function that is called further down.
    """
    waiting = {i for i, one in enumerate(known) if one in wanted or "*" in one.binds}
    found = set()
    while waiting:
        place = waiting.pop()
        found.add(place)
        waiting |= {_binding(name, place, known) for name in known[place].needs}
        waiting -= found | {None}
    return [known[place] for place in sorted(found)]


def _binding(name, place, known):
    """Return the place of what binds a name for the statement here, or None."""
    places = [i for i, one in enumerate(known) if name in one.binds and i != place]
    before = [i for i in places if i < place]
    if hasattr(builtins, name):  # it has a value without being bound
        return max(before, default=None)
    return max(before, default=min(places, default=None))
