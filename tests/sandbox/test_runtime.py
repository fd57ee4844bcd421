from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.runtime import ContractError, Runtime

RUNTIME = Runtime()

ROLLS = """
import random, time
class RollEnv:
    def __init__(self):
        self.early = random.Random()
        self.fixed = random.Random(5)
    def reset(self, seed=None):
        if {reseed}: random.seed(99)
        late = random.Random()
        random.seed(None) if {entropy} else None
        return [random.random(), self.early.random(), late.random(), random.randint(0, 9), time.time()]
"""


def code_of(source: str) -> types.CodeType:
    compiled = compile_source(source)
    assert compiled.violations == ()
    assert compiled.code is not None
    return compiled.code


@pytest.mark.parametrize("reseed", [False, True])
@pytest.mark.parametrize("entropy", [False, True])
def test_the_same_seed_gives_the_same_episode_however_often(reseed: bool, entropy: bool) -> None:
    namespace = RUNTIME.instantiate(code_of(ROLLS.format(reseed=reseed, entropy=entropy)), 1)
    env = RUNTIME.env_class(namespace)()

    def episode(seed: int) -> list[float]:
        RUNTIME.reseed(namespace, seed)
        found: list[float] = env.reset()
        return found

    first = episode(3)
    assert episode(4) != first
    assert episode(3) == first


def test_a_generator_seeded_by_the_source_is_left_alone() -> None:
    namespace = RUNTIME.instantiate(code_of(ROLLS.format(reseed=False, entropy=False)), 1)
    env = RUNTIME.env_class(namespace)()
    first = env.fixed.random()
    RUNTIME.reseed(namespace, 1)
    assert env.fixed.random() != first


def test_instances_do_not_disturb_one_another() -> None:
    code = code_of(
        "import random\nseen = []\nclass AEnv: n = 0\ndef roll(): seen.append(1); return random.random()"
    )
    alone = RUNTIME.instantiate(code, 1)
    expected = [alone["roll"]() for _ in range(3)]
    one, two = RUNTIME.instantiate(code, 1), RUNTIME.instantiate(code, 2)
    mixed = []
    for _ in range(3):
        mixed.append(one["roll"]())
        two["roll"]()
    assert mixed == expected
    assert len(one["seen"]) == 3
    assert RUNTIME.env_class(one) is not RUNTIME.env_class(two)


def test_unseeded_generators_that_are_gone_are_forgotten() -> None:
    source = "import random\nfor i in range(100): random.Random(); random.Random(i)\nkept = random.Random()"
    namespace = RUNTIME.instantiate(code_of(source), 1)
    assert len(namespace["_instance_"]._unseeded) == 1


def test_what_the_source_raises_passes_through() -> None:
    with pytest.raises(KeyError, match="oops"):
        RUNTIME.instantiate(code_of("raise KeyError('oops')"), 0)


def test_the_env_class_is_found_by_its_name() -> None:
    namespace = RUNTIME.instantiate(
        code_of("class Room: pass\nclass LockEnv: pass\nAlias = LockEnv"), 0
    )
    assert RUNTIME.env_class(namespace).__name__ == "LockEnv"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("x = 1", "got 0; classes of the source: none"),
        ("class Room: pass", "got 0; classes of the source: Room"),
        ("class AEnv: pass\nclass BEnv: pass", "got 2; classes of the source: AEnv, BEnv"),
    ],
)
def test_none_or_several_env_classes_are_a_contract_error(source: str, text: str) -> None:
    with pytest.raises(ContractError, match=text):
        RUNTIME.env_class(RUNTIME.instantiate(code_of(source), 0))


def test_another_process_with_another_hash_seed_gives_the_same_bytes() -> None:
    program = (
        "from synthgym.sandbox.compile import compile_source as c\n"
        "from synthgym.sandbox.runtime import Runtime\n"
        "r = Runtime()\n"
        "n = r.instantiate(c('import random, time\\nq = random.Random()\\n"
        "x = [random.random(), q.random(), random.sample(range(99), 5), time.time()]').code, 7)\n"
        "print(n['x'])"
    )
    root = str(Path(__file__).parents[2])
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True, text=True, check=True, timeout=60, cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
