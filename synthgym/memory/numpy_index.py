"""An index in numpy alone: exact, slower than FAISS, and with the same answers."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from synthgym.memory.quantise import decode, encode

BLOCK: Final = 16_384
"""Rows of a block. Full blocks are never written to again, so copies share them."""
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]
_Block = npt.NDArray[np.float32] | npt.NDArray[np.int8]


class NumpyIndex:
    """Unit vectors by row, as float32 or, when compact, as one byte a component.

    Rows come in increasing order. A removed one is passed over; its memory stays taken.
    """

    def __init__(self, dim: int, *, compact: bool = False) -> None:
        self.dim = dim
        self.compact = compact
        self._blocks: list[_Block] = []
        self._rows = np.zeros(0, np.int64)
        self._alive = np.zeros(0, np.bool_)
        self._used = 0

    def __len__(self) -> int:
        return int(self._alive[: self._used].sum())

    @property
    def rows(self) -> Rows:
        """Rows held, in order: int64 [n]."""
        return self._rows[: self._used][self._alive[: self._used]]

    def add(self, vectors: Floats, rows: Rows) -> None:
        """Append vectors, float32 [n, dim], under rows larger than those before."""
        values = encode(vectors) if self.compact else vectors
        self._reserve(self._used + len(rows))
        start = 0
        while start < len(rows):
            within = self._used % BLOCK
            if within == 0:
                self._blocks.append(np.empty((0, self.dim), values.dtype))
            count = min(BLOCK - within, len(rows) - start)
            self._write(within, values[start : start + count])
            self._rows[self._used : self._used + count] = rows[start : start + count]
            self._alive[self._used : self._used + count] = True
            self._used += count
            start += count

    def remove(self, rows: Rows) -> None:
        """Forget rows; those that are not held are passed over."""
        places = self._places(rows)
        self._alive[places[places >= 0]] = False

    def best(self, queries: Floats, k: int) -> Rows:
        """Rows of the largest inner products, int64 [q, k], best first; -1 where there is none."""
        scores = np.full((len(queries), 0), -np.inf, np.float32)
        places = np.zeros((len(queries), 0), np.int64)
        for number, block in enumerate(self._blocks):
            start = number * BLOCK
            held = min(BLOCK, self._used - start)
            fresh = queries @ self._floats(block[:held]).T
            fresh[:, ~self._alive[start : start + held]] = -np.inf
            here = np.broadcast_to(np.arange(start, start + held), fresh.shape)
            scores, places = _keep(np.hstack([scores, fresh]), np.hstack([places, here]), k)
        found = np.full((len(queries), k), -1, np.int64)
        if places.shape[1]:
            rows = np.where(np.isinf(scores), -1, self._rows[places])
            found[:, : rows.shape[1]] = rows
        return found

    def vectors(self, rows: Rows) -> Floats:
        """The vectors of rows that are held: float32 [n, dim]."""
        return self.at(self._places(rows))

    def at(self, places: Rows) -> Floats:
        """The vectors by place, that is in the order in which they came: float32 [n, dim]."""
        out = np.empty((len(places), self.dim), np.float32)
        numbers, within = places // BLOCK, places % BLOCK
        for number in np.unique(numbers):
            mine = numbers == number
            out[mine] = self._floats(self._blocks[number][within[mine]])
        return out

    def rows_at(self, places: Rows) -> Rows:
        """The rows at places; -1 for a removed one and for the place -1."""
        usable = places >= 0
        usable[usable] = self._alive[places[usable]]
        return np.where(usable, self._rows[np.maximum(places, 0)], -1)

    def copy(self) -> NumpyIndex:
        """Return an index that can be changed without changing this one."""
        other = NumpyIndex(self.dim, compact=self.compact)
        other._blocks = list(self._blocks)
        if self._used % BLOCK:
            other._blocks[-1] = self._blocks[-1].copy()
        other._rows, other._alive = self._rows.copy(), self._alive.copy()
        other._used = self._used
        return other

    def _floats(self, block: _Block) -> Floats:
        return decode(np.asarray(block, np.int8)) if self.compact else np.asarray(block, np.float32)

    def _places(self, rows: Rows) -> Rows:
        held = self._rows[: self._used]
        if len(held) == 0:
            return np.full(len(rows), -1, np.int64)
        places = np.minimum(np.searchsorted(held, rows), len(held) - 1)
        return np.where(held[places] == rows, places, -1).astype(np.int64)

    def _reserve(self, count: int) -> None:
        if count > len(self._rows):
            size = max(count, len(self._rows) * 5 // 4, 64)
            self._rows, self._alive = np.resize(self._rows, size), np.resize(self._alive, size)

    def _write(self, within: int, values: _Block) -> None:
        """Write into the last block, which grows by doubling."""
        block = self._blocks[-1]
        needed = within + len(values)
        if needed > len(block):
            size = min(BLOCK, max(needed, 2 * len(block), 16))
            grown = np.empty((size, self.dim), block.dtype)
            grown[:within] = block[:within]
            self._blocks[-1] = block = grown
        block[within:needed] = values


def _keep(scores: Floats, places: Rows, k: int) -> tuple[Floats, Rows]:
    """The `k` best of each line, best first; equal ones by place."""
    if scores.shape[1] > k:
        chosen = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        scores = np.take_along_axis(scores, chosen, 1)
        places = np.take_along_axis(places, chosen, 1)
    order = np.lexsort((places, -scores), axis=1)
    return np.take_along_axis(scores, order, 1), np.take_along_axis(places, order, 1)
