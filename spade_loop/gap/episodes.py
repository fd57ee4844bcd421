"""One episode of an environment or of a task, and its row in the journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from spade_loop.episodes import Play
from spade_loop.errors import RunStateError
from spade_loop.gap.settings import Condition, GapSettings
from spade_loop.gap.subjects import Subject
from spade_loop.speaking import Speaker, Usage
from spade_loop.text_episodes import SEED_BITS, TextPlayer
from spade_loop.types import NOTHING, JsonRow, StopReason, Trajectory, Turn
from synthgym.sandbox import EnvFault, FaultKind, Pool
from synthgym.spec import sha256_digest


class Plays(Protocol):
    """Plays one episode; called from many threads at once."""

    def play(self, play: Play, seed: int) -> Trajectory:
        """See `TextPlayer.play`."""


@dataclass(frozen=True, slots=True)
class Piece:
    """One episode to be played."""

    subject: Subject
    condition: Condition
    seed: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What its row goes by."""
        return identity(self.subject), self.condition.name, self.seed


@dataclass(frozen=True, slots=True)
class Played:
    """An episode that is over."""

    trajectory: Trajectory
    usage: Usage


def identity(subject: Subject) -> str:
    """What the episodes of a subject depend on: its digest, and a hint that stands in for its own."""
    hint = subject.spec.hint
    return subject.digest if hint is None else f"{subject.digest}+{sha256_digest(hint.encode())}"


def reply_seed(settings: GapSettings, piece: Piece) -> int:
    """Seed of the first reply of an episode: another one for each environment, condition and instance."""
    own = int(sha256_digest(f"{piece.key}".encode()).removeprefix("sha256:")[:16], 16)
    return int(np.random.default_rng([settings.seed, own]).integers(2**SEED_BITS))


class EpisodePlayer:
    """Plays episodes of a field in every condition."""

    def __init__(
        self,
        speaker: Speaker,
        pool: Pool,
        settings: GapSettings,
        tasks: Plays | None = None,
    ) -> None:
        """`tasks` plays what is a task; environments run in workers of `pool`."""
        self._speaker = speaker
        self._settings = settings
        self._tasks = tasks
        self._players = {
            level: TextPlayer(
                speaker,
                pool,
                decoding=settings.decoding,
                max_turns=settings.max_turns,
                hint_level=level,
            )
            for level in {condition.level for condition in settings.conditions}
        }

    def play(self, piece: Piece) -> Played:
        """One episode, and what it cost. `ModelError` when the model cannot be asked."""
        play = Play(piece.subject.spec, piece.seed, 0, piece.condition.arm)
        player: Plays = self._players[piece.condition.level]
        if piece.subject.task is not None:
            assert self._tasks is not None
            player = self._tasks
        with self._speaker.counting() as tally:
            trajectory = player.play(play, reply_seed(self._settings, piece))
        return Played(trajectory, tally.usage)


def episode_row(piece: Piece, played: Played) -> JsonRow:
    """The row of an episode, transcript included."""
    t = played.trajectory
    return {
        "env": piece.subject.name,
        "content": identity(piece.subject),
        "condition": piece.condition.name,
        "seed": piece.seed,
        "return": t.episode_return,
        "success": t.success,
        "stop": str(t.stop),
        "fault": None if t.fault is None else t.fault.to_json() | {"detail": t.fault.detail},
        "calls": played.usage.calls,
        "prompt_tokens": played.usage.prompt_tokens,
        "tokens": played.usage.tokens,
        "turns": [
            {
                "observation": turn.observation,
                "reply": turn.reply,
                "action": turn.action,
                "status": turn.status,
                "reward": turn.reward,
            }
            for turn in t.turns
        ],
    }


class Book:
    """The episodes that are over, by what was played."""

    def __init__(self, rows: Sequence[JsonRow], conditions: Sequence[Condition]) -> None:
        """Episodes of a journal; `RunStateError` for a row that is none."""
        self.usage = Usage()
        self._played: dict[tuple[str, str, int], Played] = {}
        named = {condition.name: condition for condition in conditions}
        for row in rows:
            try:
                condition = named[row["condition"]]
                key = str(row["content"]), condition.name, int(row["seed"])
                self._add(key, _read(row, condition))
            except (KeyError, ValueError, TypeError, AttributeError) as error:
                raise RunStateError(
                    f"a row of the journal is no episode: {type(error).__name__}: {error}; {str(row)[:80]}"
                ) from error

    def __contains__(self, piece: Piece) -> bool:
        return piece.key in self._played

    def add(self, piece: Piece, played: Played) -> None:
        """Keep an episode."""
        self._add(piece.key, played)

    def of(self, subject: Subject, condition: Condition, seeds: Sequence[int]) -> list[Trajectory]:
        """Episodes of a subject in one condition, in the order of the seeds."""
        own = identity(subject)
        return [self._played[own, condition.name, seed].trajectory for seed in seeds]

    def _add(self, key: tuple[str, str, int], played: Played) -> None:
        self._played[key] = played
        self.usage += played.usage


def _read(row: Mapping[str, Any], condition: Condition) -> Played:
    trajectory = Trajectory(
        digest=str(row["content"]).partition("+")[0],
        seed=int(row["seed"]),
        play=0,
        arm=condition.arm,
        prompt_ids=(),
        completion=NOTHING,
        turns=tuple(Turn(**turn) for turn in row["turns"]),
        episode_return=float(row["return"]),
        success=bool(row["success"]),
        stop=StopReason(row["stop"]),
        fault=None if row["fault"] is None else _fault(row["fault"]),
    )
    return Played(
        trajectory, Usage(int(row["calls"]), int(row["prompt_tokens"]), int(row["tokens"]))
    )


def _fault(data: Mapping[str, Any]) -> EnvFault:
    return EnvFault(FaultKind(data["kind"]), data["call"], str(data["detail"]))
