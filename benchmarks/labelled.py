"""The labelled set: sources that must be refused for one reason each, and sources that must not be.

It lies in tests/data: a bad example and a near miss for each reason, further ones as `<code>--2.py`. Beside them stand
environments that are good: the bundled ones, and the blueprint families with parameters drawn from a seed. `mutation`
makes more bad examples: other names, other numbers, another order of the methods, the same fault.
"""

from __future__ import annotations

import ast
import builtins
import functools
import hashlib
import importlib
import keyword
import math
import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from spade_loop.families import Blueprint, load_families, random_blueprint, render
from synthgym.contract import MAX_SOURCE_BYTES, PRELUDES
from synthgym.preludes import prelude
from synthgym.sandbox.names import MODULES
from synthgym.validation import Reason

ROOT: Final = Path(__file__).parents[1]
DATA: Final = ROOT / "tests" / "data"
BAD, MUTATION, NEAR_MISS, GOOD = "bad", "mutation", "near miss", "good"
FAMILY_SEED: Final = 20
PER_FAMILY: Final = 10
"""Rendered environments of each of the six families: sixty."""
GUESSED: Final = 0.06
"""A blueprint is good when somebody who picks blindly among the choices wins no larger share of episodes."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """One source, and what validation must say of it."""

    name: str
    kind: str
    source: str
    reason: Reason | None
    """The only one for which it is refused, or warned of; None when nothing is wrong."""


def read(path: Path) -> str:
    """The text of a file as `synthgym validate` reads it: what is not UTF-8 becomes surrogates."""
    return path.read_bytes().decode("utf-8", "surrogateescape")


def reason_of_file(path: Path) -> Reason:
    """`missing-reset--2.py` is an example of `missing-reset`."""
    return Reason(path.stem.partition("--")[0])


def bad_examples() -> list[Labelled]:
    """The sources of tests/data/bad_envs, by name."""
    paths = sorted((DATA / "bad_envs").glob("*.py"))
    return [Labelled(path.stem, BAD, read(path), reason_of_file(path)) for path in paths]


def near_misses() -> list[Labelled]:
    """The sources of tests/data/near_misses, by name."""
    paths = sorted((DATA / "near_misses").glob("*.py"))
    return [Labelled(path.stem, NEAR_MISS, read(path), None) for path in paths]


def registry() -> list[Labelled]:
    """The bundled environments, and the example that the bad ones were made of."""
    paths = sorted((ROOT / "registry" / "envs").glob("*/v*/env.py"))
    found = [Labelled(path.parents[1].name, GOOD, read(path), None) for path in paths]
    found.append(Labelled("locker", GOOD, read(DATA / "good_envs" / "locker.py"), None))
    return found


def rendered() -> list[Labelled]:
    """Blueprints of every family, drawn from a seed, no two alike, and none that is won by guessing."""
    # Where tools are called nobody picks among choices: those families are tested on their own.
    families = [family for family in load_families() if not family.has_tools]
    found = []
    for place, family in enumerate(families):
        rng = np.random.default_rng([FAMILY_SEED, place])
        drawn: dict[str, str] = {}
        while len(drawn) < PER_FAMILY:
            blueprint = random_blueprint(family, rng)
            if guessed(blueprint) <= GUESSED:
                drawn.setdefault(blueprint.to_json(), render(blueprint, families))
        found += [
            Labelled(f"{family.name}-{number}", GOOD, source, None)
            for number, source in enumerate(drawn.values())
        ]
    return found


def guessed(blueprint: Blueprint) -> float:
    """How often blind choices win: enough right ones (binomially many) in the steps and the spare turns."""
    choices, steps, spare = (
        int(blueprint.parameters[name]) for name in ("choices", "steps", "spare")
    )
    turns, right = steps + spare, 1 / choices
    return sum(
        math.comb(turns, hits) * right**hits * (1 - right) ** (turns - hits)
        for hits in range(steps, turns + 1)
    )


# --- mutations ---

_CONTRACT: Final = {"max_turns", "reset", "step", "hint", "solution", "seed", "action", "level"}
_LIBRARY_VALUES: Final[tuple[object, ...]] = (
    "",
    b"",
    [],
    {},
    set(),
    (),
    1.5,
    1,
    Exception(),
    hashlib.sha256(),
    iter(()),
)
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_SYLLABLES: Final = (
    "bar",
    "den",
    "fol",
    "gim",
    "hus",
    "jek",
    "lor",
    "mun",
    "pex",
    "rav",
    "tib",
    "zon",
)


def mutation(item: Labelled, number: int) -> Labelled:
    """The same fault in another source; the same item and number give the same source."""
    rng = random.Random(f"{item.name} {number}")
    source = _other_numbers(item.source, rng)
    tree = _parsed(source)
    if tree is None:
        source = _renamed_attributes(source, rng)
    else:
        variables, members = _own_names(tree)
        fresh = _fresh(sorted(variables | members), source, rng)
        _Renamer(variables, members, dict(fresh)).visit(tree)
        _shuffle_methods(tree, rng)
        source = _unparsed(tree) or source
    return Labelled(f"{item.name}/{number}", MUTATION, source, item.reason)


def _parsed(source: str) -> ast.Module | None:
    """None for a text whose fault is that of the text: only what is told by sight is changed there."""
    if len(source) > MAX_SOURCE_BYTES:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _other_numbers(source: str, rng: random.Random) -> str:
    """Other instances: seeds are mapped to other ones, and wide draws become a little narrower."""
    factor, salt = rng.randrange(3, 40, 2), rng.randrange(1, 10_000)
    source = source.replace("Random(seed)", f"Random(seed * {factor} + {salt})")

    def narrower(found: re.Match[str]) -> str:
        low, high = int(found[1]), int(found[2])
        if high - low < 8:
            return found[0]
        return f"randint({low + rng.randrange(2)}, {high - rng.randrange(1, 3)})"

    return re.sub(r"randint\((-?\d+), (-?\d+)\)", narrower, source)


def _own_names(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Variables and members that the source binds, and that mean nothing to anybody else."""
    variables: set[str] = set()
    members: set[str] = set()
    preludes = " ".join(map(prelude, PRELUDES.values()))
    kept = _CONTRACT | _library_names() | set(_WORD.findall(preludes))
    for node in ast.walk(tree):
        kept.update(_fixed_by(node))
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                variables.add(name)
            case ast.Attribute(attr=name, ctx=ast.Store()):
                members.add(name)
            case ast.ClassDef(body=body):
                methods = [item.name for item in body if isinstance(item, ast.FunctionDef)]
                members.update(name for name in methods if not name.startswith("tool_"))
    variables.update(item.name for item in tree.body if isinstance(item, ast.FunctionDef))
    kept.update(name for name in variables | members if name.startswith("__") or len(name) == 1)
    return variables - kept, members - kept


def _fixed_by(node: ast.AST) -> Iterable[str]:
    """Names that this node gives a meaning beyond the source, or binds in a way that stays as it is."""
    match node:
        case ast.arg(arg=name) | ast.keyword(arg=str(name)) | ast.MatchAs(name=str(name)):
            return (name,)
        case ast.ExceptHandler(name=str(name)) | ast.MatchStar(name=str(name)):
            return (name,)
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.FunctionDef():  # functions inside of functions keep their names
            inner = [item for item in ast.walk(node) if isinstance(item, ast.FunctionDef)]
            return [item.name for item in inner if item is not node]
        case ast.alias(name=name, asname=asname):
            return (name, asname or name)
        case ast.Constant(value=str(text)):
            return _spelled_in(text)
        case ast.ClassDef(name=name, body=body):  # fields of dataclasses, members of enums
            return (name, *_stored(body))
        case _:
            return ()


def _spelled_in(text: str) -> Iterable[str]:
    """Names that a text may stand for, in `getattr` or `format`."""
    if _WORD.fullmatch(text):
        return (text, f"_{text}")
    return _WORD.findall(text) if "{" in text else ()


def _stored(body: Iterable[ast.stmt]) -> Iterator[str]:
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


@functools.cache
def _library_names() -> frozenset[str]:
    """What modules and builtins are called, and what can be asked of their objects."""
    found = {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *MODULES}
    for value in _LIBRARY_VALUES:
        found.update(dir(value))
    for name in MODULES:
        if name == "typing_extensions":
            continue  # `typing` under another name, and not always there
        module = importlib.import_module(name)
        for member in vars(module).values():
            found.update(dir(member) if isinstance(member, type) else ())
        found.update(dir(module))
    return frozenset(found)


def _fresh(names: Iterable[str], source: str, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Each name with a new one of the same form, which the source does not spell yet."""
    used = set(_WORD.findall(source))
    for name in names:
        word = "".join(rng.choices(_SYLLABLES, k=3))
        while word in used or f"_{word}" in used:
            word += rng.choice(_SYLLABLES)
        used.add(word)
        private = "_" if name.startswith("_") else ""
        yield name, private + (word.upper() if name.isupper() else word)


class _Renamer(ast.NodeTransformer):
    """Spells variables and members as `fresh` has them."""

    def __init__(self, variables: set[str], members: set[str], fresh: dict[str, str]) -> None:
        self._variables = {name: fresh[name] for name in variables}
        self._members = {name: fresh[name] for name in members}

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A variable, a function, a constant."""
        node.id = self._variables.get(node.id, node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """An attribute of whatever it is."""
        node.attr = self._members.get(node.attr, node.attr)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        """Its functions are members, and called as such."""
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                item.name = self._members.get(item.name, item.name)
        return self.generic_visit(node)

    def visit_Module(self, node: ast.Module) -> ast.AST:
        """Its functions are variables."""
        for item in node.body:
            if isinstance(item, ast.FunctionDef):
                item.name = self._variables.get(item.name, item.name)
        return self.generic_visit(node)


def _shuffle_methods(tree: ast.AST, rng: random.Random) -> None:
    """Put the methods of every class in another order, unless some rely on it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        methods = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        names = {method.name for method in methods}
        if len(names) == len(methods) and not any(method.decorator_list for method in methods):
            rest = [item for item in node.body if not isinstance(item, ast.FunctionDef)]
            node.body = [*rest, *rng.sample(methods, len(methods))]


def _unparsed(tree: ast.AST) -> str:
    """The text; empty when this Python cannot write it down (quotes inside of an f-string)."""
    try:
        return f"{ast.unparse(tree)}\n"
    except ValueError:
        return ""


def _renamed_attributes(source: str, rng: random.Random) -> str:
    """`self.<name>` under another name, wherever one is stored."""
    names = sorted(set(re.findall(r"\bself\.(\w+) = ", source)) - _CONTRACT - _library_names())
    for name, fresh in _fresh(names, source, rng):
        source = re.sub(rf"\bself\.{name}\b", f"self.{fresh}", source)
    return source
