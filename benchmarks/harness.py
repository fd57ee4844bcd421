"""What the benchmarks share: clocks, one process a measurement, the machine, tables, verdicts."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import random
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from synthgym import Pool

ONE: Final = "--one"
"""Flag of a process that makes one measurement: a JSON object of settings follows."""
_PACKAGES: Final = ("synthgym", "gymnasium", "gem-llm", "msgspec", "numpy", "RestrictedPython")

Measurement = dict[str, Any]


def cpu_ns(pids: Iterable[int]) -> int:
    """CPU time of these processes so far, in nanoseconds; of all their threads."""
    return sum(time.clock_gettime_ns((~pid << 3) | 2) for pid in pids)


def memory_kb(pids: Iterable[int]) -> int:
    """Proportional set size of these processes in KiB: a page shared by n counts 1/n in each."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1])
    return total


# --- one process a measurement ---


def measure_apart(settings: Mapping[str, Any]) -> Measurement:
    """Run this very script in a process of its own with `settings`; what it printed as JSON.

    So no measurement inherits threads, garbage or imports from the one before it.
    """
    options = [f"-W{option}" for option in sys.warnoptions]
    command = [sys.executable, *options, sys.argv[0], ONE, json.dumps(dict(settings))]
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise SystemExit(f"{dict(settings)}: the measurement ended with status {done.returncode}")
    measured: Measurement = json.loads(lines[-1])
    return measured


def run(main: Callable[[Sequence[str]], None], one: Callable[..., Measurement]) -> None:
    """Entry point of a script: `one(**settings)` after `--one`, else `main(arguments)`."""
    if sys.argv[1:2] == [ONE]:
        print(json.dumps(one(**json.loads(sys.argv[2]))))
    else:
        main(sys.argv[1:])


def interleave(rounds: int, cases: Sequence[Mapping[str, Any]]) -> list[list[Measurement]]:
    """Measurements by case, one a round; every round has all cases, in an order of its own."""
    found: list[list[Measurement]] = [[] for _ in cases]
    order = list(range(len(cases)))
    rng = random.Random(0)
    for done in range(rounds):
        rng.shuffle(order)
        for case in order:
            found[case].append(measure_apart(cases[case]))
        print(f"round {done + 1} of {rounds}", file=sys.stderr, flush=True)
    return found


# --- arguments ---


def parser(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """A parser with the first line of a docstring, and `--rounds`."""
    made = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    made.add_argument("--rounds", type=positive, default=rounds, help="each has every row once")
    return made


def positive(text: str) -> int:
    """An int of at least 1, for `type=`."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, got {text!r}")
    return number


# --- statistics and verdicts ---


def median(values: Iterable[float]) -> float:
    """Median; nan when there is nothing."""
    found = list(values)
    return statistics.median(found) if found else float("nan")


def ratios(above: Sequence[Measurement], below: Sequence[Measurement], key: str) -> list[float]:
    """`above[key] / below[key]`, round by round: what disturbs a round disturbs both."""
    return [one[key] / other[key] for one, other in zip(above, below, strict=True)]


def spread(values: Sequence[float], form: str = ".2f", unit: str = "") -> str:
    """`median unit (least to most)`."""
    middle = f"{median(values):{form}}{unit}"
    return f"{middle} ({min(values):{form}} to {max(values):{form}})" if len(values) > 1 else middle


@dataclass(frozen=True, slots=True)
class Goal:
    """A number to reach, from below or from above."""

    value: float
    at_most: bool = False
    unit: str = "x"

    def __str__(self) -> str:
        return f"{'<=' if self.at_most else '>='} {self.value:g}{self.unit}"

    def verdict(self, result: float) -> str:
        """`met`, or by how much it was missed."""
        if result <= self.value if self.at_most else result >= self.value:
            return "met"
        gap = result / self.value - 1 if self.at_most else 1 - result / self.value
        return f"**missed by {gap:.0%}**"


# --- what is printed ---


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"


def machine() -> str:
    """What the numbers depend on, and the command that gave them."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.is_file() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    with Pool() as pool:
        level = pool.isolation().level
    return (
        f"- machine: {models[0] if models else platform.processor()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}, {platform.system()} {platform.release()}\n"
        f"- versions: Python {platform.python_version()}, {', '.join(_versions())}\n"
        f"- isolation: {level}\n"
        f"- command: `python {shlex.join(sys.argv)}`\n"
    )


def _versions() -> list[str]:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return found
