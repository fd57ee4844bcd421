"""A source of a dialect with its prelude in front: one module, checked and run as one."""

from __future__ import annotations

import ast
import json
from typing import Final

from synthgym.contract import PRELUDES, TOOLS_BASE
from synthgym.preludes import prelude
from synthgym.tool_schemas import PREFIX, RESERVED, tool_schemas

PRELUDE_CLASSES: Final = frozenset({"ToolEnv", "ToolUseBaseEnv"})
"""Bases that come from preludes: never the environment of a source."""
_OFFERED_BY: Final = frozenset(
    {"synthgym", "synthgym.contract", "synthgym.preludes.tool_env", "tool_use_base_env"}
)
"""Modules that a source may name to import what its prelude has defined already."""


def compose(tree: ast.Module, base: str) -> ast.Module:
    """`tree` behind the prelude of `base`; unchanged when that has none.

    The docstring and the `__future__` imports of the source stay in front. Line numbers of the source are its own.
    """
    name = PRELUDES.get(base)
    if name is None:
        return tree
    if base == TOOLS_BASE:
        _write_schemas(tree)
    head: list[ast.stmt] = []
    body = [item for item in tree.body if not _is_offered(item)]
    while body and (_is_docstring(body[0]) or _is_future(body[0])):
        head.append(body.pop(0))
    front = [item for item in _parsed(name) if not (_is_docstring(item) or _is_future(item))]
    return ast.Module([*head, *front, *body], tree.type_ignores)


def _parsed(name: str) -> list[ast.stmt]:
    """The statements of a prelude, new ones each time: the policy rewrites what it is given."""
    return ast.parse(prelude(name)).body


def _write_schemas(tree: ast.Module) -> None:
    """Give each class that may be the environment its schemas, and the methods that they are of.

    The schemas are a constant, which nothing can change. The methods are spelled out: a `getattr` by computed name
    anywhere in a module keeps its instances from sharing one run of it.
    """
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("Env"):
            schemas, _problems = tool_schemas(tree, node)
            names = [schema["function"]["name"] for schema in schemas]
            methods = ", ".join(f"{name!r}: self.{PREFIX}{name}" for name in names)
            added = ast.parse(
                f"{RESERVED} = {json.dumps(schemas, ensure_ascii=False)!r}\n"
                f"def _tool_methods(self):\n    return {{{methods}}}\n"
            ).body
            for part in (part for item in added for part in ast.walk(item)):
                ast.copy_location(part, node)
            node.body += added


def _is_offered(item: ast.stmt) -> bool:
    """Whether a statement only imports what the prelude has defined."""
    match item:
        case ast.ImportFrom(module=str(module), names=names, level=0) if module in _OFFERED_BY:
            return all(
                alias.name in (*PRELUDE_CLASSES, "ToolError") and alias.asname is None
                for alias in names
            )
    return False


def _is_docstring(item: ast.stmt) -> bool:
    return isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)


def _is_future(item: ast.stmt) -> bool:
    return isinstance(item, ast.ImportFrom) and item.module == "__future__"
