"""What the novelty memory holds and answers, as frozen data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from synthgym.memory.describe import Description

LEARNABLE: Final = (0.15, 0.85)
"""Win rates, ends included, between which an environment is worth imitating (the SPADE recipes)."""
TOO_HARD: Final = 0.1
"""Below this win rate an environment is too hard (the SPADE recipes)."""
TOO_EASY: Final = 0.9
"""Above this win rate an environment is too easy (the SPADE recipes)."""

BOUND_Z: Final = 1.645
"""Standard errors between a regret and its lower bound."""


class NoveltyReason(StrEnum):
    """Why a candidate was accepted or not."""

    NEW = "new"
    """Accepted."""
    COPY = "copy"
    """A held environment differs in names, small literals and comments only."""
    REFACTORED_COPY = "refactored-copy"
    """A held environment holds nearly all of its rare pieces of code."""
    RESKIN = "reskin"
    """A held environment holds most of its rare pieces of code, and behaves the same."""
    SIBLING = "sibling"
    """A held environment has much of its code and nearly its rules; only refused at `sibling`."""
    JUDGED = "judged"
    """It was near to a held one, and the judge called it a duplicate or gave no clear answer."""
    REVIEW_FULL = "review-full"
    """It is near to held ones, as many as may be held without a judge."""
    SAME_PARAMETERS = "same-parameters"
    """A recent blueprint of the family has equal or nearly equal parameters."""
    FAMILY_FULL = "family-full"
    """The recent iterations already hold the family's quota."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A held environment with a similar text."""

    digest: str
    similarity: float
    """Cosine of the rules texts, rounded to 1e-4."""
    name: str


@dataclass(frozen=True, slots=True)
class NoveltyDecision:
    """Whether a candidate may enter, why, and what it is near to."""

    accepted: bool
    reason: NoveltyReason
    nearest: tuple[Neighbour, ...] = ()
    """The nearest held environments by text, nearest first. They never change the decision."""
    detail: str = ""
    review: tuple[str, ...] = ()
    """Digests of held environments that are near: somebody should look at the pair."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """One environment that was admitted, with what was measured of it."""

    digest: str
    name: str
    skill: str
    description: Description
    iteration: int
    """When it was last admitted; the family rules look at the last iterations only."""
    win_rate: float | None = None
    """Share of episodes without a hint that were won; None before it was measured."""
    regret: float | None = None
    regret_se: float | None = None
    """Standard error of the regret; None when it is not known, which counts as none."""

    @property
    def regret_bound(self) -> float:
        """A lower bound of the regret, one-sided 95 %: what few plays showed does not rank first."""
        return (self.regret or 0.0) - BOUND_Z * (self.regret_se or 0.0)

    @property
    def learnable(self) -> bool:
        """Whether it was measured and its win rate is in the range worth imitating."""
        if self.win_rate is None or self.regret is None:
            return False
        return LEARNABLE[0] <= self.win_rate <= LEARNABLE[1]

    @property
    def verdict(self) -> str:
        """`too easy`, `too hard`, or nothing."""
        if self.win_rate is None or TOO_HARD <= self.win_rate <= TOO_EASY:
            return ""
        return "too hard" if self.win_rate < TOO_HARD else "too easy"


def parameter_distance(first: tuple[float, ...], second: tuple[float, ...]) -> float:
    """Mean absolute difference of two parameter vectors with values in [0, 1]; itself in [0, 1].

    Vectors of unequal length come from different schemas and cannot be compared: infinity.
    """
    if len(first) != len(second):
        return math.inf
    if not first:
        return 0.0
    return math.fsum(abs(a - b) for a, b in zip(first, second, strict=True)) / len(first)
