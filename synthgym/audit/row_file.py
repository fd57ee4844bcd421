"""The file of an audit: one row a line, only ever appended to, so that an audit can stop anywhere and go on."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from synthgym.audit.json_lines import ENDINGS
from synthgym.audit.rows import ROW_BEGINS, Row, Status
from synthgym.errors import ConfigError

_LASTING: Final = frozenset({Status.OK, Status.REFUSED})
"""What need not be tried again as long as text and validator are the same."""


def default_out(paths: Sequence[Path]) -> Path:
    """Where the rows of an audit go unless told otherwise: `<name of the first path>.audit.jsonl`, here."""
    name = paths[0].resolve().name or "root"
    for ending in (*ENDINGS, ".py"):
        name = name.removesuffix(ending)
    return Path(f"{name}.audit.jsonl")


class RowFile:
    """The rows of an audit on disk. Opening it reads what earlier runs of the same validator have found.

    A last line that a killed run left unfinished is dropped. `ConfigError` when the file cannot be
    written, when it holds anything but rows of an audit, or when another audit is writing it.
    """

    def __init__(self, path: Path, validator: str) -> None:
        self.path = path
        self.known: dict[str, Row] = {}
        """A row for each text that was validated, by its digest; without findings, which take room."""
        self._validator = validator
        self._at: dict[bytes, int] = {}
        """Where the row of a source begins."""
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ConfigError(f"cannot write {path}: {error.strerror}") from error
        try:
            self._claim()
            self._end = self._load()
        except BaseException:
            os.close(self._handle)
            raise

    def find(self, row: Row) -> Row | None:
        """The row that an earlier run has written for the same source, or None."""
        at = self._at.get(_key(row))
        if at is None:
            return None
        with open(os.dup(self._handle), "rb") as file:  # noqa: PTH123 (a descriptor has no path)
            file.seek(at)
            return Row.from_line(file.readline())

    def append(self, row: Row) -> None:
        """Write a row, whole. `ConfigError` when the disk does not take it."""
        line = row.to_line()
        try:
            left = memoryview(line)
            while left:
                left = left[os.write(self._handle, left) :]
        except OSError as error:
            raise ConfigError(f"cannot write {self.path}: {error.strerror}") from error
        self._enter(row, self._end)
        self._end += len(line)

    def close(self) -> None:
        """Give the file up."""
        os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _claim(self) -> None:
        if not stat.S_ISREG(os.fstat(self._handle).st_mode):
            raise ConfigError(f"cannot write {self.path}: expected a regular file")
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{self.path} is being written by another audit: wait for it, or choose another file"
            ) from None

    def _load(self) -> int:
        """Enter what the file holds; its length without an unfinished line."""
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                if not _begins_like_a_row(line):
                    raise ConfigError(
                        f"{self.path} is there and is no file of an audit: choose another one"
                    )
                if not line.endswith(b"\n"):
                    os.ftruncate(self._handle, end)
                    break
                row = _parsed(line)
                if row is not None and row.validator == self._validator:
                    self._enter(row, end)
                end += len(line)
        return end

    def _enter(self, row: Row, at: int) -> None:
        if row.status is Status.NOT_AUDITED:
            return
        self._at[_key(row)] = at
        if row.status in _LASTING:
            self.known.setdefault(row.digest, replace(row, findings=()))


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a file, the newest of each source, by name; one is in memory at a time.

    A line that is not whole is passed over. `ConfigError` when the file cannot be read, or is none of an audit.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    with file:
        places: dict[str, int] = {}
        at = 0
        for line in file:
            if not _begins_like_a_row(line):
                raise ConfigError(f"{path} is no file of an audit: {line[:60]!r}")
            row = _parsed(line)
            if row is not None:
                places[row.name] = at
            at += len(line)
        for _, at in sorted(places.items()):
            file.seek(at)
            yield Row.from_line(file.readline())


def _begins_like_a_row(line: bytes) -> bool:
    return ROW_BEGINS.startswith(line[: len(ROW_BEGINS)])


def _parsed(line: bytes) -> Row | None:
    """The row, or None for one that was cut off or that another version wrote: it counts for nothing."""
    try:
        return Row.from_line(line)
    except ConfigError:
        return None


def _key(row: Row) -> bytes:
    """What makes a source the same one to a later run: where it is, and its text or what is wrong with it."""
    parts = (row.name, row.digest, row.detail if row.status is Status.UNREADABLE else "")
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()
