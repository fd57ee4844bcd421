"""Which names a piece of a source binds: needed before the policy may rename or refuse one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_AST: Final = ast.AST
_INNER_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_ELSEWHERE = (ast.Global, ast.Nonlocal)
_REBINDING = (ast.Store, ast.Del)
_LEAVES: Final = frozenset({ast.Name, ast.Constant, ast.Load, ast.Store, ast.Del})
"""Nodes with nothing below them that could have a location."""
_Location = tuple[int, int, int, int]
_LOCATION: Final = ("lineno", "col_offset", "end_lineno", "end_col_offset")
"""Attributes of a node; a kind of nodes has all of them or none."""


def children_of(node: ast.AST) -> list[ast.AST]:
    """What `ast.iter_child_nodes` gives, as a list; it is asked for every node of every source."""
    found: list[ast.AST] = []
    for name in node._fields:
        value = getattr(node, name, None)
        if isinstance(value, _AST):
            found.append(value)
        elif value and type(value) is list:
            found += [item for item in value if isinstance(item, _AST)]
    return found


def levels_of(tree: ast.AST) -> list[list[ast.AST]]:
    """Every node of `tree`, by how deep it is nested; without recursion. In a row they are what `ast.walk` gives."""
    levels = [[tree]]
    while level := [child for node in levels[-1] for child in children_of(node)]:
        levels.append(level)
    return levels


def _named(node: Any) -> list[str]:
    return [] if node.name is None else [node.name]


_BOUND: Final[Mapping[type[ast.AST], Callable[[Any], list[str]]]] = {
    ast.Name: lambda node: [node.id] if isinstance(node.ctx, _REBINDING) else [],
    ast.FunctionDef: _named,
    ast.AsyncFunctionDef: _named,
    ast.ClassDef: _named,
    ast.arg: lambda node: [node.arg],
    ast.alias: lambda node: [node.asname or node.name.split(".")[0]],
    ast.ExceptHandler: _named,
    ast.MatchAs: _named,
    ast.MatchStar: _named,
    ast.MatchMapping: lambda node: [] if node.rest is None else [node.rest],
}
"""What nodes bind that may bind a name. By exact type: no parser makes others."""


def names_bound_by(node: ast.AST) -> list[str]:
    """The names that this node itself (not its children) binds, in any of Python's binding forms."""
    bound = _BOUND.get(type(node))
    return [] if bound is None else bound(node)


def all_bound_names(tree: ast.AST) -> frozenset[str]:
    """Every name that `tree` binds in some scope."""
    names: set[str] = set()
    for level in levels_of(tree):
        for node in level:
            bound = _BOUND.get(type(node))
            if bound is not None:
                names.update(bound(node))
    return frozenset(names)


def class_level_names(body: Iterable[ast.stmt]) -> frozenset[str]:
    """Names that a class body binds in its own scope; not those it declares global or nonlocal."""
    bound: set[str] = set()
    elsewhere: set[str] = set()
    todo: list[ast.AST] = list(body)
    while todo:
        node = todo.pop()
        bound.update(names_bound_by(node))
        if isinstance(node, _ELSEWHERE):
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


def fill_locations(tree: ast.AST) -> None:
    """What `ast.fix_missing_locations` does, node by node in the same order, in less time: few nodes lack one."""
    todo: list[tuple[Any, _Location]] = [(tree, (1, 0, 1, 0))]
    while todo:
        node, where = todo.pop()
        if node._attributes:
            own = node.__dict__.get
            found = (own("lineno"), own("col_offset"), own("end_lineno"), own("end_col_offset"))
            where = found if None not in found else _located(node, found, where)
        if type(node) not in _LEAVES:
            todo += [(child, where) for child in reversed(children_of(node))]


def _located(node: ast.AST, own: Iterable[int | None], around: _Location) -> _Location:
    """Give `node` what it has not of its `own` location from that `around` it; what comes of it."""
    pairs = zip(own, around, strict=True)
    line, column, end_line, end_column = (one if one is not None else other for one, other in pairs)
    node.__dict__.update(zip(_LOCATION, (line, column, end_line, end_column), strict=True))
    return line, column, end_line, end_column
