"""A warm start up to the model: what it starts from, the folder in which it is under way, its rows. No torch.

What is under way lies in `.<name>.partial` beside the folder that it becomes: its settings, the rows once they are
made, and the trainer's checkpoints. The same command goes on from there.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spade_loop.backends.weights import check_gpu, check_model
from spade_loop.config import Config
from spade_loop.corpus import Corpus
from spade_loop.demonstrations import Demonstrations, read_demonstrations
from spade_loop.design.dialects import make_dialect
from spade_loop.errors import ConfigError, RunStateError
from spade_loop.library import BUNDLED, open_snapshot
from spade_loop.progress import Progress
from spade_loop.state import RunDirectory, dump_row, fsync_entries, fsync_tree, replace_text
from spade_loop.types import JsonRow
from spade_loop.warmstart.making import Made, make_rows
from spade_loop.warmstart.settings import WarmStart
from spade_loop.world import launched
from synthgym.errors import IntegrityError
from synthgym.registry import Snapshot
from synthgym.sandbox import Pool

ROWS: Final = "rows.jsonl"
TOLD: Final = "warmstart.json"
"""What was done: config, settings, source, counts, losses."""
_SETTINGS: Final = "settings.json"
_DROPPED: Final = "dropped.json"
_SCRATCH: Final = "trainer"
"""Where the trainer writes its checkpoints."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done."""

    config: Config
    settings: WarmStart
    source: Snapshot | Demonstrations
    """What rows are made of, or the rows themselves."""
    trains: bool
    """False makes rows and no model."""

    @property
    def identity(self) -> JsonRow:
        """What two warm starts have in common when one can go on with the other."""
        return {
            "config": self.config.to_json(),
            "settings": self.settings.to_json(),
            "source": self.source.digest,
            "trains": self.trains,
        }


def source_of(config: Config, snapshot: str, rows: str) -> Snapshot | Demonstrations:
    """What a user named: a snapshot or a file of rows; the recipe's `registry` without either.

    `ConfigError` when both are named, `IntegrityError` for a snapshot that is not as its manifest promises.
    """
    if snapshot and rows:
        raise ConfigError(
            "--snapshot makes rows and --rows brings them: give one of the two, or neither for the recipe's registry"
        )
    if rows:
        return read_demonstrations(Path(rows))
    named = snapshot or config.registry
    opened = open_snapshot(named or BUNDLED)
    problems = opened.verify()
    if problems:
        raise IntegrityError(
            f"{problems[0]}; `synthgym snapshot verify {opened.path}` lists what differs"
        )
    return opened


def check_task(task: Task) -> None:
    """Refuse what is plainly not there, before torch is loaded."""
    if launched()[1] > 1:
        raise ConfigError(
            f"a warm start runs in one process, and {launched()[1]} were launched: start it without the launcher"
        )
    make_dialect(task.config.designer)
    if task.trains:
        check_gpu(task.config.policy)
        check_model(task.config.policy)


class Staging:
    """The folder of a warm start under way, held by one process."""

    def __init__(self, out: Path, task: Task) -> None:
        """`RunStateError` when `out` is taken, another process works on it, or what is under way is something else."""
        if (out / TOLD).exists():
            raise RunStateError(f"{out} holds a finished warm start: give another --out")
        RunDirectory.vacant(out)
        self.out = out.absolute()
        self.path = self.out.parent / f".{self.out.name}.partial"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._directory = RunDirectory(self.path)
            self._directory.lock()  # for as long as this object lives
            self._claim(json.dumps(task.identity, indent=2) + "\n")
        except OSError as error:
            raise RunStateError(f"cannot write {self.path}: {error}") from error

    def _claim(self, text: str) -> None:
        path = self.path / _SETTINGS
        if path.is_file() and path.read_text(encoding="utf-8") != text:
            raise RunStateError(
                f"{self.path} holds an unfinished warm start with other settings or another source: go on with it by "
                "the command that began it, remove the folder, or give another --out"
            )
        replace_text(path, text)

    @property
    def scratch(self) -> Path:
        """Where the trainer writes."""
        return self.path / _SCRATCH

    def rows(self, task: Task, progress: Progress) -> Made:
        """The rows: made once, and read again after that. `ConfigError` when there are none."""
        path, dropped = self.path / ROWS, self.path / _DROPPED
        if not path.is_file():
            made = _make(task, progress)
            if not made.rows:
                raise ConfigError(
                    f"no row could be made: {listed(made.dropped) or 'nothing is in the snapshot'}"
                )
            replace_text(dropped, json.dumps(dict(made.dropped)))
            replace_text(path, "".join(dump_row(row.to_json()) + "\n" for row in made.rows))
        told = json.loads(dropped.read_text(encoding="utf-8"))
        return Made(read_demonstrations(path).rows, told)

    def finish(self, told: Mapping[str, Any]) -> None:
        """Write what was done, and make the folder what it was meant to be."""
        replace_text(self.path / TOLD, json.dumps(told, indent=2) + "\n")
        for name in (_SCRATCH, _SETTINGS, _DROPPED, ".lock"):
            path = self.path / name
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        fsync_tree(self.path)
        self.path.rename(self.out)
        fsync_entries(self.out.parent)


def listed(dropped: Mapping[str, int]) -> str:
    """Counts of what was dropped, for people."""
    return "; ".join(f"{count} {why}" for why, count in sorted(dropped.items()))


def _make(task: Task, progress: Progress) -> Made:
    if isinstance(task.source, Demonstrations):
        return Made(task.source.rows, {})
    config = task.config
    corpus = Corpus.load(Path(config.corpus.path) if config.corpus.path else None)
    specs = [task.source.spec(entry.digest) for entry in task.source]
    sandbox = config.sandbox
    with Pool(require=sandbox.require, max_workers=sandbox.max_workers) as pool:
        return make_rows(specs, config, task.settings, corpus=corpus, pool=pool, progress=progress)
