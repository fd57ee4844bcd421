"""The ceiling: a curriculum that is told the order of the rungs, and plays the lowest one that is not mastered yet.

No designer knows that order, nor which rung is which: it has to find both in what it is paid. A plug-in of `spade-loop`
(`micro_oracle.dist-info` names it), so that the oracle's runs go through the same command as all others.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, Self

import msgspec
import numpy as np
from ladder import LEVELS, Cell, cell_of

from spade_loop.curriculum import Held
from spade_loop.errors import RunStateError
from spade_loop.types import JsonRow
from synthgym.spec import SynthEnvSpec

MASTERED: Final = 0.75
"""Success from which the next rung is the one to play."""
SPREAD: Final = 3
"""A rung is drawn from this many, from the lowest that is not mastered on: p is about 1/5 there and 1/25 above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """The ladders' frontiers, by what was played there last."""

    kind: ClassVar[str] = "oracle"
    score: ClassVar[str] = "solve_rate"
    rungs: Mapping[str, tuple[str, int]]
    """Ladder and level of each digest."""
    rates: Mapping[str, float] = field(default_factory=dict)
    """Success when a digest was played last."""

    @classmethod
    def begin(cls, specs: Collection[SynthEnvSpec], seed: int) -> Self:  # noqa: ARG003
        """Nothing is known but the order."""
        found: dict[str, Cell | None] = {spec.digest: cell_of(spec) for spec in specs}
        return cls(rungs={d: (c.ladder, c.level) for d, c in found.items() if c is not None})

    def frontiers(self) -> dict[str, int]:
        """The lowest level of each ladder that is not mastered; the highest one when all are."""
        lowest = dict.fromkeys((ladder for ladder, _ in self.rungs.values()), LEVELS - 1)
        for digest, (ladder, level) in self.rungs.items():
            if self.rates.get(digest, 0.0) < MASTERED:
                lowest[ladder] = min(lowest[ladder], level)
        return lowest

    def choose(self, held: Sequence[Held], k: int, rng: np.random.Generator) -> list[str]:
        """The frontier of every ladder, in random order, then rungs near above them."""
        lowest = self.frontiers()
        ranked = []
        for digest in sorted(h.digest for h in held):
            if digest in self.rungs:
                ladder, level = self.rungs[digest]
                above = level - lowest[ladder]
                # Behind what is to be learned comes what was learned last: it may have been forgotten.
                rank = above if 0 <= above < SPREAD else SPREAD + abs(above)
                ranked.append((rank, float(rng.random()), digest))
        return [digest for _, _, digest in sorted(ranked)[:k]]

    def observe(self, digest: str, score: float, iteration: int) -> Self:  # noqa: ARG002
        """Remember what was played last."""
        if digest not in self.rungs or math.isnan(score):
            return self
        return replace(self, rates={**self.rates, digest: score})

    def to_json(self) -> JsonRow:
        """Plain data."""
        plain: JsonRow = {"kind": self.kind, **msgspec.to_builtins(self)}
        return plain

    @classmethod
    def from_json(cls, data: JsonRow) -> Self:
        """Inverse of `to_json`; `RunStateError` for anything else."""
        try:
            return msgspec.convert({k: v for k, v in data.items() if k != "kind"}, cls)
        except msgspec.ValidationError as error:
            raise RunStateError(
                f"the state of curriculum 'oracle' cannot be read: {error}"
            ) from error
