"""What is known of an environment after several iterations."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.windows import Visit, array, fault_share, table, window_of


def visit(
    iteration: int, plain: list[list[float]], hinted: list[list[float]] | None = None
) -> Visit:
    plain_SK = np.asarray(plain)
    hinted_SK = np.zeros((0, 0)) if hinted is None else np.asarray(hinted)
    return Visit(
        iteration=iteration,
        plain=table(plain_SK),
        plain_won=table((plain_SK >= 1.0).astype(float)),
        hinted=table(hinted_SK),
        hinted_won=table((hinted_SK >= 1.0).astype(float)),
        plays=plain_SK.size + hinted_SK.size,
    )


def test_a_table_comes_back_from_plain_data() -> None:
    values = np.asarray([[0.0, 1.0], [math.nan, math.nan]])
    rows = msgspec.json.decode(
        msgspec.json.encode(table(values)), type=tuple[tuple[float | None, ...], ...]
    )
    np.testing.assert_array_equal(array(rows), values)
    assert array(()).shape == (0, 0)


def test_a_window_of_one_visit_is_its_paired_regret() -> None:
    v = visit(3, [[0.0, 1.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 1.0]])
    window = window_of([v], "s")
    assert window.regret == window.matched == v.regret()
    assert window.regret.value == 0.5
    assert window.regret.seeds == 2
    assert window.returns == ((0.0, 1.0, 0.0, 0.0),)
    assert window.hinted_mean == 0.75


def test_replays_move_the_whole_window_and_leave_the_matched_regret() -> None:
    first = visit(4, [[0.0], [0.0]], [[1.0], [1.0]])
    replay = visit(6, [[1.0], [0.0]])
    window = window_of([first, replay], "s")
    assert window.matched.value == 1.0
    # mean hinted 1, mean plain 1/4
    assert window.regret.value == pytest.approx(0.75)
    assert window.regret.solve_rate == 0.25
    assert window.returns == ((0.0, 0.0), (), (1.0, 0.0))
    assert window.regret.value == pytest.approx(window.mean_regret)


unit = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@given(
    st.lists(st.tuples(unit, unit), min_size=2, max_size=6),
    st.lists(unit, min_size=0, max_size=6),
)
def test_the_pooled_estimate_is_the_difference_of_means(
    pairs: list[tuple[float, float]], alone: list[float]
) -> None:
    visits = [visit(0, [[r] for _, r in pairs], [[h] for h, _ in pairs])]
    if alone:
        visits.append(visit(1, [[r] for r in alone]))
    regret = window_of(visits, "s").regret
    hinted = [h for h, _ in pairs]
    plain = [r for _, r in pairs] + alone
    assert regret.value == pytest.approx(np.mean(hinted) - np.mean(plain))
    assert regret.seeds == len(pairs)


def test_the_standard_error_of_a_window_by_hand() -> None:
    """n0 = 2 pairs, n1 = 2 alone: var(h - r/2)/2 + (1/2)^2 var(alone)/2."""
    visits = [visit(0, [[0.0], [1.0]], [[1.0], [1.0]]), visit(1, [[0.0], [1.0]])]
    inner = np.asarray([1.0, 0.5])
    expected = np.sqrt(inner.var(ddof=1) / 2 + 0.25 * np.asarray([0.0, 1.0]).var(ddof=1) / 2)
    assert window_of(visits, "s").regret.standard_error == pytest.approx(expected)


def test_a_seed_that_a_fault_dropped_counts_in_neither_arm() -> None:
    v = visit(0, [[0.0], [math.nan], [0.0]], [[1.0], [math.nan], [0.0]])
    window = window_of([v, visit(1, [[math.nan], [0.0]])], "s")
    assert window.regret.seeds == 2
    assert window.regret.value == pytest.approx(0.5)
    assert window.returns == ((0.0, 0.0), (0.0,))


def test_without_hints_there_is_a_solve_rate_and_no_regret() -> None:
    window = window_of([visit(0, [[1.0], [0.0]])], "s")
    assert math.isnan(window.regret.value)
    assert window.regret.solve_rate == 0.5
    assert math.isnan(window.hinted_mean)


def test_faults_are_a_share_of_all_plays() -> None:
    clean = visit(0, [[0.0], [0.0]], [[0.0], [0.0]])
    broken = Visit(iteration=1, plain=clean.plain, plain_won=clean.plain_won, faults=2.0, plays=4)
    assert fault_share([clean, broken]) == 0.25
    assert fault_share([]) == 0.0
