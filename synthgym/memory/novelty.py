"""The novelty memory: which environments were admitted, and whether a candidate is new.

Rules decide and embeddings only retrieve. A free program is a copy when its structure and its data
equal those of a held one; equal structure with other data makes a family. Blueprints of one family
always share their structure, so there parameters are compared. The family rules look at the last
iterations only: a finite space of parameters never saturates.
"""

from __future__ import annotations

import copy
import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError, EnvNotFoundError, SnapshotError
from synthgym.ids import check_digest, did_you_mean
from synthgym.memory.behaviour import behaviour_trace
from synthgym.memory.decision import (
    NEAREST,
    Candidate,
    Judge,
    NoveltySettings,
    as_strictness,
    decide_blueprint,
    decide_program,
)
from synthgym.memory.describe import Description, describe
from synthgym.memory.embedder import Embedder
from synthgym.memory.holdings import Holdings, Near
from synthgym.memory.records import (
    TOO_EASY,
    TOO_HARD,
    MemoryRecord,
    Neighbour,
    NoveltyDecision,
    NoveltyReason,
)
from synthgym.memory.retrieval import draw_exemplars, draw_warnings
from synthgym.memory.rules import REVIEW_COSINE, Strictness
from synthgym.memory.storage import SavedMemory, read_memory, write_memory
from synthgym.memory.table import RecordTable
from synthgym.sandbox import EnvFault, Pool
from synthgym.spec import SynthEnvSpec

SEEDED: Final = -1
"""Iteration of an environment that was there before the first one."""
_CACHED_TEXTS: Final = 256
Floats = npt.NDArray[np.float32]


class NoveltyMemory:
    """Admitted environments by digest. The same calls in the same order give the same answers."""

    def __init__(  # noqa: PLR0913 -- one keyword for each field of NoveltySettings
        self,
        embedder: Embedder,
        *,
        strictness: str = Strictness.REFACTOR,
        family_quota: int = 32,
        window: int = 8,
        min_parameter_distance: float = 0.1,
        review_cosine: float = REVIEW_COSINE,
        review_quota: int | None = None,
        judge: Judge | None = None,
    ) -> None:
        """Make an empty memory.

        `strictness` says what is a duplicate of a free program: `copy`, `refactor` or `sibling`. At
        most `family_quota` members of a family are admitted within `window` iterations, and
        blueprints must differ by `min_parameter_distance` (mean absolute difference of parameters
        scaled to [0, 1]) from those of these iterations.

        A program that is near to held ones (a text from `review_cosine` on, or much shared code)
        goes to the `judge`, which must call it new. Without one it is accepted, and the decision
        says what it is near to; with `review_quota` it is refused beside so many of these
        iterations.
        """
        self._settings = NoveltySettings(
            strictness=as_strictness(strictness),
            family_quota=family_quota,
            window=window,
            min_parameter_distance=float(min_parameter_distance),
            review_cosine=float(review_cosine),
            review_quota=review_quota,
        )
        self._embedder = embedder
        self._judge = judge
        self._held = Holdings.empty(embedder.dim)
        self._texts: OrderedDict[str, Floats] = OrderedDict()

    def __len__(self) -> int:
        return len(self._table)

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, str) and self._table.row(digest) is not None

    def __iter__(self) -> Iterator[MemoryRecord]:
        return iter(self._table)

    def get(self, digest: str) -> MemoryRecord:
        """Return the record of a digest; `EnvNotFoundError` when it is not held."""
        return self._table.record(self._row(digest))

    def check(self, description: Description, *, iteration: int = 0) -> NoveltyDecision:
        """Decide whether a candidate of this iteration is new. Nothing is stored."""
        vector = self._embed(description.rules_text)
        nearest = self._held.nearest(vector, NEAREST)
        candidate = Candidate(description, vector, nearest, iteration)
        if description.family:
            found = decide_blueprint(self._held, self._settings, candidate)
        else:
            found = decide_program(self._held, self._settings, self._judge, candidate)
        return NoveltyDecision(
            accepted=found.reason is NoveltyReason.NEW,
            reason=found.reason,
            nearest=self._neighbours(nearest),
            detail=found.detail,
            review=tuple(self._table.digest(row) for row in found.review),
        )

    def add(  # noqa: PLR0913 -- what is known of one environment, all by name
        self,
        digest: str,
        description: Description,
        *,
        name: str,
        skill: str,
        iteration: int,
        win_rate: float | None = None,
        regret: float | None = None,
        regret_se: float | None = None,
    ) -> None:
        """Hold an environment. One that is held already is refreshed, and keeps its metrics."""
        check_digest(digest)
        row = self._table.row(digest)
        old = None if row is None else self._table.record(row)
        record = MemoryRecord(
            digest=digest,
            name=name,
            skill=skill,
            description=description,
            iteration=iteration if old is None else max(iteration, old.iteration),
            win_rate=None if old is None else old.win_rate,
            regret=None if old is None else old.regret,
            regret_se=None if old is None else old.regret_se,
        )
        text = description.rules_text
        vector = None if self._held.has_text(text) else self._embed(text)
        self._held.put(_measured(record, win_rate, regret, regret_se), vector)

    def update(
        self,
        digest: str,
        *,
        win_rate: float | None = None,
        regret: float | None = None,
        regret_se: float | None = None,
    ) -> None:
        """Store what was measured. None, NaN and infinity mean "not measured" and change nothing.

        A new regret without its standard error leaves none. `EnvNotFoundError` when the digest is
        not held.
        """
        row = self._row(digest)
        record = _measured(self._table.record(row), win_rate, regret, regret_se)
        self._table.measure(row, record)

    def remove(self, digest: str) -> None:
        """Forget an environment; `EnvNotFoundError` when it is not held."""
        self._held.remove(self._row(digest))

    def seed(
        self, specs: Iterable[SynthEnvSpec], pool: Pool, *, with_behaviour: bool = False
    ) -> None:
        """Hold environments that were there before; each is reset once, with seed 0, in a worker.

        One whose reset faults is described by its docstring alone. `with_behaviour` plays each as
        well (`behaviour_trace`), so that a candidate with a trace can be told to be a reskin.
        """
        for spec in specs:
            with pool.open(spec.record, spec.limits) as session:
                first = session.reset(0)
            trace = behaviour_trace(spec.record, pool, spec.limits) if with_behaviour else None
            description = describe(
                spec.record.source,
                "" if isinstance(first, EnvFault) else first.observation,
                family=spec.provenance.family,
                behaviour=trace,
            )
            skill = spec.skills[0] if spec.skills else ""
            self.add(spec.digest, description, name=spec.name, skill=skill, iteration=SEEDED)

    def nearest(self, text: str, k: int) -> tuple[Neighbour, ...]:
        """Find the `k` held environments whose rules texts are nearest, nearest first."""
        if len(self) == 0:
            return ()
        return self._neighbours(self._held.nearest(self._embed(text), k))

    def vectors(self) -> Floats:
        """The vectors of the rules texts, one for each record in order: float32 [n, dim]."""
        return self._held.index.vectors(self._table.text_of.values[self._table.rows].tolist())

    def near_misses(self, text: str, k: int) -> tuple[MemoryRecord, ...]:
        """Find `k` environments that a design of this text should not repeat, nearest first.

        Of those that share their structure, or their blueprint family, the nearest one stands for
        all.
        """
        wanted = k
        vector = self._embed(text)
        while True:
            found: dict[str, MemoryRecord] = {}
            for row, _ in self._held.nearest(vector, wanted):
                record = self._table.record(row)
                kind = record.description.family or record.description.ast_hash
                found.setdefault(kind, record)
            if len(found) >= k or wanted >= len(self):
                return tuple(found.values())[: max(0, k)]
            wanted *= 2

    def exemplars(
        self, skill: str, k: int, rng: np.random.Generator, policy: str = "mmr"
    ) -> tuple[MemoryRecord, ...]:
        """Draw up to `k` environments of the skill that are worth imitating, best regret first.

        The policies are those of `retrieval`: `mmr`, or `spade`, which answers in the order of the
        draw. `ConfigError` for another one.
        """
        rows = self._table.rows_of_skill(skill)
        drawn = draw_exemplars(self._table, self._held.index, rows, k, rng, policy)
        return tuple(self._table.record(row) for row in drawn)

    def warnings(self, skill: str, k: int, rng: np.random.Generator) -> tuple[MemoryRecord, ...]:
        """Draw up to `k` environments of the skill that turned out too easy or too hard.

        The record's `verdict` says which.
        """
        rows = self._table.rows_of_skill(skill)
        drawn = draw_warnings(self._table, rows, k, rng, (TOO_HARD, TOO_EASY))
        return tuple(self._table.record(row) for row in drawn)

    def copy(self) -> NoveltyMemory:
        """Return a memory that can be changed without changing this one. They share the embedder."""
        other = copy.copy(self)
        other._held = self._held.copy()
        other._texts = OrderedDict(self._texts)
        return other

    def save(self, path: Path) -> None:
        """Write the memory to one file, in one step. The same content gives the same bytes."""
        settings = asdict(self._settings)
        write_memory(path, SavedMemory(self._embedder.name, settings, self._held))

    @classmethod
    def load(cls, path: Path, embedder: Embedder, *, judge: Judge | None = None) -> NoveltyMemory:
        """Read a memory. `SnapshotError` for another file, `ConfigError` for another embedder."""
        saved = read_memory(path)
        if saved.embedder != embedder.name or saved.held.index.dim != embedder.dim:
            raise ConfigError(
                f"{path} holds vectors of embedder {saved.embedder!r}, got {embedder.name!r}: "
                "vectors of different embedders cannot be compared, so load it with its own"
            )
        try:
            memory = cls(embedder, judge=judge, **saved.settings)
        except (TypeError, ValueError) as error:
            raise SnapshotError(f"{path} has wrong settings: {error}") from error
        memory._held = saved.held
        return memory

    @property
    def _table(self) -> RecordTable:
        return self._held.table

    def _row(self, digest: str) -> int:
        row = self._table.row(digest)
        if row is None:
            near = did_you_mean(digest, self._table.digests_like(digest))
            raise EnvNotFoundError(f"the novelty memory does not hold {digest!r}{near}")
        return row

    def _neighbours(self, nearest: Sequence[Near]) -> tuple[Neighbour, ...]:
        return tuple(
            Neighbour(self._table.digest(row), cosine, self._table.name(row))
            for row, cosine in nearest
        )

    def _embed(self, text: str) -> Floats:
        """Embed one text; a candidate is checked and then added, so the last ones are kept."""
        if text not in self._texts:
            self._texts[text] = self._embedder([text])[0]
            if len(self._texts) > _CACHED_TEXTS:
                self._texts.popitem(last=False)
        return self._texts[text]


def _measured(
    record: MemoryRecord, win_rate: float | None, regret: float | None, regret_se: float | None
) -> MemoryRecord:
    """Return `record` with the values that are finite numbers."""
    if win_rate is not None and math.isfinite(win_rate):
        record = replace(record, win_rate=float(win_rate))
    if regret is not None and math.isfinite(regret):
        record = replace(record, regret=float(regret), regret_se=None)
    if regret_se is not None and math.isfinite(regret_se):
        record = replace(record, regret_se=float(regret_se))
    return record
