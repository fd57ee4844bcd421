from __future__ import annotations

import math

import pytest

from synthgym.envs.episode import Episode, RewardProblem, advance, begin, reward_problem
from synthgym.sandbox.results import EnvFault, FaultKind, ResetResult, StepResult


def started(max_turns: int = 3) -> Episode:
    return begin(7, max_turns, ResetResult("start", {"x": 1}))[0]


def step(
    reward: float = 0.0, terminated: bool = False, truncated: bool = False, text: str = "next"
) -> StepResult:
    return StepResult(text, reward, terminated, truncated, {"y": 2})


def test_reset_tells_the_seed_and_keeps_the_class_info_apart() -> None:
    _, info = begin(7, 3, ResetResult("start", {"seed": "mine", "success": True}))
    assert info == {
        "seed": 7,
        "turn": 0,
        "success": False,
        "env": {"seed": "mine", "success": True},
    }


@pytest.mark.parametrize(
    ("rewards", "ends", "success"),
    [
        ([1.0], True, True),
        ([0.25, 0.75], True, True),
        ([0.1] * 9 + [1.0 - 0.1 * 9], True, True),
        ([1.0 - 5e-7], True, True),
        ([0.5], True, False),
        ([0.0], True, False),
        ([0.5, -0.5], False, False),
    ],
)
def test_only_the_full_sum_on_a_terminated_step_is_success(
    rewards: list[float], ends: bool, success: bool
) -> None:
    episode = started(max_turns=50)
    for reward in rewards[:-1]:
        episode, _ = advance(episode, step(reward))
    episode, transition = advance(episode, step(rewards[-1], terminated=ends))
    assert transition.terminated == ends
    assert transition.info["success"] == episode.success == success
    assert "fault" not in transition.info


@pytest.mark.parametrize(
    ("paid", "reward", "terminated", "problem"),
    [
        (0.0, math.nan, True, RewardProblem.NOT_FINITE),
        (0.0, math.inf, True, RewardProblem.NOT_FINITE),
        (0.5, 0.6, True, RewardProblem.OUT_OF_RANGE),
        (0.0, -0.1, False, RewardProblem.OUT_OF_RANGE),
        (0.5, 0.5, False, RewardProblem.FULL_WITHOUT_END),
        (0.0, 1.0 + 5e-7, True, None),
        (0.0, 1.0, True, None),
        (0.5, -0.5, False, None),
    ],
)
def test_rewards_that_break_the_contract_are_named(
    paid: float, reward: float, terminated: bool, problem: RewardProblem | None
) -> None:
    assert reward_problem(paid, reward, terminated) is problem


def test_a_reward_out_of_range_ends_the_episode_as_a_fault() -> None:
    episode, transition = advance(started(), step(2.0, terminated=True))
    assert transition[:4] == ("start", 0.0, False, True)
    assert transition.info["fault"] == {"kind": "bad_value", "call": "step"}
    assert episode.done
    assert not episode.success


def test_a_fault_repeats_the_last_observation_and_truncates() -> None:
    episode, _ = advance(started(), step(text="seen"))
    episode, transition = advance(episode, EnvFault(FaultKind.TIMEOUT, "step", "secret"))
    assert transition[:4] == ("seen", 0.0, False, True)
    assert transition.info == {
        "seed": 7,
        "turn": 2,
        "success": False,
        "env": {},
        "fault": {"kind": "timeout", "call": "step"},
    }


def test_the_supervisor_truncates_at_max_turns_and_a_win_in_the_last_turn_counts() -> None:
    episode, _ = advance(started(max_turns=2), step())
    assert advance(episode, step())[1].truncated
    _, won = advance(episode, step(1.0, terminated=True))
    assert (won.terminated, won.truncated) == (True, False)


def test_the_class_may_truncate_earlier() -> None:
    episode, transition = advance(started(), step(truncated=True))
    assert transition.truncated
    assert episode.done
