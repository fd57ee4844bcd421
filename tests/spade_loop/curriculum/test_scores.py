"""What an environment is worth to a curriculum, against values computed by hand."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from spade_loop.curriculum import SCORES

NAN = float("nan")


def measured(
    returns: list[list[float]], *, regret: float = 0.3, rate: float = 0.5, measurable: bool = True
) -> Any:
    """What the scores read of a `Measured`."""
    return SimpleNamespace(
        return_SK=np.asarray(returns),
        regret=SimpleNamespace(value=regret, solve_rate=rate),
        measurable=measurable,
    )


def test_regret_and_solve_rate_are_those_that_were_measured() -> None:
    assert SCORES["regret"](measured([[0.0]])) == 0.3
    assert SCORES["solve_rate"](measured([[0.0]])) == 0.5
    assert math.isnan(SCORES["regret"](measured([[0.0]], measurable=False)))


def test_the_advantage_scores_are_means_over_plain_episodes() -> None:
    # Four plays of a seed: about its mean 0.25, |A| is 0.75, 0.25, 0.25, 0.25.
    four = measured([[1.0, 0.0, 0.0, 0.0]])
    assert SCORES["l1_advantage"](four) == pytest.approx(0.375)
    assert SCORES["positive_advantage"](four) == pytest.approx(0.1875)
    # Two plays of two seeds: each against the mean of the other three, 1/3 and 2/3 off by sides.
    two = measured([[1.0, 0.0], [1.0, 0.0]])
    assert SCORES["l1_advantage"](two) == pytest.approx(2 / 3)
    assert SCORES["positive_advantage"](two) == pytest.approx(1 / 3)


def test_what_is_always_or_never_solved_has_nothing_to_teach() -> None:
    for value in (0.0, 1.0):
        for name in ("l1_advantage", "positive_advantage"):
            assert SCORES[name](measured([[value] * 4] * 3)) == 0.0


def test_seeds_that_a_fault_dropped_count_for_nobody() -> None:
    with_fault = measured([[1.0, 0.0, 0.0, 0.0], [NAN] * 4])
    assert SCORES["l1_advantage"](with_fault) == pytest.approx(0.375)
    for name in ("l1_advantage", "positive_advantage"):
        assert math.isnan(SCORES[name](measured([[NAN] * 4])))
