"""A run's directory: every iteration is committed whole, or not at all, and a killed run resumes.

    runs/<name>/
      config.json metrics.jsonl episodes.jsonl designs.jsonl hints.jsonl payments.jsonl timings.jsonl LATEST
      report.html
      snapshot/             the registry snapshot of the newest iteration
      iter-00003/           checkpoint/ memory.npz queue.msgpack snapshot/ state.json rows/*.jsonl

Commit order: write `iter-00003.tmp`, fsync, rename; replace LATEST; append the iteration's rows to the files above.
What a kill leaves undone, `RunDirectory.recover` does or undoes from LATEST, so rows are neither lost nor doubled.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from spade_loop.config import Config, from_mapping
from spade_loop.corpus import CorpusCursor
from spade_loop.errors import RunStateError
from spade_loop.rewards import Tracker
from spade_loop.types import JsonRow
from spade_loop.windows import Visit

LATEST = "LATEST"
ROW_FILES = ("metrics", "episodes", "designs", "hints", "payments", "timings")
KEPT_CHECKPOINTS = 2
KEPT_REJECTIONS = 64
"""Refusals that later designers may be told of."""
_COMMITTED = re.compile(r"iter-(\d{5,9})", re.ASCII)
_UNFINISHED = re.compile(r"iter-\d{5,9}\.tmp", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What the loop has measured of one environment of its library."""

    digest: str
    skill: str
    iteration: int
    """When it was admitted; -1 for one of the starting snapshot."""
    episodes: int = 0
    plain_wins: float = 0.0
    regret: float | None = None
    quarantined: bool = False
    hint: str | None = None
    """Written by the model in this run; it stands in for the environment's own."""

    @property
    def win_rate(self) -> float | None:
        """Plain solve rate over all episodes; None before the first."""
        return self.plain_wins / self.episodes if self.episodes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A design that was refused, as a later designer of the skill is told of it."""

    skill: str
    title: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """Everything that step i + 1 depends on, but for the weights, the memory, the queue and the library's sources."""

    iteration: int = 0
    """Steps that are complete: iterations, and after the last one those that train on what still waited."""
    cursor: CorpusCursor = field(default_factory=CorpusCursor)
    records: tuple[Record, ...] = ()
    rms: dict[str, float] = field(default_factory=dict)
    """Running RMS of the advantages of each role."""
    cells: tuple[tuple[str, ...], ...] = ()
    """Cells of the admitted designs of each recent iteration, oldest first."""
    skipped_steps: int = 0
    current: tuple[str, ...] = ()
    """Digests of the environments that are played until the next regeneration."""
    windows: dict[str, tuple[Visit, ...]] = field(default_factory=dict)
    """What was measured of each environment whose design is not paid yet, and of those of the field."""
    rejections: tuple[Rejection, ...] = ()
    """The last refusals, oldest first."""
    curriculum: dict[str, Any] = field(default_factory=dict)
    """What the choice of environments remembers."""
    trackers: dict[str, Tracker] = field(default_factory=dict)
    """Mean returns of each skill, for the reward `learning_potential`."""
    rehearsal: str = ""
    """Digest of the file of demonstrations; empty without one."""


def fsync_tree(folder: Path) -> None:
    """Flush every file and directory under `folder` to disk."""
    for path in [folder, *sorted(folder.rglob("*"))]:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def replace_text(path: Path, text: str) -> None:
    """Write `path` whole or not at all."""
    scratch = path.with_name(f".{path.name}.tmp")
    with scratch.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    scratch.replace(path)
    fsync_entries(path.parent)


def dump_row(row: Mapping[str, Any]) -> str:
    """One line of a `.jsonl` file: keys in the order given, ASCII only, so that no text from a model breaks a line."""
    return json.dumps(msgspec.to_builtins(row), allow_nan=False)


class RunDirectory:
    """One run on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def lock(self) -> None:
        """Keep other processes out for as long as this object lives; `RunStateError` when one is in already.

        A record lock: the kernel drops it with the process, whatever ends it.
        """
        descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        weakref.finalize(self, os.close, descriptor)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunStateError(
                f"{self.path} is in use: another process is working on this run"
            ) from error

    @classmethod
    def vacant(cls, path: Path) -> RunDirectory:
        """The place of a new run; writes nothing. `RunStateError` when it is taken or cannot be written to."""
        if (path / "config.json").exists():
            raise RunStateError(
                f"{path} holds a run already: resume it with `spade-loop run --resume {path}`, or give another --out"
            )
        if path.is_dir() and any(path.iterdir()):
            raise RunStateError(
                f"{path} is not empty and holds no run: give --out a new or an empty directory"
            )
        ground = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        if not ground.is_dir() or not os.access(ground, os.W_OK | os.X_OK):
            raise RunStateError(
                f"cannot write the run directory {path}: {ground} is no directory that can be written to"
            )
        return cls(path)

    @classmethod
    def create(cls, path: Path, config: Config) -> RunDirectory:
        """A new run. `RunStateError` when `path` is not `vacant`."""
        cls.vacant(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            directory = cls(path)
            directory.lock()
            replace_text(path / "config.json", json.dumps(config.to_json(), indent=2) + "\n")
        except OSError as error:
            raise RunStateError(f"cannot write the run directory {path}: {error}") from error
        return directory

    @classmethod
    def open(cls, path: Path) -> RunDirectory:
        """An existing run, brought back to its last complete iteration. `RunStateError` when there is none."""
        if not (path / "config.json").is_file():
            raise RunStateError(
                f"{path} is not a run directory: it has no config.json; give the --out directory of a `spade-loop run`"
            )
        directory = cls(path)
        try:
            directory.lock()
            directory.recover()
        except OSError as error:
            raise RunStateError(
                f"{path} cannot be brought to its last iteration: {error}"
            ) from error
        return directory

    def config(self) -> Config:
        """The config the run was started with."""
        try:
            return from_mapping(json.loads((self.path / "config.json").read_text(encoding="utf-8")))
        except (OSError, json.JSONDecodeError) as error:
            raise RunStateError(f"{self.path / 'config.json'} cannot be read: {error}") from error

    @property
    def latest(self) -> Path | None:
        """Directory of the last complete iteration, or None before the first."""
        try:
            name = (self.path / LATEST).read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        folder = self.path / name
        if not _COMMITTED.fullmatch(name):
            raise RunStateError(
                f"{self.path / LATEST} should name an iteration such as iter-00003, it holds {name[:40]!r}: "
                "the run cannot be resumed"
            )
        if not folder.is_dir():
            raise RunStateError(
                f"{self.path / LATEST} names {name}, which is missing: the run cannot be resumed"
            )
        return folder

    def load_state(self) -> RunState:
        """State after the last complete iteration; the initial state before the first."""
        folder = self.latest
        if folder is None:
            return RunState()
        try:
            return msgspec.json.decode((folder / "state.json").read_bytes(), type=RunState)
        except (OSError, msgspec.MsgspecError) as error:
            raise RunStateError(f"{folder / 'state.json'} cannot be read: {error}") from error

    @contextmanager
    def commit(self, state: RunState, rows: Mapping[str, Sequence[JsonRow]]) -> Iterator[Path]:
        """Commit an iteration: the body fills the yielded directory with checkpoint, memory and snapshot.

        If the body raises, or the process dies, the run stays at the iteration before.
        """
        name = f"iter-{state.iteration:05d}"
        scratch = self.path / f"{name}.tmp"
        shutil.rmtree(scratch, ignore_errors=True)
        (scratch / "rows").mkdir(parents=True)
        yield scratch
        (scratch / "state.json").write_bytes(
            msgspec.json.format(msgspec.json.encode(state), indent=1)
        )
        for kind in ROW_FILES:
            text = "".join(dump_row(row) + "\n" for row in rows.get(kind, ()))
            (scratch / "rows" / f"{kind}.jsonl").write_text(text, encoding="utf-8")
        fsync_tree(scratch)
        final = self.path / name
        shutil.rmtree(final, ignore_errors=True)
        scratch.rename(final)
        fsync_entries(self.path)
        replace_text(self.path / LATEST, name + "\n")
        for kind in ROW_FILES:
            self._append_rows(kind, final)
        self._prune()

    def recover(self) -> None:
        """Bring the files of the run in line with LATEST: stray iterations go, rows are completed or cut."""
        latest = self.latest
        done = 0 if latest is None else _number(latest)
        before = done - 1 if latest is None else _first_row(latest, done - 1)
        for folder in self.path.glob("iter-*.tmp"):
            if _UNFINISHED.fullmatch(folder.name):
                shutil.rmtree(folder)
        for folder in self._committed():
            if _number(folder) > done:
                shutil.rmtree(folder)
        for kind in ROW_FILES:
            self._recover_rows(kind, before, latest)
        self._prune()

    def _recover_rows(self, kind: str, before: int, latest: Path | None) -> None:
        path = self.path / f"{kind}.jsonl"
        # Split at line feeds alone, as the rows were written.
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        # Iterations of earlier commits are complete in the file; those of the last are taken from its own directory.
        kept = [
            line
            for number, line in enumerate(lines, start=1)
            if line.endswith(b"\n") and _iteration(line, f"{path}, line {number}") < before
        ]
        own = b"" if latest is None else (latest / "rows" / f"{kind}.jsonl").read_bytes()
        text = b"".join(kept) + own
        if text != b"".join(lines):
            replace_text(path, text.decode("utf-8"))

    def _append_rows(self, kind: str, folder: Path) -> None:
        with (self.path / f"{kind}.jsonl").open("a", encoding="utf-8") as file:
            file.write((folder / "rows" / f"{kind}.jsonl").read_text(encoding="utf-8"))
            file.flush()
            os.fsync(file.fileno())

    def _prune(self) -> None:
        """Only the newest commits keep their checkpoints: those are what takes the room."""
        for folder in sorted(self._committed(), key=_number)[:-KEPT_CHECKPOINTS]:
            shutil.rmtree(folder)

    def _committed(self) -> list[Path]:
        """Folders of committed iterations. Whatever else somebody put there (`iter-00003-copy`) is left alone."""
        return [folder for folder in self.path.glob("iter-*") if _COMMITTED.fullmatch(folder.name)]


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix("iter-"))


def _first_row(folder: Path, default: int) -> int:
    """The first iteration whose rows a commit holds; every one has a row of metrics."""
    path = folder / "rows" / "metrics.jsonl"
    first = path.read_bytes().partition(b"\n")[0]
    return _iteration(first, f"{path}, line 1") if first else default


def _iteration(line: bytes, where: str) -> int:
    try:
        return int(json.loads(line)["iteration"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunStateError(
            f"{where}: expected a row with its iteration, got {line[:60]!r}: restore the file or start a new run"
        ) from error


def fsync_entries(folder: Path) -> None:
    """Flush a directory's own entries."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
