"""Which names a piece of a source binds: needed before the policy may rename or refuse one."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_INNER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def names_bound_by(node: ast.AST) -> list[str]:
    """The names that this node itself (not its children) binds, in any of Python's binding forms."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.arg(arg=name):
            return [name]
        case ast.alias(name=name, asname=asname):
            return [asname or name.split(".")[0]]
        case ast.ExceptHandler(name=str(name)):
            return [name]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return [name]
        case ast.MatchMapping(rest=str(name)):
            return [name]
        case _:
            return []


def all_bound_names(tree: ast.AST) -> frozenset[str]:
    """Every name that `tree` binds in some scope."""
    return frozenset(name for node in ast.walk(tree) for name in names_bound_by(node))


def class_level_names(body: Iterable[ast.stmt]) -> frozenset[str]:
    """Names that a class body binds in its own scope; not those it declares global or nonlocal."""
    bound: set[str] = set()
    elsewhere: set[str] = set()
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        bound.update(names_bound_by(node))
        if isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere.update(node.names)
        if isinstance(node, _DEFINITIONS):
            todo.extend(node.decorator_list)
        elif not isinstance(node, _INNER_SCOPES):
            todo.extend(ast.iter_child_nodes(node))
    return frozenset(bound - elsewhere)


def main_block_rest(statement: ast.stmt) -> list[ast.stmt]:
    """`[statement]`, or the `else` part of an `if __name__ == "__main__":` block, which is never run."""
    match statement:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            sides = (left, right)
        case _:
            return [statement]
    named = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    main = any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    return statement.orelse if named and main else [statement]


def depth_of(tree: ast.AST, limit: int) -> ast.AST | None:
    """A node nested more than `limit` levels deep, or None; without recursion."""
    level: list[ast.AST] = [tree]
    for _ in range(limit):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return None
    return next((node for node in level if hasattr(node, "lineno")), None)
