"""Regret of an environment, and how sure one may be of it.

Axes: S seeds, K plays of a seed. NaN marks a play that is not measurable (a fault dropped the seed).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spade_loop.rewards.quantiles import normal_quantile, student_quantile

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
MIN_RESAMPLES = 100
"""A bootstrap of fewer knows nothing of its tails."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Regret of one environment."""

    value: float
    """Mean over seeds of (mean hinted return - mean plain return); unfloored."""
    standard_error: float
    """Over seeds; NaN with fewer than two."""
    solve_rate: float
    """Share of plain episodes that reached the goal."""
    hinted_solve_rate: float
    seeds: int
    """Seeds that were measurable in both arms."""


NOT_MEASURED = Regret(float("nan"), float("nan"), float("nan"), float("nan"), 0)


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a regret, both ends included. Never NaN: what was not measured may be anything."""

    low: float
    high: float
    confidence: float
    method: str
    """`agresti-min`, `adjusted-t`, `bootstrap-percentile`, `bootstrap-studentised`, or `none` (nothing is known)."""

    @property
    def half_width(self) -> float:
        """Half of high - low, in units of a return."""
        return (self.high - self.low) / 2


def paired_regret(
    hinted_SK: Floats, plain_SK: Floats, hinted_won_SK: Floats, plain_won_SK: Floats
) -> Regret:
    """Regret over the seeds that are measurable in both arms: mean_s(mean_k hinted - mean_k plain).

    Row s of every array used the same seed, and both arms the same number of plays: the difference within a seed
    removes what the instance contributes. The standard error is that of the mean of the within-seed differences.
    """
    usable = _measurable(hinted_SK) & _measurable(plain_SK)
    n = int(usable.sum())
    if n == 0:
        return NOT_MEASURED
    difference_S = hinted_SK[usable].mean(axis=1) - plain_SK[usable].mean(axis=1)
    return Regret(
        value=float(difference_S.mean()),
        standard_error=float(np.sqrt(_variance_of_mean(difference_S))),
        solve_rate=float(plain_won_SK[usable].mean()),
        hinted_solve_rate=float(hinted_won_SK[usable].mean()),
        seeds=n,
    )


def unpaired_regret(
    hinted_SK: Floats, plain_SK: Floats, hinted_won_SK: Floats, plain_won_SK: Floats
) -> Regret:
    """Regret as if the arms had nothing in common (an ablation): mean hinted return - mean plain return.

    Rows of the two arms are seeds of their own and may differ in number; a fault drops its seed in its arm alone.
    The standard error is sqrt(var_h / S_h + var_r / S_r), variances of the seeds' means; `seeds` is the smaller S.
    """
    hinted, plain = _measurable(hinted_SK), _measurable(plain_SK)
    if not hinted.any() or not plain.any():
        return NOT_MEASURED
    hinted_S, plain_S = hinted_SK[hinted].mean(axis=1), plain_SK[plain].mean(axis=1)
    return Regret(
        value=float(hinted_S.mean() - plain_S.mean()),
        standard_error=float(np.sqrt(_variance_of_mean(hinted_S) + _variance_of_mean(plain_S))),
        solve_rate=float(plain_won_SK[plain].mean()),
        hinted_solve_rate=float(hinted_won_SK[hinted].mean()),
        seeds=min(hinted_S.size, plain_S.size),
    )


def floored(regret: Regret) -> float:
    """max(0, R), for display: the paper's figure. Training on it would reward noise (E[max(0, R)] > 0 at R = 0)."""
    return max(0.0, regret.value) if not np.isnan(regret.value) else regret.value


# --- intervals ---


def regret_interval(
    hinted_SK: Floats,
    plain_SK: Floats,
    confidence: float = CONFIDENCE,
    return_range: tuple[float, float] = (0.0, 1.0),
) -> Interval:
    """Interval of the paired regret, over the seeds that are measurable in both arms.

    With n seeds, within-seed differences d and B the width of `return_range` (returns outside of it: `ValueError`):

        centre = sum(d) / (n + 2)
        error  = sqrt(((sum(d^2) + B^2) / (n + 2) - centre^2) / (n + 2))
        interval = centre -+ q * error, cut to [-B, B]

    Wins and losses played once a seed: q is the normal quantile. This is the interval of Agresti and Min (2005,
    Statistics in Medicine 24:729-740, "Wald+2"): 1/2 is added to each cell of the table of pairs (won both, won one,
    won the other, won none), which are two more pairs, half a pair better by B and half a pair worse by B.
    Everything else: the same two pairs are added as seeds, and q is Student's with n - 1 degrees of freedom, clustered
    by seed. Without them, four seeds that happen to agree have an interval of width 0, and one that stops at a
    narrow interval stops there: in simulations (tests/spade_loop/rewards/test_stopping.py) coverage falls below 60 %.
    """
    hinted_SK, plain_SK = _both_measured(hinted_SK, plain_SK, return_range)
    difference_S = hinted_SK.mean(axis=1) - plain_SK.mean(axis=1)
    bound = return_range[1] - return_range[0]
    n, plays = hinted_SK.shape
    once = plays == 1 and bool(np.isin([hinted_SK, plain_SK], return_range).all())
    quantile = normal_quantile(confidence) if once else student_quantile(confidence, n - 1)
    if n == 0 or np.isinf(quantile):
        return Interval(-bound, bound, confidence, "none")
    centre = float(difference_S.sum()) / (n + 2)
    spread = (float(np.square(difference_S).sum()) + bound**2) / (n + 2) - centre**2
    half = quantile * float(np.sqrt(spread / (n + 2)))
    name = "agresti-min" if once else "adjusted-t"
    return _around(difference_S, (centre - half, centre + half), bound, (confidence, name))


def bootstrap_interval(
    hinted_SK: Floats,
    plain_SK: Floats,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    *,
    studentised: bool = False,
    resamples: int = 2000,
) -> Interval:
    """Interval of the paired regret by drawing seeds with replacement; returns in [0, 1].

    Percentile: the (1 -+ confidence) / 2 quantiles of the resampled means. Studentised: mean - t * error, t the
    quantiles of (resampled mean - mean) / resampled error (Efron and Tibshirani 1993, chapters 12 and 13). Both
    are too narrow with few seeds, and of width 0 where all seeds agree: never stop early at one.
    """
    if resamples < MIN_RESAMPLES:
        raise ValueError(f"resamples must be at least {MIN_RESAMPLES}, got {resamples}")
    normal_quantile(confidence)  # refuses what is no confidence
    hinted_SK, plain_SK = _both_measured(hinted_SK, plain_SK, (0.0, 1.0))
    difference_S = hinted_SK.mean(axis=1) - plain_SK.mean(axis=1)
    n = difference_S.size
    if n < 2:
        return Interval(-1.0, 1.0, confidence, "none")
    drawn_BS = difference_S[rng.integers(0, n, size=(resamples, n))]
    tails = [(1.0 - confidence) / 2, (1.0 + confidence) / 2]
    if not studentised:
        low, high = np.quantile(drawn_BS.mean(axis=1), tails)
        return _around(difference_S, (low, high), 1.0, (confidence, "bootstrap-percentile"))
    mean = difference_S.mean()
    errors_B = drawn_BS.std(axis=1, ddof=1) / np.sqrt(n)
    # A resample of one seed n times has no error of its own, and says nothing about t.
    known = errors_B > 0.0
    low = high = mean
    if known.any():
        t_B = (drawn_BS.mean(axis=1)[known] - mean) / errors_B[known]
        low, high = mean - np.quantile(t_B, tails[::-1]) * difference_S.std(ddof=1) / np.sqrt(n)
    return _around(difference_S, (low, high), 1.0, (confidence, "bootstrap-studentised"))


def _measurable(return_SK: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(~np.isnan(return_SK).any(axis=1), dtype=np.bool_)


def _variance_of_mean(value_S: Floats) -> float:
    return float(value_S.var(ddof=1) / value_S.size) if value_S.size > 1 else float("nan")


def _both_measured(
    hinted_SK: Floats, plain_SK: Floats, return_range: tuple[float, float]
) -> tuple[Floats, Floats]:
    """The rows of both arms whose seed is measurable in both."""
    if hinted_SK.shape != plain_SK.shape or hinted_SK.ndim != 2:
        raise ValueError(
            "both arms need the same seeds, played as often: expected two equal (S, K) shapes, "
            f"got {hinted_SK.shape} and {plain_SK.shape}"
        )
    usable = _measurable(hinted_SK) & _measurable(plain_SK)
    low, high = return_range
    arms = hinted_SK[usable], plain_SK[usable]
    for arm in arms:
        if arm.size and not (arm.min() >= low - 1e-6 and arm.max() <= high + 1e-6):
            raise ValueError(
                f"returns must lie in {return_range}, got {arm.min():g} to {arm.max():g}: "
                "pass the range of the environment's dialect as `return_range`"
            )
    return arms


def _around(
    difference_S: Floats, ends: tuple[float, float], bound: float, said: tuple[float, str]
) -> Interval:
    """The interval, cut to what is possible, and never without the estimate itself."""
    mean = float(difference_S.mean())
    return Interval(
        max(-bound, min(float(ends[0]), mean)), min(bound, max(float(ends[1]), mean)), *said
    )
