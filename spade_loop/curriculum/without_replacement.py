"""A fixed pool, gone through again and again: every environment once before any comes twice (SPADE's static pool)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from spade_loop.curriculum.choice import Held, digests, read_state, write_state
from spade_loop.errors import ConfigError
from spade_loop.types import JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutReplacement:
    """Passes over what is held, each in an order of its own, that of `seed` and the number of the pass.

    The queue follows from how often each environment was drawn, so it is exact after a resume, and an environment
    that is quarantined changes nothing for the others. The generator of a choice is not used.
    """

    kind: ClassVar[str] = "without-replacement"
    score: ClassVar[str] = "regret"
    seed: int = 42
    draws: Mapping[str, int] = field(default_factory=dict)
    """How often each environment was drawn."""

    def __post_init__(self) -> None:
        if self.seed < 0 or any(count < 1 for count in self.draws.values()):
            raise ConfigError(
                f"expected a seed of at least 0 and draws of at least 1, got {self.seed} and {dict(self.draws)}"
            )

    def queue(self, held: Sequence[Held]) -> list[str]:
        """Every held environment in the order in which they are next: the rest of this pass, then the next one."""
        return sorted(digests(held, 0), key=self._turn)

    def choose(self, held: Sequence[Held], k: int, rng: np.random.Generator) -> list[str]:  # noqa: ARG002
        """The first `k` of the queue. A choice that spans two passes names nothing twice."""
        digests(held, k)
        return self.queue(held)[:k]

    def observe(self, digest: str, score: float, iteration: int) -> Self:  # noqa: ARG002
        """Count a draw, whatever came of it."""
        counted = {**self.draws, digest: self.draws.get(digest, 0) + 1}
        return replace(self, draws=dict(sorted(counted.items())))

    def to_json(self) -> JsonRow:
        """Plain data."""
        return write_state(self.kind, self)

    @classmethod
    def from_json(cls, data: JsonRow) -> Self:
        """Inverse of `to_json`; `RunStateError` for anything else."""
        return read_state(cls.kind, cls, data)

    def _turn(self, digest: str) -> tuple[int, bytes]:
        """The pass in which an environment is next, and where in its order."""
        number = self.draws.get(digest, 0)
        # A hash, not a shuffle: the order of those that stay does not change when one leaves.
        return number, hashlib.sha256(f"{self.seed}/{number}/{digest}".encode()).digest()
