"""What is measured: the environments of a snapshot, or the tasks of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spade_loop.errors import ConfigError
from spade_loop.library import open_snapshot
from spade_loop.tasks import Task, read_tasks
from synthgym.ids import NAMESPACE, did_you_mean, is_name
from synthgym.registry import Entry, Snapshot
from synthgym.spec import SynthEnvSpec, canonical_json, sha256_digest

TASK_FILE: Final = ".jsonl"
"""How the name of a file of tasks ends; everything else is a snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One environment or task."""

    name: str
    """Id of the environment, or of the task."""
    title: str
    spec: SynthEnvSpec
    task: Task | None = None

    @property
    def digest(self) -> str:
        """What its episodes go by."""
        return self.spec.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Everything that is to be measured."""

    name: str
    digest: str
    """Of the content of the snapshot, whatever is noted of it, or of all tasks of the file."""
    subjects: tuple[Subject, ...]
    snapshot: Snapshot | None
    """None for tasks."""

    @property
    def kind(self) -> str:
        """`snapshot` or `tasks`."""
        return "tasks" if self.snapshot is None else "snapshot"


def open_field(place: str, only: Sequence[str], most: int | None) -> Field:
    """What `place` names: a file of tasks by its ending `.jsonl`, else a snapshot as a path or a reference.

    `only` keeps these ids, `most` the first so many. `ConfigError` for an id that is not there, with the nearest one;
    an error of synthgym's for a snapshot that cannot be opened.
    """
    if most is not None and most < 1:
        raise ConfigError(f"--environments must be at least 1, got {most}")
    field = _tasks(Path(place)) if place.endswith(TASK_FILE) else _snapshot(place, only, most)
    chosen = field.subjects
    if only and field.snapshot is None:
        by_name = {subject.name: subject for subject in chosen}
        for name in only:
            if name not in by_name:
                raise ConfigError(
                    f"--only: {place} has no task {name!r}{did_you_mean(name, by_name)}"
                )
        chosen = tuple(by_name[name] for name in dict.fromkeys(only))
    if not chosen:
        raise ConfigError(f"{place} holds nothing to measure")
    return Field(
        name=field.name, digest=field.digest, subjects=chosen[:most], snapshot=field.snapshot
    )


def _tasks(path: Path) -> Field:
    tasks = read_tasks(path)
    seen: dict[str, Task] = {}
    for task in tasks:
        if task.digest in seen:
            raise ConfigError(
                f"{task.where}: the task is that of {seen[task.digest].where}, word for word: leave out one"
            )
        seen[task.digest] = task
    subjects = tuple(
        Subject(name=task.id, title=_first_line(task.prompt), spec=task.spec, task=task)
        for task in tasks
    )
    digest = sha256_digest(canonical_json({"tasks": list(seen)}))
    return Field(name=path.name, digest=digest, subjects=subjects, snapshot=None)


def _snapshot(place: str, only: Sequence[str], most: int | None) -> Field:
    snapshot = open_snapshot(place)
    entries = [_newest(snapshot, name) for name in only] if only else list(snapshot)
    # Opening an environment reads its source: no more of them than are played.
    digests = list(dict.fromkeys(entry.digest for entry in entries))[:most]
    specs = [snapshot.spec(digest) for digest in digests]
    return Field(
        name=f"{snapshot.name} {snapshot.version}",
        digest=snapshot.core.content_digest,
        subjects=tuple(Subject(name=s.env_id, title=s.title, spec=s) for s in specs),
        snapshot=snapshot,
    )


def _newest(snapshot: Snapshot, wanted: str) -> Entry:
    name = wanted.removeprefix(f"{NAMESPACE}/")
    versions = snapshot.versions(name) if is_name(name) else []
    return versions[-1] if versions else snapshot.entry(wanted)


def _first_line(text: str) -> str:
    line = text.strip().splitlines()[0]
    return line if len(line) <= 80 else f"{line[:79]}…"
