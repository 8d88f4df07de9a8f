"""Mutants: what a definition becomes where one thing in it is changed.

A constant, an operator, a condition or a name is another, operands or arguments change
places or are left out, a slice loses an end, a statement is missing. Nothing here knows
what an answer is, or whether it is right.
"""

import ast
import copy
import re

INSTEAD = {
    **{"Add": "Sub", "Sub": "Add", "Mult": "Div", "Div": "Mult", "FloorDiv": "Mod"},
    **{"Pow": "Mult", "MatMult": "Mult", "BitAnd": "BitOr", "BitOr": "BitAnd"},
    **{"Lt": "LtE Gt", "LtE": "Lt GtE", "Gt": "GtE Lt", "GtE": "Gt LtE", "Eq": "NotEq"},
    **{"In": "NotIn", "NotIn": "In", "Is": "IsNot", "IsNot": "Is", "And": "Or"},
}
COMMUTE = ast.Add, ast.Mult, ast.BitAnd, ast.BitOr
METHODS = {"sum": "mean", "mean": "sum", "max": "min", "min": "max", "sin": "cos"}
METHODS |= {"cos": "sin", "zeros": "ones", "all": "any", "any": "all", "abs": "square"}
NEVER = "annotation", "returns", "decorator_list", "targets", "target"  # fields
KEPT = ast.FunctionDef, ast.ClassDef


def mutants(source):
    """Return {(lines that are gone, lines that are new): source} of all mutants.

    The lines are written as `ast.unparse` does, without their indents.
    """
    tree = ast.parse(source)
    names, before, found = _names(tree), ast.unparse(tree), {}
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            nodes = value if isinstance(value, list) else [value]
            for place, node in enumerate(nodes):
                for other in _others(node, parent, field, names):
                    changed = [*nodes[:place], other, *nodes[place + 1 :]]
                    setattr(parent, field, changed if nodes is value else other)
                    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree)))
                    found.setdefault(_difference(before, text), text)
                setattr(parent, field, value)
    return {change: text for change, text in found.items() if any(change)}


def _names(tree):
    """Return each name that is given a value, with the one that is given it next."""
    given = [
        getattr(node, "arg", getattr(node, "id", "_"))
        for node in ast.walk(tree)
        if isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", 0), ast.Store)
    ]
    names = [name for name in dict.fromkeys(given) if name not in ("self", "_")]
    return dict(zip(names, [*names[1:], *names[:1]], strict=True))


def _difference(before, after):
    before, after = ([*map(str.strip, x.splitlines())] for x in (before, after))
    while before and after and before[0] == after[0]:
        before, after = before[1:], after[1:]
    while before and after and before[-1] == after[-1]:
        before, after = before[:-1], after[:-1]
    return tuple(before), tuple(after)


def _others(node, parent, field, names):
    """Yield what may stand in a node's place."""
    is_text = isinstance(parent, ast.Expr) and _is_text(parent)
    is_strict = isinstance(parent, ast.keyword) and parent.arg == "strict"
    if field in NEVER or is_text or is_strict:
        return
    if isinstance(node, ast.stmt) and not isinstance(node, KEPT) and not _is_text(node):
        yield ast.Pass()
    if field == "test":
        yield ast.UnaryOp(ast.Not(), node)
    if field in ("lower", "upper") and node:
        yield None
    for name in INSTEAD.get(type(node).__name__, "").split():
        yield getattr(ast, name)()
    yield from CHANGES.get(type(node), lambda *_: [])(node, names)


def _is_text(statement):
    return isinstance(getattr(statement, "value", None), ast.Constant)


def _constant(node, names):
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield from map(ast.Constant, (value + 1, value - 1, 2 * value))
    elif isinstance(value, str):  # a pattern of axes: neighbors change places
        for pair in re.finditer(r"(\w+)(\W+)(\w+)", value):
            swapped = "".join(pair.group(3, 2, 1))
            yield ast.Constant(value[: pair.start()] + swapped + value[pair.end() :])


def _name(node, names):
    if isinstance(node.ctx, ast.Load) and node.id in names:
        yield ast.Name(names[node.id])


def _attribute(node, names):
    if node.attr in METHODS:
        yield ast.Attribute(node.value, METHODS[node.attr])


def _operation(node, names):
    yield from (node.left, node.right)
    if not isinstance(node.op, COMMUTE):
        yield ast.BinOp(node.right, node.op, node.left)


def _call(node, names):
    arguments = node.args
    for i in range(len(arguments)):
        before, own, after = arguments[:i], arguments[i], arguments[i + 1 :]
        yield ast.Call(node.func, [*before, *after], node.keywords)
        if after:
            swapped = [*before, after[0], own, *after[1:]]
            yield ast.Call(node.func, swapped, node.keywords)
    for keyword in node.keywords:
        if keyword.arg != "strict":
            kept = [other for other in node.keywords if other is not keyword]
            yield ast.Call(node.func, arguments, kept)
    if isinstance(node.func, ast.Attribute):
        yield node.func.value
    elif arguments:
        yield arguments[0]


def _comprehension(node, names):
    for condition in node.ifs:
        rest = [other for other in node.ifs if other is not condition]
        for ifs in (rest, [ast.UnaryOp(ast.Not(), condition), *rest]):
            yield ast.comprehension(node.target, node.iter, ifs, 0)


CHANGES = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.BinOp: _operation,
    ast.UnaryOp: lambda node, names: [node.operand],
    ast.BoolOp: lambda node, names: node.values,
    ast.IfExp: lambda node, names: [node.body, node.orelse],
    ast.Call: _call,
    ast.comprehension: _comprehension,
}
