"""`SynthVectorEnv`: many episodes of one or more environments, one batched message a worker and step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils.seeding import np_random
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from synthgym.contract import MAX_ACTION_CHARS
from synthgym.envs.columns import EpisodeColumns, Rows
from synthgym.envs.episode import Info, Transition, cut_action
from synthgym.envs.rendering import render_transcript
from synthgym.envs.synth_env import MAX_DRAWN_SEED, check_playable
from synthgym.errors import ConfigError, ResetNeeded
from synthgym.sandbox import Batch, Pool, default_pool
from synthgym.spaces import TextSpace
from synthgym.spec import SynthEnvSpec

Texts = tuple[str, ...]
Steps = tuple[Texts, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]
_EnvInfos = Mapping[int, Mapping[str, Any]]


class SynthVectorEnv(VectorEnv[Texts, Sequence[str], NDArray[Any]]):
    """`num_envs` episodes, stepped together through the pool.

    `spec` may be a sequence: `num_envs` is then split evenly, the episodes of the first spec first.
    `group_size` makes groups of neighbours that play the same instance: `reset(seed=s)` gives the
    first group seed s, the next one s + 1, and autoresets keep the groups together.

    Equal to `SyncVectorEnv` over `SynthEnv`s: the same seeds give the same episodes, autoresets
    included. Observations are tuples of strings. In `infos`, `env` and `fault` are object arrays of
    the sub-environments' own dicts.

    A fault is never raised. One in `step` is a truncated transition with `infos["fault"]`; one in
    `reset` (after one more try) is announced in the infos of that reset with an empty observation,
    and the next step of that sub-environment is truncated with the same fault.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(  # noqa: PLR0913 (settings, by name only)
        self,
        spec: SynthEnvSpec | Sequence[SynthEnvSpec],
        num_envs: int,
        *,
        max_episode_steps: int | None = None,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        group_size: int = 1,
        pool: Pool | None = None,
    ) -> None:
        self._cards = _cards(spec, num_envs)
        if render_mode not in (None, "ansi"):
            raise ConfigError(f"render_mode must be None or 'ansi', got {render_mode!r}")
        if max_episode_steps is not None and max_episode_steps < 1:
            raise ConfigError(f"max_episode_steps must be at least 1, got {max_episode_steps}")
        if group_size < 1 or (num_envs // len(self._cards)) % group_size:
            raise ConfigError(
                f"group_size must divide the {num_envs // len(self._cards)} episodes of a spec, "
                f"got {group_size}"
            )
        self.num_envs = num_envs
        self.render_mode = render_mode
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = self.metadata | {"autoreset_mode": self.autoreset_mode}
        self.single_observation_space = TextSpace(
            max(card.limits.observation_chars for card in self._cards)
        )
        self.single_action_space = TextSpace(MAX_ACTION_CHARS)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._group_size = group_size
        self._pool = pool if pool is not None else default_pool()
        each = num_envs // len(self._cards)
        self._card_of = [card for card in self._cards for _ in range(each)]
        self._sessions = [self._pool.open(card.record, card.limits) for card in self._card_of]
        self._streams = [np_random()[0] for _ in range(num_envs)]
        turns = [card.record.max_turns for card in self._card_of]
        limit = max_episode_steps if max_episode_steps is not None else max(turns)
        self._episodes = EpisodeColumns(
            np.minimum(np.array(turns, dtype=np.int64), limit),
            np.array([card.record.reward_floor for card in self._card_of], dtype=np.float64),
        )
        self._transcripts: list[tuple[str, list[tuple[str, Transition]]]] = [("", [])] * num_envs

    @property
    def spec_card(self) -> SynthEnvSpec:
        """What is known of the (first) environment; `envs.spec` is Gymnasium's own `EnvSpec`."""
        return self._cards[0]

    @property
    def spec_cards(self) -> tuple[SynthEnvSpec, ...]:
        """What is known of the environments, in the order in which they were given."""
        return tuple(self._cards)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Texts, Info]:
        """Start new episodes, everywhere or where `options["reset_mask"]` is True.

        Seed s means s, s + 1, ... by group; a sequence gives one seed (or None) to each episode.
        Episodes that are not reset go on.
        """
        chosen = self._reset_mask(options)
        rows = np.flatnonzero(chosen)
        given = self._seeds(seed)
        seeds = [self._seed(i, given[i]) for i in rows.tolist()]
        _, batch = self._pool.play(resets=([self._sessions[i] for i in rows.tolist()], seeds))
        env_infos = self._begin(rows, seeds, batch)
        return tuple(self._episodes.observations), self._episodes.pack(chosen, env_infos)

    def step(self, actions: Sequence[str]) -> Steps:
        """Play one action everywhere, in one message to each worker.

        With `NEXT_STEP` a finished episode ignores its action, is reset and pays 0; with
        `SAME_STEP` it is reset at once and `infos` holds `final_obs` and `final_info`; with
        `DISABLED` stepping it raises `ResetNeeded`.
        """
        commands = self._commands(actions)
        episodes = self._live()
        over = episodes.done.copy()
        if self.autoreset_mode is not AutoresetMode.NEXT_STEP and over.any():
            raise ResetNeeded(
                f"episodes {np.flatnonzero(over).tolist()} are over; "
                "reset them with options={'reset_mask': ...}"
            )
        lost = [i for i in episodes.faults if not over[i]]
        """Episodes whose reset failed: there is nothing to step."""
        playing = ~over
        playing[lost] = False
        rows, again = np.flatnonzero(playing), np.flatnonzero(over)
        seeds = [self._seed(i, None) for i in again.tolist()]
        stepped, reset = self._pool.play(
            steps=(self._chosen(rows), [commands[i] for i in rows.tolist()]),
            resets=(self._chosen(again), seeds),
        )
        rewards = np.zeros(self.num_envs, dtype=np.float64)
        terminations = np.zeros(self.num_envs, dtype=np.bool_)
        truncations = np.zeros(self.num_envs, dtype=np.bool_)
        outcome = episodes.advance(rows, stepped)
        rewards[rows], terminations[rows] = outcome.rewards, outcome.terminated
        truncations[rows] = outcome.truncated
        episodes.give_up(lost)
        truncations[lost] = True
        if self.render_mode is not None:
            self._record(commands, ~over, rewards, terminations, truncations)
        env_infos = {**outcome.env_infos, **self._begin(again, seeds, reset)}
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and episodes.done.any():
            infos = self._restart(env_infos)
        else:
            infos = episodes.pack(everyone, env_infos)
        return tuple(episodes.observations), rewards, terminations, truncations, infos

    def render(self) -> Texts | None:
        """The transcript of every episode so far in mode `ansi`, else None."""
        if self.render_mode is None:
            return None
        seeds = self._live().seeds.tolist()
        return tuple(
            render_transcript(seed, first, turns)
            for seed, (first, turns) in zip(seeds, self._transcripts, strict=True)
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Give the sessions back; Gymnasium's `close` calls this once."""
        del kwargs  # the signature is Gymnasium's
        for session in self._sessions:
            session.close()

    def _restart(self, env_infos: _EnvInfos) -> Info:
        """Reset the episodes that ended in this very step; the infos, with the final ones in them."""
        episodes = self._episodes
        ended = episodes.done.copy()
        final_obs = np.full(self.num_envs, None, dtype=object)
        again = np.flatnonzero(ended)
        for i in again.tolist():
            final_obs[i] = episodes.observations[i]
        final = {
            "final_obs": final_obs,
            "_final_obs": ended,
            "final_info": episodes.pack(ended, env_infos),
            "_final_info": ended.copy(),
        }
        seeds = [self._seed(i, None) for i in again.tolist()]
        _, reset = self._pool.play(resets=(self._chosen(again), seeds))
        kept = {i: info for i, info in env_infos.items() if not ended[i]}
        fresh = self._begin(again, seeds, reset)
        everyone = np.ones(self.num_envs, dtype=np.bool_)
        return episodes.pack(everyone, {**kept, **fresh}) | final

    def _begin(self, rows: Rows, seeds: Sequence[int], batch: Batch) -> _EnvInfos:
        """Take the answers to resets; a fault gets one more try, on a new session."""
        env_infos = dict(self._episodes.begin(rows, seeds, batch))
        failed = list(batch.faults)
        if failed:
            for i in rows[failed].tolist():
                self._sessions[i].close()
                card = self._card_of[i]
                self._sessions[i] = self._pool.open(card.record, card.limits)
            once_more = [seeds[row] for row in failed]
            _, second = self._pool.play(resets=(self._chosen(rows[failed]), once_more))
            env_infos |= self._episodes.begin(rows[failed], once_more, second)
        if self.render_mode is not None:
            for i in rows.tolist():
                self._transcripts[i] = (self._episodes.observations[i], [])
        return env_infos

    def _record(
        self,
        commands: Sequence[str],
        played: NDArray[np.bool_],
        rewards: NDArray[np.float64],
        terminations: NDArray[np.bool_],
        truncations: NDArray[np.bool_],
    ) -> None:
        """Write the turn down for `render`."""
        episodes = self._episodes
        for i in np.flatnonzero(played).tolist():
            info: Info = {"success": bool(episodes.success[i])}
            if i in episodes.faults:
                info["fault"] = episodes.faults[i].to_json()
            transition = Transition(
                episodes.observations[i],
                float(rewards[i]),
                bool(terminations[i]),
                bool(truncations[i]),
                info,
            )
            self._transcripts[i][1].append((commands[i], transition))

    def _chosen(self, rows: Rows) -> list[Any]:
        if len(rows) == self.num_envs:
            return self._sessions
        return [self._sessions[i] for i in rows.tolist()]

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        size = self._group_size
        if seed is None and size > 1:  # one draw a group
            first = [self._seed(i, None) for i in range(0, self.num_envs, size)]
            return [first[i // size] for i in range(self.num_envs)]
        if seed is None:
            return [None] * self.num_envs
        if isinstance(seed, int | np.integer):
            return [int(seed) + i // size for i in range(self.num_envs)]
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
            self._live()  # those that are not reset must be in an episode
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

    def _live(self) -> EpisodeColumns:
        if not self._episodes.started.all():
            raise ResetNeeded(f"{self._cards[0].env_id}: call reset() first")
        return self._episodes


def _cards(spec: SynthEnvSpec | Sequence[SynthEnvSpec], num_envs: int) -> tuple[SynthEnvSpec, ...]:
    """The specs, checked, when `num_envs` can be split among them."""
    cards = (spec,) if isinstance(spec, SynthEnvSpec) or not isinstance(spec, Sequence) else spec
    for card in cards:
        check_playable(card)
    if num_envs < 1 or not cards or num_envs % len(cards):
        raise ConfigError(
            f"num_envs must be at least 1 and a multiple of the {len(cards)} specs, got {num_envs}"
        )
    return tuple(cards)
