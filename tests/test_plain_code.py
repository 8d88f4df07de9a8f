"""The rules of plain code hold in every package, in the tools and in the tests."""

import ast
from pathlib import Path

import pytest
from plain_code import EVERYWHERE, broken_rules

ROOT = Path(__file__).parents[1]
FOLDERS = [
    "tutorial_lib",
    "tutorial_exercises",
    "tutorial_figures",
    "tools",
    "benchmarks",
    "book/_ext",
    "book/_print",
    "tests",
]

GOOD = """
query, key = 1, other
left, right = x.roll(1), x.roll(-1)
rows = [f(y) for y in x if y and g(y)]
table.update({1: 2})
fit(model, after=after and model)
"""
BAD = {
    "packed": "optimizer, losses = AdamW(), []",
    "nested_comprehension": "rows = [[f(x) for x in row] for row in table]",
    "walrus": "while (token := next(tokens)): pass",
    "updated_by_or": "table |= {1: 2}",
    "called_by_and": "verbose and show(model)",
}


@pytest.mark.parametrize("folder", FOLDERS)
def test_code_is_plain(folder):
    faults = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for line, rule in broken_rules(tree, EVERYWHERE):
            faults.append(f"{path.relative_to(ROOT)}:{line}: {rule}")
    assert faults == []


def test_plain_code_breaks_no_rule():
    assert [*broken_rules(ast.parse(GOOD), EVERYWHERE)] == []


@pytest.mark.parametrize("rule", BAD)
def test_each_rule_is_tried(rule):
    assert [*broken_rules(ast.parse(BAD[rule]), EVERYWHERE)] == [(1, rule)]
