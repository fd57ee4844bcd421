"""Figures of pools of different size, made comparable: random subsets of equal size, and intervals.

Nearly every figure of diversity grows or falls with the number of environments, so it is computed
on subsets of one size m. When the pool has more than m rows, a figure is the mean over 20 subsets
drawn without replacement; when it has exactly m, it is that of the pool itself.

The interval is about what the pool was drawn from: how far the figure would move with another pool
of this size from the same source. It is the delete-d jackknife of Shao and Wu (A General Theory for
Jackknife Variance Estimation, Annals of Statistics 1989): with h rows kept of n, the variance is
h/(n-h) times that of the figure over subsets of h. To it comes the error of a mean of 20 draws.
An effective number grows with n, and its spread with it, so there the variance is of its ratio to
the mean over the subsets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError

RESAMPLES: Final = 20
_T_975: Final = 2.093
"""97.5 % quantile of Student's t with 19 degrees of freedom."""
_MIN_HALF: Final = 15
"""Subsets of fewer rows say too little: in simulations of pools of 20 the intervals held what they
should in 74 to 89 % of the cases, for 60 and more in 88 to 100 %."""
Rows = npt.NDArray[np.int64]
Values = Mapping[str, float | None]
"""Figures by name; None where a subset is too small for one."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure at the common size, with its 95 % interval."""

    value: float
    low: float | None = None
    """None when the pool is too small for an interval."""
    high: float | None = None


def size_matched(
    n: int,
    size: int,
    measure: Callable[[Rows], Values],
    rng: np.random.Generator,
    *,
    effective: Collection[str] = (),
) -> dict[str, Estimate | None]:
    """Every figure of `measure` for subsets of min(n, `size`) of n rows.

    `measure` gets sorted row numbers; `effective` names those figures that are effective numbers, which
    are 1 or more. None for a figure that it could not give on a subset of that
    size. The same generator state gives the same estimates. `ConfigError` when n or `size` is below
    1.
    """
    if n < 1 or size < 1:
        raise ConfigError(f"expected at least one row and a size of at least 1, got {n} and {size}")
    m = min(n, size)
    half = m if 2 * m <= n else n // 2
    matched = [measure(np.arange(n))] if m == n else _draws(n, m, measure, rng)
    if half < _MIN_HALF:
        spread: list[Values] = []
    else:
        spread = matched if half == m else _draws(n, half, measure, rng)
    factor = half / max(n - half, 1)
    return {
        name: _estimate(
            [values[name] for values in matched],
            [values[name] for values in spread],
            factor,
            effective=name in effective,
        )
        for name in matched[0]
    }


def _draws(
    n: int, size: int, measure: Callable[[Rows], Values], rng: np.random.Generator
) -> list[Values]:
    chosen = [np.sort(rng.choice(n, size, replace=False)) for _ in range(RESAMPLES)]
    return [measure(rows) for rows in chosen]


def _estimate(
    matched: Sequence[float | None],
    spread: Sequence[float | None],
    factor: float,
    *,
    effective: bool,
) -> Estimate | None:
    """`factor` is h/(n-h) for the subsets of h rows that gave `spread`."""
    values = [value for value in matched if value is not None]
    if len(values) < len(matched):
        return None
    mean = math.fsum(values) / len(values)
    moved = [value for value in spread if value is not None]
    if not moved or len(moved) < len(spread):
        return Estimate(mean)
    scale = mean * len(moved) / math.fsum(moved) if effective else 1.0
    variance = factor * _variance(moved) * scale**2
    if len(values) > 1:
        variance += _variance(values) / len(values)
    error = _T_975 * math.sqrt(variance)
    return Estimate(mean, mean - error, mean + error)


def _variance(values: Sequence[float]) -> float:
    return float(np.var(np.array(values), ddof=1))
