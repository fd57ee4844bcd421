"""Ten thousand live environments: memory, start, and steps per second.

    python benchmarks/scale.py --rounds 3

Memory needs Linux and the right to read /proc/<pid>/smaps_rollup of the workers, which run as
other users when this is root: then root may. See README.md in this folder for what the numbers mean.
"""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Sequence
from typing import Final

from contestants import ASYNC_PIPE, CONTESTANTS, LOOP, Contestant, PoolCore
from harness import (
    Goal,
    Measurement,
    cpu_ns,
    interleave,
    machine,
    median,
    memory_kb,
    parser,
    positive,
    run,
    spread,
    table,
)
from workload import Cast, load

_PER_WORKER: Final = 16
_SOURCES: Final = 24
"""Different sources where they share two workers."""
_PEER_ENVS: Final = 384
"""Environments of the peer, which starts a process for each: 10,000 would not fit."""
PACKED, SPREAD, BARE, PEER = "2 workers", "a worker for 16", "bare loop", "gymnasium Async"
MEMORY_GOALS: Final = {
    PACKED: Goal(150, at_most=True, unit=" MB"),
    SPREAD: Goal(1500, at_most=True, unit=" MB"),
}
START_GOAL: Final = Goal(3, at_most=True, unit=" s")


def one(layout: str, workload: str, envs: int, ticks: int) -> Measurement:
    """Start everything, step once, read the memory, then step on."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if layout == PEER:
        envs = min(envs, _PEER_ENVS)
    sources = -(-envs // _PER_WORKER) if layout == SPREAD else min(_SOURCES, envs)
    cast = Cast(load(workload, sources), envs)
    script = cast.workload.script(envs)
    gc.collect()
    gc.freeze()
    own = memory_kb([os.getpid()])
    began = time.perf_counter()
    if layout in (PACKED, SPREAD):
        at_once = 1 if layout == SPREAD else -(-sources // 2)
        player: Contestant = PoolCore(cast, sources_per_worker=at_once)
    else:
        player = CONTESTANTS[LOOP if layout == BARE else ASYNC_PIPE](cast)
    player.reset()
    player.step(script[0])
    start = time.perf_counter() - began
    own = memory_kb([os.getpid()]) - own
    others = memory_kb(player.pids)
    pids = [os.getpid(), *player.pids]
    cpu, began = cpu_ns(pids), time.perf_counter()
    for tick in range(1, ticks + 1):
        player.step(script[tick % len(script)])
    seconds, cpu = time.perf_counter() - began, cpu_ns(pids) - cpu
    player.close()
    return {
        "envs": envs,
        "processes": len(pids) - 1,
        "start_s": start,
        "memory_mb": others / 1024,
        "own_mb": own / 1024,
        "rate": ticks * envs / seconds,
        "cpu_us": cpu / (ticks * envs) / 1e3,
    }


def scale_table(found: dict[str, list[Measurement]]) -> str:
    """One row a layout."""
    rows = []
    for layout, items in found.items():
        memory = [item["memory_mb"] for item in items]
        start = [item["start_s"] for item in items]
        envs = items[0]["envs"]
        goal = MEMORY_GOALS.get(layout)
        kilobytes = (median(memory) + median(item["own_mb"] for item in items)) * 1024 / envs
        rows.append(
            [
                layout,
                f"{envs:,}",
                str(items[0]["processes"]),
                str(goal or ""),
                spread(memory, ".0f", " MB"),
                "" if goal is None else goal.verdict(median(memory)),
                f"{median(item['own_mb'] for item in items):.0f} MB",
                f"{kilobytes:,.0f} KB",
                "" if goal is None else str(START_GOAL),
                spread(start, ".2f", " s"),
                "" if goal is None else START_GOAL.verdict(median(start)),
                f"{median(item['rate'] for item in items):,.0f}",
                f"{median(item['cpu_us'] for item in items):.2f}",
            ]
        )
    head = ["layout", "envs", "processes", "goal", "memory (PSS) of the processes", ""]
    head += ["growth of this process", "all, an env", "goal", "start and first step", ""]
    return table([*head, "steps/s", "CPU us/step"], rows)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    reader = parser(__doc__, rounds=3)
    reader.add_argument("--workloads", nargs="+", default=["light", "heavy"])
    reader.add_argument("--envs", type=positive, default=10_000)
    reader.add_argument("--ticks", type=positive, default=10, help="vector steps that are timed")
    options = reader.parse_args(arguments)
    print(machine())
    layouts = (PACKED, SPREAD, BARE, PEER)
    cases = [
        {"layout": layout, "workload": workload, "envs": options.envs, "ticks": options.ticks}
        for workload in options.workloads
        for layout in layouts
    ]
    measured = interleave(options.rounds, cases)
    for at, workload in enumerate(options.workloads):
        mine = measured[at * len(layouts) : (at + 1) * len(layouts)]
        print(f"### {workload}\n\n{scale_table(dict(zip(layouts, mine, strict=True)))}")


if __name__ == "__main__":
    run(main, one)
