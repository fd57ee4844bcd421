"""Episodes of one environment, many side by side, by the account that `SynthEnv` keeps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Final, NamedTuple, Self

from synthgym.agents import Agent
from synthgym.envs.episode import Episode, advance, begin, cut_action
from synthgym.errors import SandboxError
from synthgym.sandbox import Pool, Session
from synthgym.sandbox.results import EnvFault, Origin, ResetResult
from synthgym.spec import SynthEnvSpec

LANES: Final = 64
"""Episodes that are stepped together. All instances share one worker and its memory quota."""


class Part(NamedTuple):
    """Who plays which instance."""

    seed: int
    agent: Agent


class Table:
    """Where one environment is played: sessions that are opened as they are needed and used again."""

    def __init__(self, spec: SynthEnvSpec, pool: Pool) -> None:
        self._spec = spec
        self._pool = pool
        self._sessions: list[Session] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._open.close()

    def play(self, parts: Sequence[Part]) -> list[Episode]:
        """Play an episode for each part, in order; where each of them ended.

        An agent that has nothing more to say leaves its episode where it is. `SandboxError` when
        workers were lost for reasons that are not the environment's.
        """
        episodes: list[Episode] = []
        for start in range(0, len(parts), LANES):
            episodes += self._play_together(parts[start : start + LANES])
        return episodes

    def solution(self, seed: int) -> tuple[str, ...] | EnvFault:
        """The witness of an instance."""
        found = self._session(0).solution(seed)
        if isinstance(found, EnvFault):
            _refuse_lost(found)
        return found

    def _session(self, index: int) -> Session:
        while len(self._sessions) <= index:
            session = self._pool.open(self._spec.record, self._spec.limits)
            self._open.callback(session.close)
            self._sessions.append(session)
        return self._sessions[index]

    def _play_together(self, parts: Sequence[Part]) -> list[Episode]:
        sessions = [self._session(index) for index in range(len(parts))]
        seeds = [part.seed for part in parts]
        resets = self._pool.reset_many(list(zip(sessions, seeds, strict=True)))
        episodes = [self._begin(seed, result) for seed, result in zip(seeds, resets, strict=True)]
        live = [index for index, episode in enumerate(episodes) if not episode.done]
        while live:
            moves = [(index, _next_action(parts[index].agent, episodes[index])) for index in live]
            calls = [(index, action) for index, action in moves if action is not None]
            results = self._pool.step_many([(sessions[index], action) for index, action in calls])
            for (index, _), result in zip(calls, results, strict=True):
                if isinstance(result, EnvFault):
                    _refuse_lost(result)
                episodes[index], _ = advance(episodes[index], result)
            live = [index for index, _ in calls if not episodes[index].done]
        return episodes

    def _begin(self, seed: int, result: ResetResult | EnvFault) -> Episode:
        record = self._spec.record
        if isinstance(result, EnvFault):
            _refuse_lost(result)
            return Episode(seed, record.max_turns, "", done=True, fault=result)
        return begin(seed, record.max_turns, result, record.reward_floor)[0]


def _next_action(agent: Agent, episode: Episode) -> str | None:
    action = agent(episode.observation)
    return None if action is None else cut_action(action)


def _refuse_lost(fault: EnvFault) -> None:
    """Raise `SandboxError` for a fault that is not the environment's: figures would not be its own."""
    if fault.origin is Origin.INFRASTRUCTURE:
        raise SandboxError(f"workers were lost again and again: {fault.detail}")
