from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synthgym.memory.fingerprint
import synthgym.memory.subtrees
from synthgym.errors import ConfigError
from synthgym.memory.fingerprint import parse_source
from synthgym.memory.subtrees import subtrees

ROOT = Path(__file__).parents[2]
BASE = '''
"""A lock with gates."""
import random

class LockEnv:
    def reset(self, seed: int) -> tuple[str, dict]:
        rng = random.Random(seed)
        self.level = rng.randint(1, 9)
        return f"level {self.level:>3}", {}

    def step(self, action):
        if action == "open":
            self.level -= 1
        total = sum(x * 2 for x in range(self.level))
        return "ok", -1.5, total == 0, False, {}
'''


def pieces(source: str) -> set[int]:
    return set(subtrees(parse_source(source)).tolist())


def test_the_hashes_are_sorted_and_unique() -> None:
    found = subtrees(parse_source(BASE + BASE))
    assert found.dtype == np.uint64
    assert all(one < other for one, other in pairwise(found.tolist()))
    assert len(found) == 20


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("total", "amount"),
        ("self.level", "self.height"),
        ("LockEnv", "DamEnv"),
        ("* 2", "* 7"),
        ('"ok"', '"fine"'),
        ("seed: int) -> tuple[str, dict]", "seed)"),
        ('"""A lock with gates."""', ""),
        ("import random", "import random, math"),
        ("        total =", "        assert action\n        pass\n        total ="),
    ],
)
def test_the_pieces_are_blind_to(old: str, new: str) -> None:
    assert BASE.replace(old, new) != BASE
    assert pieces(BASE.replace(old, new)) == pieces(BASE)


def test_pieces_stay_where_methods_change_places_and_code_is_put_between() -> None:
    head, reset, step = BASE.partition("    def reset")[0], *BASE.split("    def ")[1:]
    moved = f"{head}    def {step}\n    def other(self):\n        return 1\n\n    def {reset}"
    before, after = pieces(BASE), pieces(moved)
    assert len(before - after) == 1  # the class
    assert len(after - before) == 2  # the class and the new method


def test_another_operation_changes_only_what_it_stands_in() -> None:
    before, after = pieces(BASE), pieces(BASE.replace("x * 2", "x + 2"))
    assert 0 < len(before - after) == len(after - before) < 8


def test_a_piece_has_at_least_four_nodes() -> None:
    assert not pieces("x = y")  # Assign, N, N
    assert len(pieces("x = y + 1")) == 2  # the sum with its operator, and the assignment


def test_the_whole_source_is_no_piece() -> None:
    assert pieces("x = y + 1") | pieces("x = y * z * z") == pieces("x = y + 1\nx = y * z * z")


def test_the_spec_has_not_drifted() -> None:
    found = subtrees(parse_source("x = y + 1"))
    assert [hex(h) for h in found] == ["0x38c0a39ef5b12043", "0xbf00147fe8c180b4"]


def test_a_deep_source_does_not_exhaust_the_stack() -> None:
    tree = parse_source("x = " + "+".join(["y"] * 700))
    assert len(subtrees(tree)) == 700  # each sum, and the assignment


def test_time_is_linear_in_the_size() -> None:
    """Hashing whole texts of subtrees would be quadratic on a chain: no text grows with the depth."""
    calls: list[int] = []
    real = synthgym.memory.subtrees.hashlib.blake2b

    def counted(data: bytes, digest_size: int) -> object:
        calls.append(len(data))
        return real(data, digest_size=digest_size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(synthgym.memory.subtrees.hashlib, "blake2b", counted)
        subtrees(parse_source("x = " + "+".join(["y"] * 600)))
    assert max(calls) < 80
    assert len(calls) < 1300


@given(st.text(alphabet="xy=+-*()[]{}:,'\"\\\n 0123456789.#fdeifor", max_size=60))
def test_any_text_is_taken_apart_or_refused(text: str) -> None:
    try:
        tree = parse_source(text)
    except ConfigError:
        return
    assert subtrees(tree).tolist() == subtrees(parse_source(text)).tolist()


CHILD = """
import importlib.util, json, sys, types
errors = types.ModuleType("synthgym.errors")
errors.ConfigError = ValueError
numpy = types.ModuleType("numpy")
numpy.uint64, numpy.array = int, lambda values, kind: values
numpy.typing = types.ModuleType("numpy.typing")
numpy.typing.NDArray = list
sys.modules.update({"synthgym": types.ModuleType("synthgym"), "synthgym.errors": errors})
sys.modules.update({"synthgym.memory": types.ModuleType("synthgym.memory")})
sys.modules.update({"numpy": numpy, "numpy.typing": numpy.typing})
for name, path in (("fingerprint", sys.argv[1]), ("subtrees", sys.argv[2])):
    spec = importlib.util.spec_from_file_location("synthgym.memory." + name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
parse = sys.modules["synthgym.memory.fingerprint"].parse_source
print(json.dumps([[int(h) for h in module.subtrees(parse(s))] for s in json.load(sys.stdin)]))
"""
INTERPRETERS = sorted(
    path
    for minor in (11, 12, 13)
    for path in Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin/python")
)


@pytest.mark.skipif(not INTERPRETERS, reason="no other interpreters in ~/.pyenv/versions")
@pytest.mark.parametrize("python", INTERPRETERS, ids=lambda path: path.parts[-3])
def test_hashes_are_the_same_in_every_python_release(python: Path) -> None:
    sources = [BASE]
    sources += [p.read_text() for p in sorted((ROOT / "registry" / "envs").glob("*/v*/env.py"))]
    done = subprocess.run(
        [
            python,
            *("-I", "-c", CHILD),
            *(synthgym.memory.fingerprint.__file__, synthgym.memory.subtrees.__file__),
        ],
        input=json.dumps(sources),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == [subtrees(parse_source(s)).tolist() for s in sources]
