"""Arrays in a temporary file without a name: the system keeps in memory what is read of them, and drops it at need."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt


def mapped(arrays: Iterable[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
    """Return read-only arrays of one dimension with the same content, mapped. The file vanishes with the last of them.

    The arrays are written as they come, so that no more than one of them has to be in memory.
    """
    kinds: list[tuple[np.dtype[Any], int, int]] = []
    with tempfile.TemporaryFile(prefix="synthgym-memory-") as file:
        for array in arrays:
            kinds.append((array.dtype, file.tell(), len(array)))
            array.tofile(file)
        file.flush()
        size = file.tell()
        if size == 0:  # nothing to map
            return [np.zeros(0, kind) for kind, _, _ in kinds]
        pages = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_RANDOM"):  # a search reads a page here and there: not its neighbours
        pages.madvise(mmap.MADV_RANDOM)
    return [np.frombuffer(pages, kind, length, place) for kind, place, length in kinds]


def release(array: npt.NDArray[Any]) -> None:
    """Let the system forget what was read of the file of a mapped array; it is read again at need."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)
