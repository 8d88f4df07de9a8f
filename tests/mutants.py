"""Mutants: a source in which one thing is changed, each time another.

A constant, an operator, a condition or a name is another, operands or arguments change
places or are left out, a slice loses an end, a statement is missing. Imports, text,
annotations and the wording of what is raised stay.
"""

import ast
import copy
import itertools
import re

PAIRS = """Add Sub, Mult Div, Mult Pow, FloorDiv Mod, BitAnd BitOr, And Or, Eq NotEq,
    Lt LtE, Lt Gt, Gt GtE, LtE GtE, In NotIn, Is IsNot, Break Continue, abs square,
    all any, amax amin, argmax argmin, max min, ones zeros, sin cos, sum mean, triu tril
"""
INSTEAD = {}
for one, other in (pair.split() for pair in PAIRS.split(",")):
    INSTEAD.setdefault(one, []).append(other)
    INSTEAD.setdefault(other, []).append(one)
COMMUTE = ast.Add, ast.Mult, ast.BitAnd, ast.BitOr
SPARED = ast.Import, ast.ImportFrom, ast.JoinedStr
SPARED_FIELDS = {"annotation", "bases", "exc", "returns", "type"}


def mutants(source):
    """Yield (line, (lines that are gone, lines that are new), source) for each."""
    tree = ast.parse(source)
    whole = ast.unparse(tree)
    seen = {whole}
    for holder, key, line, names in places(tree, 0, {}):
        node = holder[key]
        for other in others(node, names):
            holder[key] = other
            text = ast.unparse(tree)
            if text not in seen:
                yield line, difference(whole, text), text
            seen.add(text)
        holder[key] = node


def places(node, line, names):
    """Yield (holder, key, line, names) of each part of a tree that may be changed."""
    if isinstance(node, ast.FunctionDef) and not names:
        names = next_names(node)
    for field, value in ast.iter_fields(node):
        holder = value if isinstance(value, list) else vars(node)
        for key in range(len(value)) if holder is value else [field]:
            part = holder[key]
            if isinstance(part, ast.AST) and not is_spared(part, field):
                own = getattr(part, "lineno", line)
                yield holder, key, own, names
                yield from places(part, own, names)


def next_names(function):
    """Return each name that a function gives a value, with the one that comes next."""
    given = {}
    for node in ast.walk(function):
        if isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", 0), ast.Store):
            given[getattr(node, "arg", getattr(node, "id", "_"))] = node
    names = [name for name in given if name not in ("self", "_")]
    return dict(zip(names, names[1:] + names[:1], strict=True))


def is_spared(part, field):
    """Tell whether a part is text, or says nothing of what the code does."""
    is_text = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
    is_strict = getattr(part, "arg", "") == "strict"
    return is_text or is_strict or field in SPARED_FIELDS or isinstance(part, SPARED)


def difference(before, after):
    """Return the lines that are only in one of two sources, without their indents."""
    lines = [[*map(str.strip, text.splitlines())] for text in (before, after)]
    for _ in range(2):  # from either end
        pairs = zip(*lines, strict=False)
        same = [*itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)]
        lines = [own[len(same) :][::-1] for own in lines]
    return tuple(map(tuple, lines))


def others(node, names):
    """Yield what may stand in a node's place."""
    for name in INSTEAD.get(type(node).__name__, ()):
        yield getattr(ast, name)()
    for field in {"attr", "id"} & {*node._fields}:
        for name in INSTEAD.get(getattr(node, field), ()):
            yield changed(node, **{field: name})
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        yield from (ast.Name(names[name]) for name in [node.id] if name in names)
    yield from (statements if isinstance(node, ast.stmt) else expressions)(node, names)


def statements(node, names):
    """Yield what may stand in a statement's place; none that makes a name unknown."""
    match node:
        case ast.If() | ast.While():
            opposite = ast.UnaryOp(ast.Not(), node.test)
            yield from (ast.Pass(), changed(node, test=opposite))
        case ast.FunctionDef(decorator_list=given):
            yield from (changed(node, decorator_list=rest) for rest in without(given))
        case ast.With():
            yield ast.If(ast.Constant(True), node.body, [])
        case ast.Assign(targets=[ast.Name(id=name)]):
            read = {getattr(part, "id", None) for part in ast.walk(node.value)}
            yield from [ast.Pass()] if name in read else []
        case ast.Assign() | ast.AugAssign() | ast.Expr() | ast.For() | ast.Return():
            yield ast.Pass()


def expressions(node, names):
    """Yield what may stand in the place of an expression, or of a part of one."""
    match node:
        case ast.Constant():
            yield from map(ast.Constant, values_near(node.value))
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
            if not isinstance(node.op, COMMUTE):
                yield changed(node, left=right, right=left)
        case ast.BoolOp():
            yield from (changed(node, values=values) for values in without(node.values))
        case ast.UnaryOp():
            yield node.operand
        case ast.IfExp():
            yield from (node.body, node.orelse)
        case ast.Call():
            yield from calls(node, names)
        case ast.Tuple() | ast.List():
            yield from (changed(node, elts=way) for way in exchanged(node.elts))
        case ast.Slice():
            yield from (changed(node, **{part: None}) for part in node._fields)
        case ast.comprehension(ifs=[one, *more]):
            ways = more, [ast.UnaryOp(ast.Not(), one), *more]
            yield from (changed(node, ifs=way) for way in ways)


def values_near(value):
    """Yield other values; in a pattern of axes, two neighbors change places."""
    match value:
        case bool():
            yield not value
        case int():
            yield from (value + 1, value - 1)
        case float():
            yield 2 * value or 1.0
        case str() if value.isidentifier():
            yield value + "_"
        case str() if "->" in value:
            for pair in re.finditer(r"(\w+)(\W+)(\w+)", value):
                swapped = "".join(pair.group(3, 2, 1))
                yield value[: pair.start()] + swapped + value[pair.end() :]


def calls(node, names):
    """Yield a call without an argument or with two exchanged, and what it is of."""
    given, words = node.args, node.keywords
    yield from (changed(node, args=way) for way in without(given) + exchanged(given))
    for word, rest in zip(words, without(words), strict=True):
        yield from [] if is_spared(word, "") else [changed(node, keywords=rest)]
    inner = getattr(node.func, "value", None)
    if inner and (getattr(inner, "id", "self") in {"self", *names}):  # of no module
        yield inner
    elif given and not isinstance(given[0], ast.Starred):
        yield given[0]


def changed(node, **fields):
    other = copy.copy(node)
    vars(other).update(fields)
    return other


def without(items):
    return [items[:i] + items[i + 1 :] for i in range(len(items))]


def exchanged(items):
    pairs = range(len(items) - 1)
    return [[*items[:i], *items[i : i + 2][::-1], *items[i + 2 :]] for i in pairs]
