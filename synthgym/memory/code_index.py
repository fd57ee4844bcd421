"""The pieces of code of every structure that a memory holds, by the number of the structure.

Sources with the same `ast_hash` have the same pieces, so they share a number. In a large memory the
pieces lie in a temporary file without a name, and are mapped: they are read for a few candidates at
a time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy.typing as npt

from synthgym.memory.mapping import mapped, release
from synthgym.memory.structure import Overlap, StructureIndex
from synthgym.memory.subtrees import Hashes

HELD: Final = 65_536
"""Structures whose pieces are kept in memory before they are moved to the file."""
_GROWTH: Final = 4
"""They are moved when a quarter has been added to what is in the file."""
Arrays = dict[str, npt.NDArray[Any]]


class CodeIndex:
    """A `StructureIndex` that moves the pieces of many structures out of memory."""

    def __init__(self, index: StructureIndex | None = None) -> None:
        self._index = StructureIndex() if index is None else index
        self._moved = len(self._index)
        """Structures whose pieces are in a file already."""

    @classmethod
    def restore(cls, arrays: Arrays) -> CodeIndex:
        """An index of what `to_arrays` gave. `SnapshotError` for arrays that it cannot have given."""
        if len(arrays["counted"]) >= HELD:
            return cls(_moved(arrays))
        return cls(StructureIndex.from_arrays(arrays))

    def __len__(self) -> int:
        return len(self._index)

    @property
    def families(self) -> int:
        """Structures that shared little with every earlier one."""
        return self._index.families

    def add(self, subtrees: Hashes) -> int:
        """Hold the pieces of a structure; its number."""
        number = self._index.add(subtrees)
        if len(self) - self._moved >= max(HELD, self._moved // _GROWTH):
            self._move()
        return number

    def candidates(self, subtrees: Hashes, limit: int) -> list[Overlap]:
        """Return at most `limit` structures that share code, most first; equal ones by number."""
        return self._index.candidates(subtrees, limit)

    def containment(self, subtrees: Hashes, number: int) -> float:
        """How much code is shared with a structure, 0 to 1."""
        return self._index.containment(subtrees, number)

    def to_arrays(self) -> Arrays:
        """Everything as plain arrays."""
        return self._index.to_arrays()

    def copy(self) -> CodeIndex:
        """Return an index that can grow without changing this one; they share what is in files."""
        other = CodeIndex(self._index.copy())
        other._moved = self._moved
        return other

    def _move(self) -> None:
        self._index = _moved(self._index.to_arrays())
        self._moved = len(self)


def _moved(arrays: Arrays) -> StructureIndex:
    """Return the index of these arrays, with the pieces in a file that vanishes with it."""
    (hashes,) = mapped([arrays["hashes"]])
    index = StructureIndex.from_arrays(arrays | {"hashes": hashes})
    release(hashes)  # they were all read to be counted
    return index
