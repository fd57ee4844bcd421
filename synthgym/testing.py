"""A conformance kit: for tests of environments, snapshots and code that plays them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from synthgym.contract import REWARD_TOLERANCE
from synthgym.envs import SynthEnv
from synthgym.envs.episode import Transition
from synthgym.errors import ResetNeeded
from synthgym.spec import SynthEnvSpec


@dataclass(frozen=True, slots=True)
class ScriptedAgent:
    """Plays a fixed list of actions, whatever it sees."""

    actions: Sequence[str]

    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]:
        """Reset with `seed` and play until the episode or the list ends; every transition."""
        env.reset(seed=seed)
        transitions: list[Transition] = []
        for action in self.actions:
            transition = Transition(*_plain(env.step(action)))
            transitions.append(transition)
            if transition.terminated or transition.truncated:
                break
        return transitions


def check_synth_env(
    target: SynthEnvSpec | gymnasium.Env[str, str], seeds: Sequence[int] = (0, 1)
) -> None:
    """Check that an environment keeps Gymnasium's rules and the contract; else `AssertionError`.

    Runs Gymnasium's `check_env` with warnings as errors, then plays the witness of each seed. An
    environment that is given stays open; one that is made here from a spec is closed.
    """
    if isinstance(target, SynthEnvSpec):
        env = SynthEnv(target)
        env.spec = EnvSpec(
            target.env_id, entry_point=_Maker(target), max_episode_steps=target.record.max_turns
        )
        try:
            check_synth_env(env, seeds)
        finally:
            env.close()
        return
    env = target.unwrapped  # type: ignore[assignment]  # checked on the next line
    _require(isinstance(env, SynthEnv), f"expected a SynthEnv inside, got {type(env).__name__}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env)
    for seed in seeds:
        _check_witness(env, seed)
        _check_saved_state(env, seed)
    env.close()
    env.close()


@dataclass(frozen=True, slots=True)
class _Maker:
    """Entry point of a spec that stands in no registry."""

    card: SynthEnvSpec
    metadata: ClassVar[dict[str, Any]] = SynthEnv.metadata

    def __call__(self, **kwargs: Any) -> SynthEnv:
        return SynthEnv(self.card, **kwargs)


def _check_witness(env: SynthEnv, seed: int) -> None:
    observation, info = env.reset(seed=seed)
    _require(bool(observation.strip()), f"seed {seed}: the first observation is empty")
    _require(info["seed"] == seed, f"seed {seed}: info says {info['seed']}")
    _require(bool(env.hint.strip()), f"seed {seed}: the hint is empty")
    transitions = ScriptedAgent(env.solution()).play(env, seed)
    total = 0.0
    for turn, transition in enumerate(transitions, 1):
        total += transition.reward
        _require(
            "fault" not in transition.info,
            f"seed {seed}, turn {turn}: {transition.info.get('fault')}",
        )
        _require(
            -REWARD_TOLERANCE <= total <= 1 + REWARD_TOLERANCE,
            f"seed {seed}, turn {turn}: the sum of rewards is {total:g}",
        )
    won = bool(transitions) and transitions[-1].info["success"]
    _require(won, f"seed {seed}: playing solution() does not win, it is paid {total:g}")
    try:
        env.step("")
    except ResetNeeded:
        return
    raise AssertionError(f"seed {seed}: step() after the end did not raise ResetNeeded")


def _check_saved_state(env: SynthEnv, seed: int) -> None:
    env.reset(seed=seed)
    actions = env.solution()
    state = env.save_state()
    before = env.step(actions[0])
    env.restore_state(state)
    _require(env.step(actions[0]) == before, f"seed {seed}: a restored episode goes another way")


def _plain(step: tuple[str, Any, bool, bool, dict[str, Any]]) -> tuple[Any, ...]:
    observation, reward, terminated, truncated, info = step
    return observation, float(reward), terminated, truncated, info


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
