from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import ConfigError
from synthgym.memory import fingerprint
from synthgym.memory.fingerprint import ast_hash, data_hash, parse_source, tokens

ROOT = Path(__file__).parents[2]
BASE = '''
"""A lock with gates."""
import random

WORDS = ["ash", "oak", "elm", "fir", "yew", "bay", "box", "fig", "nut"]


class LockEnv:
    """Open the gates."""

    max_turns: int = 12

    def reset(self, seed: int) -> tuple[str, dict]:
        """Start."""
        rng = random.Random(seed)
        self.level = rng.randint(1, 9)
        assert self.level > 0
        return f"level {self.level:>3} of {len(WORDS)}", {}

    def step(self, action):
        if action == "open":
            self.level -= 1
        total = sum(x * 2 for x in range(self.level))
        return "ok", -1.5, total == 0, False, {}
'''
SAME = {
    "renamed locals": BASE.replace("total", "amount").replace("rng", "generator"),
    "renamed class and module names": BASE.replace("LockEnv", "DamEnv").replace("WORDS", "TREES"),
    "other numbers": BASE.replace("* 2", "* 7").replace("-1.5", "0.25").replace("(1, 9)", "(3, 5)"),
    "other small texts": BASE.replace('"ok"', '"fine"').replace('"open"', '"close"'),
    "other prompt": BASE.replace("level {self", "height {self").replace(" of {", " out of {"),
    "no docstrings": BASE.replace('"""Open the gates."""', "").replace('"""Start."""', ""),
    "no annotations": BASE.replace("seed: int) -> tuple[str, dict]", "seed)").replace(
        ": int =", " ="
    ),
    "no assert": BASE.replace("        assert self.level > 0\n", ""),
    "comments and blank lines": BASE.replace("    def step", "\n    # Moves.\n\n    def step"),
    "more imports": BASE.replace("import random", "import math\nimport random\nfrom re import sub"),
    "renamed attribute of self": BASE.replace("self.level", "self.height"),
    "stray pass": BASE.replace(
        "            self.level -= 1", "            self.level -= 1\n            pass"
    ),
}
OTHER = {
    "another operator": BASE.replace("x * 2", "x + 2"),
    "another builtin": BASE.replace("sum(", "max("),
    "another method": BASE.replace("randint", "randrange"),
    "one statement more": BASE.replace("self.level -= 1", "self.level -= 1; self.level += 1"),
    "another type of literal": BASE.replace("* 2", "* 2.0"),
    "one replacement field less": BASE.replace(" of {len(WORDS)}", ""),
}
TRICKY = r'''
import asyncio
from dataclasses import dataclass

TABLE = {"a": -1, "b": [1, 2], "c": 3.5, "d": None, "e": b"x", "f": 2j, "g": "\u20ac", "h": (), "i": {1}}
TREES = "ash oak elm fir yew bay box fig nut é".split()
LINES = """one
two
three
four
five
six
seven
eight
nine""".splitlines()


@dataclass(frozen=True)
class Point:
    x: int = 0
    y: 'int' = 1


class TrickyEnv(object, metaclass=type):
    max_turns = 5

    def reset(self, seed, /, a=1, *args, key="x", other, **kw):
        global TABLE
        if (n := len(args)) > 2 and not key or n:
            del self.x
        text = f"{n!r:>{a}} {n=} {'a' 'b'}" "tail" f"" rf"\d{seed:}"
        return text, {**kw, "k": [*args]}

    def step(self, action):
        match action:
            case "a" | "b":
                pass
            case [x, *rest] if rest:
                return x
            case {"k": None, **others}:
                return others
            case Point(x=0) as p:
                return p
            case None:
                return (lambda q, *, r=2: q[1:r, ...])(TABLE)
            case _:
                raise ValueError from None
        try:
            x, *y = [i for i in range(9) if i % 2 for _ in "ab"]
        except* (KeyError, TypeError) as group:
            raise
        else:
            y[0] @= 3
        finally:
            while x:
                x = yield
            else:
                x: int
        with open("f") as f, f:
            return {k: v for k, v in TABLE.items()} | {z for z in y} if x else (g for g in y)

    async def other(self):
        async for i in self.x:
            await asyncio.sleep(0.0)
        async with self.x as z:
            return 0x1F if 1 < 2 <= 3 is not None else -z
'''


def hash_of(source: str) -> str:
    return ast_hash(parse_source(source))


def data_of(source: str) -> str:
    return data_hash(parse_source(source))


@pytest.mark.parametrize("source", SAME.values(), ids=SAME.keys())
def test_structure_is_blind_to(source: str) -> None:
    assert source != BASE
    assert hash_of(source) == hash_of(BASE)


@pytest.mark.parametrize("source", OTHER.values(), ids=OTHER.keys())
def test_structure_sees(source: str) -> None:
    assert source != BASE
    assert hash_of(source) != hash_of(BASE)


@pytest.mark.parametrize(
    "words", ['["a"]' + "*9", "[" + '"x", ' * 9 + "]", "[" + '"x", ' * 30 + "]"]
)
def test_a_large_table_of_literals_is_data_whatever_its_length(words: str) -> None:
    start, end = BASE.index('["ash"'), BASE.index("]", BASE.index('["ash"')) + 1
    other = BASE[:start] + words + BASE[end:]
    is_table = "*" not in words
    assert (hash_of(other) == hash_of(BASE)) is is_table
    assert data_of(other) != data_of(BASE)


def test_the_data_hash_ignores_small_containers_and_single_literals() -> None:
    assert data_of(SAME["other numbers"]) == data_of(BASE)
    assert data_of("x = [1, 2, 3]") == data_of("x = [4, 5, 6, 7]")
    assert data_of("x = [1, 2, 3, 4, 5, 6, 7, 8, 9]") != data_of("x = [1, 2, 3, 4, 5, 6, 7, 8, 8]")


def test_words_of_a_split_text_are_data() -> None:
    nine, other = "a b c d e f g h i", "a b c d e f g h j"
    assert data_of(f"x = '{nine}'.split()") != data_of(f"x = '{other}'.split()")
    assert hash_of(f"x = '{nine}'.split()") == hash_of(f"x = '{other}'.split()")
    assert data_of("x = 'a b'.split()") == data_of("x = 'c d'.split()")


def test_items_are_not_confused_across_types_and_borders() -> None:
    rows = ["1", "'1'", "1.0", "True", "None", "b'1'", "1j", "...", "'1,1'"]
    hashes = {data_of(f"x = [{', '.join([row] * 9)}]") for row in rows}
    assert len(hashes) == len(rows)


def test_the_spec_of_the_walk_has_not_drifted() -> None:
    assert hash_of("def f(x):\n    return x + 1\n") == (
        "ast/1:df687ad9730616c3461a8174b0e03437abe36ad84774bec7dd1671b93bbac72e"
    )
    assert data_of("x = [1, 2, 3, 4, 5, 6, 7, 8, 9]") == (
        "data/1:21ea79df448fc78f5ebfb77427d88981fa5be76fc6a317445ff1f5223b12b132"
    )


@pytest.mark.parametrize(
    "source", ["def", "x = (", "\0", "(" * 5000, "x = " + "-" * 60_000 + "1"], ids=range(5)
)
def test_a_source_that_does_not_parse_is_our_config_error(source: str) -> None:
    with pytest.raises(ConfigError, match="does not parse"):
        parse_source(source)


def test_a_deep_tree_is_walked_without_recursion() -> None:
    tree = parse_source("x = " + "+".join(["y"] * 700))
    assert sum(1 for token in tokens(tree) if token == "N") == 701


@given(st.text(alphabet="xy=+-*()[]{}:,'\"\\\n 0123456789.#fdeifor", max_size=60))
def test_any_text_is_hashed_or_refused(text: str) -> None:
    try:
        tree = parse_source(text)
    except ConfigError:
        return
    assert ast_hash(tree) == ast_hash(parse_source(text))
    assert data_hash(tree) == data_hash(parse_source(text))


CHILD = """
import importlib.util, json, sys, types
errors = types.ModuleType("synthgym.errors")
errors.ConfigError = ValueError
sys.modules["synthgym"] = types.ModuleType("synthgym")
sys.modules["synthgym.errors"] = errors
spec = importlib.util.spec_from_file_location("fingerprint", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
trees = [module.parse_source(source) for source in json.load(sys.stdin)]
print(json.dumps([[module.ast_hash(tree), module.data_hash(tree)] for tree in trees]))
"""
INTERPRETERS = sorted(
    path
    for minor in (11, 12, 13)
    for path in Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin/python")
)


@pytest.mark.skipif(not INTERPRETERS, reason="no other interpreters in ~/.pyenv/versions")
@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.parts[-3])
@pytest.mark.parametrize("hash_seed", ["0", "7"])
def test_hashes_are_the_same_in_every_python_release(python: Path, hash_seed: str) -> None:
    sources = [BASE, TRICKY, *SAME.values(), *OTHER.values()]
    sources += [p.read_text() for p in sorted((ROOT / "registry" / "envs").glob("*/v*/env.py"))]
    done = subprocess.run(
        [python, "-I", "-c", CHILD, fingerprint.__file__],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PYTHONHASHSEED": hash_seed},
    )
    expected = [[hash_of(source), data_of(source)] for source in sources]
    assert json.loads(done.stdout) == expected


def test_the_hashes_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import sys; from synthgym.memory.fingerprint import *;"
        "tree = parse_source(sys.stdin.read()); print(ast_hash(tree), data_hash(tree))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=TRICKY,
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert outputs == {f"{hash_of(TRICKY)} {data_of(TRICKY)}\n"}
