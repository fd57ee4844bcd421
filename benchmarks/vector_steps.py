"""Steps per second of sandboxed environments against Gymnasium's vector environments without a sandbox.

    python benchmarks/vector_steps.py --num-envs 16 64 --rounds 5 --steps 400

Every contestant plays the same two bundled environments with the same seeds and the same fixed actions; before anything
is timed their observations are compared. See README.md in this folder for what the numbers mean.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import random
import resource
import statistics
import string
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.spaces import Text
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv, VectorEnv

from synthgym import Pool, Snapshot, SynthEnv, SynthEnvSpec, SynthVectorEnv
from synthgym.registry import bundled_root

SEED = 1000
CHECKED_TICKS = 60
"""Vector steps whose observations are compared; more than an episode, so that resets are compared too."""
ACTIONS = {
    "LoomDarn": tuple(f"look {row} {column}" for row in range(1, 13) for column in (1, 5, 9)),
    "MineSurvey": ("go ahead", "go left", "go back", "go right", "go left"),
}
"""Environments, and what is played in them over and over: legal commands that do not end an episode early."""
SANDBOXED = "SynthVectorEnv, sandboxed"


@lru_cache
def read_spec(name: str) -> SynthEnvSpec:
    """The spec of a bundled environment, its bytes verified."""
    snapshot = Snapshot.open(bundled_root())
    return snapshot.spec(snapshot.entry(f"synthgym/{name}-v0").digest)


@lru_cache
def load_class(name: str) -> type:
    """The class of a bundled environment as plain Python. The source is ours and was reviewed."""
    record = read_spec(name).record
    namespace: dict[str, Any] = {"__name__": f"plain_{name}"}
    exec(compile(record.source, f"{name}.py", "exec"), namespace)  # noqa: S102 (see above)
    found: type = namespace[record.entry]
    return found


class PlainEnv(gymnasium.Env[str, str]):
    """A bundled environment without any sandbox, as its author would wrap it for Gymnasium."""

    observation_space = Text(65_536, min_length=0, charset=string.printable)
    action_space = Text(4096, min_length=0, charset=string.printable)

    def __init__(self, name: str) -> None:
        self._env: Any = load_class(name)()
        self._turn = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Seeds as `SynthEnv` draws them, so that autoresets give the same instances."""
        super().reset(seed=seed, options=options)
        self._turn = 0
        drawn = int(self.np_random.integers(2**31)) if seed is None else seed
        observation, info = self._env.reset(drawn)
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One step; the turn limit is kept here, as the contract leaves it to the wrapper."""
        observation, reward, terminated, truncated, info = self._env.step(action)
        self._turn += 1
        truncated = not terminated and (truncated or self._turn >= self._env.max_turns)
        return observation, reward, terminated, truncated, info


Make = Callable[[str, int, Pool], VectorEnv[Any, Any, Any]]


def _plain_async(name: str, num_envs: int, _pool: Pool) -> VectorEnv[Any, Any, Any]:
    load_class(name)  # before the fork: no copy compiles it again
    return AsyncVectorEnv([partial(PlainEnv, name)] * num_envs, shared_memory=False)


def _plain_sync(name: str, num_envs: int, _pool: Pool) -> VectorEnv[Any, Any, Any]:
    return SyncVectorEnv([partial(PlainEnv, name)] * num_envs)


def _sandboxed(name: str, num_envs: int, pool: Pool) -> VectorEnv[Any, Any, Any]:
    return SynthVectorEnv(read_spec(name), num_envs, pool=pool)


def _sandboxed_one_by_one(name: str, num_envs: int, pool: Pool) -> VectorEnv[Any, Any, Any]:
    return SyncVectorEnv([lambda: SynthEnv(read_spec(name), pool=pool)] * num_envs)


CONTESTANTS: dict[str, Make] = {
    SANDBOXED: _sandboxed,
    "SyncVectorEnv over SynthEnv, sandboxed": _sandboxed_one_by_one,
    "AsyncVectorEnv, plain Python": _plain_async,
    "SyncVectorEnv, plain Python": _plain_sync,
}


@dataclass(slots=True)
class Timing:
    """What one contestant took, one number a round."""

    rates: list[float] = field(default_factory=list)
    """Environment steps a second of wall time, in the stepping loop."""
    cpu: list[float] = field(default_factory=list)
    """CPU microseconds an environment step, of this process and its children."""


def cpu_seconds() -> float:
    """CPU time of this process and of all children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def actions_at(name: str, num_envs: int, tick: int) -> tuple[str, ...]:
    """The actions of one vector step."""
    script = ACTIONS[name]
    return tuple(script[(tick + i) % len(script)] for i in range(num_envs))


def play(
    make: Make, name: str, num_envs: int, ticks: int, trace: Any = None
) -> tuple[float, float]:
    """(seconds of `ticks` vector steps, CPU seconds of everything, start and end included)."""
    script = [actions_at(name, num_envs, tick) for tick in range(len(ACTIONS[name]))]
    before = cpu_seconds()
    with Pool() as pool:
        envs = make(name, num_envs, pool)
        observations, _ = envs.reset(seed=SEED)
        began = time.perf_counter()
        for tick in range(ticks):
            observations, *_ = envs.step(script[tick % len(script)])
            if trace is not None:
                trace.update("\0".join(observations).encode())
        seconds = time.perf_counter() - began
        envs.close()
    return seconds, cpu_seconds() - before


def check_equal_work(name: str, num_envs: int) -> None:
    """Stop unless every contestant sees the same observations."""
    digests = {}
    for label, make in CONTESTANTS.items():
        trace = hashlib.sha256()
        play(make, name, num_envs, CHECKED_TICKS, trace)
        digests[label] = trace.hexdigest()
    if len(set(digests.values())) > 1:
        raise SystemExit(f"{name}: the contestants did not do the same work: {digests}")


def compare(name: str, num_envs: int, rounds: int, ticks: int) -> dict[str, Timing]:
    """Timings by contestant. Every round has all of them, in an order of its own."""
    check_equal_work(name, num_envs)
    timings = {label: Timing() for label in CONTESTANTS}
    order = list(CONTESTANTS)
    rng = random.Random(0)
    for _ in range(rounds):
        rng.shuffle(order)
        for label in order:
            _, idle = play(CONTESTANTS[label], name, num_envs, 0)
            seconds, cpu = play(CONTESTANTS[label], name, num_envs, ticks)
            steps = ticks * num_envs
            timings[label].rates.append(steps / seconds)
            timings[label].cpu.append(max(0.0, cpu - idle) / steps * 1e6)
    return timings


def table(name: str, num_envs: int, timings: dict[str, Timing]) -> str:
    """Medians side by side; `x` is how many times the first row is better."""
    first = timings[SANDBOXED]
    rate, cpu = statistics.median(first.rates), statistics.median(first.cpu)
    lines = [
        f"{name}, {num_envs} environments",
        f"{'':40}{'steps/s':>10}{'x':>8}{'CPU us':>10}{'x':>8}",
    ]
    for label, timing in timings.items():
        own_rate, own_cpu = statistics.median(timing.rates), statistics.median(timing.cpu)
        cpu_ratio = f"{own_cpu / cpu:8.2f}" if cpu else f"{'-':>8}"
        lines.append(f"{label:40}{own_rate:10,.0f}{rate / own_rate:8.2f}{own_cpu:10.1f}{cpu_ratio}")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """What the numbers depend on."""
    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.partition(":")[2].strip()
        for line in (cpuinfo.read_text().splitlines() if cpuinfo.is_file() else [])
        if line.startswith("model name")
    ]
    with Pool() as pool:
        level = pool.isolation().level
    return (
        f"{models[0] if models else platform.processor()}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f}, {platform.system()} {platform.release()}\n"
        f"Python {platform.python_version()}, gymnasium {gymnasium.__version__}, isolation {level}\n"
    )


def main(arguments: Sequence[str]) -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--num-envs", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--rounds", type=int, default=3, help="each has every contestant once")
    parser.add_argument("--steps", type=int, default=400, help="vector steps a round")
    options = parser.parse_args(arguments)
    if min(*options.num_envs, options.rounds, options.steps) < 1:
        parser.error("--num-envs, --rounds and --steps must be at least 1")
    print(machine())
    for num_envs in options.num_envs:
        for name in ACTIONS:
            timings = compare(name, num_envs, options.rounds, options.steps)
            print(table(name, num_envs, timings), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
