"""Steps per second of many sandboxed environments against real peers, and what isolation costs.

    python benchmarks/headline.py --rounds 5

Every contestant plays the same episodes with the same actions; the first episodes are compared, and
nothing is printed when they differ. See README.md in this folder for what the numbers mean.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from contestants import (
    ASYNC_PIPE,
    ASYNC_SHARED,
    CONTESTANTS,
    CORE,
    GEM_ASYNC,
    GEM_SYNC,
    LOOP,
    PACKED,
    THREADS,
    VECTOR,
    Contestant,
    missing,
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
    ratios,
    run,
    spread,
    table,
)
from workload import Cast, load

WORKLOADS: Final = ("light", "heavy")
GOALS: Final = {
    "light": {ASYNC_SHARED: 25, ASYNC_PIPE: 20, GEM_ASYNC: 6, THREADS: 10, LOOP: 0.5},
    "heavy": {ASYNC_SHARED: 6, ASYNC_PIPE: 3, GEM_ASYNC: 1.5, THREADS: 2.5, LOOP: 0.5},
}
"""How many times as many steps per second as this row."""
OVERHEAD: Final = {
    CORE: Goal(2.2, at_most=True, unit=" us"),
    PACKED: Goal(0.5, at_most=True, unit=" us"),
}
"""CPU per step above the bare loop, light workload."""
_MORE_TICKS: Final = 4
"""Vector steps that are compared beyond the first episode and its reset."""


def one(contestant: str, workload: str, sources: int, episodes: int, seconds: float) -> Measurement:
    """Start one contestant, record what it does in the first episodes, then time whole episodes."""
    cast = Cast(load(workload, sources), sources * episodes)
    script = cast.workload.script(cast.num_envs)
    length = cast.workload.max_turns + 1  # the turns of an episode and the reset after it
    if contestant in (GEM_ASYNC, GEM_SYNC):
        importlib.import_module("gem_contestant")  # its imports are no part of the start
    began = time.perf_counter()
    player = CONTESTANTS[contestant](cast)
    traced = contestant == ASYNC_SHARED
    if traced:
        player.envs.call("start_trace")  # type: ignore[attr-defined]
    observations = player.reset()
    start = time.perf_counter() - began
    digests = _record(player, observations, script, length + _MORE_TICKS)
    if traced:
        digests["texts"] = _digest(player.envs.call("end_trace"))  # type: ignore[attr-defined]
    gc.collect()
    gc.freeze()
    timing = _time(player, script, length, seconds, cast.num_envs)
    player.close()
    return {"start_ms": start * 1e3 / cast.num_envs, **digests, **timing}


def _record(
    player: Contestant, first: Sequence[str], script: list[list[str]], ticks: int
) -> dict[str, str]:
    """Digests of the texts and of the other values that `player` returns."""
    texts = [hashlib.sha256(str(observation).encode()) for observation in first]
    outcomes = hashlib.sha256()
    for tick in range(ticks):
        observations, *rest = player.step(script[tick % len(script)])
        for text, observation in zip(texts, observations, strict=True):
            text.update(str(observation).encode())
        outcomes.update(repr([[float(value) for value in column] for column in rest]).encode())
    return {
        "texts": _digest([text.hexdigest() for text in texts]),
        "outcomes": outcomes.hexdigest(),
    }


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def _time(
    player: Contestant, script: list[list[str]], length: int, seconds: float, num_envs: int
) -> dict[str, Any]:
    """Time whole episodes for at least that long."""
    pids = [os.getpid(), *player.pids]
    latencies: list[float] = []
    cpu, parent = cpu_ns(pids), cpu_ns(pids[:1])
    began = last = time.perf_counter()
    while last - began < seconds:
        for _ in range(length):
            player.step(script[len(latencies) % len(script)])
            now = time.perf_counter()
            latencies.append(now - last)
            last = now
    cpu, parent = cpu_ns(pids) - cpu, cpu_ns(pids[:1]) - parent
    steps = len(latencies) * num_envs
    latencies.sort()
    return {
        "rate": steps / (last - began),
        "cpu_us": cpu / steps / 1e3,
        "parent_us": parent / steps / 1e3,
        "p50_ms": latencies[len(latencies) // 2] * 1e3,
        "processes": len(player.pids),
    }


def check_equal_work(workload: str, found: dict[str, list[Measurement]]) -> None:
    """Stop unless all contestants saw the same texts, rewards and ends in every round."""
    for key in ("texts", "outcomes"):
        seen = {name: {item[key] for item in items} for name, items in found.items()}
        if len(set().union(*seen.values())) > 1:
            raise SystemExit(
                f"{workload}: the contestants did not do the same work ({key}): {seen}"
            )


def steps_table(workload: str, found: dict[str, list[Measurement]]) -> str:
    """One row a contestant; `x` is steps per second of our row over those of that row."""
    rows = []
    for name, items in found.items():
        row = [name, f"{median(item['rate'] for item in items):,.0f}"]
        wanted = GOALS[workload].get(name)
        goal = None if wanted is None else Goal(wanted)
        row.append("" if goal is None else str(goal))
        for ours in (CORE, VECTOR):
            if ours not in found:
                row += ["", ""]
                continue
            times = ratios(found[ours], items, "rate")
            row.append(spread(times))
            row.append("" if goal is None else goal.verdict(median(times)))
        cpu = median(item["cpu_us"] for item in items)
        less = f"{median(ratios(items, found[CORE], 'cpu_us')):.2f}" if CORE in found else ""
        row += [f"{cpu:.2f}", less, f"{median(item['parent_us'] for item in items):.2f}"]
        row += [f"{median(item['p50_ms'] for item in items):.2f}"]
        row += [f"{median(item['start_ms'] for item in items):.2f}"]
        rows.append(row)
    head = ["contestant", "steps/s", "goal", "pool core, x", "", "SynthVectorEnv, x", ""]
    head += ["CPU us/step", "x pool core", "of it in this process", "vector step p50 ms"]
    return table([*head, "start ms/env"], rows)


def overhead_table(found: dict[str, list[Measurement]]) -> str:
    """CPU per step above the bare loop."""
    rows = []
    for name in (CORE, PACKED, VECTOR):
        if name not in found or LOOP not in found:
            continue
        pairs = zip(found[name], found[LOOP], strict=True)
        above = [item["cpu_us"] - bare["cpu_us"] for item, bare in pairs]
        goal = OVERHEAD.get(name)
        verdict = "" if goal is None else goal.verdict(median(above))
        rows.append([name, str(goal or ""), spread(above, unit=" us"), verdict])
    return table(["light: CPU per step above the bare loop", "goal", "result", ""], rows)


def report(options: argparse.Namespace, names: Sequence[str]) -> None:
    """Measure and print."""
    print(machine())
    print(f"{options.sources} sources x {options.episodes} episodes, {options.rounds} rounds\n")
    cases = [
        {
            "contestant": name,
            "workload": workload,
            "sources": options.sources,
            "episodes": options.episodes,
            "seconds": options.seconds,
        }
        for workload in options.workloads
        for name in names
    ]
    measured = interleave(options.rounds, cases)
    for at, workload in enumerate(options.workloads):
        mine = measured[at * len(names) : (at + 1) * len(names)]
        found = dict(zip(names, mine, strict=True))
        check_equal_work(workload, found)
        print(f"### {workload}\n\n{steps_table(workload, found)}")
        if workload == "light":
            print(overhead_table(found))


def main(arguments: Sequence[str]) -> None:
    """Read the arguments, then report."""
    reader = parser(__doc__, rounds=5)
    reader.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    reader.add_argument("--only", nargs="+", choices=list(CONTESTANTS), default=list(CONTESTANTS))
    reader.add_argument("--sources", type=positive, default=24)
    reader.add_argument("--episodes", type=positive, default=16, help="for each source")
    reader.add_argument("--seconds", type=float, default=0.5, help="each row at least, each round")
    options = reader.parse_args(arguments)
    absent = missing()
    for name in options.only:
        if name in absent:
            for output in (sys.stdout, sys.stderr):
                print(f"SKIPPED: {name}: {absent[name]}", file=output)
    report(options, [name for name in options.only if name not in absent])


if __name__ == "__main__":
    run(main, one)
