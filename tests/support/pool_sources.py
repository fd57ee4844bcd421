"""Small environments and views of a pool, shared by its tests."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
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
        if action == "slow":
            sum(range(20_000_000))
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


GAME = '''
import random

class GameEnv:
    """Everything that an answer can hold, decided by the seed and the actions alone."""
    max_turns = 100

    def reset(self, seed: int):
        if seed % 10 == 9:
            raise ValueError(f"no game {seed}")
        self._seen = {seed}
        self._luck = random.Random(seed + 1)
        info = {"seed": seed} if seed % 2 else {}
        return f"game {seed} {random.random()}", info

    def step(self, action: str):
        self._seen.add(action)
        roll = random.random() * self._luck.choice([-1, 0.1, 3])
        if action == "fail":
            raise ValueError("as told")
        if action == "wrong":
            return None
        info = {"roll": roll, "action": action} if action == "info" else {}
        shown = f"{action[:9]} {len(action)} {roll} {sorted(map(str, self._seen))[:5]}"
        return shown, roll, action == "win", action == "cut", info
'''

ACTIONS = ("go", "info", "fail", "wrong", "win", "cut", "ä", "")


def game(*, variant: int = 0) -> EnvRecord:
    """A record of the game; variants differ in their bytes only."""
    return EnvRecord(source=f"{GAME}\nVARIANT = {variant}\n", entry="GameEnv", max_turns=100)


def walk(*, variant: int = 0) -> EnvRecord:
    """A record of the walk; variants differ in their bytes only."""
    return EnvRecord(source=f"{WALK}\nVARIANT = {variant}\n", entry="WalkEnv", max_turns=50)


def plain(**bodies: str) -> EnvRecord:
    """A record whose methods or module run the statements given."""
    parts = {
        name: bodies.get(name, "pass") for name in ("module", "init", "reset", "step", "extra")
    }
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

    {parts["extra"]}
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
    link = session.source.link
    assert link is not None
    return link.pid


def kill_worker(session: Session) -> None:
    """End the worker of a session from outside."""
    os.kill(worker_pid(session), signal.SIGKILL)


def told(result: ResetResult | StepResult | EnvFault) -> tuple[object, ...]:
    """Everything that an answer says, to be compared; the detail of a fault need not be the same."""
    if isinstance(result, EnvFault):
        return result.kind, result.call
    if isinstance(result, ResetResult):
        return result.observation, dict(result.info)
    info = dict(result.info)
    return result.observation, result.reward, result.terminated, result.truncated, info


def eventually(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether `condition` comes true in time; processes end when the kernel gets to it."""
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def kinds(*results: object) -> list[FaultKind | None]:
    return [item.kind if isinstance(item, EnvFault) else None for item in results]


def running(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def zygote_pid(pool: Pool) -> int:
    """The process that the workers of a pool are forked from."""
    return pool.pids()[0]


def children_of(pool: Pool) -> list[int]:
    """The workers that live under the zygote of a pool."""
    pid = zygote_pid(pool)
    return [int(item) for item in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def in_threads(*calls: Callable[[], object]) -> list[object]:
    """Results or exceptions of calls that run at the same time, each in a thread of its own."""
    results: list[object] = [None] * len(calls)

    def run(position: int) -> None:
        try:
            results[position] = calls[position]()
        except BaseException as error:  # noqa: BLE001  # that is what is asked for
            results[position] = error

    threads = [threading.Thread(target=run, args=(row,)) for row in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
        assert not thread.is_alive(), "a thread waits for ever"
    return results
