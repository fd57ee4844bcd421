"""Every environment is as likely as every other: domain randomisation over what is held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from spade_loop.curriculum.choice import Held, digests, read_state, write_state
from spade_loop.types import JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniform:
    """Draws without replacement, each time from all that is held; learns nothing."""

    kind: ClassVar[str] = "uniform"
    score: ClassVar[str] = "regret"

    def choose(self, held: Sequence[Held], k: int, rng: np.random.Generator) -> list[str]:
        """`k` distinct digests, or all of them when fewer are held."""
        known = digests(held, k)
        picked = rng.choice(len(known), size=min(k, len(known)), replace=False)
        return [known[i] for i in picked]

    def observe(self, digest: str, score: float, iteration: int) -> Self:  # noqa: ARG002
        """Itself."""
        return self

    def to_json(self) -> JsonRow:
        """Plain data."""
        return write_state(self.kind, self)

    @classmethod
    def from_json(cls, data: JsonRow) -> Self:
        """Inverse of `to_json`; `RunStateError` for anything else."""
        return read_state(cls.kind, cls, data)
