"""Which names a piece of a source binds: needed before the policy may rename or refuse one."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Final

_INNER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_BINDING: Final[tuple[type[ast.AST], ...]] = (
    *(ast.Name, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.alias),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping),
)
"""Nodes that may bind a name."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def children_of(node: ast.AST) -> list[ast.AST]:
    """What `ast.iter_child_nodes` gives, as a list; it is asked for every node of every source."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def levels_of(tree: ast.AST) -> list[list[ast.AST]]:
    """Every node of `tree`, by how deep it is nested; without recursion. In a row they are what `ast.walk` gives."""
    levels = [[tree]]
    while level := [child for node in levels[-1] for child in children_of(node)]:
        levels.append(level)
    return levels


def names_bound_by(node: ast.AST) -> list[str]:
    """The names that this node itself (not its children) binds, in any of Python's binding forms."""
    if not isinstance(node, _BINDING):
        return []
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
    nodes = (node for level in levels_of(tree) for node in level if isinstance(node, _BINDING))
    return frozenset(name for node in nodes for name in names_bound_by(node))


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
            todo.extend(children_of(node))
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
