"""A file of finished pieces of work, one JSON object a line: what is in it is not done again.

The first line says what was asked. A killed process leaves at most its last line torn; that piece is done once more.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from spade_loop.errors import RunStateError
from spade_loop.state import dump_row, fsync_entries
from spade_loop.types import JsonRow

HEADER: Final = "journal"
"""The key of the first line."""
_SHOWN: Final = 60
"""Characters of a value that an error quotes."""


class Journal:
    """Appends rows, from any thread. Owned by a `with`; two writers of one file are refused."""

    def __init__(self, file: IO[bytes], path: Path, rows: tuple[JsonRow, ...]) -> None:
        self.path = path
        self.rows = rows
        """What was in the file when it was opened, in the order it was written."""
        self._file = file
        self._lock = threading.Lock()

    @classmethod
    def open(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """Begin a journal, or go on with one that has the same header: plain data that JSON keeps as it is.

        `RunStateError` when another process writes to it, when it was begun with another header (what differs is
        named), when a line is none of ours, or when it cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+b")
        except OSError as error:
            raise RunStateError(f"cannot write {path}: {error}") from error
        try:
            _lock(file, path)
            return cls(file, path, _recover(file, path, header))
        except BaseException:
            file.close()
            raise

    def append(self, row: Mapping[str, Any]) -> None:
        """Add a row; it is with the operating system when this returns, and survives this process.

        `RunStateError` when it cannot be written: the disk is full, or the folder is gone.
        """
        line = (dump_row(row) + "\n").encode("ascii")
        with self._lock:
            try:
                self._file.write(line)
                self._file.flush()
            except OSError as error:
                raise RunStateError(f"cannot write {self.path}: {error}") from error

    def close(self) -> None:
        """Flush to the disk, and let others write."""
        with self._lock:
            if not self._file.closed:
                try:
                    os.fsync(self._file.fileno())
                finally:
                    self._file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_journal(path: Path) -> tuple[JsonRow, tuple[JsonRow, ...]]:
    """Header and rows of a journal, of a torn one what is whole; nothing is written or locked.

    `RunStateError` when there is none, or a line is none of ours.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunStateError(f"{path} cannot be read: {error}") from error
    lines = list(_parsed(content, path))
    if not lines:
        raise RunStateError(f"{path} is no journal: it is empty")
    return _header(lines[0], path), tuple(lines[1:])


def _lock(file: IO[bytes], path: Path) -> None:
    """The kernel drops this lock with the last process that holds the file open."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RunStateError(f"{path} is in use: another process is writing to it") from error


def _recover(file: IO[bytes], path: Path, header: Mapping[str, Any]) -> tuple[JsonRow, ...]:
    """The rows of a file; a torn last line is cut off, a file without rows gets this header."""
    file.seek(0)
    content = file.read()
    whole = content.rfind(b"\n") + 1
    if whole < len(content):
        file.truncate(whole)
    lines = list(_parsed(content, path))
    asked = json.loads(dump_row(header))
    if not lines or (len(lines) == 1 and _header(lines[0], path) != asked):
        # What has no row yet holds nothing that another question could spoil.
        file.truncate(0)
        file.write((dump_row({HEADER: header}) + "\n").encode("ascii"))
        file.flush()
        os.fsync(file.fileno())
        fsync_entries(path.parent)
        return ()
    _compare(_header(lines[0], path), asked, path)
    return tuple(lines[1:])


def _parsed(content: bytes, path: Path) -> Iterator[JsonRow]:
    # Split at line feeds alone, as the rows were written; what follows the last one is torn.
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise RunStateError(
                f"{path}, line {number}: expected a JSON object, got {line[:_SHOWN]!r}: restore the file, or give "
                "another --out"
            )
        yield row


def _header(row: JsonRow, path: Path) -> JsonRow:
    header = row.get(HEADER)
    if list(row) != [HEADER] or not isinstance(header, dict):
        raise RunStateError(
            f'{path}, line 1: expected {{"{HEADER}": ...}}, got {str(row)[:_SHOWN]!r}: this is no journal'
        )
    return header


def _compare(found: JsonRow, asked: JsonRow, path: Path) -> None:
    before, now = dict(_leaves(found)), dict(_leaves(asked))
    differing = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    if differing:
        told = "; ".join(
            f"{key} was {_told(before.get(key))}, now it is {_told(now.get(key))}"
            for key in differing
        )
        raise RunStateError(
            f"{path} was begun with other settings: {told}. Give the same ones to go on, or another --out"
        )


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted key, value) of everything that is no object with members."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{key}.{name}" if key else name)
    else:
        yield key, value


def _told(value: Any) -> str:
    text = "not there" if value is None else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
