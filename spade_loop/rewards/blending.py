"""The blend that the recipes of the paper's released code train on: plateau, regret, learning within the window."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Final, Literal

from spade_loop.rewards.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendParameters:
    """Weights and scales of the blend. The defaults are those of the released recipes."""

    regret_weight: float = 0.4
    """a_r"""
    micro_weight: float = 0.0
    """a_m"""
    plateau_weight: float = 0.6
    """a_p"""
    front_weight: float = 0.0
    """a_f"""
    regret_scale: float = 0.15
    """s_r: regret at which its term is 1."""
    regret_floor: bool = True
    """Clip R / s_r to [0, 1]."""
    low: float = 0.4
    high: float = 0.6
    """The plateau is 1 for solve rates between them."""
    ramp: float = 0.25
    """The plateau falls to 0 over this distance on either side."""
    micro_scale: float = 0.10
    micro: Literal["trend", "gain"] = "trend"
    """Learning within the window: `Window.trend` (least squares) or `Window.gain` (late half minus early half)."""
    micro_floor: bool = False
    """Clip it at 0."""
    front_scale: float = 0.08

    def __post_init__(self) -> None:
        """Refuse scales that cannot be divided by, and a plateau whose ends are swapped."""
        for name in ("regret_scale", "ramp", "micro_scale", "front_scale"):
            if not getattr(self, name) > 0.0:
                raise ValueError(f"blend: {name} must be above 0, got {getattr(self, name)}")
        if not self.low <= self.high:
            raise ValueError(f"blend: low must not exceed high, got {self.low} and {self.high}")


BLEND_CODE_DEFAULTS: Final = BlendParameters(
    regret_weight=0.5, micro_weight=0.5, plateau_weight=0.0, regret_floor=False
)
"""What the released code does without a recipe."""
BLEND_LATE_PHASE: Final = BlendParameters(low=0.2, high=0.4, ramp=0.2)
"""The late phase of the 4B recipe: harder environments."""


def plateau(rate: float, parameters: BlendParameters) -> float:
    """1 if low <= w <= high, else max(0, 1 - (distance of w to [low, high]) / ramp); NaN for NaN."""
    distance = max(parameters.low - rate, rate - parameters.high, 0.0)
    return rate if isnan(rate) else max(0.0, 1.0 - distance / parameters.ramp)


def micro_term(window: Window, parameters: BlendParameters) -> float:
    """What the agent learnt within the window (`trend` or `gain`), clipped at 0 where the parameters say so."""
    learnt = window.trend if parameters.micro == "trend" else window.gain
    return max(0.0, learnt) if parameters.micro_floor else learnt


def blend_raw(matched: float, rate: float, micro: float, parameters: BlendParameters) -> float:
    """a_r * reg' + a_m * micro / 0.10 + a_p * plateau(w) - a_f * (w - 0.5)^2 / 0.08, before masking.

    reg' = clip(R_0 / s_r, 0, 1), or R_0 / s_r without the floor; R_0 is the regret of offset 0. NaN when a term
    that has a weight is NaN.
    """
    scaled = matched / parameters.regret_scale
    if parameters.regret_floor and not isnan(scaled):
        scaled = min(1.0, max(0.0, scaled))
    terms = (
        (parameters.regret_weight, scaled),
        (parameters.micro_weight, micro / parameters.micro_scale),
        (parameters.plateau_weight, plateau(rate, parameters)),
        (-parameters.front_weight, (rate - 0.5) ** 2 / parameters.front_scale),
    )
    return sum(weight * term for weight, term in terms if weight != 0.0)
