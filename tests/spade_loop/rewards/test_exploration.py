"""Kinds of design: how many there are, what a rare one earns, when to warn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.rewards import (
    CELL_WINDOW,
    NOT_MEASURED,
    Regret,
    cell_bonus,
    effective_cells,
    few_kinds,
    only_hints_solve,
)


def regret_of(value: float, solve_rate: float) -> Regret:
    return Regret(value, 0.1, solve_rate, 0.9, 4)


def test_effective_cells_are_cells_used_alike() -> None:
    assert effective_cells([5, 5, 0, 5, 5]) == pytest.approx(4.0)
    assert effective_cells([7]) == pytest.approx(1.0)
    assert effective_cells([]) == 0.0
    # shares 1/4 and 3/4
    assert effective_cells([1, 3]) == pytest.approx(4 / 3**0.75)


@given(st.lists(st.integers(0, 50), max_size=8))
def test_there_are_at_most_as_many_effective_cells_as_cells(counts: list[int]) -> None:
    used = sum(c > 0 for c in counts)
    assert min(used, 1) - 1e-9 <= effective_cells(counts) <= used + 1e-9


def test_rare_cells_earn_more_than_frequent_ones() -> None:
    assert cell_bonus(0, 9, 0.05) > cell_bonus(8, 9, 0.05) > 0.0
    assert cell_bonus(1, 3, 0.05) == pytest.approx(0.05 * math.log(2))
    assert cell_bonus(0, 0, 0.05) == 0.0


@pytest.mark.parametrize(
    ("regrets", "alarm"),
    [
        ([(0.5, 0.0), (0.6, 0.05)], True),
        ([(0.5, 0.2)], False),
        ([(0.3, 0.0)], False),
        ([(0.9, 0.0), (0.0, 0.0)], True),
        ([(0.9, 0.0), (0.9, 0.0), (0.2, 0.6)], True),
        ([(0.9, 0.0), (0.0, 0.3)], False),
        ([], False),
    ],
)
def test_high_regret_that_only_the_hint_explains_is_an_alarm(
    regrets: list[tuple[float, float]], alarm: bool
) -> None:
    known = [regret_of(*r) for r in regrets]
    assert only_hints_solve(known) is alarm
    assert only_hints_solve([*known, NOT_MEASURED]) is alarm


@pytest.mark.parametrize(
    ("counts", "iterations", "alarm"),
    [
        ([9, 9, 10], CELL_WINDOW, True),
        ([9, 9, 10], CELL_WINDOW - 1, False),
        ([5, 5, 5, 6, 6], CELL_WINDOW, False),
        ([40, 1, 1, 1], CELL_WINDOW, True),
        ([], CELL_WINDOW, True),
    ],
)
def test_few_kinds_over_ten_iterations_are_an_alarm(
    counts: list[int], iterations: int, alarm: bool
) -> None:
    assert few_kinds(counts, iterations) is alarm
