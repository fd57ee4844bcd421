"""The supervisor's account of one episode: turns, rewards, success, faults. Runs nothing.

`SynthEnv` and `SynthVectorEnv` feed it what the sandbox returned, and hand on what it makes of it.
The rules are those of the contract: the running sum of rewards lies in [0, 1], it is 1 only on a
terminated step, and turns are counted here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from synthgym.contract import MAX_ACTION_CHARS, REWARD_TOLERANCE
from synthgym.sandbox.results import EnvFault, FaultKind, ResetResult, StepResult

Info = dict[str, Any]


class RewardProblem(StrEnum):
    """How a reward breaks the contract."""

    NOT_FINITE = "the reward is not finite"
    OUT_OF_RANGE = "the running sum of rewards leaves [0, 1]"
    FULL_WITHOUT_END = "the running sum of rewards is 1, but terminated is False"


class Transition(NamedTuple):
    """What `step` of a Gymnasium environment returns."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: Info


@dataclass(frozen=True, slots=True)
class Episode:
    """Where an episode stands after its last call."""

    seed: int
    max_turns: int
    observation: str
    """The last one seen; a fault repeats it."""
    turn: int = 0
    paid: float = 0.0
    """Running sum of rewards."""
    done: bool = False
    success: bool = False
    fault: EnvFault | None = None
    floor: float = 0.0
    """Least running sum of rewards that its record declares."""

    def info(self, env_info: Mapping[str, Any]) -> Info:
        """The supervisor's keys, and the environment's own under `env`; a new object each time."""
        info: Info = {
            "seed": self.seed,
            "turn": self.turn,
            "success": self.success,
            "env": dict(env_info),
        }
        if self.fault is not None:
            info["fault"] = self.fault.to_json()
        return info


def begin(
    seed: int, max_turns: int, result: ResetResult, floor: float = 0.0
) -> tuple[Episode, Info]:
    """The episode that a successful `reset` starts, and its info."""
    episode = Episode(seed, max_turns, result.observation, floor=floor)
    return episode, episode.info(result.info)


def advance(episode: Episode, result: StepResult | EnvFault) -> tuple[Episode, Transition]:
    """The episode after one more turn, and what Gymnasium gets to see of it.

    A fault, or a reward that breaks the contract, ends the episode: the last observation, 0.0,
    truncated, and `info["fault"]`. `terminated` with the full sum is success, below it a loss;
    truncation at `max_turns` is ours.
    """
    turn = episode.turn + 1
    if isinstance(result, StepResult):
        problem = reward_problem(episode.paid, result.reward, result.terminated, episode.floor)
        if problem is not None:
            result = EnvFault(FaultKind.BAD_VALUE, "step", problem.value)
    if isinstance(result, EnvFault):
        failed = Episode(
            episode.seed,
            episode.max_turns,
            episode.observation,
            turn,
            episode.paid,
            done=True,
            fault=result,
            floor=episode.floor,
        )
        return failed, Transition(episode.observation, 0.0, False, True, failed.info({}))
    paid = episode.paid + result.reward
    truncated = not result.terminated and (result.truncated or turn >= episode.max_turns)
    after = Episode(
        episode.seed,
        episode.max_turns,
        result.observation,
        turn,
        paid,
        done=result.terminated or truncated,
        success=result.terminated and paid >= 1.0 - REWARD_TOLERANCE,
        floor=episode.floor,
    )
    info = after.info(result.info)
    return after, Transition(result.observation, result.reward, result.terminated, truncated, info)


def reward_problem(
    paid: float, reward: float, terminated: bool, floor: float = 0.0
) -> RewardProblem | None:
    """How `reward` on top of `paid` breaks the contract, or None when it does not.

    The running sum lies in [`floor`, 1]. The contract has 0; another dialect may go lower.
    """
    if not math.isfinite(reward):
        return RewardProblem.NOT_FINITE
    total = paid + reward
    if not floor - REWARD_TOLERANCE <= total <= 1.0 + REWARD_TOLERANCE:
        return RewardProblem.OUT_OF_RANGE
    if total >= 1.0 - REWARD_TOLERANCE and not terminated:
        return RewardProblem.FULL_WITHOUT_END
    return None


def cut_action(action: str) -> str:
    """`action` as a plain string of at most `MAX_ACTION_CHARS` characters."""
    return str(action[:MAX_ACTION_CHARS])
