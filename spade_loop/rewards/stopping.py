"""When to stop playing an environment: a group-sequential rule with spent alpha.

Who looks at a 95 % interval again and again, and stops when he likes what he sees, is right less often than 95 %. Here
the error of 5 % is spent over the looks (Lan and DeMets 1983, Biometrika 70:659-663), with their spending function of
Pocock's type:

    alpha*(t) = alpha * ln(1 + (e - 1) t),   t = pairs at the look / pairs at the last look

A look spends what alpha* grew since the last one: its interval has confidence 1 - (alpha*(t_k) - alpha*(t_{k-1})). That
is a bound on the sum (Bonferroni) and not the exact boundary, which would need the joint law of all looks: it holds
however they depend on each other, hence for clustered plays too. A pair is a plain and a hinted play of one seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import e, log

from spade_loop.rewards.regret import Interval

LOOKS = (16, 32, 64, 128, 256)
"""Pairs at which one may look."""
TARGET_HALF_WIDTH = 0.2


class Decision(StrEnum):
    """What to do after a look."""

    STOP = "stop"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """Where to look, how wrong one may be over all looks, and how narrow is narrow enough."""

    looks: tuple[int, ...] = LOOKS
    alpha: float = 0.05
    target: float = TARGET_HALF_WIDTH
    """Half-width, in units of a return."""

    def __post_init__(self) -> None:
        """Refuse looks that do not rise, and shares outside of (0, 1)."""
        if not self.looks or self.looks[0] < 1 or any(a >= b for a, b in pairwise(self.looks)):
            raise ValueError(f"looks must be rising positive numbers of pairs, got {self.looks}")
        if not 0.0 < self.alpha < 1.0:
            raise ValueError(f"alpha must lie between 0 and 1, both excluded, got {self.alpha}")
        if not self.target > 0.0:
            raise ValueError(f"target must be a half-width above 0, got {self.target}")

    def spent(self, pairs: int) -> float:
        """alpha*(pairs / pairs at the last look): the error spent up to and including a look."""
        return self.alpha * log(1.0 + (e - 1.0) * min(1.0, pairs / self.looks[-1]))

    def confidence(self, look: int) -> float:
        """Confidence of the interval to be taken at a look; `ValueError` where there is none."""
        if look not in self.looks:
            raise ValueError(f"one may look at {self.looks} pairs only, not at {look}")
        before = max((other for other in self.looks if other < look), default=0)
        return 1.0 - (self.spent(look) - self.spent(before))


DEFAULT_RULE = StoppingRule()


def next_look(pairs: int, rule: StoppingRule = DEFAULT_RULE) -> int | None:
    """Pairs at which to look next when `pairs` were played; None after the last look."""
    return next((look for look in rule.looks if look > pairs), None)


def decide(look: int, interval: Interval, rule: StoppingRule = DEFAULT_RULE) -> Decision:
    """Stop when the interval of this look is narrow enough, and at the last look whatever it is.

    `interval` is taken at `rule.confidence(look)` (another one is refused: `ValueError`), and it is the one to report.
    """
    expected = rule.confidence(look)
    if abs(interval.confidence - expected) > 1e-9:
        raise ValueError(
            f"the interval of look {look} has confidence {expected:.6f}, got {interval.confidence:.6f}: "
            "take it with confidence=rule.confidence(look)"
        )
    if look == rule.looks[-1] or interval.half_width <= rule.target:
        return Decision.STOP
    return Decision.CONTINUE
