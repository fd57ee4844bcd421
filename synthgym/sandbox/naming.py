"""Identifiers of a source: which may be spelled where, and what private ones are called at run time."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
from RestrictedPython.transformer import RestrictingNodeTransformer

from synthgym.sandbox import names

_CONTEXTS = frozenset({ast.Load, ast.Store, ast.Del})
"""Allowed as they are, and every third node."""
_MAX_MESSAGE = 300
"""Characters; a name in a source can have tens of thousands."""


class Violation(msgspec.Struct, frozen=True):
    """One thing in a source that is not allowed, and the line it is on (1-based)."""

    line: int
    message: str


class Scope(msgspec.Struct, frozen=True):
    """A lexical scope on the way down: a class with its level's names, or anything else."""

    class_name: str | None = None
    renamed: frozenset[str] = frozenset()
    bound: set[str] = msgspec.field(default_factory=set)
    """Names of the class level that the statements visited so far have bound."""


class NamePolicy(RestrictingNodeTransformer):  # type: ignore[misc]  # the package has no types
    """Checks and renames identifiers, and collects every violation; refuses node types that it does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.violations: list[Violation] = []
        self._scopes: list[Scope] = [Scope()]
        self._classes: list[str] = []
        self._bound: frozenset[str] = frozenset()

    # Errors: RestrictedPython calls these two; both go on looking.

    def error(self, node: ast.AST, info: str) -> None:
        """Record a violation at the node's line."""
        text = info if len(info) <= _MAX_MESSAGE else info[:_MAX_MESSAGE] + "..."
        self.violations.append(Violation(getattr(node, "lineno", 1), text))

    def not_allowed(self, node: ast.AST) -> ast.AST:
        """Record that this kind of node is refused, and look at what is inside."""
        self.error(node, f"{_spoken(node)} is not available to environments")
        return self._contents(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Refuse a node type that has no `visit_` method here: the unknown is refused."""
        return self.not_allowed(node)

    def _contents(self, node: ast.AST) -> ast.AST:
        """What `ast.NodeTransformer.generic_visit` does, in less time."""
        for name in node._fields:
            old = getattr(node, name, None)
            if isinstance(old, ast.AST):
                if type(old) in _CONTEXTS:
                    continue
                new = self.visit(old)
                if new is None:
                    delattr(node, name)
                elif new is not old:
                    setattr(node, name, new)
            elif old and isinstance(old, list):
                old[:] = self._each(old)
        return node

    def _each(self, items: list[Any]) -> list[Any]:
        """The items after a visit; instead of a node there may be several or none."""
        kept: list[Any] = []
        for item in items:
            if not isinstance(item, ast.AST):
                kept.append(item)
                continue
            new = self.visit(item)
            if isinstance(new, ast.AST):
                kept.append(new)
            elif new is not None:
                kept.extend(new)
        return kept

    node_contents_visit = _contents
    """RestrictedPython's name for it."""

    # Names

    def check_name(
        self, node: ast.AST, name: str | None, allow_magic_methods: bool = False
    ) -> None:
        """Check a name that is bound here; the signature is RestrictedPython's."""
        if name is None:
            return
        reason = names.reserved(name)
        if reason is not None:
            if not (allow_magic_methods and name in names.ENUM_HOOKS):
                self.error(node, reason)
        elif names.is_dunder(name):
            defined = name in names.DEF_DUNDERS and (allow_magic_methods or self._in_class)
            if not defined and name not in names.STORE_DUNDERS:
                self.error(node, f"{name} cannot be defined here")

    def _check_loaded(self, node: ast.Name) -> None:
        name = node.id
        reason = names.reserved(name)
        if reason is not None:
            self.error(node, reason)
        elif names.is_dunder(name):
            inherited = self._in_class and name in names.DEF_DUNDERS
            if not inherited and name not in names.LOAD_DUNDERS:
                self.error(node, f"{name} is not available to environments")
        elif name in names.UNAVAILABLE and name not in self._bound:
            self.error(node, f"{name}() is not available to environments")

    @contextmanager
    def _inside(self, scope: Scope) -> Iterator[None]:
        """Visit in `scope`; an empty one does not see the class level around it."""
        self._scopes.append(scope)
        yield
        self._scopes.pop()

    @property
    def _in_class(self) -> bool:
        return self._scopes[-1].class_name is not None

    def _mangle(self, name: str) -> str:
        """What Python makes of `__x` inside a class."""
        if not self._classes or not name.startswith("__") or name.endswith("__"):
            return name
        owner = self._classes[-1].lstrip("_")
        return f"_{owner}{name}" if owner else name

    def _member(self, name: str) -> str:
        """The name that an attribute has at run time."""
        return names.rename(self._mangle(name))

    def _bind(self, name: str) -> str:
        """The name under which the current scope binds `name`."""
        scope = self._scopes[-1]
        scope.bound.add(name)
        return self._member(name) if name in scope.renamed else name

    def _find(self, name: str) -> str:
        """The name under which the current scope finds `name`; before a class body binds it, that of a global."""
        scope = self._scopes[-1]
        return self._member(name) if name in scope.renamed & scope.bound else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Check a plain name; class-level private names are renamed."""
        if isinstance(node.ctx, ast.Load):
            self._check_loaded(node)
            node.id = self._find(node.id)
        else:
            self.check_name(node, node.id)
            node.id = self._bind(node.id)
        return node

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.AST:
        """Check the names of a `global` or `nonlocal` statement."""
        for name in node.names:
            self.check_name(node, name)
        return node

    visit_Nonlocal = visit_Global

    def visit_keyword(self, node: ast.keyword) -> ast.AST:
        """Keyword arguments must not spell what nothing may spell."""
        if node.arg is not None and (names.reserved(node.arg) or names.is_dunder(node.arg)):
            self.error(node, f"{node.arg!r} cannot be a keyword argument")
        return self._contents(node)


_SPOKEN = {
    "AsyncFunctionDef": "async def",
    "AsyncFor": "async for",
    "AsyncWith": "async with",
    "Await": "await",
    "TryStar": "except*",
    "TypeAlias": "the type statement",
}


def _spoken(node: ast.AST) -> str:
    return _SPOKEN.get(type(node).__name__, f"the syntax node {type(node).__name__}")
