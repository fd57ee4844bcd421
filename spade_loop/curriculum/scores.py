"""What an environment is worth to a curriculum, from the episodes that were played in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from spade_loop.measurement import Measured
from spade_loop.rewards import Floats, agent_advantages

Score = Callable[[Measured], float]


def hint_regret(measured: Measured) -> float:
    """Mean over seeds of hinted minus plain return, not floored; NaN when it was not measurable."""
    return measured.regret.value if measured.measurable else float("nan")


def l1_advantage(measured: Measured) -> float:
    """Mean |A| of the plain episodes: the L1 value loss of PLR with a group's mean in place of a value function.

    A is the advantage that the agent is trained with, before weighting. NaN when no episode is measurable.
    """
    return float(np.mean(np.abs(_advantages(measured)))) if _known(measured) else float("nan")


def positive_advantage(measured: Measured) -> float:
    """Mean max(A, 0) of the plain episodes: the positive value loss of Robust PLR.

    Advantages about a mean sum to 0, so this is half of the L1 score and ranks environments alike.
    """
    return float(np.mean(np.maximum(_advantages(measured), 0.0))) if _known(measured) else np.nan


def solve_rate(measured: Measured) -> float:
    """Share of plain episodes that reached the goal; NaN when none is measurable."""
    return measured.regret.solve_rate


def _known(measured: Measured) -> bool:
    return bool((~np.isnan(measured.return_SK)).any())


def _advantages(measured: Measured) -> Floats:
    """Advantages of the episodes that no fault dropped, shape (N,)."""
    advantage_SK = agent_advantages(measured.return_SK[None])[0]
    known_N: Floats = advantage_SK[~np.isnan(measured.return_SK)]
    return known_N


SCORES: Final[Mapping[str, Score]] = {
    "regret": hint_regret,
    "l1_advantage": l1_advantage,
    "positive_advantage": positive_advantage,
    "solve_rate": solve_rate,
}
