"""Vendi scores: how many wholly different texts a pool is worth, to an embedder.

With K the kernel of cosines between n unit vectors, the eigenvalues of K/n are not negative and sum
to 1. Their Hill number of order q is the Vendi score of that order: 1 for n copies of one vector, n
for n orthogonal ones. Larger orders give less weight to what is rare. The eigenvalues that are not
0 are those of the covariance XᵀX/n too, which has the size of a vector instead of that of the pool
and is a sum over rows: a million rows take the memory of one chunk.

Friedman and Dieng, The Vendi Score, TMLR 2023 (arXiv 2210.02410); orders other than 1: Pasarkar and
Dieng, Cousins of the Vendi Score, 2023 (arXiv 2310.12952). Order 2 is the score RKE of Jalali et
al., An Information-Theoretic Evaluation of Generative Models, NeurIPS 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError

ORDERS: Final = (1.0, 2.0, math.inf)
"""The orders that a report gives."""
CHUNK_ROWS: Final = 8192
"""Rows that are multiplied at once: 32 MiB of float64 at 512 dimensions."""
_NOTHING: Final = 1e-12
"""Eigenvalues up to this are rounding errors."""
_UNIT_TOLERANCE: Final = 1e-3
Vectors = npt.NDArray[np.floating[Any]]
Spectrum = npt.NDArray[np.float64]


def vendi_score(vectors: Vectors, order: float = 1.0) -> float:
    """The Vendi score of unit vectors [n, dim]: exp(-Σ λ ln λ), or (Σ λ^q)^(1/(1-q)), or 1/max λ.

    λ are the eigenvalues of the cosine kernel divided by n; the three forms are for order 1, any
    other and infinity. Between 1 and n. `ConfigError` for no rows, for rows that are not unit
    vectors, and for an order below 0.
    """
    return hill_number(spectrum(vectors), order)


def hill_number(shares: npt.ArrayLike, order: float) -> float:
    """Effective number of kinds with these shares: Hill, Diversity and Evenness, Ecology 1973.

    (Σ p^q)^(1/(1-q)), in the limit exp(-Σ p ln p) for order 1 and 1/max p for infinity. Shares that
    are 0 do not count, and the others are scaled so that they sum to 1. `ConfigError` when there
    are none, one is negative or not finite, or the order is below 0.
    """
    p = np.asarray(shares, np.float64)
    if math.isnan(order) or order < 0.0:
        raise ConfigError(f"order must be 0 or more, got {order}")
    if not bool(np.all(np.isfinite(p))) or bool(np.any(p < 0.0)) or not bool(np.any(p > 0.0)):
        raise ConfigError("expected shares: numbers of 0 or more, one of them above 0")
    p = p[p > 0.0] / p.sum()
    if order == 1.0:
        return math.exp(-float((p * np.log(p)).sum()))
    if math.isinf(order):
        return 1.0 / float(p.max())
    return math.pow(float((p**order).sum()), 1.0 / (1.0 - order))


def spectrum(vectors: Vectors) -> Spectrum:
    """Eigenvalues of the cosine kernel of unit vectors [n, dim], divided by n; largest first.

    By the smaller of kernel and covariance. They sum to 1. `ConfigError` as in `vendi_score`.
    """
    if vectors.ndim != 2:
        raise ConfigError(f"expected vectors as rows [n, dim], got shape {vectors.shape}")
    if 0 < len(vectors) <= vectors.shape[1]:
        rows = _checked(vectors)
        return _eigenvalues(rows @ rows.T / len(rows))
    return spectrum_of_chunks(chunks(vectors))


def spectrum_of_chunks(parts: Iterable[Vectors]) -> Spectrum:
    """`spectrum` of rows that come in parts [m, dim], one after the other, by their covariance.

    One part and a matrix [dim, dim] are in memory at a time.
    """
    total: npt.NDArray[np.float64] | None = None
    count = 0
    for part in parts:
        rows = _checked(part)
        if total is None:
            total = np.zeros((rows.shape[1], rows.shape[1]))
        if rows.shape[1] != len(total):
            raise ConfigError(f"expected rows of length {len(total)}, got {rows.shape[1]}")
        total += rows.T @ rows
        count += len(rows)
    if total is None or count == 0:
        raise ConfigError("a Vendi score needs at least one vector, got none")
    return _eigenvalues(total / count)


def chunks(vectors: Vectors, size: int = CHUNK_ROWS) -> Iterator[Vectors]:
    """The rows in parts of `size`, views of them and no copies."""
    for start in range(0, len(vectors), size):
        yield vectors[start : start + size]


def _checked(part: Vectors) -> npt.NDArray[np.float64]:
    rows = np.asarray(part, np.float64)
    if rows.ndim != 2:
        raise ConfigError(f"expected vectors as rows [n, dim], got shape {rows.shape}")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not bool(np.all(np.abs(lengths - 1.0) < _UNIT_TOLERANCE)):  # also false for NaN
        raise ConfigError("expected unit vectors, got one of another length")
    return rows


def _eigenvalues(matrix: npt.NDArray[np.float64]) -> Spectrum:
    values = np.asarray(np.linalg.eigvalsh(matrix)[::-1], np.float64)
    values = values[values > _NOTHING]
    return np.asarray(values / values.sum(), np.float64)
