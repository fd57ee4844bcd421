"""Runs the micro experiment: every condition with every seed, each through `spade-loop run`, as many at once as cores.

Usage: `python benchmarks/micro/run.py runs/micro --conditions full frozen --seeds 100 101 --jobs 2`

What is finished is skipped, what was interrupted is resumed, so the same command goes on after a kill. Each seed has a
start of its own (`prepare.py`), which all conditions share. A run that fails is named at the end; the others go on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
CONDITIONS: Final = ("full", "frozen", "fixed-pool", "plr", "uniform", "oracle")
"""The recipes of the primary comparison, and the ceiling."""
OF_ALL_CELLS: Final = ("uniform", "oracle")
"""Those whose registry holds every cell."""
TUNING: Final = (100, 101, 102, 103)
REPORTED: Final = tuple(range(8))
COMMIT_EVERY: Final = 50


@dataclass(frozen=True, slots=True)
class Job:
    """One condition with one seed."""

    root: Path
    condition: str
    seed: int

    @property
    def start(self) -> Path:
        """What it begins with, as prepare.py writes it."""
        return self.root / f"start-{self.seed}"

    @property
    def out(self) -> Path:
        """Its run directory."""
        return self.root / f"{self.condition}-{self.seed}"

    @property
    def finished(self) -> bool:
        """Whether its last checkpoint has been probed, which comes last."""
        return self.probe.is_file()

    @property
    def probe(self) -> Path:
        """What the last checkpoint can do."""
        return self.out.with_name(f"{self.out.name}.probe.json")

    @property
    def checkpoint(self) -> Path:
        """The newest one."""
        latest = (self.out / "LATEST").read_text(encoding="utf-8").strip()
        return self.out / latest / "checkpoint"


def recipe(condition: str) -> Path:
    """The recipe of a condition."""
    return HERE / "recipes" / f"{condition}.toml"


def designers(condition: str, model: Path) -> list[dict[str, Any]]:
    """The other designers of a condition, each with the start's model in place of the recipe's."""
    path = recipe(condition)
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    while "designers" not in data:
        path = path.parent / data["extends"]
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    return [{**designer, "model": f"{model}"} for designer in data["designers"]]


def settings(job: Job, overrides: Sequence[str]) -> list[str]:
    """What a run is told beside its recipe: where its start lies."""
    start = job.start.resolve()
    registry = "cells" if job.condition in OF_ALL_CELLS else "pool"
    own = ", ".join(
        "{" + ", ".join(f"{key} = {json.dumps(value)}" for key, value in designer.items()) + "}"
        for designer in designers(job.condition, start / "model")
    )
    return [
        f"seed={job.seed}",
        f"commit_every={COMMIT_EVERY}",
        f"policy.model={start / 'model'}",
        f"registry={start / registry}",
        f"rehearsal.rows={start / 'rows.jsonl'}",
        f"designer.families=[{json.dumps(str(HERE / 'skill_ladder'))}]",
        f"designers=[{own}]",
        *overrides,
    ]


def command(job: Job, overrides: Sequence[str]) -> list[str]:
    """The command that begins a run, or goes on with it."""
    verb = [sys.executable, "-m", "spade_loop", "run"]
    if (job.out / "config.json").is_file():
        return [*verb, "--resume", f"{job.out}"]
    sets = [word for setting in settings(job, overrides) for word in ("--set", setting)]
    return [*verb, f"{recipe(job.condition)}", "--out", f"{job.out}", *sets]


class Crew:
    """Processes of runs; an interrupt ends them with a signal of their own, and they commit nothing half."""

    def __init__(self, environment: dict[str, str]) -> None:
        self._environment = environment
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._stopped = Event()

    def run(self, words: Sequence[str], log: Path) -> int:
        """Run a command to its end, what it says in `log`; its exit status, 130 when the crew was stopped before."""
        if self._stopped.is_set():
            return 130
        with log.open("ab") as file:
            # Outside of the terminal's group: the crew alone tells it to end, and waits for it.
            process = subprocess.Popen(
                words, stdout=file, stderr=file, env=self._environment, process_group=0
            )
            self._processes.add(process)
            if self._stopped.is_set():  # between the question above and here
                process.send_signal(signal.SIGINT)
            try:
                return process.wait()
            finally:
                self._processes.discard(process)

    def stop(self) -> None:
        """Interrupt whatever runs, and begin nothing more."""
        self._stopped.set()
        for process in tuple(self._processes):
            process.send_signal(signal.SIGINT)


def do(job: Job, crew: Crew, overrides: Sequence[str], instances: int) -> int:
    """Run one job to its end, and probe what came of it; the first exit status that is not 0."""
    if job.finished:
        return 0
    log = job.root / f"{job.out.name}.log"
    status = crew.run(command(job, overrides), log)
    if status:
        return status
    return crew.run(probing(job.checkpoint, job.start, job.probe, instances), log)


def probing(model: Path, start: Path, out: Path, instances: int) -> list[str]:
    """The command that probes a checkpoint."""
    return [
        sys.executable,
        f"{HERE / 'probe.py'}",
        f"{model}",
        f"{start / 'cells'}",
        f"--out={out}",
        f"--seeds={instances}",
    ]


def prepare(root: Path, seed: int, crew: Crew, lesson: Sequence[str], instances: int) -> int:
    """Make the start of a seed and probe it, unless both are there."""
    start, log = root / f"start-{seed}", root / f"start-{seed}.log"
    status = 0
    if not start.is_dir():
        words = [sys.executable, f"{HERE / 'prepare.py'}", f"{start}", "--seed", f"{seed}"]
        status = crew.run([*words, *lesson], log)
    probe = root / f"start-{seed}.probe.json"
    if status or probe.is_file():
        return status
    return crew.run(probing(start / "model", start, probe, instances), log)


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for; 1 when a run failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    parser.add_argument("--seeds", nargs="+", type=int, default=TUNING)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of every run"
    )
    parser.add_argument("--instances", type=int, default=16, help="of each cell in a probe")
    parser.add_argument("--rows", type=int, help="rows of the warm start, for a look")
    asked = parser.parse_args(arguments)
    asked.out.mkdir(parents=True, exist_ok=True)
    lesson = [] if asked.rows is None else ["--rows", f"{asked.rows}"]
    jobs = [
        Job(asked.out, condition, seed) for seed in asked.seeds for condition in asked.conditions
    ]
    # A background job of a shell ignores SIGINT, and so would every run that it begins.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    # The oracle is a plug-in that lies here.
    paths = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    crew = Crew({**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONPATH": paths})
    with ThreadPoolExecutor(asked.jobs) as pool:
        try:
            starts = dict(
                zip(
                    asked.seeds,
                    pool.map(
                        lambda s: prepare(asked.out, s, crew, lesson, asked.instances), asked.seeds
                    ),
                    strict=True,
                )
            )
            ready = [job for job in jobs if starts[job.seed] == 0]
            codes = list(pool.map(lambda job: do(job, crew, asked.set, asked.instances), ready))
        except KeyboardInterrupt:
            crew.stop()
            print("interrupted: the same command goes on", file=sys.stderr)
            return 130
    failed = [f"start-{seed}" for seed, code in starts.items() if code]
    failed += [job.out.name for job, code in zip(ready, codes, strict=True) if code]
    for name in failed:
        print(f"{name} failed: see {asked.out / name}.log", file=sys.stderr)
    print(f"{len(ready) - sum(map(bool, codes))} of {len(jobs)} runs are finished in {asked.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
