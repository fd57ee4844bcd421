"""Quantiles of Student's t, without SciPy."""

from __future__ import annotations

from functools import lru_cache
from math import cos, inf, pi, sin, sqrt, tan
from statistics import NormalDist

STEPS = 60
"""Halvings of an angle below pi / 2: more than a double can tell apart."""


def normal_quantile(confidence: float) -> float:
    """Z with P(|Z| < z) = confidence, for a standard normal Z."""
    return NormalDist().inv_cdf(0.5 + 0.5 * _checked(confidence))


@lru_cache(maxsize=4096)
def student_quantile(confidence: float, degrees: int) -> float:
    """T with P(|T| < t) = confidence, for Student's T with a whole number of degrees of freedom; inf for none.

    The distribution is a finite sum in theta = atan(t / sqrt(degrees)); theta is found by halving.
    """
    _checked(confidence)
    if degrees < 1:
        return inf
    low, high = 0.0, pi / 2
    for _ in range(STEPS):
        middle = (low + high) / 2
        if _central_probability(middle, degrees) < confidence:
            low = middle
        else:
            high = middle
    return sqrt(degrees) * tan((low + high) / 2)


def _central_probability(theta: float, degrees: int) -> float:
    """P(|T| < sqrt(degrees) tan(theta)): Abramowitz and Stegun (1964), 26.7.3 (odd) and 26.7.4 (even)."""
    odd = degrees % 2
    square = cos(theta) ** 2
    term = sin(theta) * (cos(theta) if odd else 1.0)
    total = 0.0
    for k in range(2 + odd, degrees + 1, 2):
        total += term
        term *= square * (k - 1) / k
    return (theta + total) * 2 / pi if odd else total


def _checked(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie between 0 and 1, both excluded, got {confidence}")
    return confidence
