"""A warm start from its rows to a checkpoint that a run begins with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from transformers.utils import logging

from spade_loop.backends.weights import Policy, load_policy
from spade_loop.chat import ChatFormat
from spade_loop.config import Config
from spade_loop.demonstrations import HELD_OUT, TRAIN, Demonstration, Encoded, Room, encode
from spade_loop.errors import ConfigError
from spade_loop.exhaustion import explained
from spade_loop.progress import Progress
from spade_loop.types import JsonRow, Role
from spade_loop.warmstart.making import Made
from spade_loop.warmstart.preparing import Staging, Task, listed
from spade_loop.warmstart.training import fine_tune, losses


@dataclass(frozen=True, slots=True)
class Fitting:
    """Rows as one model writes them, as far as the recipe has room for them."""

    rows: tuple[Encoded, ...]
    without_room: Mapping[str, int]
    """Rows that were left out, and rows that were cut, by why."""

    def of(self, split: str) -> list[Encoded]:
        """The rows of a split."""
        return [row for row in self.rows if row.demonstration.split == split]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a warm start came to."""

    rows: Mapping[str, int]
    """Rows trained on and held out, by `<role> <split>`, those that fitted."""
    dropped: Mapping[str, int]
    """Rows that were not made, left out or cut, by why."""
    tokens: int
    """Trained on in one epoch."""
    before: Mapping[str, float]
    """Mean cross entropy of a token of held-out replies, by role, in nats."""
    after: Mapping[str, float]
    """The same of the weights that were saved."""

    def to_json(self) -> JsonRow:
        """Plain data."""
        return {
            "rows": dict(self.rows),
            "dropped": dict(self.dropped),
            "tokens": self.tokens,
            "held_out_loss": {"before": dict(self.before), "after": dict(self.after)},
        }


def warm_start(task: Task, staging: Staging, made: Made, progress: Progress) -> Told:
    """Train on the rows, save a checkpoint with tokenizer and chat template, and put the folder in its place."""
    with explained(staging.out, "the same command"):
        progress.phase("load", 1)
        policy = load_policy(task.config.policy)
        progress.advance(1)
        told = _train(task, staging, made, policy, progress)
        staging.finish(task.identity | told.to_json())
    return told


def _train(task: Task, staging: Staging, made: Made, policy: Policy, progress: Progress) -> Told:
    fitting = fit(policy.chat, made.rows, task.config)
    dropped = {**made.dropped, **fitting.without_room}
    trained, held_out = fitting.of(TRAIN), fitting.of(HELD_OUT)
    if not trained:
        raise ConfigError(f"no row is left to train on: {listed(dropped)}")
    torch.manual_seed(task.settings.seed)  # adapters begin with the same weights each time
    progress.phase("loss before", len(held_out))
    before = losses(policy, policy.model, held_out, progress)
    model = fine_tune(
        policy, trained, task.config, task.settings, scratch=staging.scratch, progress=progress
    )
    progress.phase("loss after", len(held_out))
    after = losses(policy, model, held_out, progress)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # transformers' Trainer turns it on again
    model.save_pretrained(staging.path)
    policy.tokenizer.save_pretrained(staging.path)
    counts = Counter(f"{r.demonstration.role} {r.demonstration.split}" for r in fitting.rows)
    return Told(
        rows=dict(sorted(counts.items())),
        dropped=dropped,
        tokens=sum(sum(row.completion.mask) for row in trained),
        before=before,
        after=after,
    )


def fit(chat: ChatFormat, rows: Sequence[Demonstration], config: Config) -> Fitting:
    """Rows as ids, each cut to the turns and tokens that the recipe has room for."""
    rooms = {role: Room.of(config, role) for role in Role}
    fitting, without_room = [], Counter[str]()
    for row in rows:
        encoded = encode(chat, row, rooms[row.role])
        if encoded is None:
            without_room[f"{row.role}: the first reply has no room in {_limits(row.role)}"] += 1
            continue
        fitting.append(encoded)
        if not encoded.whole:
            without_room[f"{row.role}: cut to agent.max_turns and {_limits(row.role)}"] += 1
    return Fitting(tuple(fitting), dict(sorted(without_room.items())))


def _limits(role: Role) -> str:
    if role is Role.DESIGNER:
        return "designer.max_tokens"
    return "agent.turn_tokens and agent.context"
