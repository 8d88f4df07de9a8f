"""Cut code cells into statements, and find those that one statement needs.

A notebook that is handed in holds trainings, figures and accidents. To know what one
answer is worth, only the statements that lead to it have to run: the definition itself
and, again and again, whatever gives a value to a name it mentions.

This module runs nothing. It sees names alone: what else changes a value, such as
`table[0] = 1` in another cell, is not seen.
"""

import ast
import builtins
import symtable
from bisect import bisect_left, bisect_right
from dataclasses import dataclass

from tutorial_lib.definitions import as_python


@dataclass(frozen=True, eq=False)
class Statement:
    """A top-level statement of a cell, the names it binds and those it needs.

    structure: its syntax, by which two statements are known to be the same.
    """

    cell: object
    node: ast.stmt
    binds: frozenset
    needs: frozenset
    structure: str


def statements(cell, source):
    """Return a cell's statements; raises SyntaxError if it is not Python.

    ``cell`` is kept with each, whatever it is. IPython's magics are left out.
    """
    return [_statement(cell, node) for node in ast.parse(as_python(source)).body]


def _statement(cell, node):
    table = symtable.symtable(ast.unparse(node), "<cell>", "exec")
    symbols = table.get_symbols()
    binds = {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
    needs = {
        symbol.get_name()
        for scope in _scopes(table)
        for symbol in scope.get_symbols()
        if symbol.is_global()
        and (symbol.is_referenced() or symbol.is_declared_global())
    }
    needs |= set(_updated(node))
    return Statement(cell, node, frozenset(binds), frozenset(needs), ast.dump(node))


def _updated(node):
    """Yield the names of `name += 1`, but for a function's own."""
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        yield node.target.id
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        for child in ast.iter_child_nodes(node):
            yield from _updated(child)


def _scopes(table):
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def leading_to(wanted, known):
    """Return the ``wanted`` statements and all they need, in the order of ``known``.

    A name means what was bound to it last before the statement that needs it, or else
    first after it, as for a function that is called further down.
    """
    places, bound = {}, {}
    for place, statement in enumerate(known):
        places[id(statement)] = place
        for name in statement.binds:
            bound.setdefault(name, []).append(place)
    waiting = [places[id(statement)] for statement in wanted]
    waiting += [place for place, one in enumerate(known) if _imports_all(one.node)]
    found = set()
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            for name in known[place].needs:
                waiting += _binding(name, place, bound.get(name, []))
    return [known[place] for place in sorted(found)]


def _binding(name, place, places):
    """Return the one of ``places`` that binds a name for a statement, in a list."""
    before, after = bisect_left(places, place), bisect_right(places, place)
    if hasattr(builtins, name):  # it has a value without being bound
        after = len(places)
    return places[max(before - 1, 0) : before] or places[after : after + 1]


def _imports_all(node):
    return isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
