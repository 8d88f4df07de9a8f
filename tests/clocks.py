"""Clocks: which names of a program hold a time, or what was computed from one.

Nothing is run. A function is timed if it names something that is; a value is if the
right side of its assignment, what it is looped over, what it is handed to a method, or
the condition that it was assigned under names something that is.
"""

import ast

CLOCKS = {"benchmark", "datetime", "profiler", "time", "timeit"}  # modules
COMPREHENSIONS = (ast.DictComp, ast.GeneratorExp, ast.ListComp, ast.SetComp)
SCOPES = (ast.FunctionDef, ast.Lambda, *COMPREHENSIONS)


def timed_names(trees):
    """Return, for each tree of a program, the names that a clock reaches in it."""
    nodes = [node for tree in trees for node in global_nodes(tree)]
    modules = {name for node in nodes for name, _ in imports(node)}
    timed = {name for node in nodes for name, clock in imports(node) if clock}
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    for _ in functions:  # each of which may name another that comes later
        timed |= {one.name for one in functions if timed & names_in(one)}
    found = []
    for tree in trees:
        reached = set(timed)
        for statement in tree.body:
            timed = after(statement, timed, modules)
            reached |= timed
        found.append(reached)
    return found


def after(statement, timed, modules):
    """Return the names that are timed after a statement, from those before it."""
    if isinstance(statement, ast.Assign) and not timed & names_in(statement.value):
        whole = [x.id for x in statement.targets if isinstance(x, ast.Name)]
        return timed - {*whole}
    before = None
    while timed != before:  # a loop hands on what its last round has left
        before = timed
        for node in global_nodes(statement):
            for names, value in bindings(node):
                if timed & names_in(value):
                    timed = timed | ({*names} - modules)
    return timed


def names_in(tree):
    """Return the names that a tree mentions, without those of its inner scopes."""
    if isinstance(tree, ast.Name):
        return {tree.id}
    names = set().union(*map(names_in, ast.iter_child_nodes(tree)))
    return names - local_names(tree) if isinstance(tree, SCOPES) else names


def local_names(scope):
    """Return the names that a function or comprehension binds for itself."""
    nodes = [*ast.walk(scope)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
    return stored | {node.arg for node in nodes if isinstance(node, ast.arg)}


def global_nodes(node):
    """Yield the nodes of a tree, without what is inside functions and classes."""
    yield node
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        for child in ast.iter_child_nodes(node):
            yield from global_nodes(child)


def imports(node):
    """Yield (name, whether it is a clock) for each name that an import binds."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        for alias in node.names:
            path = f"{getattr(node, 'module', '')}.{alias.name}".split(".")
            name = alias.asname or alias.name.split(".")[0]
            yield name, bool(CLOCKS & {*path})


def bindings(node):
    """Yield (names, what decides on their value) for what a node binds or changes."""
    match node:
        case ast.FunctionDef() | ast.ClassDef():
            yield [node.name], node
        case ast.Assign():
            yield roots(*node.targets), node.value
        case ast.AugAssign() | ast.AnnAssign() | ast.NamedExpr():
            yield roots(node.target), node.value or node.target
        case ast.For():
            yield roots(node.target), node.iter
        case ast.withitem(optional_vars=ast.expr()):
            yield roots(node.optional_vars), node.context_expr
        case ast.Expr(value=ast.Call(func=ast.Attribute())):  # times.append(now())
            yield roots(node.value.func), node.value
        case ast.If() | ast.While():
            inner = [
                one for part in node.body + node.orelse for one in global_nodes(part)
            ]
            for names, _ in (pair for one in inner for pair in bindings(one)):
                yield names, node.test


def roots(*targets):
    """Return the names behind targets: ``x`` of ``x.loc[i]``, both of ``a, b``."""
    names = []
    for target in targets:
        while isinstance(target, (ast.Attribute, ast.Subscript, ast.Starred)):
            target = target.value
        names += [target.id] if isinstance(target, ast.Name) else []
        names += roots(*getattr(target, "elts", ()))
    return names
