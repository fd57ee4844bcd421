"""A conformance kit: for tests of environments, snapshots and code that plays them.

The agents need no model. They play any `SynthEnv`, bare or in wrappers, an episode at a time; to measure
an environment with many of them, `synthgym.calibration` plays the same agents in batches.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from synthgym.agents import Agent, scripted
from synthgym.calibration import DEFAULT_BUDGET, Plan, Search, Tried, agent_of
from synthgym.contract import REWARD_TOLERANCE
from synthgym.envs import SynthEnv
from synthgym.envs.episode import Transition
from synthgym.envs.synth_env import SavedState
from synthgym.errors import ResetNeeded
from synthgym.spec import SynthEnvSpec


@dataclass(frozen=True, slots=True)
class ScriptedAgent:
    """Plays a fixed list of actions, whatever it sees."""

    actions: Sequence[str]

    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]:
        """Reset with `seed` and play until the episode or the list ends; every transition."""
        return _play(env, seed, scripted(self.actions))


@dataclass(frozen=True, slots=True)
class NullAgent:
    """Sends an empty action every turn. What it wins is won by waiting."""

    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]:
        """Reset with `seed` and play until the episode ends; every transition."""
        return _play(env, seed, agent_of("null", seed))


@dataclass(frozen=True, slots=True)
class RandomAgent:
    """Sends random words of what it sees."""

    seed: int = 0
    """Another one chooses other words on the same instance."""

    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]:
        """Reset with `seed` and play until the episode ends; every transition."""
        return _play(env, seed, agent_of("random", seed, self.seed))


@dataclass(frozen=True, slots=True)
class ScraperAgent:
    """Sends commands that it finds in what it sees, at random. What it wins is won by luck."""

    seed: int = 0
    """Another one chooses other commands on the same instance."""

    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]:
        """Reset with `seed` and play until the episode ends; every transition."""
        return _play(env, seed, agent_of("scraper", seed, self.seed))


@dataclass(frozen=True, slots=True)
class WitnessAgent:
    """Plays the environment's own `solution()`."""

    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]:
        """Reset with `seed` and play until the episode or the solution ends; every transition."""
        core = _core(env)
        core.reset(seed=seed)
        return _play(env, seed, scripted(core.solution()))


@dataclass(frozen=True, slots=True)
class SearchAgent:
    """Searches the instance breadth first over the commands that it is offered, then plays what it found.

    It takes moves back (`save_state`, `restore_state`), so it needs neither foresight nor memory, and
    guesses cost it nothing but steps. States that look the same count as one.
    """

    budget: int = DEFAULT_BUDGET
    """Steps that it may try; a plan of n actions costs n of them."""

    def find(self, env: gymnasium.Env[str, str], seed: int) -> Search:
        """Search the instance of `seed`: `Search.won` and `Search.plan` say what was found.

        The environment inside of the wrappers is searched; what they add is not seen.
        """
        core = _core(env)
        first, _ = core.reset(seed=seed)
        search = Search(first, budget=self.budget)
        known: dict[Plan, tuple[SavedState, float]] = {(): (core.save_state(), 0.0)}
        while plans := search.tries(1):
            (plan,) = plans
            state, paid = known[plan[:-1]]
            core.restore_state(state)
            tried = _tried(core.step(plan[-1]), paid)
            if search.take(plan, tried):
                known[plan] = (core.save_state(), tried.paid)
        return search

    def play(self, env: gymnasium.Env[str, str], seed: int) -> list[Transition]:
        """Search, reset with `seed` and play the plan that wins, or else that was paid most."""
        return _play(env, seed, scripted(self.find(env, seed).plan))


def _play(env: gymnasium.Env[str, str], seed: int, agent: Agent) -> list[Transition]:
    """Reset and play until the episode ends or the agent has nothing more to say."""
    observation, _ = env.reset(seed=seed)
    transitions: list[Transition] = []
    while (action := agent(observation)) is not None:
        transition = Transition(*_plain(env.step(action)))
        transitions.append(transition)
        if transition.terminated or transition.truncated:
            break
        observation = transition.observation
    return transitions


def _tried(last: Transition, paid: float) -> Tried:
    """What a step came to that was paid `paid` before."""
    return Tried(
        last.observation,
        paid + last.reward,
        won=last.info["success"],
        done=last.terminated or last.truncated,
        failed="fault" in last.info,
    )


def _core(env: gymnasium.Env[str, str]) -> SynthEnv:
    core = env.unwrapped
    _require(isinstance(core, SynthEnv), f"expected a SynthEnv inside, got {type(core).__name__}")
    assert isinstance(core, SynthEnv)
    return core


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
    env = _core(target)
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
