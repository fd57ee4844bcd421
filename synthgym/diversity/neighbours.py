"""How far each vector is from those nearest to it, exactly: every pair is compared, in blocks.

A Vendi score hardly sees a copy among many texts; the distance to the nearest neighbour does.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError

K: Final = 5
"""Neighbours that the mean distance looks at."""
_BLOCK: Final = 512
"""Rows that are compared with all others at once: 80 MiB at 20,000 rows."""
_DIGITS: Final = 6
"""Cosines are rounded: their last digits depend on the machine."""
Vectors = npt.NDArray[np.floating[Any]]
Labels = npt.NDArray[np.int64]


class Pair(NamedTuple):
    """Two rows and the cosine of their vectors."""

    first: int
    second: int
    similarity: float


def neighbour_distances(vectors: Vectors, k: int = K) -> npt.NDArray[np.float64]:
    """1 - cosine to the k nearest other rows of unit vectors [n, dim]: [n, k], nearest first.

    The mean over all of them is the novelty of Lehman and Stanley, Abandoning Objectives,
    Evolutionary Computation 2011, averaged over the pool. `ConfigError` unless 1 <= k < n.
    """
    if not 1 <= k < len(vectors):
        raise ConfigError(f"k must be at least 1 and below the {len(vectors)} rows, got {k}")
    rows = np.asarray(vectors)
    out = np.empty((len(rows), k))
    for start in range(0, len(rows), _BLOCK):
        cosines = rows[start : start + _BLOCK] @ rows.T
        own = np.arange(len(cosines))
        cosines[own, own + start] = -np.inf
        nearest = -np.partition(-cosines, k - 1, axis=1)[:, :k]
        out[start : start + _BLOCK] = np.sort(np.clip(1.0 - nearest, 0.0, 2.0), axis=1)
    return out


def mean_neighbour_distance(vectors: Vectors, k: int = K) -> float:
    """Mean of 1 - cosine over all rows and their k nearest others; k = 1 is NN1. 0 to 2."""
    return float(neighbour_distances(vectors, k).mean())


def nearest_of_other_groups(vectors: Vectors, labels: Labels) -> npt.NDArray[np.float64]:
    """Largest cosine of each row with a row of another label, -inf where there is none: [n]."""
    rows = np.asarray(vectors)
    out = np.empty(len(rows))
    for start in range(0, len(rows), _BLOCK):
        cosines = rows[start : start + _BLOCK] @ rows.T
        cosines[labels[start : start + _BLOCK, None] == labels[None, :]] = -np.inf
        out[start : start + _BLOCK] = cosines.max(axis=1)
    return out


def nearest_pairs(vectors: Vectors, count: int) -> tuple[Pair, ...]:
    """The `count` pairs of rows with the largest cosines, nearest first; equal ones by row."""
    rows = np.asarray(vectors)
    found: list[Pair] = []
    for start in range(0, len(rows), _BLOCK):
        cosines = np.round(rows[start : start + _BLOCK] @ rows[start:].T, _DIGITS)
        cosines[np.tril_indices(len(cosines), m=cosines.shape[1])] = -np.inf
        flat = cosines.ravel()
        kept = min(count, int(np.isfinite(flat).sum()))
        if kept < 1:
            continue
        floor = np.partition(flat, -kept)[-kept]
        above = np.flatnonzero(flat > floor)  # fewer than `count`; ties are taken by row
        ties = np.flatnonzero(flat == floor)[: kept - len(above)]
        for place in (*above.tolist(), *ties.tolist()):
            first, second = divmod(int(place), cosines.shape[1])
            found.append(Pair(start + first, start + second, float(flat[place])))
        found = sorted(found, key=lambda pair: (-pair.similarity, pair.first, pair.second))[:count]
    return tuple(found)
