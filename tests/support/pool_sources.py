"""Small environments and views of a pool, shared by its tests."""

from __future__ import annotations

from pathlib import Path

from synthgym.sandbox import (
    EnvFault,
    FaultKind,
    Pool,
    ResetResult,
    Session,
    StepResult,
)
from synthgym.spec import EnvRecord, Limits

LIMITS = Limits(
    load_seconds=1.0, reset_seconds=0.5, step_seconds=0.5, hint_seconds=0.1, memory_mb=64
)

WALK = '''
"""A walk that only its seed and the actions decide."""
import random

class WalkEnv:
    max_turns = 50

    def __init__(self, top=9):
        self._top = top

    def reset(self, seed: int):
        self._path = [random.randint(0, self._top)]
        return f"at {self._path[0]}", {"seed": seed}

    def step(self, action: str):
        if action == "loop":
            while True:
                pass
        if action == "bomb":
            self._path = [bytearray(1_000_000) for _ in range(1000)]
        if action == "huge":
            return "x" * 1_000_000, 0.0, False, False, {}
        if action == "raise":
            raise ValueError("as told")
        self._path.append(random.randint(0, self._top))
        return f"{action} {self._path} {sorted(set('abc'))} {set('abcdef')}", 0.0, False, False, {}

    def hint(self, level: int = 2):
        if level == 1:
            while True:
                pass
        return f"level {level} from {self._path[0]}"

    def solution(self):
        return ["go"] * (self._path[0] + 1)
'''


def walk(*, variant: int = 0) -> EnvRecord:
    """A record of the walk; variants differ in their bytes only."""
    return EnvRecord(source=f"{WALK}\nVARIANT = {variant}\n", entry="WalkEnv", max_turns=50)


def plain(**bodies: str) -> EnvRecord:
    """A record whose methods or module run the statements given."""
    parts = {name: bodies.get(name, "pass") for name in ("module", "init", "reset", "step")}
    source = f"""
def forever():
    while True:
        pass

{parts["module"]}

class PlainEnv:
    max_turns = 5

    def __init__(self):
        {parts["init"]}

    def reset(self, seed):
        {parts["reset"]}
        return "ready", {{}}

    def step(self, action):
        {parts["step"]}
        return "x", 0.0, False, False, {{}}
"""
    return EnvRecord(source=source, entry="PlainEnv", max_turns=5)


def observe(session: Session, seed: int, actions: list[str]) -> list[str]:
    """The observations of one episode."""
    first = session.reset(seed)
    assert isinstance(first, ResetResult), first
    return [first.observation, *(text(session.step(action)) for action in actions)]


def text(result: StepResult | EnvFault) -> str:
    assert isinstance(result, StepResult), result
    return result.observation


def worker_pid(session: Session) -> int:
    """The process that serves a session; the tests kill it from outside."""
    worker = session._source.worker
    assert worker is not None
    return worker.pid


def kinds(*results: object) -> list[FaultKind | None]:
    return [item.kind if isinstance(item, EnvFault) else None for item in results]


# --- what works ---


def running(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def children_of(pool: Pool) -> list[int]:
    """The workers that live under the zygote of a pool."""
    assert pool._zygote is not None
    pid = pool._zygote.pid
    return [int(item) for item in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
