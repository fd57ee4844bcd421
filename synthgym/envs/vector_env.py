"""`SynthVectorEnv`: many episodes of one environment in one worker, one batched message a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from synthgym.contract import MAX_ACTION_CHARS
from synthgym.envs.episode import Episode, Info, Transition, advance, begin, cut_action
from synthgym.envs.rendering import render_transcript
from synthgym.envs.synth_env import MAX_DRAWN_SEED, check_playable
from synthgym.errors import ConfigError, ResetNeeded
from synthgym.sandbox import Pool, default_pool
from synthgym.sandbox.results import EnvFault, ResetResult, StepResult
from synthgym.spaces import TextSpace
from synthgym.spec import SynthEnvSpec

Texts = tuple[str, ...]
Steps = tuple[Texts, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]


class SynthVectorEnv(VectorEnv[Texts, Sequence[str], NDArray[Any]]):
    """`num_envs` episodes of one environment, stepped together through the pool.

    Equal to `SyncVectorEnv` over `SynthEnv`s: the same seeds give the same episodes, autoresets
    included. Observations are tuples of strings. In `infos`, `env` and `fault` are object arrays of
    the sub-environments' own dicts.

    A fault is never raised. One in `step` is a truncated transition with `infos["fault"]`; one in
    `reset` (after one more try) is announced in the infos of that reset with an empty observation,
    and the next step of that sub-environment is truncated with the same fault.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self,
        spec: SynthEnvSpec,
        num_envs: int,
        *,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        pool: Pool | None = None,
    ) -> None:
        check_playable(spec)
        if num_envs < 1:
            raise ConfigError(f"num_envs must be at least 1, got {num_envs}")
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode must be None or 'ansi', got {render_mode!r}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ConfigError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = self.metadata | {"autoreset_mode": self.autoreset_mode}
        self.single_observation_space = TextSpace(spec.limits.observation_chars)
        self.single_action_space = TextSpace(MAX_ACTION_CHARS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._card = spec
        limit = max_episode_steps if max_episode_steps is not None else spec.record.max_turns
        self._max_turns = min(spec.record.max_turns, limit)
        self._pool = pool if pool is not None else default_pool()
        self._sessions = [self._pool.open(spec.record, spec.limits) for _ in range(num_envs)]
        self._streams = [np_random()[0] for _ in range(num_envs)]
        self._episodes: list[Episode | None] = [None] * num_envs
        self._transcripts: list[tuple[str, list[tuple[str, Transition]]]] = [("", [])] * num_envs

    @property
    def spec_card(self) -> SynthEnvSpec:
        """What is known of this environment; `envs.spec` is Gymnasium's own `EnvSpec`."""
        return self._card

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Texts, Info]:
        """Start new episodes, everywhere or where `options["reset_mask"]` is True.

        Seed s means s, s + 1, ...; a sequence gives one seed (or None) to each. Episodes that are
        not reset go on.
        """
        chosen = self._reset_mask(options)
        seeds = self._seeds(seed)
        infos = self._start(
            {index: seeds[index] for index in range(self.num_envs) if chosen[index]}
        )
        return self._observations(), _pack(infos, self.num_envs)

    def step(self, actions: Sequence[str]) -> Steps:
        """Play one action everywhere, in one message to the worker.

        With `NEXT_STEP` a finished episode ignores its action, is reset and pays 0; with
        `SAME_STEP` it is reset at once and `infos` holds `final_obs` and `final_info`; with
        `DISABLED` stepping it raises `ResetNeeded`.
        """
        commands = self._commands(actions)
        over = {i for i, episode in enumerate(self._live_episodes()) if episode.done}
        if over and self.autoreset_mode is not AutoresetMode.NEXT_STEP:
            raise ResetNeeded(
                f"episodes {sorted(over)} are over; reset them with options={{'reset_mask': ...}}"
            )
        transitions = self._play({i: c for i, c in enumerate(commands) if i not in over})
        infos: dict[int, Info] = {i: transition.info for i, transition in transitions.items()}
        final: dict[int, Transition] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            final = {i: t for i, t in transitions.items() if t.terminated or t.truncated}
        infos |= self._start(dict.fromkeys(sorted(over | final.keys())))
        packed = _pack(infos, self.num_envs)
        if final:
            packed |= _pack_final(final, self.num_envs)
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminations = np.zeros(self.num_envs, dtype=np.bool_)
        truncations = np.zeros(self.num_envs, dtype=np.bool_)
        for i, transition in transitions.items():
            rewards[i] = transition.reward
            terminations[i] = transition.terminated
            truncations[i] = transition.truncated
        return self._observations(), rewards, terminations, truncations, packed

    def render(self) -> Texts | None:
        """The transcript of every episode so far in mode `ansi`, else None."""
        if self.render_mode is None:
            return None
        return tuple(
            render_transcript(episode.seed, first, turns)
            for episode, (first, turns) in zip(
                self._live_episodes(), self._transcripts, strict=True
            )
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Give the sessions back; Gymnasium's `close` calls this once."""
        del kwargs  # the signature is Gymnasium's
        for session in self._sessions:
            session.close()

    def _start(self, seeds: Mapping[int, int | None]) -> dict[int, Info]:
        """Reset the keys of `seeds`; a fault gets one more try. Infos by index."""
        drawn = {i: self._seed(i, seed) for i, seed in seeds.items()}
        results = self._reset_sessions(drawn)
        failed = {i: drawn[i] for i, result in results.items() if isinstance(result, EnvFault)}
        for i in failed:
            self._sessions[i].close()
            self._sessions[i] = self._pool.open(self._card.record, self._card.limits)
        results |= self._reset_sessions(failed)
        infos: dict[int, Info] = {}
        for i, result in results.items():
            infos[i] = self._begin(i, drawn[i], result)
        return infos

    def _reset_sessions(self, seeds: Mapping[int, int]) -> dict[int, ResetResult | EnvFault]:
        if not seeds:
            return {}
        replies = self._pool.reset_many([(self._sessions[i], seed) for i, seed in seeds.items()])
        return dict(zip(seeds, replies, strict=True))

    def _begin(self, index: int, seed: int, result: ResetResult | EnvFault) -> Info:
        if isinstance(result, EnvFault):
            episode = Episode(seed, self._max_turns, "", fault=result)
            info = episode.info({})
        else:
            episode, info = begin(seed, self._max_turns, result)
        self._episodes[index] = episode
        self._transcripts[index] = (episode.observation, [])
        return info

    def _play(self, commands: Mapping[int, str]) -> dict[int, Transition]:
        """Step the keys of `commands`; those that failed in `reset` repeat their fault."""
        episodes = self._live_episodes()
        results: dict[int, StepResult | EnvFault] = {}
        calls: dict[int, str] = {}
        for i, command in commands.items():
            fault = episodes[i].fault
            if fault is None:
                calls[i] = command
            else:
                results[i] = fault
        if calls:
            replies = self._pool.step_many([(self._sessions[i], c) for i, c in calls.items()])
            results |= zip(calls, replies, strict=True)
        transitions: dict[int, Transition] = {}
        for i, command in commands.items():
            self._episodes[i], transitions[i] = advance(episodes[i], results[i])
            if self.render_mode is not None:
                self._transcripts[i][1].append((command, transitions[i]))
        return transitions

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + i for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ConfigError(f"expected {self.num_envs} seeds, one a sub-env, got {len(seed)}")
        return seed

    def _seed(self, index: int, seed: int | None) -> int:
        """`seed` itself, after seeding the stream of later autoresets; or the next draw."""
        if seed is None:
            return int(self._streams[index].integers(MAX_DRAWN_SEED))
        self._streams[index] = np_random(int(seed))[0]
        return int(seed)

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        mask = None if options is None else options.get("reset_mask")
        if mask is None:
            return np.ones(self.num_envs, dtype=np.bool_)
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            raise ConfigError(f"reset_mask must be a numpy array of bool, got {mask!r}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ConfigError(
                f"reset_mask must have shape ({self.num_envs},) and a True, got {mask!r}"
            )
        if not mask.all():
            self._live_episodes()  # those that are not reset must be in an episode
        return mask

    def _commands(self, actions: Sequence[str]) -> list[str]:
        if isinstance(actions, str) or len(actions) != self.num_envs:
            raise ConfigError(f"expected {self.num_envs} actions, one a sub-env, got {actions!r}")
        for action in actions:
            if not isinstance(action, str):
                raise ConfigError(
                    f"an action is a str, got {type(action).__name__} in {list(actions)!r}"
                )
        return [cut_action(action) for action in actions]

    def _live_episodes(self) -> list[Episode]:
        episodes = [episode for episode in self._episodes if episode is not None]
        if len(episodes) != self.num_envs:
            raise ResetNeeded(f"{self._card.env_id}: call reset() first")
        return episodes

    def _observations(self) -> Texts:
        return tuple(episode.observation for episode in self._live_episodes())


_INFO_TYPES: dict[str, type] = {
    "seed": np.int64,
    "turn": np.int64,
    "success": np.bool_,
    "env": object,
    "fault": object,
}
"""An environment's own info has keys and types of its own: it stays a dict, never an array."""


def _pack(infos: Mapping[int, Info], num_envs: int) -> Info:
    """Gymnasium's form: an array a key, and a mask `_key` that says who has it."""
    packed: Info = {}
    for key, dtype in _INFO_TYPES.items():
        having = {i: info[key] for i, info in infos.items() if key in info}
        if not having:
            continue
        values: NDArray[Any] = (
            np.full(num_envs, None, dtype=object)
            if dtype is object
            else np.zeros(num_envs, dtype=dtype)
        )
        mask = np.zeros(num_envs, dtype=np.bool_)
        for i, value in having.items():
            values[i] = value
            mask[i] = True
        packed[key], packed[f"_{key}"] = values, mask
    return packed


def _pack_final(final: Mapping[int, Transition], num_envs: int) -> Info:
    """`final_obs` and `final_info` of the episodes that ended in this very step."""
    observations = np.full(num_envs, None, dtype=object)
    mask = np.zeros(num_envs, dtype=np.bool_)
    for i, transition in final.items():
        observations[i] = transition.observation
        mask[i] = True
    return {
        "final_obs": observations,
        "_final_obs": mask,
        "final_info": _pack({i: t.info for i, t in final.items()}, num_envs),
        "_final_info": mask.copy(),
    }
