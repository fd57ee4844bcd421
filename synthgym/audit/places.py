"""Where sources come from: a folder, a file, a file of rows, or a snapshot of ours."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synthgym.audit.folders import (
    ENDING,
    FILE_FLAGS,
    MAX_DEPTH,
    read_handle,
    read_text,
    walk,
)
from synthgym.audit.json_lines import ENDINGS, parse_row, read_lines
from synthgym.errors import ConfigError, SnapshotError
from synthgym.registry import Snapshot
from synthgym.registry.files import FolderFiles, read_file
from synthgym.registry.layout import MANIFEST, MAX_MANIFEST_BYTES, SOURCE, env_file

_OURS: Final = b'"format":"synthgym.snapshot/'
"""What tells our manifest from another's, whose folder is one like any other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source to audit."""

    name: str
    """Where it is; no two of an audit have the same."""
    title: str = ""
    text: str | None = None
    """None when it cannot be read."""
    problem: str = ""
    """Why it cannot."""


def check_places(paths: Sequence[Path]) -> None:
    """`ConfigError` unless each path is there and holds something to audit: it says what was looked for."""
    if not paths:
        raise ConfigError("expected at least one path to audit, got none")
    for path in paths:
        if not path.exists():
            raise ConfigError(f"cannot audit {path}: no such file or folder")
        if path.is_dir():
            if not any(_names(path)):
                raise ConfigError(_nothing_in(path))
        elif not path.is_file():
            raise ConfigError(f"cannot audit {path}: neither a regular file nor a folder")
        elif _is_rows(path) and not any(_rows(path)):
            raise ConfigError(f"no rows in {path}: expected one JSON object a line")


def find_sources(paths: Iterable[Path]) -> Iterator[Source]:
    """Every source in these places, in a stable order; each is read when it is asked for."""
    seen: set[Path] = set()
    for path in paths:
        if path in seen:  # two rows of one name would be one too many
            continue
        seen.add(path)
        if _is_rows(path):
            yield from _rows(path)
        elif path.is_dir():
            snapshot = _snapshot(path)
            yield from _files(path) if snapshot is None else _entries(snapshot)
        else:
            yield _file(path)


def count_sources(paths: Iterable[Path]) -> int | None:
    """How many sources there are; None when only reading a file of rows could tell."""
    total = 0
    for path in dict.fromkeys(paths):
        if _is_rows(path):
            return None
        total += sum(1 for _ in _names(path)) if path.is_dir() else 1
    return total


def _is_rows(path: Path) -> bool:
    return path.name.endswith(ENDINGS) and not path.is_dir()


def _names(folder: Path) -> Iterator[str]:
    """One name a source of a folder, without reading any."""
    snapshot = _snapshot(folder)
    if snapshot is not None:
        yield from (entry.env_id for entry in snapshot)
    else:
        yield from ("/".join(found.parts) for found in walk(folder))


def _nothing_in(folder: Path) -> str:
    looked = (
        f"nothing to audit in {folder}: looked for files that end in {ENDING}, at most {MAX_DEPTH} "
        f"folders deep (not in hidden folders), and for a snapshot ({MANIFEST})"
    )
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(ENDINGS))
    return f"{looked}; to audit the rows of {names[0]!r}, name that file" if names else looked


def _files(folder: Path) -> Iterator[Source]:
    for found in walk(folder):
        name = str(folder.joinpath(*found.parts))
        if found.problem:
            yield Source(name=name, problem=found.problem)
            continue
        try:
            yield Source(name=name, text=read_text(folder, found.parts))
        except OSError as error:
            yield Source(name=name, problem=f"cannot be read: {error.strerror}")


def _file(path: Path) -> Source:
    """A file that the user named, and that may be a link therefore."""
    try:
        handle = os.open(path, FILE_FLAGS)
        try:
            return Source(name=str(path), text=read_handle(handle))
        finally:
            os.close(handle)
    except OSError as error:
        return Source(name=str(path), problem=f"cannot be read: {error.strerror}")


def _rows(path: Path) -> Iterator[Source]:
    number = 0
    try:
        for number, line in read_lines(path):
            yield _row(f"{path}:{number}", line)
    except OSError as error:
        name = f"{path}:{number + 1}"
        yield Source(name=name, problem=f"cannot be read from here on: {error.strerror or error}")


def _row(name: str, line: bytes | None) -> Source:
    if line is None:
        return Source(name=name, problem="the line is too long for a row")
    try:
        text, title = parse_row(line)
    except ValueError as error:
        return Source(name=name, problem=f"a broken row: {error}")
    return Source(name=name, title=title, text=text)


def _snapshot(folder: Path) -> Snapshot | None:
    """The snapshot in a folder, or None when it is a folder like any other.

    `SnapshotError` when it says that it is a snapshot of ours and cannot be opened.
    """
    try:
        manifest = read_file(FolderFiles(folder), MANIFEST, MAX_MANIFEST_BYTES)
    except SnapshotError:
        return None
    return Snapshot.open(folder) if _OURS in manifest else None


def _entries(snapshot: Snapshot) -> Iterator[Source]:
    for entry in snapshot:
        path = snapshot.path / env_file(entry.name, entry.version, SOURCE)
        try:
            text = snapshot.spec(entry.digest).record.source
        except SnapshotError as error:
            yield Source(name=str(path), title=entry.env_id, problem=str(error))
        else:
            yield Source(name=str(path), title=entry.env_id, text=text)
