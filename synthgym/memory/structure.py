"""How much of its code one environment shares with those that are held.

`containment` is the shared weight over the smaller of the two total weights, so code that was added
to a copy does not hide it. A piece weighs more the fewer have it (inverse document frequency), and
nothing when it is common: boilerplate is no sign of a copy.

Of every environment the smallest hashes are kept, 32 bits each, at most 256 (bottom-k: where a
source has more pieces, both are compared over the range that both sketches cover). Document
frequencies are counted in a sketch of fixed size (count-min), and once for a family: twenty
copies of one environment do not make its code boilerplate. So a million rows take at most 1.3 GB,
and about 0.8 GB when sources are like those of RLVE.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError, SnapshotError
from synthgym.memory.minhash import BANDS, LshIndex, signature
from synthgym.memory.subtrees import Hashes

SKETCH: Final = 256
"""Hashes that are kept of one source; RLVE sources have 110 (median), the largest one 715."""
RARE_SHARE: Final = 0.05
"""A piece that a larger share of the families has is common, and weighs nothing."""
RARE_ALWAYS: Final = 3
"""A piece that no more families have is rare in a pool of any size: in a small one, all are."""
PRIOR: Final = 20
"""Families without the piece that are imagined to be there: a small pool weighs all alike."""
LEAST_PIECES: Final = 10
"""Sources with fewer rare pieces are treated as if they had that many: they prove little."""
SAME_FAMILY: Final = 0.7
"""Containment from which a new row is counted as one more of a family that is held."""
VERIFIED: Final = 64
"""Candidates of the index whose containment is computed."""

_COUNTERS: Final = 1 << 20
_FACTOR: Final = np.uint32(0x9E37_79B1)
_SHIFT: Final = np.uint32(12)
_TOP: Final = 0xFFFF_FFFF
_CHUNK_ROWS: Final = 16_384

Sketch = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]


class Overlap(NamedTuple):
    """A held environment that shares code."""

    row: int
    containment: float


class _Chunk(NamedTuple):
    """Sketches of consecutive rows, one after the other; never written to."""

    hashes: Sketch
    offsets: npt.NDArray[np.int64]


class StructureIndex:
    """The pieces of environments, by row. Rows are numbered in the order in which they are added.

    Nothing is drawn: the same calls in the same order give the same answers.
    """

    def __init__(self) -> None:
        self._chunks: list[_Chunk] = []
        self._starts: list[int] = []
        """The first row of each chunk."""
        self._recent: list[Sketch] = []
        """Rows after those of the chunks."""
        self._counters = np.zeros((2, _COUNTERS), np.uint32)
        self._counted: list[bool] = []
        self._families = 0
        self._lsh = LshIndex()

    def __len__(self) -> int:
        return len(self._counted)

    @property
    def families(self) -> int:
        """Rows that shared little with every earlier one."""
        return self._families

    @property
    def nbytes(self) -> int:
        """Bytes held in arrays."""
        held = sum(c.hashes.nbytes + c.offsets.nbytes for c in self._chunks)
        recent = sum(row.nbytes for row in self._recent)
        return held + recent + self._counters.nbytes + self._lsh.nbytes

    def add(self, subtrees: Hashes) -> int:
        """Hold the pieces of one more environment; its row.

        `ConfigError` when they are not sorted and unique, as `subtrees()` returns them.
        """
        sketch = _sketch(subtrees)
        found = self._search(sketch, 1)
        counted = not found or found[0].containment < SAME_FAMILY
        self._append(sketch, counted)
        self._lsh.add(signature(sketch.astype(np.uint64)))
        return len(self) - 1

    def candidates(self, subtrees: Hashes, limit: int) -> list[Overlap]:
        """Return at most `limit` rows that share code, most first; equal ones by row.

        Found by way of the index, so one with a containment below about 0.5 may be missing.
        """
        return self._search(_sketch(subtrees), limit)

    def containment(self, candidate: Hashes, row: int) -> float:
        """Shared weight over the smaller total weight, 0 to 1. `ConfigError` for an unknown row.

        It depends on what else is held, for that decides what is rare.
        """
        if not 0 <= row < len(self):
            raise ConfigError(f"row must be 0..{len(self) - 1}, got {row}")
        return float(self._containments(_sketch(candidate), [row])[0])

    def copy(self) -> StructureIndex:
        """Return an index that can grow without changing this one; they share their chunks."""
        other = StructureIndex()
        other._chunks, other._starts = list(self._chunks), list(self._starts)
        other._recent, other._counted = list(self._recent), list(self._counted)
        other._counters = self._counters.copy()
        other._families = self._families
        other._lsh = self._lsh.copy()
        return other

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything as plain arrays: `hashes`, `offsets`, `counted` and `bands`."""
        sizes = [np.diff(c.offsets) for c in self._chunks]
        sizes.append(np.array([len(row) for row in self._recent], np.int64))
        parts = [c.hashes for c in self._chunks] + self._recent
        return {
            "hashes": np.concatenate(parts) if parts else np.zeros(0, np.uint32),
            "offsets": np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64),
            "counted": np.array(self._counted, bool),
            "bands": self._lsh.keys(),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> StructureIndex:
        """Read what `to_arrays` gave. `hashes` may be mapped from a file, and is not copied then.

        `SnapshotError` for arrays that it cannot have given.
        """
        hashes, offsets, counted, bands = _checked(arrays)
        index = cls()
        index._lsh = LshIndex.from_keys(bands)
        index._counted = [bool(flag) for flag in counted]
        index._families = int(counted.sum())
        if len(counted):
            index._chunks, index._starts = [_Chunk(hashes, offsets)], [0]
        for start in range(0, len(counted), _CHUNK_ROWS):
            end = min(start + _CHUNK_ROWS, len(counted))
            part = hashes[offsets[start] : offsets[end]]
            index._count(part[np.repeat(counted[start:end], np.diff(offsets[start : end + 1]))])
        return index

    def _append(self, sketch: Sketch, counted: bool) -> None:
        self._recent.append(sketch)
        self._counted.append(counted)
        if counted:
            self._families += 1
            self._count(sketch)
        if len(self._recent) >= _CHUNK_ROWS:
            sizes = [len(row) for row in self._recent]
            offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            self._starts.append(len(self) - len(self._recent))
            self._chunks.append(_Chunk(np.concatenate(self._recent), offsets))
            self._recent = []

    def _row(self, row: int) -> Sketch:
        first = len(self) - len(self._recent)
        if row >= first:
            return self._recent[row - first]
        place = bisect.bisect_right(self._starts, row) - 1
        chunk, inside = self._chunks[place], row - self._starts[place]
        return chunk.hashes[chunk.offsets[inside] : chunk.offsets[inside + 1]]

    def _count(self, hashes: Sketch) -> None:
        for counters, places in zip(self._counters, _places(hashes), strict=True):
            np.add.at(counters, places, np.uint32(1))

    def _weights(self, hashes: Sketch) -> Floats:
        """Of each piece: the logarithm of how rare it is, 0 for a common one."""
        one, other = _places(hashes)
        found = np.minimum(self._counters[0, one], self._counters[1, other])
        weights: Floats = np.log((self._families + PRIOR) / (found + 1.0))
        weights[found > max(RARE_ALWAYS, RARE_SHARE * self._families)] = 0.0
        return weights

    def _search(self, sketch: Sketch, limit: int) -> list[Overlap]:
        found = self._lsh.query(signature(sketch.astype(np.uint64)), max(VERIFIED, limit))
        rows = [candidate.row for candidate in found]
        shares = self._containments(sketch, rows)
        overlaps = [Overlap(row, float(share)) for row, share in zip(rows, shares, strict=True)]
        overlaps.sort(key=lambda overlap: (-overlap.containment, overlap.row))
        return overlaps[: max(0, limit)]

    def _containments(self, sketch: Sketch, rows: Sequence[int]) -> Floats:
        """Containment with each row, rounded to 1e-4: sums depend on their order."""
        sketches = [self._row(row) for row in rows]
        lengths = np.array([len(one) for one in sketches], np.int64)
        if len(sketch) == 0 or lengths.sum() == 0:
            return np.zeros(len(rows), np.float64)
        hashes = np.concatenate(sketches)
        owner = np.repeat(np.arange(len(rows)), lengths)
        tops = np.minimum([_top(one) for one in sketches], _top(sketch))
        weights = self._weights(hashes) * (hashes <= tops[owner])
        places = np.minimum(np.searchsorted(sketch, hashes), len(sketch) - 1)
        shared = np.bincount(owner, weights * (sketch[places] == hashes), len(rows))
        theirs = np.bincount(owner, weights, len(rows))
        sums = np.concatenate([[0.0], np.cumsum(self._weights(sketch))])
        ours = sums[np.searchsorted(sketch, tops, side="right")]
        least = LEAST_PIECES * np.log((self._families + PRIOR) / 2.0)
        total = np.maximum(np.minimum(ours, theirs), least)
        containment: Floats = np.round(np.clip(shared / total, 0.0, 1.0), 4)
        return containment


def _sketch(subtrees: Hashes) -> Sketch:
    """The upper halves of the smallest hashes, in order: what is kept of a source."""
    if subtrees.dtype != np.uint64 or subtrees.ndim != 1 or np.any(subtrees[1:] <= subtrees[:-1]):
        raise ConfigError(
            f"expected sorted unique uint64 hashes as of subtrees(), got {subtrees.dtype} "
            f"of shape {subtrees.shape}"
        )
    halves = (subtrees[: SKETCH + 1] >> np.uint64(32)).astype(np.uint32)
    return np.unique(halves)[:SKETCH]


def _top(sketch: Sketch) -> int:
    """The largest hash up to which a sketch is complete."""
    return int(sketch[-1]) if len(sketch) >= SKETCH else _TOP


def _places(hashes: Sketch) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Where a hash is counted in each of the two rows of counters."""
    return hashes >> _SHIFT, (hashes * _FACTOR) >> _SHIFT


def _checked(
    arrays: Mapping[str, npt.NDArray[Any]],
) -> tuple[Sketch, npt.NDArray[np.int64], npt.NDArray[np.bool_], npt.NDArray[np.uint32]]:
    expected = {"hashes": np.uint32, "offsets": np.int64, "counted": np.bool_, "bands": np.uint32}
    for name, kind in expected.items():
        found = arrays.get(name)
        if found is None or found.dtype != kind or found.ndim != (2 if name == "bands" else 1):
            shape = "nothing" if found is None else f"{found.dtype} of shape {found.shape}"
            raise SnapshotError(
                f"a structure index needs {name!r} as {np.dtype(kind)}, got {shape}"
            )
    hashes, offsets, counted, bands = (arrays[name] for name in expected)
    sizes = np.diff(offsets)
    whole = len(offsets) == len(counted) + 1 and bands.shape == (len(counted), BANDS)
    if not whole or offsets[0] != 0 or offsets[-1] != len(hashes):
        raise SnapshotError("the arrays of a structure index do not belong together")
    if len(sizes) and not 0 <= sizes.min() <= sizes.max() <= SKETCH:
        raise SnapshotError(f"a structure index has rows of 0..{SKETCH} hashes, this one others")
    return hashes, offsets, counted, bands
