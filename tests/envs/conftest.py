from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, Limits, SynthEnvSpec

LOCKER = Path(__file__).parents[1] / "data" / "good_envs" / "locker.py"

MISBEHAVING = '''"""Does to its player what the player says."""


class MisbehavingEnv:
    max_turns = 6

    def __init__(self):
        self.turn = 0

    def reset(self, seed):
        if seed == 13:
            raise ValueError("unlucky")
        return f"Instance {seed}.", {"seed": seed}

    def step(self, action):
        self.turn += 1
        if action == "raise":
            raise ValueError("told to")
        if action == "hang":
            while True:
                pass
        if action.startswith("pay "):
            _, amount, end = action.split()
            return "Paid.", float(amount), end == "end", False, {"turn": self.turn}
        if action == "stop":
            return "Stopped.", 0.0, False, True, {}
        return f"You said {len(action)} characters.", 0.0, False, False, {"turn": self.turn}

    def hint(self, level=2):
        if level == 3:
            raise ValueError("no such hint")
        return f"Say pay 1.0 end (level {level})."

    def solution(self):
        return ["pay 0.5 on", "pay 0.5 end"]
'''


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as pool:
        yield pool


@pytest.fixture(scope="session")
def make_spec() -> Callable[..., SynthEnvSpec]:
    def make(source: str, entry: str, max_turns: int, hint: str | None = None) -> SynthEnvSpec:
        record = EnvRecord(source=source, entry=entry, max_turns=max_turns)
        limits = Limits(step_seconds=0.5)
        return SynthEnvSpec(record=record, name=entry.removesuffix("Env"), hint=hint, limits=limits)

    return make


@pytest.fixture(scope="session")
def locker(make_spec: Callable[..., SynthEnvSpec]) -> SynthEnvSpec:
    return make_spec(LOCKER.read_text(), "LockerEnv", 8)


@pytest.fixture(scope="session")
def misbehaving(make_spec: Callable[..., SynthEnvSpec]) -> SynthEnvSpec:
    return make_spec(MISBEHAVING, "MisbehavingEnv", 6)
