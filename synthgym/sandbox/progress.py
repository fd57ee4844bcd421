"""How far each worker has got: a counter a worker, in memory that it shares with the parent.

A batch is answered as a whole, so a reply cannot name the row that hangs, or the one that ended
the process. The counter can, and costs a store a row. It lies in one file without a name, a page for
each worker; a worker maps its own page and no other. What a worker writes there is a claim like
everything it says: it decides which episode of the same source gets the blame, and can never put
off a deadline for longer than the rows it was asked for.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from typing import Final

from synthgym.errors import SandboxError

_SLOTS: Final = 8192
"""Workers of one pool at the same time. Pages that nobody has touched cost nothing."""


class ProgressBoard:
    """The counters of the workers of one pool."""

    def __init__(self) -> None:
        self._fd = _nameless_file()
        size = _SLOTS * mmap.PAGESIZE
        try:
            os.truncate(self._fd, size)
            self._memory = mmap.mmap(self._fd, size)
        except OSError as error:
            os.close(self._fd)
            raise SandboxError(f"no memory to share with workers: {error}") from error
        self._counters = memoryview(self._memory).cast("Q")
        self._step = mmap.PAGESIZE // self._counters.itemsize
        self._free = list(range(_SLOTS - 1, -1, -1))

    def fileno(self) -> int:
        """Return the descriptor to give to a worker together with its slot."""
        return self._fd

    def take(self) -> int:
        """Return a slot whose counter is 0. `SandboxError` when all are taken."""
        if not self._free:
            raise SandboxError(f"a pool has at most {_SLOTS} workers")
        slot = self._free.pop()
        self._counters[slot * self._step] = 0
        return slot

    def give_back(self, slot: int) -> None:
        """Free a slot. Its worker must have been reaped: nobody may write to it any more."""
        self._free.append(slot)

    def read(self, slot: int) -> int:
        """Return how many rows the worker has begun, as it claims; 0 when the board is closed."""
        if self._fd < 0:
            return 0
        return self._counters[slot * self._step]

    def close(self) -> None:
        """Give the memory back. Twice is fine."""
        if self._fd >= 0:
            self._counters.release()
            self._memory.close()
            os.close(self._fd)
            self._fd = -1


def _nameless_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("synthgym-progress", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
