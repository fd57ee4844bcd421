"""Which zone an environment lies in for one model: a pure function of its rates and its regret."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spade_loop.errors import ConfigError


class Zone(StrEnum):
    """What training in an environment could teach a model."""

    MASTERED = "mastered"
    """It is solved without a hint: nothing is left to learn."""
    FRONTIER = "frontier"
    """It is solved at times, or a hint makes the difference: there is something to learn, and a way to it."""
    OUT_OF_REACH = "out-of-reach"
    """It is solved neither without a hint nor with one."""
    HINT_USELESS = "hint-useless"
    """It is not solved without a hint, and what is solved with one does not tell the hint from luck."""
    UNMEASURED = "unmeasured"
    """Faults of the environment, or observations that left no room for a reply, left too little to go by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneRules:
    """Where zones begin. `ConfigError` for shares that leave no room between them."""

    mastered: float = 0.9
    """The plain solve rate from which an environment is mastered."""
    solvable: float = 0.1
    """A rate up to this one is as good as none: a few lucky wins."""
    helps: float = 0.2
    """The regret from which a hint is taken to help though its interval still holds 0: the target half-width."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.solvable < self.mastered <= 1.0:
            raise ConfigError(
                "zones need 0 <= solvable < mastered <= 1, got "
                f"solvable {self.solvable:g} and mastered {self.mastered:g}"
            )
        if not self.helps > 0.0:
            raise ConfigError(f"the regret of a hint that helps is above 0, got {self.helps:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What zones are decided on."""

    plain: float
    """Solve rate without a hint."""
    hinted: float
    """Solve rate with a hint; of several levels the highest."""
    regret: float
    regret_low: float
    """The lower end of the regret's interval."""


def zone_of(figures: Figures | None, rules: ZoneRules) -> Zone:
    """The zone of an environment; None stands for one that could not be measured.

    The first that holds:

        mastered        plain >= rules.mastered
        frontier        plain > rules.solvable, or regret_low > 0, or regret >= rules.helps
        out-of-reach    hinted <= rules.solvable
        hint-useless    everything else: not solved plainly, won at times with a hint, no help told from chance
    """
    if figures is None:
        return Zone.UNMEASURED
    if figures.plain >= rules.mastered:
        return Zone.MASTERED
    helped = figures.regret_low > 0.0 or figures.regret >= rules.helps
    if figures.plain > rules.solvable or helped:
        return Zone.FRONTIER
    return Zone.OUT_OF_REACH if figures.hinted <= rules.solvable else Zone.HINT_USELESS
