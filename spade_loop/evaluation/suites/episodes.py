"""Items that are episodes: one instance of an environment each, played without a hint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from spade_loop.completers import JsonSchema, Reply
from spade_loop.episodes import Play
from spade_loop.errors import ConfigError
from spade_loop.evaluation.suite import Attempt, Failure, Item, Say
from spade_loop.speaking import Decoding, Speaker
from spade_loop.text_episodes import TextPlayer
from spade_loop.types import Arm, Message, StopReason, Trajectory
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec


@dataclass(frozen=True, slots=True)
class Instance:
    """What is played: an environment, and the seed of its instance."""

    spec: SynthEnvSpec
    seed: int


@dataclass(slots=True)
class _Voice:
    """A `Writer` whose words are those of `say`; it keeps the conversation."""

    say: Say
    name: str = "say"
    concurrent: bool = True
    transcript: tuple[Message, ...] = ()
    cut: int = 0
    """Replies that the token limit cut."""

    def write(  # noqa: PLR0913 -- the interface
        self,
        chats: Sequence[Sequence[Message]],
        *,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[int],
        schema: JsonSchema | None = None,
        top_p: float = 1.0,
        top_k: int = 0,
    ) -> list[Reply]:
        """Replies of `say`, which knows the decoding."""
        del max_tokens, temperature, seeds, schema, top_p, top_k
        replies = []
        for chat in chats:
            reply = self.say(chat)
            self.transcript = (*chat, Message("assistant", reply.text))
            self.cut += not reply.stopped
            replies.append(reply)
        return replies

    def close(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class EpisodePlayer:
    """Plays instances in workers of a pool of its own, by the rules that agents are trained under."""

    max_turns: int
    pool: Pool = field(default_factory=Pool)

    def play(self, item: Item, say: Say) -> Attempt:
        """One episode; correct when the goal is reached. The score is the return, within [0, 1]."""
        instance: Instance = item.content
        voice = _Voice(say)
        player = TextPlayer(
            Speaker(voice, rows=1),
            self.pool,
            decoding=Decoding(max_tokens=1),  # `say` has its own
            max_turns=self.max_turns,
            hint_level=1,
        )
        play = Play(spec=instance.spec, seed=instance.seed, index=0, arm=Arm.PLAIN)
        return _attempt(player.play(play, 0), voice)

    def close(self) -> None:
        """End the workers."""
        self.pool.close()


def instance_seeds(seed: int, count: int) -> tuple[int, ...]:
    """Seeds of instances: a larger count begins with those of a smaller one. `ConfigError` for a count below 1."""
    if count < 1:
        raise ConfigError(f"seeds must be at least 1, got {count}")
    if seed < 0:
        raise ConfigError(f"--seed must be at least 0, got {seed}")
    generator = np.random.default_rng([seed])
    return tuple(int(generator.integers(2**31)) for _ in range(count))


def _attempt(trajectory: Trajectory, voice: _Voice) -> Attempt:
    turns: dict[str, Any] = {
        "transcript": voice.transcript,
        "detail": f"{trajectory.stop} after {len(trajectory.turns)} turns, return {trajectory.episode_return:g}",
    }
    if trajectory.stop is StopReason.FAULT:
        return Attempt.failed(Failure.FAULT, voice.transcript, f"{trajectory.fault}")
    if trajectory.success:
        return Attempt(score=_within(trajectory.episode_return), correct=True, **turns)
    failure = _failure(trajectory, voice)
    return Attempt(
        score=_within(trajectory.episode_return), correct=False, failure=failure, **turns
    )


def _failure(trajectory: Trajectory, voice: _Voice) -> str:
    """Why an episode that did not succeed came to nothing; empty where the agent acted, and lost."""
    if trajectory.stop is StopReason.CONTEXT:
        return Failure.CONTEXT
    if trajectory.stop is not StopReason.TURNS:
        return ""
    if not trajectory.actions:
        silent = not any(turn.reply.strip() for turn in trajectory.turns)
        unread = Failure.CUT if voice.cut else Failure.UNPARSED
        return Failure.EMPTY if silent else unread
    return Failure.TURNS


def _within(value: float) -> float:
    return min(1.0, max(0.0, value))
