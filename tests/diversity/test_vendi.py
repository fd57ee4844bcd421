from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.diversity.vendi import (
    ORDERS,
    Vectors,
    hill_number,
    spectrum,
    spectrum_of_chunks,
    vendi_score,
)
from synthgym.errors import ConfigError


def unit(rows: Vectors) -> Vectors:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def random_rows(n: int, dim: int, seed: int = 0) -> Vectors:
    return unit(np.random.default_rng(seed).standard_normal((n, dim)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dim", [3, 8], ids=["by covariance", "by kernel"])
def test_the_score_of_copies_is_one_and_of_orthogonal_vectors_their_number(
    dim: int, order: float
) -> None:
    rows = np.eye(dim)[:3]
    assert vendi_score(rows, order) == pytest.approx(3.0)
    assert vendi_score(np.repeat(rows[:1], 5, axis=0), order) == pytest.approx(1.0)
    assert vendi_score(np.repeat(rows, 4, axis=0), order) == pytest.approx(3.0)


def test_two_vectors_at_a_known_angle_give_what_is_worked_out_by_hand() -> None:
    # K/2 = [[1/2, c/2], [c/2, 1/2]] has the eigenvalues (1 + c)/2 and (1 - c)/2; c = 0.6: 0.8, 0.2.
    rows = np.array([[1.0, 0.0], [0.6, 0.8]])
    assert spectrum(rows) == pytest.approx([0.8, 0.2])
    assert vendi_score(rows) == pytest.approx(0.8**-0.8 * 0.2**-0.2)  # 1.6493...
    assert vendi_score(rows, 2.0) == pytest.approx(1 / 0.68)
    assert vendi_score(rows, math.inf) == pytest.approx(1 / 0.8)
    assert vendi_score(rows, 0.5) == pytest.approx((0.8**0.5 + 0.2**0.5) ** 2)
    assert vendi_score(rows, 0.0) == pytest.approx(2.0)


def test_two_of_one_and_one_of_another_come_to_the_hill_numbers_of_two_thirds_and_one_third() -> (
    None
):
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert vendi_score(rows) == pytest.approx(3 / 4 ** (1 / 3))  # (2/3)^(-2/3) (1/3)^(-1/3)
    assert vendi_score(rows, 2.0) == pytest.approx(9 / 5)
    assert vendi_score(rows, math.inf) == pytest.approx(3 / 2)


@pytest.mark.parametrize(("n", "dim"), [(7, 30), (30, 7), (12, 12)])
def test_kernel_and_covariance_have_the_same_eigenvalues(n: int, dim: int) -> None:
    rows = random_rows(n, dim)
    by_kernel = np.linalg.eigvalsh(rows @ rows.T / n)[::-1][: min(n, dim)]
    assert spectrum(rows) == pytest.approx(by_kernel, abs=1e-12)
    assert spectrum_of_chunks([rows[:5], rows[5:]]) == pytest.approx(by_kernel, abs=1e-12)


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
def test_scores_lie_between_one_and_the_rank_and_fall_with_the_order(
    n: int, dim: int, seed: int
) -> None:
    scores = [vendi_score(random_rows(n, dim, seed), order) for order in (0.0, *ORDERS)]
    assert scores == sorted(scores, reverse=True) or scores == pytest.approx([scores[0]] * 4)
    assert 1.0 - 1e-9 <= scores[-1] <= scores[0] <= min(n, dim) + 1e-9


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_a_hill_number_does_not_depend_on_the_scale(shares: list[float]) -> None:
    doubled = [2.0 * share for share in shares]
    for order in ORDERS:
        assert hill_number(doubled, order) == pytest.approx(hill_number(shares, order))


def test_two_hundred_thousand_rows_in_chunks_take_the_memory_of_one_chunk() -> None:
    def parts() -> Iterator[Vectors]:
        for seed in range(100):
            yield random_rows(2000, 16, seed).astype(np.float32)

    tracemalloc.start()
    score = vendi_score_of(parts())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert score == pytest.approx(16.0, abs=0.01)  # directions at random have no main theme
    assert peak < 4_000_000  # all rows are 12.8 MB


def vendi_score_of(parts: Iterator[Vectors]) -> float:
    return hill_number(spectrum_of_chunks(parts), 1.0)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((0, 4)),
        np.zeros((2, 4)),
        np.full((2, 4), np.nan),
        np.array([[2.0, 0.0]]),
        np.array([1.0, 0.0]),
    ],
    ids=["none", "zeros", "nan", "long", "flat"],
)
def test_rows_that_are_no_unit_vectors_are_refused(rows: Vectors) -> None:
    with pytest.raises(ConfigError, match=r"unit vectors|at least one|shape"):
        vendi_score(rows)


def test_parts_of_different_width_are_refused() -> None:
    with pytest.raises(ConfigError, match="length 2, got 3"):
        spectrum_of_chunks([np.eye(2), np.eye(3)])


@pytest.mark.parametrize("shares", [[], [0.0], [1.0, -1.0], [math.nan, 1.0], [math.inf]])
def test_what_are_no_shares_is_refused(shares: list[float]) -> None:
    with pytest.raises(ConfigError, match="shares"):
        hill_number(shares, 1.0)


@pytest.mark.parametrize("order", [-1.0, math.nan])
def test_an_order_below_zero_is_refused(order: float) -> None:
    with pytest.raises(ConfigError, match="order"):
        hill_number([1.0], order)
