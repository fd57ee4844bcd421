"""From a source to code that can run: from the cache of checked code against compiling it.

    python benchmarks/load.py --rounds 5

See README.md in this folder for what the numbers mean.
"""

from __future__ import annotations

import marshal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

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
from workload import load

from synthgym.sandbox.code_cache import CheckedCode, CodeCache
from synthgym.sandbox.compile import compile_source

COMPILE, MEMORY, DISK = "check and compile", "cache in memory", "cache on disk"
MARSHAL: Final = "marshal alone"
WAYS: Final = (COMPILE, MARSHAL, MEMORY, DISK)
GOAL: Final = Goal(15)


def one(way: str, workload: str, sources: int) -> Measurement:
    """CPU time of a source, over that many different ones."""
    texts = load(workload, sources).sources
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "cache"
        stored = _filled(folder, texts) if way != COMPILE else {}
        make = _maker(way, folder, stored)
        began = time.process_time_ns()
        for text in texts:
            make(text)
        spent = time.process_time_ns() - began
    return {"cpu_us": spent / len(texts) / 1e3}


def _filled(folder: Path, texts: Sequence[str]) -> dict[str, bytes]:
    cache = CodeCache(folder)
    stored = {}
    for text in texts:
        compiled = compile_source(text)
        stored[text] = marshal.dumps(compiled.code)
        checked = CheckedCode(stored[text], compiled.requires, compiled.docstring)
        cache.put(text, checked, lasting=True)
    return stored


def _maker(way: str, folder: Path, stored: dict[str, bytes]) -> Callable[[str], object]:
    if way == COMPILE:
        return compile_source
    if way == MARSHAL:
        return lambda text: marshal.loads(stored[text])
    cache = CodeCache(folder)
    if way == MEMORY:
        for text in stored:
            cache.get(text)

    def from_cache(text: str) -> object:
        checked = cache.get(text)
        assert checked is not None, "it was just stored"
        return marshal.loads(checked.code)

    return from_cache


def load_table(found: dict[str, list[Measurement]]) -> str:
    """One row a way; `x` is how many times less CPU than compiling."""
    rows = []
    for way, items in found.items():
        times = ratios(found[COMPILE], items, "cpu_us")
        goal = GOAL if way in (MEMORY, DISK) else None
        rows.append(
            [
                way,
                f"{median(item['cpu_us'] for item in items):,.1f}",
                str(goal or ""),
                spread(times, ".1f"),
                "" if goal is None else goal.verdict(median(times)),
            ]
        )
    return table(["way", "CPU us/source", "goal", "x less than compiling", ""], rows)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    reader = parser(__doc__, rounds=5)
    reader.add_argument("--workloads", nargs="+", default=["light", "heavy"])
    reader.add_argument("--sources", type=positive, default=200, help="each row, each round")
    options = reader.parse_args(arguments)
    print(machine())
    cases = [
        {"way": way, "workload": workload, "sources": options.sources}
        for workload in options.workloads
        for way in WAYS
    ]
    measured = interleave(options.rounds, cases)
    for at, workload in enumerate(options.workloads):
        mine = measured[at * len(WAYS) : (at + 1) * len(WAYS)]
        print(f"### {workload}\n\n{load_table(dict(zip(WAYS, mine, strict=True)))}")


if __name__ == "__main__":
    run(main, one)
