"""Learning potential: how far the agent's returns are from what they were, by skill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from spade_loop.rewards.window import Window, mean

BEST_VARIANCE = 0.25
"""Population variance of a coin that falls fairly: V is 1 there."""
VARIANCE_WIDTH = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRates:
    """How fast the averages follow. The defaults are those of the released recipes (code defaults: 0.99, 0.95)."""

    fast: float = 0.98
    slow: float = 0.85
    """Both are update rates: even the slow average keeps but 15 % of what it was."""
    variance: bool = False
    """Add the solver-variance term V."""
    update_first: bool = False
    """As the released code: update the averages before the baseline is read, so that it holds what it is compared
    with."""

    def __post_init__(self) -> None:
        """Refuse rates that are no rates."""
        if not 0.0 < self.slow < self.fast <= 1.0:
            raise ValueError(f"expected 0 < slow < fast <= 1, got {self.slow} and {self.fast}")


@dataclass(frozen=True, slots=True)
class Tracker:
    """Two moving averages of a skill's mean return."""

    fast: float
    slow: float

    def updated(self, value: float, rates: LearningRates) -> Tracker:
        """Mu <- (1 - gamma) mu + gamma r, for both."""
        return Tracker(
            (1.0 - rates.fast) * self.fast + rates.fast * value,
            (1.0 - rates.slow) * self.slow + rates.slow * value,
        )

    def progress(self, rates: LearningRates) -> float:
        """Rho = |mu_f - mu_s| / (2 (gamma_f - gamma_s)), for monitoring."""
        return abs(self.fast - self.slow) / (2.0 * (rates.fast - rates.slow))


Trackers = Mapping[str, Tracker]
"""By skill."""


def update_trackers(
    trackers: Trackers, windows: Sequence[Window], rates: LearningRates
) -> dict[str, Tracker]:
    """New trackers, each skill updated once with the mean of all plays of its windows; the first value starts both."""
    after = dict(trackers)
    for skill in dict.fromkeys(w.skill for w in windows):
        plays = [value for w in windows if w.skill == skill for value in w.plays]
        if plays:
            value = mean(plays)
            known = after.get(skill)
            after[skill] = Tracker(value, value) if known is None else known.updated(value, rates)
    return after


def learning_potential_of(window: Window, trackers: Trackers, rates: LearningRates) -> float:
    """|mean(S) - mu_s| [+ V], mu_s the slow average of its skill; NaN without plays.

    A skill without a tracker has nothing to be compared with: its first term is 0. V needs two plays.
    """
    if not window.plays:
        return float("nan")
    tracker = trackers.get(window.skill)
    potential = 0.0 if tracker is None else abs(window.mean_return - tracker.slow)
    if rates.variance and len(window.plays) > 1:
        potential += solver_variance(window)
    return potential


def solver_variance(window: Window) -> float:
    """V = exp(-(var(S) - 0.25)^2 / (2 * 0.01)), population variance: 1 where wins and losses are as many."""
    distance = float(np.var(window.plays)) - BEST_VARIANCE
    return exp(-(distance**2) / (2.0 * VARIANCE_WIDTH))


def learning_potentials(
    windows: Sequence[Window], trackers: Trackers, rates: LearningRates
) -> tuple[tuple[float, ...], dict[str, Tracker]]:
    """Learning potential of each window, and the trackers after; `rates.update_first` says which comes first."""
    after = update_trackers(trackers, windows, rates)
    baseline = after if rates.update_first else trackers
    return tuple(learning_potential_of(w, baseline, rates) for w in windows), after
