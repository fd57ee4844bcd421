"""Rehearsal: in every update some demonstrations, with the gradient of a supervised loss.

A small model that is trained on what it samples forgets what it samples seldom, such as the use of hints. The steps of
this loop are aligned: what is trained on was sampled with the same weights, so that the ratio of the two policies is 1
and the loss of a row with advantage A has the gradient of -A times its mean log-probability by token. With a constant
A > 0 that is the gradient of the cross entropy of the row. TRL's `grpo` loss is the mean over the N rows of a batch:

    A = share * N / R        for R rehearsed rows

adds exactly share * (mean over these rows of the mean cross entropy of their tokens), whatever N and R are. It is the
formula of a role's weight (`batch.weigh`) with every advantage 1. The distribution is the one that is sampled from: its
logits are divided by `trainer.temperature`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from spade_loop.batch import BatchShape
from spade_loop.chat import ChatFormat
from spade_loop.completers import Sampler
from spade_loop.config import Config
from spade_loop.demonstrations import TRAIN, Demonstrations, Encoded, Room, encode
from spade_loop.errors import ConfigError
from spade_loop.types import JsonRow, Role, Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """The demonstrations of one update; a part of its row in `metrics.jsonl`."""

    samples: tuple[Sample, ...] = ()
    """Weighted; their log-probabilities are those of the current weights."""
    loss: float | None = None
    """Mean over the rows of the mean cross entropy of their tokens in nats, before the update; None without rows."""

    @property
    def trained_tokens(self) -> int:
        """Tokens that carry a gradient. Nobody sampled them: no role counts them."""
        return sum(s.trained_tokens for s in self.samples)

    def to_json(self) -> JsonRow:
        """Plain data."""
        return {
            "rows": len(self.samples),
            "trained_tokens": self.trained_tokens,
            "loss": self.loss,
        }

    def scalars(self) -> dict[str, float]:
        """The numbers that a tracker shows, by name."""
        return {} if self.loss is None else {"rehearsal/loss": self.loss}


NOTHING_REHEARSED = Rehearsed()


class Rehearsal:
    """The demonstrations of a run, as its model writes them."""

    def __init__(self, demonstrations: Demonstrations, chat: ChatFormat, config: Config) -> None:
        """Encodes them, each cut to what the recipe has room for. `ConfigError` when nothing is left to train on."""
        self.digest = demonstrations.digest
        shape = BatchShape.of(config)
        self._count = shape.rehearsal
        self._advantage = config.rehearsal.share * shape.total / max(self._count, 1)
        rooms = {role: Room.of(config, role) for role in Role}
        found = (encode(chat, d, rooms[d.role]) for d in demonstrations.rows if d.split == TRAIN)
        self._rows = [encoded for encoded in found if encoded is not None]
        if not self._rows:
            raise ConfigError(
                f"rehearsal.rows: {config.rehearsal.rows} has no row of the split `{TRAIN}` whose first reply has room "
                "in agent.turn_tokens and agent.context, or in designer.max_tokens: raise them, or give other rows"
            )

    def __len__(self) -> int:
        return len(self._rows)

    def draw(self, sampler: Sampler, rng: np.random.Generator) -> Rehearsed:
        """The rows of one update, drawn uniformly; none comes twice while there are enough."""
        chosen = rng.choice(
            len(self._rows), size=self._count, replace=self._count > len(self._rows)
        )
        samples, losses = [], []
        for row in (self._rows[i] for i in chosen.tolist()):
            logprobs = sampler.score(row.prompt_ids, row.completion)
            samples.append(self._sample(row, logprobs))
            trained = [x for x, own in zip(logprobs, row.completion.mask, strict=True) if own]
            losses.append(-sum(trained) / len(trained))
        loss = float(np.mean(losses)) if losses else None
        return Rehearsed(samples=tuple(samples), loss=loss)

    def _sample(self, row: Encoded, logprobs: Sequence[float]) -> Sample:
        return Sample(
            role=row.demonstration.role,
            group="rehearsal",
            prompt_ids=row.prompt_ids,
            completion=replace(row.completion, logprobs=tuple(logprobs)),
            reward=0.0,
            advantage=self._advantage,
            rehearsed=True,
        )
