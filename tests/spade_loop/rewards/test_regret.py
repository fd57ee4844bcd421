"""Regret of two arms, paired and not, and its intervals."""

from __future__ import annotations

import math
from statistics import fmean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spade_loop.rewards import (
    NOT_MEASURED,
    Regret,
    bootstrap_interval,
    floored,
    paired_regret,
    regret_interval,
    unpaired_regret,
)
from spade_loop.rewards.quantiles import normal_quantile, student_quantile

UNIT = st.floats(0.0, 1.0)
NAN = math.nan
SHAPES = st.tuples(st.integers(1, 9), st.integers(1, 4))


def tables(seeds: int = 4, plays: int = 2):
    return hnp.arrays(np.float64, (seeds, plays), elements=UNIT)


@st.composite
def arms(draw: st.DrawFn, elements: st.SearchStrategy[float] = UNIT):
    """Two arms of one shape; a dropped seed is NaN in both."""
    shape = draw(SHAPES)
    hinted, plain = (draw(hnp.arrays(np.float64, shape, elements=elements)) for _ in range(2))
    dropped = draw(hnp.arrays(np.bool_, shape[0]))
    hinted[dropped] = plain[dropped] = NAN
    return hinted, plain


def wins(better: int, worse: int, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs played once: so many won with the hint alone, so many without it alone; the rest lost both."""
    hinted, plain = np.zeros((pairs, 1)), np.zeros((pairs, 1))
    hinted[:better] = plain[better : better + worse] = 1.0
    return hinted, plain


# --- regret ---


def test_regret_is_the_mean_over_seeds_of_the_paired_difference() -> None:
    plain = np.array([[0.0, 0.0], [1.0, 1.0]])
    hinted = np.array([[1.0, 0.0], [1.0, 1.0]])
    result = paired_regret(hinted, plain, hinted, plain)
    assert result.value == pytest.approx(0.25)
    # differences 0.5 and 0: sd 0.3536, over sqrt(2)
    assert result.standard_error == pytest.approx(0.25)
    assert (result.solve_rate, result.hinted_solve_rate, result.seeds) == (0.5, 0.75, 2)


def test_a_seed_that_faulted_in_one_arm_counts_in_neither() -> None:
    plain = np.array([[0.0, 0.0], [NAN, NAN]])
    hinted = np.array([[1.0, 1.0], [0.0, 0.0]])
    result = paired_regret(hinted, plain, hinted, plain)
    assert (result.value, result.seeds) == (1.0, 1)
    assert np.isnan(result.standard_error)


@pytest.mark.parametrize("measure", [paired_regret, unpaired_regret])
def test_nothing_measurable_is_not_a_number_and_never_zero(measure) -> None:
    nothing = np.full((2, 2), NAN)
    assert measure(nothing, nothing, nothing, nothing) is NOT_MEASURED
    assert np.isnan(NOT_MEASURED.value)


@given(arms())
def test_paired_regret_is_its_formula(both: tuple[np.ndarray, np.ndarray]) -> None:
    hinted, plain = both
    result = paired_regret(hinted, plain, hinted, plain)
    rows = [
        (fmean(h), fmean(p))
        for h, p in zip(hinted.tolist(), plain.tolist(), strict=True)
        if not math.isnan(h[0])
    ]
    assert result.seeds == len(rows)
    if rows:
        differences = [h - p for h, p in rows]
        assert result.value == pytest.approx(fmean(differences), abs=1e-12)
        assert result.solve_rate == pytest.approx(fmean(p for _, p in rows), abs=1e-12)
    if len(rows) > 1:
        error = stdev(differences) / math.sqrt(len(rows))
        assert result.standard_error == pytest.approx(error, abs=1e-9)


@given(tables(), tables())
def test_what_instances_share_does_not_change_regret(plain: np.ndarray, gain: np.ndarray) -> None:
    shift = np.linspace(0.0, 3.0, 4)[:, None]
    first = paired_regret(plain + gain, plain, plain, plain)
    moved = paired_regret(plain + gain + shift, plain + shift, plain, plain)
    assert moved.value == pytest.approx(first.value)
    assert moved.standard_error == pytest.approx(first.standard_error, abs=1e-9)


def test_unpaired_regret_has_the_error_of_two_independent_means() -> None:
    hinted = np.array([[1.0, 1.0], [1.0, 0.0], [NAN, NAN]])
    plain = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    result = unpaired_regret(hinted, plain, hinted, plain)
    # means of seeds: 1, 0.5 and 0, 0.5, 0; variances 0.125 and 1/12
    assert result.value == pytest.approx(0.75 - 1 / 6)
    assert result.standard_error == pytest.approx(math.sqrt(0.125 / 2 + 1 / 36))
    assert (result.solve_rate, result.hinted_solve_rate, result.seeds) == (1 / 6, 0.75, 2)


def test_pairing_takes_out_what_instances_share() -> None:
    plain = np.linspace(0.0, 0.8, 5)[:, None]
    hinted = plain + 0.2
    arrays = hinted, plain, hinted, plain
    assert paired_regret(*arrays).standard_error == pytest.approx(0.0, abs=1e-12)
    assert unpaired_regret(*arrays).standard_error == pytest.approx(0.2)
    assert unpaired_regret(*arrays).value == pytest.approx(paired_regret(*arrays).value)


@pytest.mark.parametrize(("value", "shown"), [(-0.2, 0.0), (0.3, 0.3), (NAN, NAN)])
def test_regret_is_floored_for_display(value: float, shown: float) -> None:
    assert floored(Regret(value, 0.1, 0.5, 0.9, 4)) == pytest.approx(shown, nan_ok=True)


# --- quantiles ---


@pytest.mark.parametrize(
    ("confidence", "degrees", "expected"),
    [
        (0.95, 1, 12.706204736174698),
        (0.95, 2, 4.302652729749464),
        (0.95, 3, 3.182446305283708),
        (0.99, 7, 3.4994832973505017),
        (0.95, 30, 2.0422724563012378),
        (0.9, 255, 1.6508510924986621),
    ],
)
def test_quantiles_of_student_are_those_of_the_tables(
    confidence: float, degrees: int, expected: float
) -> None:
    assert student_quantile(confidence, degrees) == pytest.approx(expected, rel=1e-9)


@given(st.floats(0.01, 0.999), st.integers(1, 300))
def test_student_has_wider_tails_than_the_normal_and_comes_down_to_it(
    confidence: float, degrees: int
) -> None:
    t = student_quantile(confidence, degrees)
    assert t > student_quantile(confidence, degrees + 1) > normal_quantile(confidence) > 0.0


# --- intervals ---


def test_agresti_min_is_the_interval_that_others_compute() -> None:
    # PropCIs::diffpropci.mp(b = 40, c = 20, n = 160, conf.level = 0.95) of R, from its documentation
    interval = regret_interval(*wins(20, 40, 160))
    assert interval.method == "agresti-min"
    assert (interval.low, interval.high) == pytest.approx((-0.21601726, -0.03089632), abs=1e-8)


def test_agresti_min_adds_half_a_pair_to_each_cell() -> None:
    interval = regret_interval(*wins(3, 1, 8))
    # 10 pairs, 3.5 better and 1.5 worse
    centre, error = 0.2, math.sqrt((5 / 10 - 0.2**2) / 10)
    z = 1.959963984540054
    assert interval.low == pytest.approx(centre - z * error)
    assert interval.high == pytest.approx(centre + z * error)


def test_seeds_are_the_clusters_of_plays() -> None:
    plain = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
    hinted = np.array([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    interval = regret_interval(hinted, plain)
    # differences 1, 0, 0.5, 0; two seeds more, worth +1 and -1 by halves
    centre, error = 1.5 / 6, math.sqrt(((1.25 + 1.0) / 6 - 0.25**2) / 6)
    assert interval.method == "adjusted-t"
    assert interval.low == pytest.approx(centre - 3.182446305283708 * error)
    assert interval.high == pytest.approx(min(1.0, centre + 3.182446305283708 * error))


def test_partial_rewards_played_once_are_not_wins_and_losses() -> None:
    hinted, plain = wins(3, 1, 8)
    assert regret_interval(hinted * 0.5, plain).method == "adjusted-t"


def test_a_wider_range_of_returns_widens_the_interval() -> None:
    hinted, plain = wins(3, 1, 8)
    ours = regret_interval(hinted[:, [0, 0]], plain[:, [0, 0]])
    wide = regret_interval(2 * hinted[:, [0, 0]] - 1, 2 * plain[:, [0, 0]] - 1, 0.95, (-1.0, 1.0))
    assert (wide.low, wide.high) == pytest.approx((2 * ours.low, 2 * ours.high))


@pytest.mark.parametrize("seeds", [0, 1])
def test_too_few_seeds_say_nothing(seeds: int) -> None:
    table = np.full((3, 2), NAN)
    table[:seeds] = 0.5
    for interval in (
        regret_interval(table, table),
        bootstrap_interval(table, table, np.random.default_rng(0)),
    ):
        assert (interval.low, interval.high, interval.method) == (-1.0, 1.0, "none")


def test_seeds_that_agree_do_not_close_the_interval() -> None:
    interval = regret_interval(np.zeros((4, 4)), np.zeros((4, 4)))
    assert interval.half_width == pytest.approx(3.182446305283708 / 6)


@given(arms(), st.sampled_from([0.8, 0.95, 0.999]))
def test_an_interval_holds_the_estimate_and_nothing_impossible(
    both: tuple[np.ndarray, np.ndarray], confidence: float
) -> None:
    value = paired_regret(*both, *both).value
    rng = np.random.default_rng(1)
    for interval in (
        regret_interval(*both, confidence),
        bootstrap_interval(*both, rng, confidence, resamples=100),
        bootstrap_interval(*both, rng, confidence, resamples=100, studentised=True),
    ):
        assert -1.0 <= interval.low <= interval.high <= 1.0
        assert interval.confidence == confidence
        assert math.isnan(value) or interval.low <= value <= interval.high


@pytest.mark.parametrize(("better", "worse"), [(1, 0), (0, 1)])
def test_with_little_confidence_the_interval_is_stretched_to_the_estimate(
    better: int, worse: int
) -> None:
    interval = regret_interval(*wins(better, worse, 1), 0.3)
    # centre 1/3 of the way, error sqrt(5/27), z 0.3853: 0.499 would be the end
    inner, outer = sorted([abs(interval.low), abs(interval.high)])
    assert (inner, outer) == pytest.approx((1 / 3 - 0.385320466 * math.sqrt(5 / 27), 1.0))
    assert interval.low <= better - worse <= interval.high


@given(arms(st.sampled_from([0.0, 1.0])))
def test_more_confidence_is_a_wider_interval(both: tuple[np.ndarray, np.ndarray]) -> None:
    narrow, wide = regret_interval(*both, 0.9), regret_interval(*both, 0.99)
    assert wide.low <= narrow.low <= narrow.high <= wide.high


@pytest.mark.parametrize("studentised", [False, True])
def test_a_bootstrap_is_near_the_t_interval_with_many_seeds(studentised: bool) -> None:
    rng = np.random.default_rng(5)
    plain = rng.random((200, 2)) * 0.5
    hinted = plain + rng.random((200, 2)) * 0.5
    made = bootstrap_interval(
        hinted, plain, np.random.default_rng(7), studentised=studentised, resamples=4000
    )
    difference = (hinted - plain).mean(axis=1)
    error = difference.std(ddof=1) / math.sqrt(200)
    assert made.low == pytest.approx(difference.mean() - 1.97 * error, abs=0.15 * error)
    assert made.high == pytest.approx(difference.mean() + 1.97 * error, abs=0.15 * error)
    again = bootstrap_interval(
        hinted, plain, np.random.default_rng(7), studentised=studentised, resamples=4000
    )
    assert made == again


def test_a_studentised_bootstrap_is_skewed_the_other_way_of_a_percentile_one() -> None:
    # One seed in ten has all the gain: the mean of few draws errs on the low side, so the high end must be far.
    plain = np.zeros((20, 1))
    hinted = np.zeros((20, 1))
    hinted[:4, 0] = [0.6, 0.7, 0.8, 0.9]
    percentile, studentised = (
        bootstrap_interval(hinted, plain, np.random.default_rng(3), studentised=kind)
        for kind in (False, True)
    )
    mean = 0.15
    assert studentised.high - mean > percentile.high - mean > mean - percentile.low


@pytest.mark.parametrize(
    ("hinted", "plain", "message"),
    [
        (
            np.zeros((2, 2)),
            np.zeros((2, 1)),
            r"two equal \(S, K\) shapes, got \(2, 2\) and \(2, 1\)",
        ),
        (np.zeros(3), np.zeros(3), r"two equal \(S, K\) shapes"),
        (np.full((2, 1), 1.5), np.zeros((2, 1)), r"must lie in \(0.0, 1.0\), got 1.5 to 1.5"),
        (np.zeros((2, 1)), np.full((2, 1), -1.0), r"as `return_range`"),
    ],
)
def test_arms_that_are_no_pair_are_refused(
    hinted: np.ndarray, plain: np.ndarray, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        regret_interval(hinted, plain)


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0, NAN])
def test_a_confidence_that_is_none_is_refused(confidence: float) -> None:
    hinted, plain = wins(3, 1, 8)
    for seeds in (hinted, plain), (hinted[:, [0, 0]], plain[:, [0, 0]]):
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
            regret_interval(*seeds, confidence)
        with pytest.raises(ValueError, match="confidence must lie between 0 and 1"):
            bootstrap_interval(*seeds, np.random.default_rng(0), confidence)


def test_a_bootstrap_of_few_resamples_is_refused() -> None:
    with pytest.raises(ValueError, match="resamples must be at least 100, got 99"):
        bootstrap_interval(*wins(3, 1, 8), np.random.default_rng(0), resamples=99)
