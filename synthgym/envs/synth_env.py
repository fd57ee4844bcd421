"""`SynthEnv`: one environment of the contract as a `gymnasium.Env` over text."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import gymnasium

from synthgym.contract import (
    ACTION_FORMATS,
    BASES,
    DEFAULT_HINT_LEVEL,
    HINT_LEVELS,
    MAX_ACTION_CHARS,
)
from synthgym.envs.episode import Episode, Info, Transition, advance, begin, cut_action
from synthgym.envs.rendering import render_reset, render_transcript, render_turn
from synthgym.errors import ConfigError, EnvFaultError, ResetNeeded
from synthgym.sandbox import Pool, Session, default_pool
from synthgym.sandbox.results import EnvFault, ResetResult, StepResult
from synthgym.spaces import TextSpace
from synthgym.spec import SynthEnvSpec

MAX_DRAWN_SEED: Final = 2**31
"""Seeds that `reset()` draws for itself lie below this."""
RENDER_MODES: Final = ("ansi", "human")


@dataclass(frozen=True, slots=True)
class SavedState:
    """An episode as what reproduces it: content, seed and actions."""

    digest: str
    seed: int
    actions: tuple[str, ...]


class SynthEnv(gymnasium.Env[str, str]):
    """An environment of the contract, played in a locked-down worker, over strings.

    `info` holds `seed`, `turn`, `success`, `env` (what the environment itself reports, not for a
    model's eyes), and `fault` when the environment failed; it is equal for equal seeds and actions.
    A failure in `step` is a truncated transition with the last observation; one in `reset` is tried
    again in a fresh session and then raises `EnvFaultError`. Nothing runs before the first `reset`.
    The worker pool is `default_pool()` unless one is given.
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012 (as Gymnasium declares it)

    def __init__(
        self, spec: SynthEnvSpec, *, render_mode: str | None = None, pool: Pool | None = None
    ) -> None:
        check_playable(spec)
        if render_mode is not None and render_mode not in RENDER_MODES:
            raise ConfigError(f"render_mode must be None, 'ansi' or 'human', got {render_mode!r}")
        self.render_mode = render_mode
        self.observation_space = TextSpace(spec.limits.observation_chars)
        self.action_space = TextSpace(MAX_ACTION_CHARS)
        self._card = spec
        self._digest = spec.digest
        self._pool = pool
        self._session: Session | None = None
        self._episode: Episode | None = None
        self._first_observation = ""
        self._turns: list[tuple[str, Transition]] = []

    @property
    def spec_card(self) -> SynthEnvSpec:
        """What is known of this environment; `env.spec` is Gymnasium's own `EnvSpec`."""
        return self._card

    @property
    def hint(self) -> str:
        """The hint of level 2 for the state just after the last `reset`; none yet: `ResetNeeded`."""
        return self.hint_at(DEFAULT_HINT_LEVEL)

    def hint_at(self, level: int) -> str:
        """The hint of a level for the state just after the last `reset`.

        Levels: 1 nudge, 2 strategy, 3 near-answer. The annotation hint of the spec stands in for
        level 2. Computed on another instance, so it never disturbs the one that plays.
        `EnvFaultError` when the environment fails to give one.
        """
        if level not in HINT_LEVELS:
            raise ConfigError(f"hint level must be one of {HINT_LEVELS}, got {level!r}")
        episode = self._current("hint")
        if level == DEFAULT_HINT_LEVEL and self._card.hint is not None:
            return self._card.hint
        hint = self._open_session().hint(episode.seed, level)
        if isinstance(hint, EnvFault):
            raise self._fault_error(hint, episode.seed)
        return hint

    @staticmethod
    def hints_all(envs: Sequence[SynthEnv], level: int) -> list[str | EnvFaultError]:
        """`env.hint_at(level)` of each, in one message for each source; the error in place of what would raise one."""
        own: dict[str, list[SynthEnv]] = {}
        for env in envs:
            own.setdefault(env._digest, []).append(env)
        for same in own.values():
            if level != DEFAULT_HINT_LEVEL or same[0]._card.hint is None:
                # What they answer is remembered, and asked for again below.
                seeds = {env._current("hint").seed for env in same}
                same[0]._open_session().hints([(seed, level) for seed in sorted(seeds)])
        found: list[str | EnvFaultError] = []
        for env in envs:
            try:
                found.append(env.hint_at(level))
            except EnvFaultError as error:
                found.append(error)
        return found

    def solution(self) -> tuple[str, ...]:
        """Actions that win from the state just after the last `reset`; `EnvFaultError` without."""
        episode = self._current("solution")
        actions = self._open_session().solution(episode.seed)
        if isinstance(actions, EnvFault):
            raise self._fault_error(actions, episode.seed)
        return actions

    @property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """The tools as OpenAI function schemas; empty for an environment without tools.

        `EnvFaultError` when the source cannot be loaded.
        """
        loaded = self._open_session().load()
        if isinstance(loaded, EnvFault):
            raise EnvFaultError(
                f"{self._card.env_id} failed to load: {loaded.kind}: {loaded.detail}",
                kind=str(loaded.kind),
                call=loaded.call,
            )
        return loaded.tools

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, Info]:
        """Start an episode. An explicit seed reaches the environment unchanged, else one is drawn.

        `info["seed"]` says which seed was used. `options` are accepted and ignored. `EnvFaultError`
        when the environment fails twice.
        """
        super().reset(seed=seed, options=options)
        if seed is None:
            seed = int(self.np_random.integers(MAX_DRAWN_SEED))
        return self._start(int(seed))

    def step(self, action: str) -> Transition:
        """Play one action: the bare command, cut at `contract.MAX_ACTION_CHARS` characters.

        `ResetNeeded` once the episode is done.
        """
        action = self._expect_step(action)
        return self._advance(action, self._open_session().step(action))

    @staticmethod
    def reset_all(
        envs: Sequence[SynthEnv], seeds: Sequence[int]
    ) -> list[tuple[str, Info] | EnvFaultError]:
        """`env.reset(seed=seed)` of each, in one round of their pool; the error in place of what would raise one.

        `ConfigError` when an environment is there twice.
        """
        for env, seed in zip(envs, seeds, strict=True):
            gymnasium.Env.reset(env, seed=seed)
            env._episode = None
        found: list[tuple[str, Info] | EnvFaultError] = [("", {})] * len(envs)
        for pool, rows in _by_pool(envs).items():
            calls = [(envs[i]._open_session(), seeds[i]) for i in rows]
            for i, result in zip(rows, pool.reset_many(calls), strict=True):
                try:
                    found[i] = envs[i]._started(seeds[i], result)
                except EnvFaultError as error:
                    found[i] = error
        return found

    @staticmethod
    def step_all(envs: Sequence[SynthEnv], actions: Sequence[str]) -> list[Transition]:
        """`env.step(action)` of each, in one round of their pool. Errors as in `step`, before anything is played."""
        cut = [env._expect_step(action) for env, action in zip(envs, actions, strict=True)]
        found: dict[int, Transition] = {}
        for pool, rows in _by_pool(envs).items():
            results = pool.step_many([(envs[i]._open_session(), cut[i]) for i in rows])
            for i, result in zip(rows, results, strict=True):
                found[i] = envs[i]._advance(cut[i], result)
        return [found[i] for i in range(len(envs))]

    def render(self) -> str | None:
        """The transcript of the episode so far in mode `ansi`; `human` prints as it goes."""
        if self.render_mode != "ansi":
            return None
        episode = self._current("render")
        return render_transcript(episode.seed, self._first_observation, self._turns)

    def save_state(self) -> SavedState:
        """What brings this episode back: the digest, the seed and the actions so far."""
        episode = self._current("save_state")
        if episode.fault is not None:
            raise self._fault_error(episode.fault, episode.seed)
        return SavedState(self._digest, episode.seed, tuple(action for action, _ in self._turns))

    def restore_state(self, state: SavedState) -> tuple[str, Info]:
        """Bring a saved episode back by playing it again; the observation and info it stood at.

        The stream that unseeded resets draw from is left alone. `ConfigError` for a state of
        another environment; `EnvFaultError` when the environment fails on the way.
        """
        if state.digest != self._digest:
            raise ConfigError(
                f"state belongs to {state.digest}, this environment is {self._digest}"
            )
        observation, info = self._start(state.seed)
        for action in state.actions:
            observation, _, _, _, info = self.step(action)
        episode = self._current("restore_state")
        if episode.fault is not None:
            raise self._fault_error(episode.fault, state.seed)
        return observation, info

    def close(self) -> None:
        """Give the session back; twice is fine, and a later `reset` opens a new one."""
        if self._session is not None:
            self._session.close()
            self._session = None
        self._episode = None

    def __str__(self) -> str:
        return f"<SynthEnv {self._card.env_id} {self._digest[:19]}>"

    def _start(self, seed: int) -> tuple[str, Info]:
        self._episode = None
        return self._started(seed, self._open_session().reset(seed))

    def _started(self, seed: int, result: ResetResult | EnvFault) -> tuple[str, Info]:
        if isinstance(result, EnvFault):
            self.close()
            result = self._open_session().reset(seed)
        if isinstance(result, EnvFault):
            raise self._fault_error(result, seed)
        return self._begin(seed, result)

    def _begin(self, seed: int, result: ResetResult) -> tuple[str, Info]:
        self._episode, info = begin(
            seed, self._card.record.max_turns, result, self._card.record.reward_floor
        )
        self._first_observation = result.observation
        self._turns = []
        self._show(render_reset(seed, result.observation))
        return result.observation, info

    def _expect_step(self, action: str) -> str:
        """The action as it will be played."""
        if not isinstance(action, str):
            raise ConfigError(
                f"an action is a str (the bare command), got {type(action).__name__}: {action!r}"
            )
        if self._current("step").done:
            raise ResetNeeded(f"{self._card.env_id}: the episode is over; call reset() first")
        return cut_action(action)

    def _advance(self, action: str, result: StepResult | EnvFault) -> Transition:
        self._episode, transition = advance(self._current("step"), result)
        self._turns.append((action, transition))
        self._show(render_turn(action, transition))
        return transition

    def _open_session(self) -> Session:
        if self._session is None:
            pool = self._pool if self._pool is not None else default_pool()
            self._session = pool.open(self._card.record, self._card.limits)
        return self._session

    def _current(self, call: str) -> Episode:
        if self._episode is None:
            raise ResetNeeded(f"{self._card.env_id}: call reset() before {call}")
        return self._episode

    def _fault_error(self, fault: EnvFault, seed: int) -> EnvFaultError:
        return EnvFaultError(
            f"{self._card.env_id} failed in {fault.call} at seed {seed}: "
            f"{fault.kind}: {fault.detail}",
            kind=str(fault.kind),
            call=fault.call,
        )

    def _show(self, text: str) -> None:
        if self.render_mode == "human":
            sys.stdout.write(text + "\n")
            sys.stdout.flush()


def _by_pool(envs: Sequence[SynthEnv]) -> dict[Pool, list[int]]:
    """Which of them each pool plays; each has a session afterwards."""
    found: dict[Pool, list[int]] = {}
    for i, env in enumerate(envs):
        found.setdefault(env._open_session().pool, []).append(i)
    return found


def check_playable(spec: SynthEnvSpec) -> None:
    """Nothing, when this version can play `spec`; `ConfigError` otherwise."""
    if not isinstance(spec, SynthEnvSpec):
        raise ConfigError(
            f"expected a SynthEnvSpec, got {type(spec).__name__}; "
            "gymnasium.make() takes an id, Snapshot.spec() gives the spec of a digest"
        )
    expected = ACTION_FORMATS.get(spec.record.base)
    if spec.record.action_format != expected:
        raise ConfigError(
            f"{spec.env_id} has base {spec.record.base!r} and actions "
            f"{spec.record.action_format!r}; this version plays "
            f"{', '.join(f'{base} with {ACTION_FORMATS[base]} actions' for base in BASES)}"
        )
