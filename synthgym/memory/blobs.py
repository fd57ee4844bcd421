"""Byte strings by number, for what is seldom read: packed in blocks, compressed, and on disk when there are many."""

from __future__ import annotations

import bisect
import os
import tempfile
import weakref
import zlib
from array import array
from pathlib import Path
from typing import Final

BLOCK_BYTES: Final = 16_384
"""Size at which a block is closed and compressed."""
HELD_BYTES: Final = 32 << 20
"""Compressed bytes that are kept in memory; later blocks go to a temporary file without a name."""
_LEVEL: Final = 3
_Place = bytes | tuple["_Spill", int, int]


class _Spill:
    """A temporary file that is only appended to, and vanishes with the last log that reads it."""

    def __init__(self) -> None:
        self._file, name = tempfile.mkstemp(prefix="synthgym-memory-")
        Path(name).unlink()
        weakref.finalize(self, os.close, self._file)
        self.owner = os.getpid()
        self._end = 0

    def append(self, data: bytes) -> tuple[_Spill, int, int]:
        place = (self, self._end, len(data))
        view = memoryview(data)
        while view:
            written = os.pwrite(self._file, view, self._end)
            self._end += written
            view = view[written:]
        return place

    def read(self, start: int, size: int) -> bytes:
        return os.pread(self._file, size, start)


class BlobLog:
    """Byte strings in the order in which they came. What was appended never changes."""

    def __init__(self) -> None:
        self._starts = array("q", [0])
        """Where each string begins in all of them together, and where the last one ends."""
        self._blocks: list[_Place] = []
        self._block_starts = array("q")
        self._open = bytearray()
        self._open_start = 0
        self._held = 0
        self._spill: _Spill | None = None
        self._read: tuple[int, bytes] = (-1, b"")
        """Number and content of the block that was read last."""

    def __len__(self) -> int:
        return len(self._starts) - 1

    def append(self, data: bytes) -> int:
        """Append a string; its number."""
        self._open += data
        self._starts.append(self._starts[-1] + len(data))
        if len(self._open) >= BLOCK_BYTES:
            self._close_block()
        return len(self) - 1

    def __getitem__(self, number: int) -> bytes:
        start, end = self._starts[number], self._starts[number + 1]
        if start >= self._open_start:
            return bytes(self._open[start - self._open_start : end - self._open_start])
        block = bisect.bisect_right(self._block_starts, start) - 1
        if self._read[0] != block:
            self._read = (block, self._load(block))
        shift = self._block_starts[block]
        return self._read[1][start - shift : end - shift]

    def copy(self) -> BlobLog:
        """Return a log that can grow without changing this one; closed blocks are shared."""
        other: BlobLog = object.__new__(BlobLog)
        other.__dict__ |= self.__dict__
        other._starts = self._starts[:]
        other._blocks = list(self._blocks)
        other._block_starts = self._block_starts[:]
        other._open = bytearray(self._open)
        return other

    def _close_block(self) -> None:
        data = zlib.compress(bytes(self._open), _LEVEL)
        self._held += len(data)
        self._blocks.append(data if self._held <= HELD_BYTES else self._spill_file().append(data))
        self._block_starts.append(self._open_start)
        self._open_start += len(self._open)
        self._open.clear()

    def _spill_file(self) -> _Spill:
        # A forked child has the parent's file, and would write over what the parent appends.
        if self._spill is None or self._spill.owner != os.getpid():
            self._spill = _Spill()
        return self._spill

    def _load(self, block: int) -> bytes:
        place = self._blocks[block]
        data = place if isinstance(place, bytes) else place[0].read(place[1], place[2])
        return zlib.decompress(data)
