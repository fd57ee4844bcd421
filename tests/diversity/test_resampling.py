from __future__ import annotations

from statistics import mean

import numpy as np
import pytest

from synthgym.diversity.resampling import Estimate, Rows, Values, size_matched
from synthgym.errors import ConfigError

VALUES = np.random.default_rng(5).normal(10.0, 2.0, 400)


def of(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mean_of(rows: Rows) -> Values:
    return {"mean": float(VALUES[rows].mean()), "size": float(len(rows))}


def test_a_pool_of_the_common_size_has_its_own_figures() -> None:
    found = size_matched(400, 2000, mean_of, of())
    estimate = found["mean"]
    assert estimate is not None
    assert estimate.value == pytest.approx(VALUES.mean())
    # The jackknife of a mean is its standard error: half a width of about 2.09 * 2 / sqrt(400).
    assert estimate.low is not None
    assert estimate.value - estimate.low == pytest.approx(2.093 * VALUES.std() / 20, rel=0.5)


def test_a_larger_pool_has_the_mean_over_subsets_of_the_common_size() -> None:
    sizes: list[int] = []

    def measure(rows: Rows) -> Values:
        sizes.append(len(rows))
        assert len(set(rows.tolist())) == len(rows)
        return mean_of(rows)

    estimate = size_matched(400, 50, measure, of())["mean"]
    assert sizes == [50] * 20
    assert estimate is not None
    assert estimate.value == pytest.approx(VALUES.mean(), abs=0.3)


def test_between_half_and_all_there_are_subsets_for_the_figure_and_halves_for_the_interval() -> (
    None
):
    sizes: list[int] = []

    def measure(rows: Rows) -> Values:
        sizes.append(len(rows))
        return mean_of(rows)

    found = size_matched(400, 300, measure, of())
    assert sizes == [300] * 20 + [200] * 20
    assert found["size"] == Estimate(300.0, 300.0, 300.0)


def test_intervals_hold_the_mean_of_the_source_about_as_often_as_they_say() -> None:
    for n, size in ((60, 60), (60, 20), (60, 45)):
        held = 0
        for seed in range(100):
            pool = of(seed).normal(0.0, 1.0, n)
            found = size_matched(n, size, lambda rows, p=pool: {"x": float(p[rows].mean())}, of(1))
            estimate = found["x"]
            assert estimate is not None
            assert estimate.low is not None
            assert estimate.high is not None
            held += estimate.low <= 0.0 <= estimate.high
        assert held >= 88, (n, size, held)


def test_intervals_become_narrow_with_the_size_of_the_pool() -> None:
    widths = []
    for n in (40, 400):
        found = size_matched(n, n, mean_of, of())["mean"]
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert widths[1] < widths[0] / 2


def test_the_same_generator_gives_the_same_and_another_one_does_not() -> None:
    assert size_matched(400, 50, mean_of, of(3)) == size_matched(400, 50, mean_of, of(3))
    assert size_matched(400, 50, mean_of, of(3)) != size_matched(400, 50, mean_of, of(4))


@pytest.mark.parametrize("n", [1, 2, 7])
def test_a_small_pool_has_figures_without_an_interval(n: int) -> None:
    found = size_matched(n, 2000, mean_of, of())["mean"]
    assert found == Estimate(pytest.approx(mean(VALUES[:n].tolist())))


def test_a_figure_that_subsets_are_too_small_for_is_none_or_has_no_interval() -> None:
    def measure(rows: Rows) -> Values:
        return {"pairs": None if len(rows) < 6 else 1.0, "never": None}

    found = size_matched(10, 10, measure, of())
    assert found == {"pairs": Estimate(1.0), "never": None}


@pytest.mark.parametrize(("n", "size"), [(0, 5), (5, 0)])
def test_nothing_cannot_be_measured(n: int, size: int) -> None:
    with pytest.raises(ConfigError, match="at least"):
        size_matched(n, size, mean_of, of())
