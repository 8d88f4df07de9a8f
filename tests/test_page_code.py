"""The visible code of a page can be typed along: one idea a line, one meaning a name.

A loop's variables may be used again.
"""

import ast
from collections import Counter
from pathlib import Path

import pytest
from plain_code import EVERYWHERE, broken_rules

from tools.notebooks import chapters, code_cells, read_notebook, source_of, tags_of
from tutorial_lib.definitions import as_python

ROOT = Path(__file__).parents[1]
HIDDEN = {
    "aside",
    "check",
    "claim",
    "exercise",
    "picture",
    "remove-cell",
    "setup",
    "solution",
}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def visible(notebook):
    """Return the code cells that a reader of the page sees, by their names."""
    cells = [cell for cell in code_cells(notebook) if not HIDDEN & {*tags_of(cell)}]
    return {cell["id"]: ast.parse(as_python(source_of(cell))) for cell in cells}


# --- What may stand in no cell ----------------------------------------------------


def dictionary_in_a_loop_s_head(node):
    return isinstance(node, ast.For) and any(
        isinstance(part, ast.Dict) for part in ast.walk(node.iter)
    )


def function_by_and(node):
    """Make a function only if what stands before it is true."""
    values = node.values if isinstance(node, ast.BoolOp) else []
    return any(isinstance(value, ast.Lambda) for value in values)


def sizes_by_star(node):
    """Take whatever sizes come, in a constructor."""
    return isinstance(node, FUNCTIONS) and node.name == "__init__" and node.args.vararg


ON_NO_PAGE = [
    *EVERYWHERE,
    dictionary_in_a_loop_s_head,
    function_by_and,
    sizes_by_star,
]


def faults(cells):
    """Say where code is packed, for trees of cells by their names."""
    for name, tree in cells.items():
        for line, rule in broken_rules(tree, ON_NO_PAGE):
            yield f"{name}, line {line}: {rule}"
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
    "dictionary_in_a_loop_s_head": "for name, x in {'a': 1}.items(): pass",
    "function_by_and": "fit(model, after=after and (lambda: after(model)))",
    "sizes_by_star": "class A:\n    def __init__(self, *sizes):\n        pass",
    "3 lambdas": "\n".join(2 * ["sorted(a, key=lambda x: x)"]),
    "bound in 2 cells": "query = 3",
}


@pytest.mark.parametrize("fault", BAD)
def test_each_fault_is_named_and_plain_code_has_none(fault):
    good = ast.parse(GOOD)
    assert [*faults({"good": good})] == []
    (message,) = faults({"good": good, "bad": ast.parse(BAD[fault])})
    assert fault in message
