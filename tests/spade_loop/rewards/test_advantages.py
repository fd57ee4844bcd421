"""Baselines of both roles, role weights, the released code's normalisation, and statistics of groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spade_loop.rewards import (
    MIN_RMS,
    agent_advantages,
    designer_advantages,
    ema_advantages,
    group_statistics,
    leave_one_out,
    reference_agent_advantages,
    reference_designer_advantages,
    reference_multiplier,
    role_scale,
    update_rms,
    validity_advantages,
)

NAN = math.nan
MAYBE = st.one_of(st.just(NAN), st.floats(-1.0, 1.0))
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 5))
GROUPS = hnp.arrays(np.float64, SHAPES, elements=MAYBE)
REWARDS = hnp.arrays(np.float64, st.integers(1, 12), elements=MAYBE)


# --- ours ---


@given(hnp.arrays(np.float64, st.integers(2, 12), elements=st.floats(-1.0, 1.0)))
def test_leave_one_out_compares_with_the_others(reward: np.ndarray) -> None:
    others = (reward.sum() - reward) / (reward.size - 1)
    np.testing.assert_allclose(leave_one_out(reward), reward - others, atol=1e-9)


def test_a_missing_reward_gets_no_advantage_and_is_in_no_baseline() -> None:
    advantage = leave_one_out(np.array([1.0, NAN, 0.0]))
    np.testing.assert_allclose(advantage, [1.0, 0.0, -1.0])
    np.testing.assert_array_equal(leave_one_out(np.array([1.0, NAN])), [0.0, 0.0])


def test_agent_baseline_is_the_seed_with_four_plays_and_the_environment_with_fewer() -> None:
    four = np.array([[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]])
    np.testing.assert_allclose(agent_advantages(four)[0, 0], [0.75, -0.25, -0.25, -0.25])
    np.testing.assert_allclose(agent_advantages(four)[0, 1], 0.0)
    two = four[:, :, :2]
    np.testing.assert_allclose(agent_advantages(two)[0, 0], [1 / 3, -1.0])


def test_a_faulty_seed_gives_the_agent_no_advantage() -> None:
    returns = np.array([[[NAN, NAN], [1.0, 0.0]]])
    np.testing.assert_allclose(agent_advantages(returns)[0], [[0.0, 0.0], [1.0, -1.0]])


def test_validity_and_regret_are_centred_apart() -> None:
    valid = np.array([1.0, 1.0, 0.0, 0.0])
    reward = np.array([0.5, 0.1, NAN, NAN])
    advantage = designer_advantages(valid, reward, 0.3)
    np.testing.assert_allclose(advantage, [0.15 + 0.4, 0.15 - 0.4, -0.15, -0.15])
    np.testing.assert_allclose(validity_advantages(valid, 0.3), [0.15, 0.15, -0.15, -0.15])


@given(GROUPS)
def test_the_agents_advantages_sum_to_nothing_in_each_group_and_are_numbers(
    returns: np.ndarray,
) -> None:
    for advantage in (agent_advantages(returns), reference_agent_advantages(returns)):
        assert np.isfinite(advantage).all()
        assert (advantage[np.isnan(returns)] == 0.0).all()
    sums = agent_advantages(returns).sum(axis=2 if returns.shape[2] >= 4 else (1, 2))
    np.testing.assert_allclose(sums, 0.0, atol=1e-9)
    # Divided by at least 1e-8, a rounding error of 1e-16 may grow to 1e-8.
    np.testing.assert_allclose(reference_agent_advantages(returns).sum(axis=(1, 2)), 0.0, atol=1e-6)


@given(REWARDS, st.data())
def test_the_designers_advantages_sum_to_nothing_and_are_numbers(
    reward: np.ndarray, data: st.DataObject
) -> None:
    valid = data.draw(hnp.arrays(np.float64, reward.size, elements=st.sampled_from([0.0, 1.0])))
    for advantage in (
        designer_advantages(valid, reward, 0.3),
        reference_designer_advantages(reward, 50.0),
    ):
        assert np.isfinite(advantage).all()
        assert advantage.sum() == pytest.approx(0.0, abs=1e-9)


# --- role weights ---


def test_role_weights_make_each_role_a_mean_over_its_own_rows() -> None:
    assert role_scale(0.3, 40, 5, 0.5) == pytest.approx(0.3 * 8 / 0.5)
    assert role_scale(0.3, 40, 5, 0.0) == pytest.approx(0.3 * 8 / MIN_RMS)


def test_running_rms_moves_slowly_and_keeps_its_value_without_rows() -> None:
    assert update_rms(None, np.array([3.0, -3.0])) == pytest.approx(3.0)
    assert update_rms(1.0, np.array([2.0])) == pytest.approx(np.sqrt(0.9 + 0.4))
    assert update_rms(1.0, np.array([])) == 1.0
    assert update_rms(None, np.array([])) == MIN_RMS


# --- the released code ---


@pytest.mark.parametrize(
    ("rows", "designs", "interval", "expected"),
    [(192, 24, 4, 32.0), (192, 24, 8, 50.0), (256, 16, 32, 50.0)],
    ids=["games", "tools 8B and 30B", "tools 4B"],
)
def test_the_multiplier_is_that_of_the_recipes(
    rows: int, designs: int, interval: int, expected: float
) -> None:
    assert reference_multiplier(rows, designs, interval) == expected


@pytest.mark.parametrize(("designs", "interval"), [(0, 4), (24, 0)])
def test_a_multiplier_of_nothing_is_refused(designs: int, interval: int) -> None:
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        reference_multiplier(192, designs, interval)


def test_the_released_code_divides_the_agents_by_the_std_of_the_environment() -> None:
    returns = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.5, 0.5], [0.5, NAN]]])
    # mean 1/4, population std sqrt(3)/4
    expected = np.array([3.0, -1.0, -1.0, -1.0]) / math.sqrt(3.0)
    made = reference_agent_advantages(returns)
    np.testing.assert_allclose(made[0].ravel(), expected, rtol=1e-6)
    np.testing.assert_array_equal(made[1], 0.0)


def test_the_released_code_centres_designs_and_multiplies() -> None:
    reward = np.array([0.2, 0.8, NAN, 0.5])
    made = reference_designer_advantages(reward, reference_multiplier(192, 24, 4))
    np.testing.assert_allclose(made, [-9.6, 9.6, 0.0, 0.0], atol=1e-12)


@given(GROUPS)
def test_the_released_codes_agent_advantage_is_its_formula(returns: np.ndarray) -> None:
    made = reference_agent_advantages(returns)
    for e, table in enumerate(returns):
        known = [float(r) for r in table.ravel() if not math.isnan(r)]
        if not known:
            continue
        mean = math.fsum(known) / len(known)
        std = math.sqrt(math.fsum((r - mean) ** 2 for r in known) / len(known))
        expected = [0.0 if math.isnan(r) else (r - mean) / (std + 1e-8) for r in table.ravel()]
        np.testing.assert_allclose(made[e].ravel(), expected, atol=1e-6, rtol=1e-6)


def test_a_moving_average_is_read_before_it_is_updated() -> None:
    returns = np.array([[[1.0, 0.0]], [[0.5, 0.5]], [[NAN, NAN]]])
    advantage, after = ema_advantages(returns, np.array([0.2, NAN, 0.7]))
    np.testing.assert_allclose(advantage[:, 0], [[0.8, -0.2], [0.5, 0.5], [0.0, 0.0]])
    np.testing.assert_allclose(after, [0.35, 0.5, 0.7])
    slow, _ = ema_advantages(returns, after, decay=0.9)
    np.testing.assert_allclose(slow[1, 0], 0.0)


def test_a_decay_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"decay must lie in \[0, 1\), got 1"):
        ema_advantages(np.zeros((1, 1, 1)), np.zeros(1), decay=1.0)


# --- groups ---


def test_groups_are_counted_by_environment_and_by_seed() -> None:
    returns = np.array(
        [
            [[1.0, 1.0], [0.0, 0.0]],  # seeds flat, environment not
            [[0.1, 0.1], [NAN, NAN]],  # flat, one seed lost
            [[1.0, 0.0], [0.5, 0.5]],
            [[NAN, NAN], [NAN, NAN]],
        ]
    )
    found = group_statistics(returns)
    assert (found.environments, found.flat_environments) == (3, 1)
    assert (found.seeds, found.flat_seeds) == (5, 4)
    np.testing.assert_allclose(found.mean_E, [0.5, 0.1, 0.5, NAN])
    np.testing.assert_allclose(found.std_E[:3], [0.5, 0.0, math.sqrt(0.125)])
    np.testing.assert_allclose(found.mean_ES[2], [0.5, 0.5])
    np.testing.assert_allclose(found.std_ES[:3], [[0.0, 0.0], [0.0, NAN], [0.5, 0.0]])


@given(GROUPS)
def test_a_flat_environment_is_one_that_gives_no_advantage(returns: np.ndarray) -> None:
    found = group_statistics(returns)
    known = ~np.isnan(returns)
    spread = [
        float(np.ptp(table[mask])) for table, mask in zip(returns, known, strict=True) if mask.any()
    ]
    assert found.environments == len(spread)
    assert found.flat_environments == spread.count(0.0)
    assert np.isnan(found.mean_E).sum() == len(returns) - len(spread)
