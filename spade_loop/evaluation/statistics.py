"""Intervals and tests over items: pure functions of what each item came to.

Items are the independent draws; several samples of one item are not, so every interval and test here works on one
number an item (Miller 2024, "Adding Error Bars to Evals", arXiv 2411.00640: clustered errors, paired differences).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CONFIDENCE: Final = 0.95
RESAMPLES: Final = 10_000
"""Draws of a bootstrap, and sign patterns of a permutation test that is not exact."""
EXACT_ITEMS: Final = 16
"""Items that differ up to which all sign patterns are gone through."""
_AT_ONCE: Final = 4_000_000
"""Numbers of a table that is drawn at once."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over items and its interval."""

    value: float
    low: float
    high: float
    items: int


def mean_with_interval(
    values: Sequence[float], rng: np.random.Generator, confidence: float = CONFIDENCE
) -> Estimate | None:
    """Mean of values in [0, 1], one an item, with the percentile interval of the bootstrap; None without items.

    Items are drawn with replacement (Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13). Where
    all values are 0, or all are 1, every resample is alike: the interval is then the exact one of Clopper and Pearson
    (1934), (alpha / 2)^(1 / n) from the end of the scale.
    """
    if not values:
        return None
    value_I = np.asarray(values, dtype=np.float64)
    mean = float(value_I.mean())
    low, high = _percentiles(value_I, rng, confidence)
    if mean in (0.0, 1.0):
        reach = _unseen(len(value_I), confidence)
        low, high = max(0.0, mean - reach), min(1.0, mean + reach)
    return Estimate(mean, low, high, len(value_I))


def difference_with_interval(
    differences: Sequence[float], rng: np.random.Generator, confidence: float = CONFIDENCE
) -> Estimate | None:
    """Mean of differences in [-1, 1], one a pair of items, with the interval of the paired bootstrap; None without any.

    Where no pair differs, the interval says how often pairs might differ all the same: as far to both sides as the
    exact bound of Clopper and Pearson (1934) for none in n.
    """
    if not differences:
        return None
    difference_I = np.asarray(differences, dtype=np.float64)
    low, high = _percentiles(difference_I, rng, confidence)
    if not difference_I.any():
        high = _unseen(len(difference_I), confidence)
        low = -high
    return Estimate(float(difference_I.mean()), low, high, len(difference_I))


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Chance that at least one of k samples is correct, of which `correct` in `samples` were: without bias.

    1 - C(n - c, k) / C(n, k), from Chen et al. 2021 (arXiv 2107.03374), equation 1. `ValueError` unless
    0 <= correct <= samples and 1 <= k <= samples.
    """
    if not 0 <= correct <= samples or not 1 <= k <= samples:
        raise ValueError(
            f"expected 0 <= correct <= samples and 1 <= k <= samples, got {correct}, {samples}, {k}"
        )
    return 1.0 - comb(samples - correct, k) / comb(samples, k)


def mcnemar(first_only: int, second_only: int) -> float:
    """P-value, two-sided and exact, that two models are right on equally many items.

    The arguments count the items on which only the one, or only the other, is right. Under the hypothesis the first
    is binomial with 1/2 (McNemar 1947; exact form as in Agresti 2013, "Categorical Data Analysis", section 11.1).
    """
    if first_only < 0 or second_only < 0:
        raise ValueError(f"counts must be at least 0, got {first_only} and {second_only}")
    total, least = first_only + second_only, min(first_only, second_only)
    tail = sum(comb(total, k) for k in range(least + 1))
    # Whole numbers all the way: 2^total is no float for large totals.
    return 1.0 if 2 * tail >= 2**total else (2 * tail) / 2**total


def sign_flip(differences: Sequence[float], rng: np.random.Generator) -> float:
    """P-value, two-sided, that differences of paired items are symmetric about 0 (Fisher 1935).

    The sign of each difference is flipped at random. With at most `EXACT_ITEMS` that are not 0 all patterns are gone
    through; with more, `RESAMPLES` are drawn and p = (b + 1) / (m + 1), which is never 0 (Phipson and Smyth 2010).
    """
    difference_I = np.asarray([d for d in differences if d != 0.0], dtype=np.float64)
    if not len(difference_I):
        return 1.0
    seen = abs(float(difference_I.sum()))
    # What equals the sum that was seen counts, whatever rounding does to it.
    bound = seen - 1e-9 * max(1.0, float(np.abs(difference_I).sum()))
    if len(difference_I) <= EXACT_ITEMS:
        bits = np.arange(2 ** len(difference_I))[:, None] >> np.arange(len(difference_I)) & 1
        sums = np.abs((1.0 - 2.0 * bits) @ difference_I)
        return float(np.mean(sums >= bound))
    beyond = 0
    for rows in _batches(len(difference_I)):
        signs = 1.0 - 2.0 * rng.integers(0, 2, size=(rows, len(difference_I)), dtype=np.int8)
        beyond += int(np.sum(np.abs(signs @ difference_I) >= bound))
    return (beyond + 1) / (RESAMPLES + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of a family of tests, in the order given (Holm 1979): the chance of any false claim is bounded.

    The i-th smallest of m is multiplied by m - i + 1, and none is below one that was smaller.
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def _percentiles(
    value_I: Floats, rng: np.random.Generator, confidence: float
) -> tuple[float, float]:
    """Bounds of the middle `confidence` of the means of resampled items."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence!r}")
    items = len(value_I)
    means = [
        value_I[rng.integers(0, items, size=(rows, items))].mean(axis=1) for rows in _batches(items)
    ]
    tail = (1.0 - confidence) / 2.0
    low, high = np.quantile(np.concatenate(means), [tail, 1.0 - tail])
    return float(low), float(high)


def _batches(width: int) -> list[int]:
    """`RESAMPLES` rows of a width in parts that fit into memory."""
    rows = max(1, _AT_ONCE // width)
    whole, rest = divmod(RESAMPLES, rows)
    return [rows] * whole + [rest] * (rest > 0)


def _unseen(items: int, confidence: float) -> float:
    """Upper bound of a share of which none was seen among `items`."""
    return 1.0 - float(((1.0 - confidence) / 2.0) ** (1.0 / items))
