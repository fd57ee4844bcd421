"""MinHash signatures of sets of hashes, and an index that finds the sets which share much with one.

Equal places of two signatures are as many, on average, as the sets overlap (Jaccard). A signature
is cut into bands of four; sets with an equal band are candidates (Broder 1997; Leskovec, Rajaraman
and Ullman, "Mining of Massive Datasets", 3.4). With 32 bands, sets that overlap by a half are found
in 87 % of the cases, by 0.6 in 99 %, and by 0.2 in 5 %.

The index keeps 8 bytes for each row and band, and no signatures: 256 bytes a row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError
from synthgym.memory.mapping import mapped

MINHASH_SPEC: Final = "minhash/1"
LENGTH: Final = 128
"""Places of a signature."""
BANDS: Final = 32
_WIDTH: Final = LENGTH // BANDS
MAX_BUCKET: Final = 1024
"""Rows that one band can name, the last ones added: a pool of one family must not slow a query down."""
_RECENT: Final = 2048
"""Rows that are held unsorted before they are merged into the sorted ones, at least."""
_GROWTH: Final = 64
"""In a large index they are as many as a part of the sorted ones: a merge writes all of these."""
MAPPED: Final = 65_536
"""Rows from which on the sorted ones lie in a temporary file, and are mapped."""
_CHUNK: Final = 8192
"""Hashes whose signatures are made at once: 8 MB."""
_ROW: Final = np.uint64(0xFFFF_FFFF)
_EMPTY: Final = np.uint32(0xFFFF_FFFF)

Hashes = npt.NDArray[np.uint64]
Signature = npt.NDArray[np.uint32]
Keys = npt.NDArray[np.uint32]


class Candidate(NamedTuple):
    """A row that may share much with what was asked for."""

    row: int
    bands: int
    """How many of its bands are equal."""


def _constants(purpose: str, count: int) -> Hashes:
    """Fixed numbers of 64 bits, from a digest: a random generator of some library may change."""
    digests = (
        hashlib.blake2b(f"{MINHASH_SPEC} {purpose} {i}".encode(), digest_size=8).digest()
        for i in range(count)
    )
    return np.array([int.from_bytes(digest, "big") for digest in digests], np.uint64)


_FACTORS: Final = _constants("factor", LENGTH) | np.uint64(1)
_TERMS: Final = _constants("term", LENGTH)
_BAND_FACTORS: Final = (_constants("band", LENGTH) | np.uint64(1)).reshape(BANDS, _WIDTH)


def signatures(hashes: Hashes, offsets: npt.NDArray[np.int64]) -> Signature:
    """Signatures of many sets: row i is of `hashes[offsets[i]:offsets[i + 1]]`; uint32 [n, 128].

    A set without members has a signature of its own.
    """
    rows = np.full((len(offsets) - 1, LENGTH), _EMPTY, np.uint32)
    start = 0
    while start < len(rows):
        end = int(np.searchsorted(offsets, offsets[start] + _CHUNK, side="right")) - 1
        end = max(end, start + 1)
        _fill(rows[start:end], hashes[offsets[start] : offsets[end]], offsets[start : end + 1])
        start = end
    return rows


def signature(hashes: Hashes) -> Signature:
    """The signature of one set: uint32 [128]."""
    row: Signature = signatures(hashes, np.array([0, len(hashes)], np.int64))[0]
    return row


def _fill(rows: Signature, hashes: Hashes, offsets: npt.NDArray[np.int64]) -> None:
    """Multiply-shift: place i of a set is the least of `(a_i * x + b_i) >> 32` over its members."""
    filled = np.flatnonzero(np.diff(offsets))
    if len(filled) == 0:
        return
    mixed = hashes[:, None] * _FACTORS
    mixed += _TERMS
    mixed >>= np.uint64(32)
    starts = (offsets[:-1] - offsets[0])[filled]
    rows[filled] = np.minimum.reduceat(mixed, starts, axis=0).astype(np.uint32)


def band_keys(rows: Signature) -> Keys:
    """The bands of signatures, each as one number of 32 bits: uint32 [n, 32]."""
    parts = rows.reshape(len(rows), BANDS, _WIDTH).astype(np.uint64)
    mixed: Hashes = (parts * _BAND_FACTORS).sum(axis=2, dtype=np.uint64)
    return (mixed >> np.uint64(32)).astype(np.uint32)


class LshIndex:
    """Rows by the bands of their signatures. Rows are numbered in the order in which they come.

    A query takes about 0.2 ms whatever the number of rows; 256 bytes a row,
    which lie in a temporary file when there are many. There is no removal:
    make the index anew with `from_signatures`. The same rows give the same answers, one by one or
    in bulk.
    """

    def __init__(self) -> None:
        self._bands: list[Hashes] = [np.zeros(0, np.uint64) for _ in range(BANDS)]
        """For each band `key << 32 | row`, sorted."""
        self._recent = np.zeros((64, BANDS), np.uint32)
        """Keys of the rows that are not in `_bands` yet."""
        self._sorted = 0
        self._count = 0

    @classmethod
    def from_keys(cls, keys: Keys) -> LshIndex:
        """Make an index of what `keys` gave: uint32 [n, 32]. `ConfigError` for another shape."""
        if keys.ndim != 2 or keys.shape[1] != BANDS or keys.dtype != np.uint32:
            raise ConfigError(
                f"expected uint32 keys of {BANDS} bands, got {keys.dtype} {keys.shape}"
            )
        index = cls()
        index._extend_keys(keys)
        return index

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(band.nbytes for band in self._bands) + self._recent.nbytes

    def add(self, row: Signature) -> int:
        """Append one signature; its row."""
        self.extend(row[None, :])
        return self._count - 1

    def extend(self, rows: Signature) -> None:
        """Append many signatures, uint32 [n, 128]. `ConfigError` for another shape."""
        if rows.ndim != 2 or rows.shape[1] != LENGTH or rows.dtype != np.uint32:
            raise ConfigError(
                f"expected uint32 signatures of {LENGTH} places, got {rows.dtype} {rows.shape}"
            )
        for start in range(0, len(rows), _CHUNK):
            self._extend_keys(band_keys(rows[start : start + _CHUNK]))

    def query(self, row: Signature, limit: int) -> list[Candidate]:
        """Return at most `limit` rows with an equal band: most equal bands first, then by row."""
        keys = band_keys(row[None, :])[0]
        found = [self._bucket(band, int(key)) for band, key in enumerate(keys)]
        waiting = self._recent[: self._count - self._sorted]
        hits = (waiting == keys).sum(axis=1)
        late = np.flatnonzero(hits)
        rows, counts = np.unique(np.concatenate(found), return_counts=True)
        rows = np.concatenate([rows.astype(np.int64), late + self._sorted])
        counts = np.concatenate([counts, hits[late]])
        order = np.lexsort((rows, -counts))[: max(0, limit)]
        return [Candidate(int(rows[i]), int(counts[i])) for i in order]

    def keys(self) -> Keys:
        """The bands of every row, uint32 [n, 32]: what an index can be made of again."""
        found = np.zeros((self._count, BANDS), np.uint32)
        for band, entries in enumerate(self._bands):
            found[entries & _ROW, band] = entries >> np.uint64(32)
        found[self._sorted :] = self._recent[: self._count - self._sorted]
        return found

    def copy(self) -> LshIndex:
        """Return an index that can grow without changing this one."""
        other = LshIndex()
        other._bands = list(self._bands)  # the arrays are replaced, never written to
        other._recent = self._recent.copy()
        other._sorted, other._count = self._sorted, self._count
        return other

    def _bucket(self, band: int, key: int) -> Hashes:
        entries = self._bands[band]
        low, high = np.searchsorted(entries, _ends(key))
        return entries[max(low, high - MAX_BUCKET) : high] & _ROW

    def _extend_keys(self, keys: Keys) -> None:
        waiting = self._count - self._sorted
        needed = waiting + len(keys)
        if needed > len(self._recent):
            grown = np.zeros((max(needed, 2 * len(self._recent)), BANDS), np.uint32)
            grown[:waiting] = self._recent[:waiting]
            self._recent = grown
        self._recent[waiting:needed] = keys
        self._count += len(keys)
        if needed >= max(_RECENT, self._sorted // _GROWTH):
            self._merge()

    def _merge(self) -> None:
        numbers = np.arange(self._sorted, self._count, dtype=np.uint64)
        keys = self._recent[: len(numbers)]
        fresh = (
            np.sort(keys[:, b].astype(np.uint64) << np.uint64(32) | numbers) for b in range(BANDS)
        )
        bands = (_merged(old, new) for old, new in zip(self._bands, fresh, strict=True))
        self._bands = mapped(bands) if self._count >= MAPPED else list(bands)
        self._sorted = self._count
        self._recent = self._recent[:_RECENT].copy()  # and not what a large merge needed


def _ends(key: int) -> Hashes:
    """Where the entries of a key begin and where they have ended."""
    return np.array([key << 32, key << 32 | 0xFFFF_FFFF], np.uint64)


def _merged(old: Hashes, fresh: Hashes) -> Hashes:
    """Two sorted arrays without a number in common, as one."""
    places: Sequence[int] | npt.NDArray[np.int64] = np.searchsorted(old, fresh)
    return np.insert(old, places, fresh)
