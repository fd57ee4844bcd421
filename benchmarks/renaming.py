"""Other names for whatever a source itself names, so that it still does the same."""

from __future__ import annotations

import ast
import builtins
import collections
import functools
import itertools
import keyword
import math
import random
import re
from collections.abc import Iterable
from typing import Final

import numpy as np
from vocabulary import STORY

CONTRACT: Final = frozenset(
    ("max_turns", "reset", "step", "hint", "solution", "seed", "action", "level", "self", "cls")
)
"""What the contract of an environment spells."""
_LIBRARY: Final[tuple[object, ...]] = (
    *("", b"", [], {}, set(), frozenset(), (), 1.5, 1, Exception(), re.compile("")),
    *(random.Random(0), re, math, random, itertools, functools, collections),
    *(collections.deque(), collections.Counter(), collections.OrderedDict()),
    *(collections.defaultdict(), np, np.zeros(1), np.random.default_rng(0)),
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


@functools.cache
def _library_names() -> frozenset[str]:
    found = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist}
    return frozenset(found.union(*(dir(item) for item in _LIBRARY)))


def rename(tree: ast.Module, rng: np.random.Generator, keep: frozenset[str]) -> None:
    """Rename variables, arguments, attributes, functions and classes in place.

    One name becomes the same other name everywhere, so scopes stay as they are. Left alone is what
    somebody else may spell: imports, names of libraries, of the contract, keywords of calls,
    dunders, what a text might stand for, and `keep`.
    """
    bound, members = _bound(tree)
    fixed = _fixed(tree) | CONTRACT | keep
    spelled = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    foreign = (spelled & _library_names()) | (spelled - members)
    names = sorted(
        name
        for name in bound
        if name not in fixed and name not in foreign and not name.startswith("__")
    )
    fresh = _fresh(names, _all_words(tree), rng)
    _Renamer(dict(zip(names, fresh, strict=True))).visit(tree)


def _bound(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Every name that the source binds, and those of them that are attributes or members of a class."""
    names: set[str] = set()
    members: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.Attribute(attr=name, value=ast.Name(id="self" | "cls"), ctx=ast.Store()):
                members.add(name)
            case ast.ClassDef(name=name, body=body):
                names.add(name)
                members.update(_class_names(body))
    return names | members, members


def _class_names(body: Iterable[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for item in body:
        if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(item.name)
        else:
            stored = (n for n in ast.walk(item) if isinstance(n, ast.Name))
            found.update(n.id for n in stored if isinstance(n.ctx, ast.Store))
    return found


def _fixed(tree: ast.Module) -> set[str]:
    """Names to which something outside of the code may refer."""
    found: set[str] = set(dir(builtins)) | set(keyword.kwlist) | set(keyword.softkwlist)
    for node in ast.walk(tree):
        match node:
            case ast.alias(name=name, asname=asname):
                found.update((asname or name).split("."))
            case ast.keyword(arg=str(name)):
                found.add(name)
            case ast.MatchClass(kwd_attrs=names):
                found.update(names)
            case ast.Constant(value=str(text)):
                found.update(_spelled_in(text))
            case ast.ClassDef(decorator_list=[_, *_], body=body):
                found.update(_class_names(body))  # fields of a dataclass are arguments, too
            case ast.FunctionDef(name=name) if name.startswith("tool_"):
                found.update(
                    (name, *(a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)))
                )
    return found


def _spelled_in(text: str) -> Iterable[str]:
    """Names that a text may stand for, in `getattr`, in annotations or in `format`."""
    if _WORD.fullmatch(text):
        return (text,)
    return _WORD.findall(text) if "{" in text else ()


def _all_words(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name", "asname", "rest"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.add(value)
    return found


def _fresh(names: list[str], taken: set[str], rng: np.random.Generator) -> list[str]:
    """A new name for each, of the same form; none that is spelled already or means something."""
    used = taken | _library_names() | CONTRACT
    found = []
    for name in names:
        word = str(rng.choice(STORY))
        while word in used or f"_{word}" in used:
            word += f"_{rng.choice(STORY)}"
        used.add(word)
        if name.isupper():
            word = word.upper()
        elif name[:1].isupper():
            word = word.title().replace("_", "") + ("Env" if name.endswith("Env") else "")
        found.append(("_" if name.startswith("_") else "") + word)
    return found


class _Renamer(ast.NodeTransformer):
    def __init__(self, fresh: dict[str, str]) -> None:
        self._fresh = fresh

    def visit(self, node: ast.AST) -> ast.AST:
        """Every field that holds a name, of every node but imports and keywords of calls."""
        if isinstance(node, ast.Import | ast.ImportFrom):
            return node
        for field in ("id", "attr", "name", "rest", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str) and not isinstance(node, ast.keyword):
                setattr(node, field, self._fresh.get(value, value))
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [self._fresh.get(name, name) for name in node.names]
        visited: ast.AST = self.generic_visit(node)
        return visited
