"""The vectors of a memory: which index holds them at which size, and how the nearest are put in order."""

from __future__ import annotations

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError
from synthgym.memory.faiss_index import (
    TRAINED_ON,
    FaissIndex,
    ScanIndex,
    faiss_available,
    learn_codebook,
)
from synthgym.memory.numpy_index import NumpyIndex
from synthgym.memory.quantise import Codes, decode, encode

FEW_ROWS: Final = 4_096
"""Up to here numpy compares them: FAISS would gain nothing, and is not even imported."""
FLAT_ROWS: Final = 50_000
"""Up to here FAISS compares them all, as they are (7 ms a query on the machine of docs/novelty.md).

Above, they are held in bytes, and a scan of codes, of one bit a component, chooses those that are
compared (5 ms at 100,000, 15 ms at a million).
"""
_SPARE: Final = 16
"""Rows asked for beyond `k`, to see that no equal one was left out."""
_PART: Final = 16_384
"""Rows that are moved or compared at a time."""
_CLOSE: Final = 2e-4
"""Candidates this much below the last answer cannot come before it after rounding."""

logger = logging.getLogger(__name__)
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Hit:
    """One row that a search found."""

    row: int
    similarity: float
    """Cosine, rounded to 1e-4: the last digits depend on the batch and on the processor."""


class Engine(Protocol):
    """What holds vectors by row, and finds the rows of the largest inner products."""

    dim: int
    compact: bool
    """Whether vectors are held in bytes."""

    def __len__(self) -> int:
        """Return the number of rows held."""
        ...

    @property
    def rows(self) -> Rows:
        """Rows held, in order."""
        ...

    def add(self, vectors: Floats, rows: Rows) -> None:
        """Append vectors under rows larger than those before."""
        ...

    def remove(self, rows: Rows) -> None:
        """Forget rows."""
        ...

    def best(self, queries: Floats, k: int) -> Rows:
        """Rows of the `k` largest inner products of each query, best first; -1 where there is none."""
        ...

    def vectors(self, rows: Rows) -> Floats:
        """The vectors of rows that are held."""
        ...

    def copy(self) -> Self:
        """Return one that can be changed without changing this one."""
        ...


def choose_index(count: int, dim: int) -> str:
    """The kind of index for so many vectors: `few`, `flat`, `bytes` or `scan`.

    The one place that decides.

    Without FAISS there is no scan: numpy compares every vector, at any size.
    """
    if count <= FEW_ROWS:
        return "few"
    if count <= FLAT_ROWS:
        return "flat"
    return "scan" if ScanIndex.fits(dim) and faiss_available() else "bytes"


_ORDER: Final = ("few", "flat", "bytes", "scan")
"""An index only moves forward: vectors in bytes do not become floats again."""


class VectorIndex:
    """Unit vectors by row number, in the order in which they were added. Rows keep their numbers.

    It moves to another kind as it grows. Similarities are computed again from the vectors that are
    held, in double precision, so that FAISS and numpy give the same answers: nearest first, equal
    ones (to 1e-4) by row.
    """

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.kind = "few"
        self._engine: Engine | None = None
        self._next = 0

    @classmethod
    def restore(
        cls,
        values: Floats | Codes,
        codebook: Floats | None = None,
    ) -> VectorIndex:
        """An index over float32 [n, dim], or int8 codes of them, numbered from 0.

        `ConfigError` when a row is not a unit vector, or codes are not those of one.
        """
        index = cls(values.shape[1])
        compact = values.dtype == np.int8
        if not compact:
            index.kind = "few" if len(values) <= FEW_ROWS else "flat"
        else:
            index.kind = "bytes" if codebook is None or not faiss_available() else "scan"
        index._engine = _engine(index.kind, index.dim, codebook)
        for start in range(0, len(values), _PART):
            part = values[start : start + _PART]
            vectors = decode(np.asarray(part, np.int8)) if compact else np.asarray(part, np.float32)
            check_vectors(vectors, index.dim)
            if compact and not np.array_equal(encode(vectors), part):
                raise ConfigError("expected codes of unit vectors, got others")
            index._append(vectors)
        index._grow()
        return index

    def __len__(self) -> int:
        return 0 if self._engine is None else len(self._engine)

    @property
    def rows(self) -> Rows:
        """Rows held, in order: int64 [n]."""
        return np.zeros(0, np.int64) if self._engine is None else self._engine.rows

    @property
    def compact(self) -> bool:
        """Whether vectors are held in bytes."""
        return self._engine is not None and self._engine.compact

    @property
    def codebook(self) -> Floats | None:
        """What the codes of a scan stand for; None where there is no scan."""
        return self._engine.codebook if isinstance(self._engine, ScanIndex) else None

    def add(self, vector: Floats) -> int:
        """Append one unit vector; its row. `ConfigError` when it is not one."""
        return self.add_many(vector[None, :])[0]

    def add_many(self, vectors: Floats) -> range:
        """Append unit vectors, float32 [n, dim]; their rows. `ConfigError` when one is not one."""
        check_vectors(vectors, self.dim)
        first = self._next
        for start in range(0, len(vectors), _PART):
            self._append(vectors[start : start + _PART])
            self._grow()
        return range(first, self._next)

    def remove(self, rows: Sequence[int]) -> None:
        """Forget rows; those that are not held are passed over. No row is renumbered."""
        if self._engine is not None:
            self._engine.remove(np.asarray(rows, np.int64))

    def search(self, vector: Floats, k: int) -> tuple[Hit, ...]:
        """Find the `k` rows nearest by cosine: nearest first, equal ones by row."""
        return self.search_many(vector[None, :], k)[0]

    def search_many(self, vectors: Floats, k: int) -> tuple[tuple[Hit, ...], ...]:
        """Find the `k` nearest rows of each of float32 [n, dim]."""
        count = min(k, len(self))
        if count < 1 or self._engine is None:
            return ((),) * len(vectors)
        found = self._engine.best(vectors, min(count + _SPARE, len(self)))
        return tuple(
            self._ordered(query, rows[rows >= 0], count)
            for query, rows in zip(vectors, found, strict=True)
        )

    def cosine(self, vector: Floats, row: int) -> float:
        """Cosine of a unit vector with that of a row that is held, rounded to 1e-4."""
        return float(_cosines(self.vectors([row]), vector)[0])

    def vectors(self, rows: Sequence[int] | Rows | None = None) -> Floats:
        """The vectors of these rows, or of all in order, as they are held: float32 [n, dim]."""
        if self._engine is None:
            return np.zeros((0, self.dim), np.float32)
        wanted = self._engine.rows if rows is None else np.asarray(rows, np.int64)
        return self._engine.vectors(wanted)

    def copy(self) -> VectorIndex:
        """Return an index that can be changed without changing this one."""
        other = VectorIndex(self.dim)
        other.kind, other._next = self.kind, self._next
        other._engine = None if self._engine is None else self._engine.copy()
        return other

    def _append(self, vectors: Floats) -> None:
        if self._engine is None:
            self._engine = _engine(self.kind, self.dim, None)
        rows = np.arange(self._next, self._next + len(vectors), dtype=np.int64)
        self._engine.add(vectors, rows)
        self._next += len(vectors)

    def _grow(self) -> None:
        """Move to the kind for this size, if it is another one. No row is lost."""
        old, wanted = self._engine, choose_index(len(self), self.dim)
        if old is None or _ORDER.index(wanted) <= _ORDER.index(self.kind):
            return
        rows = old.rows
        codebook = learn_codebook(old.vectors(rows[:TRAINED_ON])) if wanted == "scan" else None
        new = _engine(wanted, self.dim, codebook)
        for start in range(0, len(rows), _PART):
            part = rows[start : start + _PART]
            new.add(old.vectors(part), part)
        self.kind, self._engine = wanted, new

    def _ordered(self, query: Floats, rows: Rows, k: int) -> tuple[Hit, ...]:
        """The `k` nearest of candidates; of more candidates where an equal one may be missing."""
        assert self._engine is not None
        while True:
            scores = _cosines(self._engine.vectors(rows), query)
            order = np.lexsort((rows, -scores))
            last = scores[order[min(k, len(rows)) - 1]]
            if len(rows) >= len(self) or scores.min() < last - _CLOSE:
                break
            found = self._engine.best(query[None, :], min(2 * len(rows), len(self)))[0]
            if (found >= 0).sum() <= len(rows):
                break
            rows = found[found >= 0]
        return tuple(Hit(int(rows[i]), float(scores[i])) for i in order[:k])


def _cosines(vectors: Floats, query: Floats) -> npt.NDArray[np.float64]:
    """Rounded cosines with a unit vector."""
    exact = vectors.astype(np.float64)
    norms = np.sqrt((exact * exact).sum(axis=1))
    cosines: npt.NDArray[np.float64] = exact @ query.astype(np.float64) / norms
    return np.clip(cosines, -1.0, 1.0).round(4)


def check_vectors(vectors: Floats, dim: int) -> None:
    """`ConfigError` unless these are unit vectors of this length, float [n, dim]."""
    if vectors.ndim != 2 or vectors.shape[1] != dim:
        raise ConfigError(f"expected vectors of length {dim}, got shape {vectors.shape}")
    for start in range(0, len(vectors), _PART):
        part = vectors[start : start + _PART].astype(np.float64)
        norms = np.sqrt((part**2).sum(axis=1))
        if not bool(np.all(np.abs(norms - 1.0) < 1e-3)):  # also false for NaN
            raise ConfigError("expected unit vectors, got one of another length")


def _engine(kind: str, dim: int, codebook: Floats | None) -> Engine:
    if kind == "few":
        return NumpyIndex(dim)
    if not faiss_available():
        _warn_without_faiss()
    elif kind == "flat":
        return FaissIndex(dim)
    if kind == "scan" and codebook is not None:
        return ScanIndex(dim, codebook)
    return NumpyIndex(dim, compact=kind != "flat")


@functools.cache
def _warn_without_faiss() -> None:
    """Say once per process that searching is slower."""
    logger.warning(
        "novelty memory: faiss is not installed, so vectors are compared by numpy: the same "
        "answers, slower above 100,000 environments; pip install faiss-cpu brings it"
    )
