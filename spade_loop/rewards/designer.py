"""What the designer of an environment is paid: one table of pure functions, and the penalties that hold for all.

NaN is no reward but the mark of what is left out of the update and of every baseline: an environment that was not
measured, or one that the blend masks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from math import isnan
from typing import Final, Literal, Protocol

import numpy as np

from spade_loop.errors import ConfigError
from spade_loop.rewards.blending import (
    BlendParameters,
    blend_raw,
    micro_term,
    plateau,
)
from spade_loop.rewards.learning import LearningRates, Trackers, learning_potential_of
from spade_loop.rewards.regret import Regret
from spade_loop.rewards.window import Window

SOLVE_RATE_GATE = 0.15
"""Unhinted solve rate from which regret counts in full: below it a design is mostly beyond the agent."""
FAULT_FLOOR = -0.5
"""Reward of a design whose faults reproduce: below anything that a measured design can earn on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RewardSettings:
    """What the formulas leave open."""

    gate: float = SOLVE_RATE_GATE
    """Of `gated_regret`: plain solve rate from which regret counts in full."""
    floored: bool = False
    """`regret` pays max(0, R)."""
    estimator: Literal["paired", "means"] = "paired"
    """Regret by seeds and solve rate by wins, or, as the released code, both from the arms' mean returns."""
    blend: BlendParameters = field(default_factory=BlendParameters)
    learning: LearningRates = field(default_factory=LearningRates)
    trackers: Trackers = field(default_factory=dict)
    """Averages that `learning_potential` compares with; `update_trackers` makes the next ones."""
    fault_floor: float = FAULT_FLOOR
    repaired_factor: float = 1.0
    """What is left of the reward of a design whose first try was broken; 1 is no penalty."""

    def __post_init__(self) -> None:
        """Refuse a gate that cannot be divided by and a factor that is no share."""
        if not self.gate > 0.0:
            raise ValueError(f"gate must be above 0, got {self.gate}")
        if not 0.0 <= self.repaired_factor <= 1.0:
            raise ValueError(f"repaired_factor must lie in [0, 1], got {self.repaired_factor}")


DEFAULT_SETTINGS: Final = RewardSettings()
REFERENCE_SETTINGS: Final = RewardSettings(
    floored=True,
    estimator="means",
    learning=LearningRates(update_first=True),
    repaired_factor=0.0,
)
"""As the released code pays, with the weights of its recipes."""


class DesignerReward(Protocol):
    """What every designer reward can be called with. A bare regret is a window of one iteration."""

    def __call__(
        self, measured: Window | Regret, settings: RewardSettings = DEFAULT_SETTINGS
    ) -> float:
        """The reward, or NaN."""
        ...


Formula = Callable[[Window, RewardSettings], float]


def _of_regret(formula: Formula) -> DesignerReward:
    """A formula that needs no returns: it takes a bare regret too."""

    @wraps(formula)
    def reward(measured: Window | Regret, settings: RewardSettings = DEFAULT_SETTINGS) -> float:
        if isinstance(measured, Regret):
            if settings.estimator == "means":
                raise TypeError("estimator 'means' needs a Window, got a bare Regret")
            measured = Window(
                regret=measured, matched=measured, returns=(), hinted_mean=float("nan"), skill=""
            )
        return formula(measured, settings)

    return reward


def _of_returns(formula: Formula) -> DesignerReward:
    """A formula over returns: it refuses a bare regret, and what was not played is not measured."""

    @wraps(formula)
    def reward(measured: Window | Regret, settings: RewardSettings = DEFAULT_SETTINGS) -> float:
        if isinstance(measured, Regret):
            raise TypeError(f"{formula.__name__} needs the returns of a Window, got a bare Regret")
        return formula(measured, settings) if measured.plays else float("nan")

    return reward


@_of_regret
def gated_regret(window: Window, settings: RewardSettings) -> float:
    """clip(R, -1, 1) * min(1, w / gate), w the plain solve rate: what nobody solves unhinted earns nothing."""
    value, rate = _regret(window, settings), _solve_rate(window, settings)
    return float(np.clip(value, -1.0, 1.0)) * float(np.minimum(1.0, rate / settings.gate))


@_of_regret
def plain_regret(window: Window, settings: RewardSettings) -> float:
    """R, or max(0, R) with `settings.floored`: the reward of the paper's figure."""
    value = _regret(window, settings)
    return max(0.0, value) if settings.floored and not isnan(value) else value


@_of_regret
def blend(window: Window, settings: RewardSettings) -> float:
    """`blend_raw` of the regret of offset 0, the window's solve rate, and learning; NaN (masked) below 0.

    With the recipes' weights: 0.6 * plateau(w) + 0.4 * clip(R_0 / 0.15, 0, 1), which masks nothing.
    """
    by_seeds = settings.estimator == "paired"
    matched = window.matched.value if by_seeds else window.matched_mean_regret
    micro = micro_term(window, settings.blend) if window.plays else float("nan")
    raw = blend_raw(matched, _solve_rate(window, settings), micro, settings.blend)
    return raw if raw >= 0.0 else float("nan")


@_of_regret
def solve_rate(window: Window, settings: RewardSettings) -> float:
    """plateau(w) alone: what a hint is worth does not count (a control)."""
    return plateau(_solve_rate(window, settings), settings.blend)


@_of_regret
def learnability(window: Window, settings: RewardSettings) -> float:
    """4 w (1 - w), w the plain solve rate; in [0, 1].

    w (1 - w) is the learnability of Tzannetos et al. (2023, Proximal Curriculum for Reinforcement Learning Agents)
    and of Rutherford et al. (2024, No Regrets: Investigating and Improving Regret Approximations for Curriculum
    Discovery).
    """
    rate = _solve_rate(window, settings)
    return 4.0 * rate * (1.0 - rate)


@_of_returns
def variance(window: Window, settings: RewardSettings) -> float:
    """Population variance of all plain returns: p (1 - p) where they are wins and losses."""
    del settings
    return float(np.var(window.plays))


@_of_returns
def learning_potential(window: Window, settings: RewardSettings) -> float:
    """|mean(S) - mu_s| [+ V], against `settings.trackers`: see `learning_potential_of`, `learning_potentials`."""
    return learning_potential_of(window, settings.trackers, settings.learning)


@_of_returns
def micro_learning_potential(window: Window, settings: RewardSettings) -> float:
    """max(0, mean of the late half - mean of the early half) of the window's offsets; 0 with fewer than two."""
    del settings
    return max(0.0, window.gain)


DESIGNER_REWARDS: Final[dict[str, DesignerReward]] = {
    "gated_regret": gated_regret,
    "regret": plain_regret,
    "blend": blend,
    "learning_potential": learning_potential,
    "micro_learning_potential": micro_learning_potential,
    "solve_rate": solve_rate,
    "variance": variance,
    "learnability": learnability,
}


def _regret(window: Window, settings: RewardSettings) -> float:
    return window.regret.value if settings.estimator == "paired" else window.mean_regret


def _solve_rate(window: Window, settings: RewardSettings) -> float:
    return window.regret.solve_rate if settings.estimator == "paired" else window.mean_return


# --- penalties, whatever the formula ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Incidents:
    """What went wrong with a design, apart from what it is worth."""

    fault_share: float = 0.0
    """f, share of plays whose fault a replay reproduced."""
    step_timeout: bool = False
    """A step of it hung."""
    repaired: bool = False
    """The first try was broken, a repair was admitted."""

    def __post_init__(self) -> None:
        """Refuse a share that is none."""
        if not 0.0 <= self.fault_share <= 1.0:
            raise ValueError(f"fault_share must lie in [0, 1], got {self.fault_share}")


NO_INCIDENTS: Final = Incidents()


def with_faults(reward: float, fault_share: float, floor: float = FAULT_FLOOR) -> float:
    """(1 - f) r + f * floor, f the share of plays whose fault a replay reproduced."""
    return (1.0 - fault_share) * reward + fault_share * floor


def penalised(
    reward: float, incidents: Incidents, settings: RewardSettings = DEFAULT_SETTINGS
) -> float:
    """A reward after the penalties that hold whatever its formula is.

    A repaired design: min(r, factor * r), so that a loss is not made smaller. Faults: (1 - f) r + f * floor. A step
    that hung, or a fault in every play: the floor, measured or not.
    """
    if incidents.step_timeout or incidents.fault_share == 1.0:
        return settings.fault_floor
    if incidents.repaired:
        reward = min(reward, settings.repaired_factor * reward)
    return with_faults(reward, incidents.fault_share, settings.fault_floor)


def designer_reward(
    name: str,
    measured: Window | Regret,
    incidents: Incidents = NO_INCIDENTS,
    settings: RewardSettings = DEFAULT_SETTINGS,
) -> float:
    """What a design is paid by the reward of this name, penalties included; NaN where it is to be left out."""
    if name not in DESIGNER_REWARDS:
        known = ", ".join(DESIGNER_REWARDS)
        raise ConfigError(f"reward.designer must be one of {known}, got {name!r}")
    return penalised(DESIGNER_REWARDS[name](measured, settings), incidents, settings)
