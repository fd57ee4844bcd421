"""Intervals and tests against closed forms, enumeration, SciPy and simulation."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.evaluation.statistics import (
    EXACT_ITEMS,
    RESAMPLES,
    difference_with_interval,
    holm,
    mcnemar,
    mean_with_interval,
    pass_at_k,
    sign_flip,
)

SHARES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=40)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@given(SHARES)
def test_an_interval_holds_its_mean_and_stays_in_range(values: list[float]) -> None:
    estimate = mean_with_interval(values, rng())
    assert estimate is not None
    assert estimate.value == pytest.approx(np.mean(values))
    assert 0.0 <= estimate.low <= estimate.value + 1e-12
    assert estimate.value - 1e-12 <= estimate.high <= 1.0
    assert estimate.items == len(values)
    assert estimate == mean_with_interval(values, rng())


def test_nothing_measured_has_no_interval() -> None:
    assert mean_with_interval([], rng()) is None
    assert difference_with_interval([], rng()) is None


@pytest.mark.parametrize("items", [1, 8, 300])
def test_where_all_items_agree_the_interval_is_that_of_clopper_and_pearson(items: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason="compared with SciPy")
    for wins in (0, items):
        exact = stats.binomtest(wins, items).proportion_ci(0.95, method="exact")
        estimate = mean_with_interval([float(wins > 0)] * items, rng())
        assert estimate is not None
        assert (estimate.low, estimate.high) == pytest.approx((exact.low, exact.high))
    none = difference_with_interval([0.0] * items, rng())
    assert none is not None
    assert none.high == -none.low == pytest.approx(stats.binomtest(0, items).proportion_ci().high)


def test_the_bootstrap_covers_the_mean_of_clustered_items() -> None:
    draws = rng(5)
    covered = 0
    for _ in range(200):
        chances = draws.beta(
            0.7, 0.7, size=60
        )  # items differ much: their samples are not independent
        estimate = mean_with_interval(list(draws.binomial(8, chances) / 8), draws)
        assert estimate is not None
        covered += estimate.low <= 0.5 <= estimate.high
    # 95 % nominal; a binomial with 200 draws and 0.92 is below 177 once in 10,000 times.
    assert covered >= 177


def test_an_interval_that_took_samples_for_items_would_not_cover() -> None:
    draws = rng(6)
    covered = 0
    for _ in range(100):
        chances = draws.beta(0.7, 0.7, size=30)
        tries = (draws.random((30, 8)) < chances[:, None]).astype(float).ravel()
        estimate = mean_with_interval(list(tries), draws)
        assert estimate is not None
        covered += estimate.low <= 0.5 <= estimate.high
    assert covered < 80


@given(st.integers(1, 7), st.data())
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one(n: int, data: st.DataObject) -> None:
    c = data.draw(st.integers(0, n))
    k = data.draw(st.integers(1, n))
    subsets = list(combinations([1] * c + [0] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets))


@pytest.mark.parametrize("wrong", [(3, 4, 1), (3, 1, 0), (3, 1, 4), (3, -1, 1)])
def test_pass_at_k_refuses_what_cannot_be(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="expected"):
        pass_at_k(*wrong)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_the_two_sided_binomial_test(first: int, second: int) -> None:
    stats = pytest.importorskip("scipy.stats", reason="compared with SciPy")
    expected = stats.binomtest(first, first + second).pvalue if first + second else 1.0
    assert mcnemar(first, second) == pytest.approx(expected)
    assert mcnemar(first, second) == mcnemar(second, first)


def test_mcnemar_of_many_items_does_not_overflow() -> None:
    assert 0.0 <= mcnemar(1000, 3000) < 1e-100
    assert mcnemar(2000, 2000) == 1.0
    with pytest.raises(ValueError, match="at least 0"):
        mcnemar(-1, 2)


@given(st.lists(st.integers(-8, 8), max_size=8))
def test_the_exact_sign_flip_test_goes_through_all_patterns(eighths: list[int]) -> None:
    differences = [e / 8 for e in eighths]
    seen = abs(sum(eighths))
    patterns = list(product([1, -1], repeat=len(eighths)))
    beyond = sum(abs(sum(s * e for s, e in zip(p, eighths, strict=True))) >= seen for p in patterns)
    assert sign_flip(differences, rng()) == pytest.approx(beyond / len(patterns))


def test_the_sampled_sign_flip_test_agrees_with_the_exact_one_and_is_never_0() -> None:
    differences = [0.5, 0.25, -0.25, 1.0, 0.125, -0.5, 0.5, 0.375]
    many = differences * 3
    assert len(many) > EXACT_ITEMS
    stats = pytest.importorskip("scipy.stats", reason="compared with SciPy")
    theirs = stats.permutation_test(
        (np.array(many),), np.sum, permutation_type="samples", n_resamples=20_000, rng=rng(1)
    ).pvalue
    assert sign_flip(many, rng(2)) == pytest.approx(theirs, abs=0.015)
    assert sign_flip([1.0] * 60, rng()) == 1 / (RESAMPLES + 1)
    assert sign_flip([0.0] * 60, rng()) == 1.0


def test_p_values_under_the_hypothesis_are_not_too_small() -> None:
    draws = rng(9)
    small = sum(sign_flip(list(draws.normal(size=12)), draws) <= 0.05 for _ in range(400))
    assert small <= 40  # 20 expected; 5 standard deviations of a binomial


def test_holm_is_the_example_that_can_be_worked_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_keeps_the_order_and_lies_below_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    assert [adjusted[i] for i in order] == sorted(adjusted)
    for p, a in zip(p_values, adjusted, strict=True):
        assert p <= a <= min(1.0, len(p_values) * p) + 1e-12
