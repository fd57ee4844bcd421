"""From which cosine on a pair should be looked at, chosen for the pool at hand.

A fixed cosine rots as a pool grows: among more environments, some text is near by chance. So the
band begins where one in ten environments has its nearest other one, and what that would come to in
larger pools is told beside it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError

LEAST: Final = 10
"""Environments without which there is nothing to choose by."""
SAMPLE: Final = 2_000
"""Environments whose neighbours are looked at; drawn where there are more."""
SIZES: Final = (100, 1_000, 10_000, 100_000)
"""Pools for which the chance is told."""
_PART: Final = 512
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewBand:
    """Where the band begins, and how many honest candidates it would catch."""

    cosine: float
    """Candidates with a text this near or nearer are in the band; rounded to 1e-4."""
    quantile: float
    environments: int
    sampled: int
    nearest: Mapping[str, float]
    """Quantiles of the cosine with the nearest other environment: median, p90, p95, p99."""
    pairs: int
    """Pairs of different environments that were compared."""
    pair_rate: float
    """Share of these pairs in the band."""
    share: float
    """Share of the sampled environments that some other one puts in the band: P(false) now."""
    share_at: Mapping[int, float]
    """The same in a pool of this size, if pairs were independent and it were of the same kind.

    Clusters make it less: pairs of one cluster come together.
    """

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object of every field."""
        return asdict(self) | {
            "nearest": dict(self.nearest),
            "share_at": {str(size): share for size, share in self.share_at.items()},
        }


def choose_review_band(
    vectors: Floats, *, quantile: float = 0.9, rng: np.random.Generator | None = None
) -> ReviewBand:
    """Choose the band for a pool with these vectors, float32 [n, dim], of unit length.

    `rng` draws the sample of a pool of more than 2,000; without one it is always the same.
    `ConfigError` for fewer than 10 environments, or a quantile that is not within 0..1.
    """
    if len(vectors) < LEAST:
        raise ConfigError(
            f"a review band needs at least {LEAST} environments to choose by, got {len(vectors)}"
        )
    if not 0.0 < quantile < 1.0:
        raise ConfigError(f"quantile must be between 0 and 1, got {quantile}")
    rng = np.random.default_rng(0) if rng is None else rng
    size = min(SAMPLE, len(vectors))
    rows = np.sort(rng.choice(len(vectors), size=size, replace=False))
    nearest = np.concatenate([_cosines(vectors, part).max(axis=1) for part in _parts(rows)])
    cosine = round(float(np.quantile(nearest, quantile)), 4)
    in_band = sum(int((_cosines(vectors, part) >= cosine).sum()) for part in _parts(rows))
    pairs = size * (len(vectors) - 1)
    rate = in_band / pairs
    at = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
    return ReviewBand(
        cosine=cosine,
        quantile=quantile,
        environments=len(vectors),
        sampled=size,
        nearest={name: round(float(np.quantile(nearest, q)), 4) for name, q in at.items()},
        pairs=pairs,
        pair_rate=rate,
        share=float((nearest >= cosine).mean()),
        share_at={n: -math.expm1(n * math.log1p(-rate)) if rate < 1 else 1.0 for n in SIZES},
    )


def _parts(rows: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    return [rows[start : start + _PART] for start in range(0, len(rows), _PART)]


def _cosines(vectors: Floats, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Cosines of some rows with every other one, rounded to 1e-4; -2 for a row with itself."""
    found = (vectors[rows] @ vectors.T).astype(np.float64).round(4)
    found[np.arange(len(rows)), rows] = -2.0
    return found
