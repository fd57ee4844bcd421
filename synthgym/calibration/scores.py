"""What an agent came to over many episodes: rates with their errors, and as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

Z95: Final = 1.959963984540054
"""Standard errors on either side of an estimate that hold 95 % of a normal distribution."""
_DIGITS: Final = 6


class Outcome(NamedTuple):
    """One episode, as far as figures go."""

    won: bool
    paid: float
    """Sum of its rewards."""
    turns: int
    fault: bool = False
    """The environment failed, or paid what it may not. Then the rest says nothing of the agent."""
    undecided: bool = False
    """A search found no win, and there was more to try than it tried."""


class Interval(NamedTuple):
    """Bounds that hold the true rate in 95 of 100 such measurements."""

    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How one agent fared. Rates are None when no episode was played to its end."""

    agent: str
    settings: Mapping[str, int]
    """What else the agent was given."""
    first_seed: int
    """The instances are those of this seed and the ones after it."""
    episodes: int
    """Episodes begun."""
    faults: int
    """Episodes in which the environment failed. They count neither as won nor as lost."""
    wins: int
    undecided: int
    """Episodes in which a search found no win and had not tried everything."""
    mean_return: float | None
    mean_return_se: float | None
    mean_turns: float | None
    version: str
    """Version of synthgym that measured."""

    @classmethod
    def of(
        cls,
        agent: str,
        outcomes: Sequence[Outcome],
        *,
        settings: Mapping[str, int],
        first_seed: int,
        version: str,
    ) -> Score:
        """The score that these episodes come to."""
        played = [outcome for outcome in outcomes if not outcome.fault]
        mean, error = mean_and_se([outcome.paid for outcome in played])
        turns, _ = mean_and_se([outcome.turns for outcome in played])
        return cls(
            agent=agent,
            settings=dict(settings),
            first_seed=first_seed,
            episodes=len(outcomes),
            faults=len(outcomes) - len(played),
            wins=sum(outcome.won for outcome in played),
            undecided=sum(outcome.undecided for outcome in played),
            mean_return=mean,
            mean_return_se=error,
            mean_turns=turns,
            version=version,
        )

    @property
    def played(self) -> int:
        """Episodes that were won or lost."""
        return self.episodes - self.faults

    @property
    def solve_rate(self) -> float | None:
        """Share of the episodes played that were won."""
        return _rounded(self.wins / self.played) if self.played else None

    @property
    def solve_rate_se(self) -> float | None:
        """Its binomial standard error. It is 0 when all or none were won; the interval is not."""
        if not self.played:
            return None
        share = self.wins / self.played
        return _rounded(math.sqrt(share * (1 - share) / self.played))

    @property
    def interval(self) -> Interval:
        """Wilson's interval of the solve rate: 0 of 100 is 0 to 0.037."""
        return wilson(self.wins, self.played)

    def to_json(self) -> dict[str, Any]:
        """Every figure and what it takes to measure it again. No clock and no machine."""
        return {
            "episodes": self.episodes,
            "first_seed": self.first_seed,
            "settings": dict(self.settings),
            "synthgym": self.version,
            "faults": self.faults,
            "wins": self.wins,
            "undecided": self.undecided,
            "solve_rate": self.solve_rate,
            "solve_rate_se": self.solve_rate_se,
            "interval_95": list(self.interval),
            "mean_return": self.mean_return,
            "mean_return_se": self.mean_return_se,
            "mean_turns": self.mean_turns,
        }


def wilson(wins: int, played: int, z: float = Z95) -> Interval:
    """Wilson's score interval of a share; [0, 1] when nothing was played.

    Unlike the plain interval of a share it says something when all or none were won, and it stays
    within [0, 1]. Brown, Cai and DasGupta (2001) recommend it for small numbers.
    """
    if not played:
        return Interval(0.0, 1.0)
    share, square = wins / played, z * z
    center = (share + square / (2 * played)) / (1 + square / played)
    spread = share * (1 - share) / played + square / (4 * played * played)
    half = z * math.sqrt(spread) / (1 + square / played)
    low = 0.0 if wins == 0 else max(0.0, center - half)
    high = 1.0 if wins == played else min(1.0, center + half)
    return Interval(_rounded(low), _rounded(high))


def mean_and_se(values: Iterable[float]) -> tuple[float | None, float | None]:
    """Mean and its standard error: None without values, the error None for one alone."""
    listed = list(values)
    if not listed:
        return None, None
    mean = math.fsum(listed) / len(listed)
    if len(listed) == 1:
        return _rounded(mean), None
    variance = math.fsum((value - mean) ** 2 for value in listed) / (len(listed) - 1)
    return _rounded(mean), _rounded(math.sqrt(variance / len(listed)))


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
