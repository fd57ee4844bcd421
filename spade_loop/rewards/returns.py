"""What an episode is worth to the agent: from its rewards to one number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Final


@dataclass(frozen=True, slots=True)
class EpisodeOutcome:
    """How an episode went."""

    rewards: Sequence[float]
    """One a step."""
    terminated: bool
    """The environment ended it; False when turns or context ran out."""
    success: bool
    """The goal was reached."""


def terminal_return(episode: EpisodeOutcome) -> float:
    """1 for a success, else 0."""
    return float(episode.success)


def sum_return(episode: EpisodeOutcome) -> float:
    """The sum of all rewards, exact before it is rounded once; 0 without a step."""
    return fsum(episode.rewards)


def reference_return(episode: EpisodeOutcome) -> float:
    """clamp(last reward, -1, 1) if the environment terminated, else 0.

    This is what the released code of the paper scores: partial rewards before the last step are lost.
    """
    if not episode.terminated or not episode.rewards:
        return 0.0
    return max(-1.0, min(1.0, episode.rewards[-1]))


EPISODE_RETURNS: Final[dict[str, Callable[[EpisodeOutcome], float]]] = {
    "terminal": terminal_return,
    "sum": sum_return,
    "reference": reference_return,
}
