"""The rows of a warm start: from a snapshot to demonstrations of both roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spade_loop.config import Config
from spade_loop.corpus import Corpus
from spade_loop.demonstrations import Demonstration
from spade_loop.design.dialects import make_dialect
from spade_loop.episodes import Stage
from spade_loop.progress import Progress
from spade_loop.types import JsonRow, Role
from spade_loop.warmstart.designs import design_rows
from spade_loop.warmstart.settings import WarmStart
from spade_loop.warmstart.witnesses import Dropped, witness_rows
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec


@dataclass(frozen=True, slots=True)
class Made:
    """Rows, and why there are no more."""

    rows: tuple[Demonstration, ...]
    dropped: Mapping[str, int]
    """Number of rows that were not made, by `<role>: <why>`."""

    def of(self, role: Role, split: str) -> list[Demonstration]:
        """The rows of a role and split."""
        return [row for row in self.rows if (row.role, row.split) == (role, split)]

    def to_json(self) -> JsonRow:
        """Counts."""
        counts = Counter(f"{row.role} {row.split}" for row in self.rows)
        return {"rows": dict(sorted(counts.items())), "dropped": dict(sorted(self.dropped.items()))}


def make_rows(
    specs: Sequence[SynthEnvSpec],
    config: Config,
    settings: WarmStart,
    *,
    corpus: Corpus,
    pool: Pool,
    progress: Progress,
) -> Made:
    """Rows of the environments in the order of their ids; equal arguments give equal rows, in any process.

    Every environment is played, seed by seed, in a worker of `pool`.
    """
    ordered = sorted(specs, key=lambda spec: (spec.env_id, spec.digest))
    dropped: Counter[str] = Counter()

    def telling(role: Role) -> Dropped:
        return lambda why: dropped.update([f"{role}: {why}"])

    rows: list[Demonstration] = []
    if settings.roles != "designer":
        stage = Stage(pool, hint_level=config.hints.level)
        progress.phase("witnesses", len(ordered))
        for spec in ordered:
            rows += witness_rows(stage, spec, settings, telling(Role.AGENT))
            progress.advance(1)
    if settings.roles != "agent":
        rows += design_rows(
            ordered,
            config,
            settings,
            dialect=make_dialect(config.designer),
            corpus=corpus,
            dropped=telling(Role.DESIGNER),
        )
    return Made(tuple(rows), dropped)
