"""The formulas of regret, designer reward, baselines and role weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spade_loop import rewards
from spade_loop.rewards import Regret

UNIT = st.floats(0.0, 1.0)


def tables(seeds: int = 4, plays: int = 2):
    return hnp.arrays(np.float64, (seeds, plays), elements=UNIT)


def regret_of(value: float = 0.0, solve_rate: float = 0.5) -> Regret:
    return Regret(value, 0.1, solve_rate, 0.9, 4)


def test_regret_is_the_mean_over_seeds_of_the_paired_difference() -> None:
    plain = np.array([[0.0, 0.0], [1.0, 1.0]])
    hinted = np.array([[1.0, 0.0], [1.0, 1.0]])
    result = rewards.paired_regret(hinted, plain, hinted, plain)
    assert result.value == pytest.approx(0.25)
    # differences 0.5 and 0: sd 0.3536, over sqrt(2)
    assert result.standard_error == pytest.approx(0.25)
    assert (result.solve_rate, result.hinted_solve_rate, result.seeds) == (0.5, 0.75, 2)


def test_a_seed_that_faulted_in_one_arm_counts_in_neither() -> None:
    plain = np.array([[0.0, 0.0], [np.nan, np.nan]])
    hinted = np.array([[1.0, 1.0], [0.0, 0.0]])
    result = rewards.paired_regret(hinted, plain, hinted, plain)
    assert (result.value, result.seeds) == (1.0, 1)
    assert np.isnan(result.standard_error)


def test_nothing_measurable_is_not_a_number_and_never_zero() -> None:
    nothing = np.full((2, 2), np.nan)
    assert np.isnan(rewards.paired_regret(nothing, nothing, nothing, nothing).value)


@given(tables(), tables())
def test_what_instances_share_does_not_change_regret(plain: np.ndarray, gain: np.ndarray) -> None:
    shift = np.linspace(0.0, 3.0, 4)[:, None]
    first = rewards.paired_regret(plain + gain, plain, plain, plain)
    moved = rewards.paired_regret(plain + gain + shift, plain + shift, plain, plain)
    assert moved.value == pytest.approx(first.value)
    assert moved.standard_error == pytest.approx(first.standard_error, abs=1e-9)


@pytest.mark.parametrize(
    ("value", "solve_rate", "expected"),
    [(0.4, 0.5, 0.4), (0.4, 0.0, 0.0), (0.4, 0.075, 0.2), (-0.3, 0.5, -0.3), (2.0, 1.0, 1.0)],
)
def test_gated_regret_pays_nothing_for_what_only_the_hint_solves(
    value: float, solve_rate: float, expected: float
) -> None:
    assert rewards.gated_regret(regret_of(value, solve_rate)) == pytest.approx(expected)


def test_plain_regret_is_floored() -> None:
    assert rewards.plain_regret(regret_of(-0.2)) == 0.0


@pytest.mark.parametrize(
    ("value", "solve_rate", "expected"),
    [(0.15, 0.5, 1.0), (0.0, 0.5, 0.6), (0.3, 0.15, 0.4), (0.0, 0.275, 0.3), (0.0, 1.0, 0.0)],
)
def test_blend_is_the_reference_recipes_reward(
    value: float, solve_rate: float, expected: float
) -> None:
    assert rewards.blend(regret_of(value, solve_rate)) == pytest.approx(expected)


def test_reproduced_faults_pull_a_reward_to_the_floor() -> None:
    assert rewards.with_faults(0.6, 0.5) == pytest.approx(0.05)
    assert rewards.with_faults(0.6, 1.0) == rewards.FAULT_FLOOR


@given(hnp.arrays(np.float64, st.integers(2, 12), elements=st.floats(-1.0, 1.0)))
def test_leave_one_out_advantages_sum_to_zero_and_compare_with_the_others(
    reward: np.ndarray,
) -> None:
    advantage = rewards.leave_one_out(reward)
    assert advantage.sum() == pytest.approx(0.0, abs=1e-9)
    others = (reward.sum() - reward) / (reward.size - 1)
    np.testing.assert_allclose(advantage, reward - others, atol=1e-9)


def test_a_missing_reward_gets_no_advantage_and_is_in_no_baseline() -> None:
    advantage = rewards.leave_one_out(np.array([1.0, np.nan, 0.0]))
    np.testing.assert_allclose(advantage, [1.0, 0.0, -1.0])
    np.testing.assert_array_equal(rewards.leave_one_out(np.array([1.0, np.nan])), [0.0, 0.0])


def test_agent_baseline_is_the_seed_with_four_plays_and_the_environment_with_fewer() -> None:
    four = np.array([[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]])
    np.testing.assert_allclose(rewards.agent_advantages(four)[0, 0], [0.75, -0.25, -0.25, -0.25])
    np.testing.assert_allclose(rewards.agent_advantages(four)[0, 1], 0.0)
    two = four[:, :, :2]
    np.testing.assert_allclose(rewards.agent_advantages(two)[0, 0], [1 / 3, -1.0])


def test_a_faulty_seed_gives_the_agent_no_advantage() -> None:
    returns = np.array([[[np.nan, np.nan], [1.0, 0.0]]])
    np.testing.assert_allclose(rewards.agent_advantages(returns)[0], [[0.0, 0.0], [1.0, -1.0]])


def test_validity_and_regret_are_centred_apart() -> None:
    valid = np.array([1.0, 1.0, 0.0, 0.0])
    reward = np.array([0.5, 0.1, np.nan, np.nan])
    advantage = rewards.designer_advantages(valid, reward, 0.3)
    np.testing.assert_allclose(advantage, [0.15 + 0.4, 0.15 - 0.4, -0.15, -0.15])
    assert advantage.sum() == pytest.approx(0.0, abs=1e-12)


def test_role_weights_make_each_role_a_mean_over_its_own_rows() -> None:
    assert rewards.role_scale(0.3, 40, 5, 0.5) == pytest.approx(0.3 * 8 / 0.5)
    assert rewards.role_scale(0.3, 40, 5, 0.0) == pytest.approx(0.3 * 8 / rewards.MIN_RMS)


def test_running_rms_moves_slowly_and_keeps_its_value_without_rows() -> None:
    assert rewards.update_rms(None, np.array([3.0, -3.0])) == pytest.approx(3.0)
    assert rewards.update_rms(1.0, np.array([2.0])) == pytest.approx(np.sqrt(0.9 + 0.4))
    assert rewards.update_rms(1.0, np.array([])) == 1.0


def test_rare_cells_earn_more_than_frequent_ones() -> None:
    assert rewards.cell_bonus(0, 9, 0.05) > rewards.cell_bonus(8, 9, 0.05) > 0.0
    assert rewards.effective_cells([5, 5, 0, 5, 5]) == pytest.approx(4.0)
    assert rewards.effective_cells([]) == 0.0
