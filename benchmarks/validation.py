"""Sources a second through validation: recycled workers against a fresh process for each source.

    python benchmarks/validation.py --rounds 5

Two kinds of check. `pipeline` is `synthgym.validate`, all of it. `short` is what the throughput of
any sandbox can be compared by: load, three resets, sixty steps, and the same again. See README.md in
this folder for what the numbers mean.
"""

from __future__ import annotations

import compileall
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
from contestants import records
from harness import (
    Goal,
    Measurement,
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
from workload import Cast, Workload, load

import synthgym
from synthgym import Pool, validate
from synthgym.sandbox.bootstrap import BOOTSTRAP, ENVIRONMENT, zygote_command

PER_WORKER: Final = 16
"""Sources that one worker takes, one after the other or at the same time."""
SEEDS: Final = (1, 2, 3)
STEPS: Final = 20
"""Steps on each seed."""
_RESEED: Final = 100
"""Added to a seed when its episode ends before its steps do."""
RECYCLED, PER_POOL, LEAN, FRESH = (
    "recycled workers",
    "a pool for each source",
    "a lean process for each source",
    "a Python process for each source",
)
PIPELINE, SHORT = "pipeline", "short"
SHARE: Final = {
    (PIPELINE, RECYCLED): 8,
    (PIPELINE, FRESH): 32,
    (SHORT, RECYCLED): 1,
    (SHORT, PER_POOL): 16,
    (SHORT, LEAN): 16,
}
"""Rows, and which share of the sources each one takes, so that all take about as long."""
CASES: Final = tuple(SHARE)
GOALS: Final = {"light": Goal(12), "heavy": Goal(5)}
"""How many times as many sources per CPU-second as with a fresh process each."""
_FRESH_PROGRAM: Final = """
import sys
from synthgym import Pool, validate
with Pool() as pool:
    report = validate(sys.stdin.read(), pool=pool)
print("accepted" if report.ok else report.findings)
"""


def one(checks: str, way: str, workload: str, sources: int) -> Measurement:
    """Validate that many sources; every one of them must pass."""
    sources = max(2, sources // SHARE[checks, way])
    chosen = load(workload, sources)
    compileall.compile_dir(str(Path(synthgym.__file__).parent / "sandbox"), quiet=2)
    work = WAYS[checks, way]
    before, began = _cpu_seconds(), time.perf_counter()
    work(chosen)
    seconds, cpu = time.perf_counter() - began, _cpu_seconds() - before
    return {"cpu_ms": cpu / sources * 1e3, "wall_ms": seconds / sources * 1e3}


def _cpu_seconds() -> float:
    """Of this process and of all children that have ended, and theirs."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


# --- the whole pipeline ---


def pipeline_recycled(workload: Workload) -> None:
    """One pool for all sources."""
    with Pool(sources_per_worker=PER_WORKER) as pool:
        for source in workload.sources:
            report = validate(source, pool=pool)
            if not report.ok:
                raise RuntimeError(f"our own workload is refused: {report.findings}")


def pipeline_fresh(workload: Workload) -> None:
    """A Python process for each source, as a script would do it."""
    for source in workload.sources:
        done = subprocess.run(
            [sys.executable, "-c", _FRESH_PROGRAM],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.stdout.strip() != "accepted":
            raise RuntimeError(f"our own workload is refused: {done.stdout}{done.stderr}")


# --- the short checks ---


def short_recycled(workload: Workload) -> None:
    """One pool; the sources of one worker at the same time."""
    with Pool(sources_per_worker=PER_WORKER) as pool:
        for start in range(0, len(workload.sources), PER_WORKER):
            _short(pool, workload, range(start, min(start + PER_WORKER, len(workload.sources))))


def short_in_own_pools(workload: Workload) -> None:
    """A zygote and a worker for each source."""
    for index in range(len(workload.sources)):
        with Pool(max_workers=1) as pool:
            _short(pool, workload, range(index, index + 1))


def _short(pool: Pool, workload: Workload, chosen: Sequence[int]) -> None:
    known = records(Cast(workload, len(workload.sources)))
    with ExitStack() as stack:
        both = []
        for _ in range(2):  # the second time is the replay
            sessions = [pool.open(known[index], None) for index in chosen for _ in SEEDS]
            for session in sessions:
                stack.callback(session.close)
            both.append(_trace(pool, sessions, workload))
    if both[0] != both[1]:
        raise RuntimeError("our own workload is not deterministic")


def _trace(pool: Pool, sessions: Sequence[Any], workload: Workload) -> list[Any]:
    seeds = [SEEDS[at % len(SEEDS)] for at in range(len(sessions))]
    _, batch = pool.play(steps=((), ()), resets=(sessions, seeds))
    _refuse_faults(batch.faults)
    seen: list[Any] = [batch.observations]
    for action in workload.actions[:STEPS]:
        batch, _ = pool.play(steps=(sessions, [action] * len(sessions)), resets=((), ()))
        _refuse_faults(batch.faults)
        seen.append([batch.observations, batch.rewards, batch.terminated, batch.truncated])
        pairs = enumerate(zip(batch.terminated, batch.truncated, strict=True))
        over = [at for at, ends in pairs if any(ends)]
        if over:
            again = [sessions[at] for at in over], [seeds[at] + _RESEED for at in over]
            _, batch = pool.play(steps=((), ()), resets=again)
            _refuse_faults(batch.faults)
            seen.append(batch.observations)
    return seen


def _refuse_faults(faults: dict[int, Any]) -> None:
    if faults:
        raise RuntimeError(f"our own workload must not fail: {faults}")


def short_in_lean_processes(workload: Workload) -> None:
    """A process for each source that imports what a worker needs, and is locked down itself."""
    folder = str(Path(__file__).parent)
    head = BOOTSTRAP.partition("from synthgym.sandbox.zygote")[0]
    program = (
        f"{head}sys.path.append({folder!r})\n"
        "from lean_process import main\nmain(int(control), int(parent))\n"
    )
    for source in workload.sources:
        job = {"source": source, "seeds": SEEDS, "actions": workload.actions[:STEPS]}
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                process = subprocess.Popen(
                    zygote_command(theirs.fileno(), program),
                    env=ENVIRONMENT,
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                )
            ours.sendall(msgspec.json.encode(job))
            ours.shutdown(socket.SHUT_WR)
            answer = b""
            while part := ours.recv(1 << 16):
                answer += part
        if process.wait() or not answer:
            raise RuntimeError(f"the lean process ended with status {process.returncode}")
        verdict = msgspec.json.decode(answer)
        if verdict != {"level": verdict["level"], "deterministic": True, "steps": 3 * STEPS}:
            raise RuntimeError(f"the lean process says {verdict}")


WAYS: Final[dict[tuple[str, str], Callable[[Workload], None]]] = {
    (PIPELINE, RECYCLED): pipeline_recycled,
    (PIPELINE, FRESH): pipeline_fresh,
    (SHORT, RECYCLED): short_recycled,
    (SHORT, PER_POOL): short_in_own_pools,
    (SHORT, LEAN): short_in_lean_processes,
}


def validation_table(workload: str, found: dict[tuple[str, str], list[Measurement]]) -> str:
    """One row a way; `x` is sources per CPU-second with recycled workers over that way's."""
    rows = []
    for (checks, way), items in found.items():
        times = ratios(items, found[checks, RECYCLED], "cpu_ms")
        wall = ratios(items, found[checks, RECYCLED], "wall_ms")
        goal = GOALS[workload] if way in (FRESH, LEAN) else None
        milliseconds = median(item["cpu_ms"] for item in items)
        rows.append(
            [
                checks,
                way,
                f"{milliseconds:.2f}",
                f"{1e3 / milliseconds:,.0f}",
                str(goal or ""),
                spread(times, ".1f"),
                "" if goal is None else goal.verdict(median(times)),
                f"{median(wall):.1f}",
            ]
        )
    head = ["checks", "way", "CPU ms/source", "sources/CPU-s", "goal", "recycled is x better", ""]
    return table([*head, "by wall time, x"], rows)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    reader = parser(__doc__, rounds=5)
    reader.add_argument("--workloads", nargs="+", default=["light", "heavy"])
    reader.add_argument(
        "--sources", type=positive, default=256, help="of the fastest row; the others take a share"
    )
    options = reader.parse_args(arguments)
    print(machine())
    if not hasattr(os, "fork"):
        raise SystemExit("this benchmark needs a system with fork")
    cases = [
        {"checks": checks, "way": way, "workload": workload, "sources": options.sources}
        for workload in options.workloads
        for checks, way in CASES
    ]
    measured = interleave(options.rounds, cases)
    for at, workload in enumerate(options.workloads):
        mine = measured[at * len(CASES) : (at + 1) * len(CASES)]
        found = dict(zip(CASES, mine, strict=True))
        print(f"### {workload}\n\n{validation_table(workload, found)}")


if __name__ == "__main__":
    run(main, one)
