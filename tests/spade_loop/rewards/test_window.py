"""What a window says of its environment, and the learning potential that is read off it."""

from __future__ import annotations

import math
from statistics import fmean, pvariance

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.rewards import (
    LearningRates,
    Regret,
    Tracker,
    Window,
    learning_potentials,
    update_trackers,
)
from spade_loop.rewards.learning import learning_potential_of, solver_variance

NAN = math.nan
UNIT = st.floats(0.0, 1.0)
RETURNS = st.lists(st.lists(UNIT, max_size=4).map(tuple), max_size=6).map(tuple)


def window(*returns: tuple[float, ...], hinted: float = 0.5, skill: str = "logic") -> Window:
    regret = Regret(0.1, 0.1, 0.5, 0.6, 4)
    return Window(regret=regret, matched=regret, returns=returns, hinted_mean=hinted, skill=skill)


# --- window ---


def test_the_middle_offset_is_late_and_means_are_over_plays() -> None:
    assert window((0.0,), (0.5,), (1.0,)).gain == pytest.approx(0.75)
    assert window((0.0, 0.0), (1.0,), (0.0, 0.0, 0.0)).gain == pytest.approx(0.25)


def test_offsets_without_a_play_are_no_offsets() -> None:
    gap = window((0.25, 0.25), (), (0.75, 0.75))
    assert gap.offsets == (0, 2)
    assert (gap.gain, gap.trend) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("returns", [(), ((),), ((0.4, 1.0),), ((), (0.4,), ())])
def test_one_offset_shows_no_learning(returns: tuple[tuple[float, ...], ...]) -> None:
    assert (window(*returns).gain, window(*returns).trend) == (0.0, 0.0)


def test_the_trend_is_a_weighted_line_from_the_first_to_the_last_offset() -> None:
    # means 0, 1, 0.5 with weights 1, 1, 2: mean offset 1.25, mean 0.5; Sxy = 0.5, Sxx = 2.75
    assert window((0.0,), (1.0,), (0.5, 0.5)).trend == pytest.approx(2 * 0.5 / 2.75)


@given(RETURNS)
def test_the_trend_is_that_of_polyfit_with_root_weights(
    returns: tuple[tuple[float, ...], ...],
) -> None:
    made = window(*returns)
    xs = [j for j, r in enumerate(returns) if r]
    if len(xs) < 2:
        assert made.trend == 0.0
        return
    means = [fmean(returns[j]) for j in xs]
    slope = np.polyfit(xs, means, 1, w=[math.sqrt(len(returns[j])) for j in xs])[0]
    assert made.trend == pytest.approx(slope * (xs[-1] - xs[0]), abs=1e-9)


@given(RETURNS, st.integers(0, 3))
def test_learning_does_not_depend_on_when_the_first_play_was(
    returns: tuple[tuple[float, ...], ...], waited: int
) -> None:
    late = window(*((),) * waited, *returns)
    assert late.gain == window(*returns).gain
    assert late.trend == pytest.approx(window(*returns).trend, abs=1e-9)


def test_regret_of_means_compares_the_arms_whatever_their_seeds() -> None:
    made = window((0.0, 0.5), (1.0, 1.0), hinted=0.75)
    assert made.mean_return == pytest.approx(0.625)
    assert made.mean_regret == pytest.approx(0.125)
    assert made.matched_mean_regret == pytest.approx(0.5)
    assert math.isnan(window(hinted=0.75).matched_mean_regret)
    assert math.isnan(window((), hinted=0.75).mean_regret)
    assert math.isnan(window((0.5,), hinted=NAN).mean_regret)


@pytest.mark.parametrize("value", [NAN, math.inf])
def test_unmeasured_plays_are_no_returns(value: float) -> None:
    with pytest.raises(ValueError, match=r"must be finite.*leave out unmeasured plays"):
        window((0.0, value))


# --- learning potential ---

SLOW_AND_FAST = LearningRates(fast=0.8, slow=0.2)


def test_trackers_start_at_the_first_value_and_follow_at_their_rates() -> None:
    first = update_trackers({}, [window((0.0, 0.0))], SLOW_AND_FAST)
    assert first == {"logic": Tracker(0.0, 0.0)}
    second = update_trackers(first, [window((1.0,)), window((0.0,), (0.5,))], SLOW_AND_FAST)
    # one update with the mean of all three plays
    assert second["logic"].fast == pytest.approx(0.4)
    assert second["logic"].slow == pytest.approx(0.1)
    assert second["logic"].progress(SLOW_AND_FAST) == pytest.approx(0.3 / 1.2)
    assert first == {"logic": Tracker(0.0, 0.0)}


def test_skills_have_trackers_of_their_own_and_no_plays_change_nothing() -> None:
    before = {"logic": Tracker(0.3, 0.2)}
    after = update_trackers(before, [window((1.0,), skill="maths"), window(())], SLOW_AND_FAST)
    assert after == {"logic": Tracker(0.3, 0.2), "maths": Tracker(1.0, 1.0)}


WINDOWS = [window((1.0, 1.0)), window((0.0, 0.0)), window((0.5, 0.5))]
BEFORE = {"logic": Tracker(0.0, 0.0)}


def test_potential_is_the_distance_from_the_slow_average() -> None:
    rewards, after = learning_potentials(WINDOWS, BEFORE, SLOW_AND_FAST)
    assert rewards == (1.0, 0.0, 0.5)
    assert after["logic"].slow == pytest.approx(0.1)


def test_the_released_code_updates_before_it_reads() -> None:
    rates = LearningRates(fast=0.8, slow=0.2, update_first=True)
    rewards, after = learning_potentials(WINDOWS, BEFORE, rates)
    assert rewards == pytest.approx((0.9, 0.1, 0.4))
    assert after["logic"].slow == pytest.approx(0.1)


def test_a_skill_without_history_has_no_distance() -> None:
    assert learning_potential_of(window((1.0,)), {}, LearningRates()) == 0.0
    assert math.isnan(learning_potential_of(window(()), BEFORE, LearningRates()))


def test_the_variance_term_needs_two_plays_and_is_one_for_a_fair_coin() -> None:
    rates = LearningRates(variance=True)
    assert learning_potential_of(window((0.0, 1.0)), {}, rates) == pytest.approx(1.0)
    assert learning_potential_of(window((0.5,)), {}, rates) == 0.0
    # var of three wins in four is 3/16: exp(-(1/16)^2 / 0.02)
    assert solver_variance(window((1.0, 1.0), (1.0, 0.0))) == pytest.approx(
        math.exp(-(0.0625**2) / 0.02)
    )


@given(RETURNS.filter(any), UNIT, st.booleans(), st.booleans())
def test_potential_is_its_formula(
    returns: tuple[tuple[float, ...], ...], slow: float, variance: bool, update_first: bool
) -> None:
    rates = LearningRates(variance=variance, update_first=update_first)
    made = window(*returns)
    (reward,), _ = learning_potentials([made], {"logic": Tracker(0.5, slow)}, rates)
    plays = [value for r in returns for value in r]
    baseline = 0.15 * slow + 0.85 * fmean(plays) if update_first else slow
    expected = abs(fmean(plays) - baseline)
    if variance and len(plays) > 1:
        expected += math.exp(-((pvariance(plays) - 0.25) ** 2) / 0.02)
    assert reward == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.5, 0.9), (1.1, 0.5), (0.5, 0.0)])
def test_rates_that_are_none_are_refused(rates: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="expected 0 < slow < fast <= 1"):
        LearningRates(fast=rates[0], slow=rates[1])
