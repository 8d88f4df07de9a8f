"""Mutants: a module's source with one line broken, each in another way.

Tests that are worth their time notice every mutant that means something else than the
source. Docstrings, annotations, imports and the wording of what is raised stay.
"""

import ast
import builtins
import copy

PAIRS = """Add Sub, Mult Div, Mult Pow, FloorDiv Mod, BitAnd BitOr, And Or, Eq NotEq,
    Lt LtE, LtE Gt, Gt GtE, GtE Lt, In NotIn, Is IsNot, Break Continue, all any,
    argmax argmin, max min, ones zeros, sin cos, sum mean, tril triu, amax amin"""
OTHERS = {}
for one, other in (pair.split() for pair in PAIRS.split(",")):
    OTHERS.setdefault(one, []).append(other)
    OTHERS.setdefault(other, []).append(one)
KEPT = {"annotation", "bases", "exc", "returns"}
SPARED = (ast.Import, ast.ImportFrom, ast.JoinedStr)


def mutants(source):
    """Yield (description, mutated source) for each mutant of a module's source."""
    tree = ast.parse(source)
    whole = ast.unparse(tree)
    seen = {whole}
    for holder, key, line in places(tree, 0):
        node = holder[key]
        for broken in breaks(node):
            holder[key] = broken
            mutant = ast.unparse(tree)
            if mutant not in seen:
                yield f"{line}: {difference(whole, mutant)}", mutant
            seen.add(mutant)
        holder[key] = node


def places(node, line):
    """Yield (holder, key, line) of each part of a tree that may be broken."""
    for field, value in ast.iter_fields(node):
        if field in KEPT:
            continue
        holder = value if isinstance(value, list) else vars(node)
        for key in range(len(value)) if holder is value else [field]:
            part = holder[key]
            text = isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)
            if isinstance(part, ast.AST) and not isinstance(part, SPARED) and not text:
                own = getattr(part, "lineno", line)
                yield holder, key, own
                yield from places(part, own)


def difference(before, after):
    """Return the first line that differs, as it was and as it is."""
    lines = zip(before.splitlines(), [*after.splitlines(), ""], strict=False)
    return next(f"{a.strip()} -> {b.strip()}" for a, b in lines if a != b)


def breaks(node):
    """Yield what may stand in a node's place and means something else."""
    for name in OTHERS.get(getattr(node, "attr", getattr(node, "id", None)), ()):
        yield changed(node, **{"attr" if hasattr(node, "attr") else "id": name})
    match node:
        case ast.BinOp(op=ast.Sub() | ast.Div() | ast.MatMult()):
            yield changed(node, left=node.right, right=node.left)
        case ast.Compare():
            for i, op in enumerate(node.ops):
                for other in others(op):
                    yield changed(node, ops=[*node.ops[:i], other, *node.ops[i + 1 :]])
        case ast.BoolOp():
            yield from (changed(node, values=left) for left in without(node.values))
        case ast.UnaryOp():
            yield node.operand
        case ast.Constant():
            yield from map(ast.Constant, other_values(node.value))
        case ast.Call():
            yield from calls(node)
        case ast.Tuple() | ast.List():
            ways = (without if all(map(listed, node.elts)) else exchanged)(node.elts)
            yield from (changed(node, elts=elements) for elements in ways)
        case ast.Slice():
            yield from (changed(node, **{part: None}) for part in node._fields)
        case ast.If() | ast.IfExp() | ast.While():
            yield changed(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension():
            yield from (changed(node, ifs=ifs) for ifs in without(node.ifs))
        case ast.FunctionDef():
            ways = without(node.decorator_list)
            yield from (changed(node, decorator_list=way) for way in ways)
        case ast.Return():
            yield changed(node, value=None)
        case ast.Assign(targets=[ast.Name(id=name)]):
            names = {getattr(part, "id", None) for part in ast.walk(node.value)}
            yield from [ast.Pass()] if name in names else []  # else missed at once
        case ast.AugAssign() | ast.Expr() | ast.Raise() | ast.Assign():
            yield ast.Pass()
    if hasattr(node, "op"):
        yield from (changed(node, op=other) for other in others(node.op))


def calls(node):
    """Yield a call that lacks an argument or has two exchanged, and what it is of."""
    if len(node.args) > 1:
        yield changed(node, args=node.args[:-1])
    yield from (changed(node, args=args) for args in exchanged(node.args))
    yield from (changed(node, keywords=words) for words in without(node.keywords))
    inner = getattr(node.func, "value", None)
    if inner and not (node.args and isinstance(inner, ast.Name)):
        yield inner
    elif node.args and not isinstance(node.args[0], ast.Starred):
        yield node.args[0]


def other_values(value):
    """List other values for a constant; words of a message are left as they are."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [2 * value or 1.0]
    return [value + "_"] if isinstance(value, str) and value.isidentifier() else []


def listed(element):
    """Tell whether this is one of several values or types, in no matter which order."""
    is_type = hasattr(builtins, getattr(element, "id", ""))
    return is_type or isinstance(element, ast.Constant)


def others(op):
    return [getattr(ast, name)() for name in OTHERS.get(type(op).__name__, ())]


def changed(node, **fields):
    other = copy.copy(node)
    vars(other).update(fields)
    return other


def without(items):
    return [items[:i] + items[i + 1 :] for i in range(len(items))]


def exchanged(items):
    return [
        [*items[:i], items[i + 1], items[i], *items[i + 2 :]]
        for i in range(len(items) - 1)
    ]
