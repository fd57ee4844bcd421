"""One environment, one step at a time: how long the way into the sandbox and back takes.

    python benchmarks/latency.py --rounds 5

See README.md in this folder for what the numbers mean.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from contestants import (
    ASYNC_PIPE,
    ASYNC_SHARED,
    CONTESTANTS,
    CORE,
    GEM_ASYNC,
    LOOP,
    THREADS,
    VECTOR,
    Contestant,
    Tick,
    missing,
    records,
)
from harness import (
    Goal,
    Measurement,
    cpu_ns,
    interleave,
    machine,
    median,
    parser,
    positive,
    run,
    spread,
    table,
)
from workload import Cast, load

from synthgym import EnvFault, Pool

SESSION: Final = "Session.step"
WAYS: Final = {
    SESSION: SESSION,
    CORE: "Pool.play",
    VECTOR: "SynthVectorEnv of one",
    LOOP: "bare call",
    THREADS: "thread with timeout",
    GEM_ASYNC: "GEM Async of one",
    ASYNC_PIPE: "gymnasium Async of one, shared_memory=False",
    ASYNC_SHARED: "gymnasium Async of one, shared_memory=True",
}
"""Rows: contestants with one environment, and what they are called then."""
GOAL: Final = Goal(30, at_most=True, unit=" us")
OURS: Final = (SESSION, CORE)
"""Rows that the goal is for."""


class OneSession:
    """`Session.step`, the call that everything for a single environment ends in."""

    def __init__(self, cast: Cast) -> None:
        self._pool = Pool()
        self._session = self._pool.open(records(cast)[0])
        self._first, self._later = cast.first_seeds()[0], cast.later_seeds()[0]
        self._over = False
        self.pids: list[int] = []

    def reset(self) -> Sequence[str]:
        """Starts the worker, too."""
        observations = [self._reset(self._first)]
        self.pids = self._pool.pids()
        return observations

    def step(self, actions: list[str]) -> Tick:
        """One step, or the reset after an end."""
        if self._over:
            self._over = False
            return [self._reset(next(self._later))], [0.0], [False], [False]
        result = self._session.step(actions[0])
        if isinstance(result, EnvFault):
            raise TypeError(f"our own environments must not fail: {result}")
        self._over = result.terminated or result.truncated
        return [result.observation], [result.reward], [result.terminated], [result.truncated]

    def close(self) -> None:
        """End the worker."""
        self._pool.close()

    def _reset(self, seed: int) -> str:
        result = self._session.reset(seed)
        if isinstance(result, EnvFault):
            raise TypeError(f"our own environments must not fail: {result}")
        return result.observation


def one(way: str, workload: str, calls: int) -> Measurement:
    """Time single calls of one environment."""
    cast = Cast(load(workload, 1), 1)
    script = cast.workload.script(1)
    player: Contestant = OneSession(cast) if way == SESSION else CONTESTANTS[way](cast)
    player.reset()
    for actions in script:
        player.step(actions)
    pids = [os.getpid(), *player.pids]
    taken: list[int] = []
    cpu = cpu_ns(pids)
    for call in range(calls):
        actions = script[call % len(script)]
        began = time.perf_counter_ns()
        player.step(actions)
        taken.append(time.perf_counter_ns() - began)
    cpu = cpu_ns(pids) - cpu
    player.close()
    taken.sort()
    return {
        "p50_us": taken[calls // 2] / 1e3,
        "p99_us": taken[min(calls - 1, calls * 99 // 100)] / 1e3,
        "cpu_us": cpu / calls / 1e3,
    }


def latency_table(found: dict[str, list[Measurement]]) -> str:
    """One row a way; medians over the rounds, with their range for p50."""
    rows = []
    for way, items in found.items():
        p50 = [item["p50_us"] for item in items]
        goal = GOAL if way in OURS else None
        rows.append(
            [
                WAYS[way],
                str(goal or ""),
                spread(p50, ".1f"),
                "" if goal is None else goal.verdict(median(p50)),
                f"{median(item['p99_us'] for item in items):.1f}",
                f"{median(item['cpu_us'] for item in items):.1f}",
            ]
        )
    return table(["way", "goal", "p50 us", "", "p99 us", "CPU us/step"], rows)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    reader = parser(__doc__, rounds=5)
    reader.add_argument("--workloads", nargs="+", default=["light", "heavy"])
    reader.add_argument("--calls", type=positive, default=5000, help="each row, each round")
    options = reader.parse_args(arguments)
    absent = missing()
    ways = [way for way in WAYS if way not in absent]
    print(machine())
    for way in WAYS:
        if way in absent:
            for output in (sys.stdout, sys.stderr):
                print(f"SKIPPED: {WAYS[way]}: {absent[way]}", file=output)
    cases = [
        {"way": way, "workload": workload, "calls": options.calls}
        for workload in options.workloads
        for way in ways
    ]
    measured = interleave(options.rounds, cases)
    for at, workload in enumerate(options.workloads):
        mine = measured[at * len(ways) : (at + 1) * len(ways)]
        print(f"### {workload}\n\n{latency_table(dict(zip(ways, mine, strict=True)))}")


if __name__ == "__main__":
    run(main, one)
