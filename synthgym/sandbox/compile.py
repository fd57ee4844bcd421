"""From source text to checked code, without ever running it."""

from __future__ import annotations

import ast
import sys
import types
import warnings
from collections.abc import Iterable
from typing import Final

import msgspec

from synthgym.contract import BASE, PRELUDES, max_source_bytes
from synthgym.errors import SandboxError
from synthgym.sandbox import sharing
from synthgym.sandbox.composing import compose
from synthgym.sandbox.policy import SandboxPolicy, Violation
from synthgym.sandbox.scopes import levels_of

__all__ = [
    "CHECKER_VERSION",
    "Compiled",
    "Violation",
    "check_source",
    "compile_source",
    "import_roots",
]

CHECKER_VERSION: Final = 5
"""Part of the key under which checked code is stored: raise it with every change of the policy or its tables."""

MAX_NODES: Final = 60_000
"""A dense source of 64 KiB has about 30 thousand; more is written to exhaust the compiler."""
MAX_DEPTH: Final = 150
"""Levels of nesting; the transformer uses four Python frames a level."""

_PYTHONS = ((3, 11), (3, 13))
_STATEMENTS: Final = frozenset({"body", "orelse", "finalbody", "handlers", "cases"})
"""Fields of nodes that hold statements, or what holds statements itself."""
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)


class Compiled(msgspec.Struct, frozen=True):
    """What a source compiles to; `code` is None exactly when there are violations."""

    code: types.CodeType | None
    violations: tuple[Violation, ...]
    requires: tuple[str, ...]
    """Roots of the modules that the source imports, sorted."""
    docstring: str
    """Docstring of the module, else of the last class whose name ends in `Env`, else empty."""


def check_source(source: str) -> tuple[Violation, ...]:
    """Every violation of size, syntax and policy in `source`, by line; empty when it may be run."""
    return compile_source(source).violations


def compile_source(source: str, filename: str = "<env>", base: str = BASE) -> Compiled:
    """Parse, check and compile `source`; nothing in it is run. `base` says what is put in front of it.

    Raises `SandboxError` on a Python version for which the policy has not been reviewed.
    """
    if not _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]:
        raise SandboxError(
            "the sandbox policy is reviewed for Python 3.11 to 3.13, "
            f"this is {sys.version_info[0]}.{sys.version_info[1]}: use one of those"
        )
    with warnings.catch_warnings():
        # A source's own SyntaxWarnings are not ours to show, and must not become errors under -W error.
        warnings.simplefilter("ignore")
        problem = text_problem(source, base)
        if problem is not None:
            return _refused(problem)
        try:
            return _compile(source, filename, base)
        except SyntaxError as error:
            return _refused(Violation(error.lineno or 1, f"syntax error: {error.msg}"))
        except ValueError as error:
            return _refused(Violation(1, f"the source cannot be compiled: {error}"))
        except (RecursionError, MemoryError):
            return _refused(Violation(1, "the source is nested too deeply to be compiled"))


def _refused(violation: Violation) -> Compiled:
    return Compiled(None, (violation,), (), "")


def text_problem(source: str, base: str = BASE) -> Violation | None:
    """What is wrong with the text before it is parsed."""
    for line, text in enumerate(source.split("\n"), start=1):
        if "\0" in text:
            return Violation(line, "the source holds a NUL character")
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            return Violation(line, "the source holds a lone surrogate and is not valid Unicode")
    size = len(source.encode())
    if size > max_source_bytes(base):
        return Violation(
            1, f"the source has {size} bytes; at most {max_source_bytes(base)} are allowed"
        )
    return None


def _compile(source: str, filename: str, base: str) -> Compiled:
    tree = ast.parse(source, filename)
    levels = levels_of(tree)
    count = sum(map(len, levels))
    if count > MAX_NODES:
        return _refused(
            Violation(1, f"the source has {count} syntax nodes; at most {MAX_NODES} are allowed")
        )
    for level in levels[MAX_DEPTH : MAX_DEPTH + 1]:
        lines = [node.lineno for node in level if hasattr(node, "lineno")]
        if lines:
            problem = f"code is nested more than {MAX_DEPTH} levels deep"
            return _refused(Violation(lines[0], problem))
    nodes = [node for level in levels for node in level if isinstance(node, _DOCUMENTED)]
    _clean_docstrings(nodes)
    docstring = _docstring(tree, nodes)
    own_roots = import_roots(tree) if base in PRELUDES else None
    tree = compose(tree, base)
    facts = sharing.analyse(tree)
    policy = SandboxPolicy()
    tree = policy.visit(tree)
    requires = tuple(sorted(policy.requires))
    if own_roots is not None:
        requires = tuple(root for root in requires if root in own_roots)
    if policy.violations:
        found = tuple(sorted(dict.fromkeys(policy.violations), key=lambda item: item.line))
        return Compiled(None, found, requires, docstring)
    # dont_inherit: this module's own `from __future__` must not reach the source. optimize=0: asserts always run.
    code = compile(tree, filename, "exec", dont_inherit=True, optimize=0)
    return Compiled(sharing.attach(code, facts), (), requires, docstring)


def import_roots(tree: ast.AST) -> set[str]:
    """The top-level names of all modules that a source itself imports."""
    roots: set[str] = set()
    todo: list[ast.AST] = [tree]
    for node in todo:  # no expression holds a statement, so none is looked into
        for part in _STATEMENTS.intersection(node._fields):
            inside = getattr(node, part)
            todo += inside if isinstance(inside, list) else ()
        if isinstance(node, ast.Import):
            roots.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            roots.add(node.module.partition(".")[0])
    return roots


def _clean_docstrings(nodes: Iterable[ast.AST]) -> None:
    r"""Put a question mark for every lone surrogate that a docstring writes as "\ud800": Python 3.13 refuses them."""
    for node in nodes:
        match node:
            case (
                ast.Module(body=[ast.Expr(value=ast.Constant(value=str(text)) as constant), *_])
                | ast.ClassDef(body=[ast.Expr(value=ast.Constant(value=str(text)) as constant), *_])
                | ast.FunctionDef(
                    body=[ast.Expr(value=ast.Constant(value=str(text)) as constant), *_]
                )
            ):
                constant.value = text.encode("utf-8", "replace").decode("utf-8")


def _docstring(tree: ast.Module, nodes: Iterable[ast.AST]) -> str:
    text = ast.get_docstring(tree)
    if text:
        return text
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    ours = [node for node in classes if node.name.endswith("Env")]
    return (ast.get_docstring(ours[-1]) or "") if ours else ""
