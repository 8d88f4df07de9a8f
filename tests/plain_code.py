"""Rules of plain code, each a function that tells whether a node of a tree breaks it.

One idea a line, in every package and in tests: no packed assignment, no nested
comprehension, no walrus, no `|=`.
"""

import ast

COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def packed(node):
    """Several names get values of different kinds: a call beside a list, say."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    several = isinstance(node.targets[0], ast.Tuple)
    return several and len({kind(value) for value in node.value.elts}) > 1


def kind(value):
    if isinstance(value, (ast.Name, ast.Attribute, ast.Subscript, ast.Constant)):
        return "name or constant"
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


def called_by_and(node):
    """Something is called only if what stands before it is true."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.BoolOp)


EVERYWHERE = [packed, nested_comprehension, walrus, updated_by_or, called_by_and]


def broken_rules(tree, rules):
    """Yield the line of every fault in a tree, and the rule that it breaks."""
    for node in ast.walk(tree):
        for rule in rules:
            if rule(node):
                yield node.lineno, rule.__name__
