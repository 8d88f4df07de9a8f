"""The visible code of a page can be typed along: one idea a line, one meaning a name.

A loop's variables may be used again.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest

from tools.notebooks import chapters, code_cells, read_notebook, source_of, tags_of
from tutorial_lib.definitions import as_python

ROOT = Path(__file__).parents[1]
HIDDEN = {"aside", "check", "claim", "exercise", "picture", "remove-cell", "setup"}
HIDDEN = HIDDEN | {"solution"}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LONGEST = 25  # lines of a function


def visible(notebook):
    """Return the code cells that a reader of the page sees, by their names."""
    cells = [cell for cell in code_cells(notebook) if not HIDDEN & {*tags_of(cell)}]
    return {cell["id"]: ast.parse(as_python(source_of(cell))) for cell in cells}


# --- What may stand in no cell ----------------------------------------------------


def packed(node):
    """Several names get values of different kinds: a call beside a list, say."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    several = isinstance(node.targets[0], ast.Tuple)
    return several and len({kind(value) for value in node.value.elts}) > 1


def kind(value):
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)):
        return "what is there"
    return type(value).__name__


def nested_comprehension(node):
    inside = [other for other in ast.walk(node) if other is not node]
    return isinstance(node, COMPREHENSIONS) and any(
        isinstance(other, COMPREHENSIONS) for other in inside
    )


def walrus(node):
    return isinstance(node, ast.NamedExpr)


def updated_by_or(node):
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.BitOr)


def dictionary_in_a_loop_s_head(node):
    return isinstance(node, ast.For) and any(
        isinstance(part, ast.Dict) for part in ast.walk(node.iter)
    )


def flow_by_and(node):
    """Something is called, or a function made, only if what stands before is true."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.BoolOp)
    values = node.values if isinstance(node, ast.BoolOp) else []
    return any(isinstance(value, ast.Lambda) for value in values)


def sizes_by_star(node):
    """Take whatever sizes come, in a constructor."""
    return isinstance(node, FUNCTIONS) and node.name == "__init__" and node.args.vararg


def long_function(node):
    return isinstance(node, FUNCTIONS) and node.end_lineno - node.lineno >= LONGEST


NOWHERE = [
    packed,
    nested_comprehension,
    walrus,
    updated_by_or,
    dictionary_in_a_loop_s_head,
    flow_by_and,
    sizes_by_star,
    long_function,
]


def faults(cells):
    """Say where code is packed, for trees of cells by their names."""
    for name, tree in cells.items():
        for node in ast.walk(tree):
            for rule in NOWHERE:
                if rule(node):
                    yield f"{name}, line {node.lineno}: {rule.__name__}"
    nodes = [node for tree in cells.values() for node in ast.walk(tree)]
    lambdas = sum(isinstance(node, ast.Lambda) for node in nodes)
    if lambdas > 2:
        yield f"{lambdas} lambdas"
    bound = Counter(name for tree in cells.values() for name in {*binds(tree)})
    for name, times in bound.items():
        if times > 1:
            yield f"{name} is bound in {times} cells"


def binds(tree):
    """Yield the names to which a cell's own lines give a meaning."""
    for node in tree.body:
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
            yield node.name
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            for target in targets:
                names = (n for n in ast.walk(target) if isinstance(n, ast.Name))
                yield from (n.id for n in names if isinstance(n.ctx, ast.Store))


@pytest.mark.parametrize("path", chapters(ROOT), ids=lambda path: path.stem)
def test_the_visible_code_can_be_typed_along(path):
    assert [*faults(visible(read_notebook(path)))] == []


@pytest.mark.parametrize("path", chapters(ROOT), ids=lambda path: path.stem)
def test_no_cell_is_kept_from_being_formatted(path):
    cells = code_cells(read_notebook(path))
    assert [cell["id"] for cell in cells if "fmt: skip" in source_of(cell)] == []


# --- The rules themselves ---------------------------------------------------------

GOOD = """
query, key = 1, other
for name, sizes in table.items():
    total += len(name)
def shown(x):
    return [f(y) for y in x if y and g(y)]
best = max(table, key=lambda name: table[name])
"""
BAD = {
    "packed": "optimizer, losses = AdamW(), []",
    "nested_comprehension": "rows = [[f(x) for x in row] for row in table]",
    "walrus": "while (token := next(tokens)): pass",
    "updated_by_or": "table |= {1: 2}",
    "dictionary_in_a_loop_s_head": "for name, x in {'a': 1}.items(): pass",
    "flow_by_and": "fit(model, after=after and (lambda: after(model)))",
    "sizes_by_star": "class A:\n    def __init__(self, *sizes):\n        pass",
    "long_function": "def f():" + "\n    x = 1" * 25,
    "3 lambdas": "\n".join(2 * ["sorted(a, key=lambda x: x)"]),
    "bound in 2 cells": "query = 3",
}


@pytest.mark.parametrize("fault", BAD)
def test_packed_code_is_found_and_plain_code_passes(fault):
    good = ast.parse(GOOD)
    assert [*faults({"good": good})] == []
    named = [*faults({"good": good, "bad": ast.parse(BAD[fault])})]
    assert len(named) == 1 and fault in named[0]
