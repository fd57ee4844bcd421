"""Whether the designer still explores: how many kinds of design it uses, what a rare one earns, when to warn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from spade_loop.rewards.regret import Regret

ALARM_REGRET = 0.4
ALARM_SOLVE_RATE = 0.1
"""Mean regret above the first while the median solve rate is below the second: tasks that only the hint solves."""
MIN_EFFECTIVE_CELLS = 4.0
CELL_WINDOW = 10
"""Iterations over which the designer's spread over cells is judged."""


def effective_cells(counts: Sequence[int]) -> float:
    """exp(entropy) of the cells' shares: how many cells the designer really uses."""
    share = np.asarray([c for c in counts if c > 0], dtype=np.float64)
    if share.size == 0:
        return 0.0
    share /= share.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def cell_bonus(count: int, total: int, alpha: float) -> float:
    """-alpha * log(share of the cell among recent designs), with add-one smoothing: rare cells earn more."""
    return float(-alpha * np.log((count + 1) / (total + 1)))


def only_hints_solve(regrets: Sequence[Regret]) -> bool:
    """Whether mean regret > 0.4 while the median plain solve rate < 0.1; what was not measured is left out."""
    known = [r for r in regrets if not np.isnan(r.value)]
    if not known:
        return False
    mean_regret = float(np.mean([r.value for r in known]))
    median_rate = float(np.median([r.solve_rate for r in known]))
    return mean_regret > ALARM_REGRET and median_rate < ALARM_SOLVE_RATE


def few_kinds(counts: Sequence[int], iterations: int) -> bool:
    """Whether the designs of the last ten iterations, counted by cell, fall into fewer than four effective cells.

    False before ten iterations were counted: a run that starts has used few cells.
    """
    return iterations >= CELL_WINDOW and effective_cells(counts) < MIN_EFFECTIVE_CELLS
