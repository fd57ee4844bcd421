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
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError, EnvNotFoundError
from synthgym.ids import check_digest, did_you_mean
from synthgym.memory.describe import Description, describe
from synthgym.memory.embedder import Embedder
from synthgym.memory.faiss_index import FaissIndex
from synthgym.memory.records import (
    MemoryRecord,
    Neighbour,
    NoveltyDecision,
    NoveltyReason,
    parameter_distance,
)
from synthgym.memory.storage import SavedMemory, read_memory, write_memory
from synthgym.sandbox import EnvFault, Pool
from synthgym.spec import SynthEnvSpec

NEAREST: Final = 5
"""Neighbours that a decision names."""
SEEDED: Final = -1
"""Iteration of an environment that was there before the first one."""
_DISTANCE_SLACK: Final = 1e-9
"""0.3 and 0.2 are 0.1 apart, whatever binary fractions make of it."""
_CACHED_TEXTS: Final = 256
Floats = npt.NDArray[np.float32]


class NoveltyMemory:
    """Admitted environments by digest. The same calls in the same order give the same answers."""

    def __init__(
        self,
        embedder: Embedder,
        *,
        family_quota: int = 32,
        window: int = 8,
        min_parameter_distance: float = 0.1,
    ) -> None:
        """Make an empty memory.

        At most `family_quota` members of a family are admitted within `window` iterations, and
        blueprints must differ by `min_parameter_distance` (mean absolute difference of parameters
        scaled to [0, 1]) from those of these iterations.
        """
        if family_quota < 1 or window < 1:
            raise ConfigError(
                f"family_quota and window must be at least 1, got {family_quota} and {window}"
            )
        if not 0.0 <= min_parameter_distance <= 1.0:
            raise ConfigError(
                f"min_parameter_distance must be 0..1, got {min_parameter_distance}: "
                "it is a mean over parameters scaled to [0, 1]"
            )
        self._embedder = embedder
        self._family_quota = family_quota
        self._window = window
        self._min_distance = float(min_parameter_distance)
        self._records: dict[str, MemoryRecord] = {}
        self._rows: dict[str, int] = {}
        self._index = FaissIndex(embedder.dim)
        self._texts: OrderedDict[str, Floats] = OrderedDict()

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, digest: object) -> bool:
        return digest in self._records

    def __iter__(self) -> Iterator[MemoryRecord]:
        return iter(self._records.values())

    def get(self, digest: str) -> MemoryRecord:
        """Return the record of a digest; `EnvNotFoundError` when it is not held."""
        if digest not in self._records:
            near = did_you_mean(digest, self._records)
            raise EnvNotFoundError(f"the novelty memory does not hold {digest!r}{near}")
        return self._records[digest]

    def check(self, description: Description, *, iteration: int = 0) -> NoveltyDecision:
        """Decide whether a candidate of this iteration is new. Nothing is stored."""
        if description.family:
            reason, detail = self._check_blueprint(description, iteration)
        else:
            reason, detail = self._check_program(description, iteration)
        nearest = self.nearest(description.rules_text, NEAREST)
        return NoveltyDecision(reason is NoveltyReason.NEW, reason, nearest, detail)

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
    ) -> None:
        """Hold an environment. One that is held already is refreshed, and keeps its metrics."""
        check_digest(digest)
        old = self._records.get(digest)
        record = MemoryRecord(
            digest=digest,
            name=name,
            skill=skill,
            description=description,
            iteration=iteration if old is None else max(iteration, old.iteration),
            win_rate=None if old is None else old.win_rate,
            regret=None if old is None else old.regret,
        )
        if old is None:
            self._rows[digest] = self._index.add(self._embed(description.rules_text))
        self._records[digest] = _measured(record, win_rate, regret)

    def update(
        self, digest: str, *, win_rate: float | None = None, regret: float | None = None
    ) -> None:
        """Store what was measured. None, NaN and infinity mean "not measured" and change nothing.

        `EnvNotFoundError` when the digest is not held.
        """
        self._records[digest] = _measured(self.get(digest), win_rate, regret)

    def seed(self, specs: Iterable[SynthEnvSpec], pool: Pool) -> None:
        """Hold environments that were there before; each is reset once, with seed 0, in a worker.

        One whose reset faults is described by its docstring alone.
        """
        for spec in specs:
            session = pool.open(spec.record, spec.limits)
            try:
                first = session.reset(0)
            finally:
                session.close()
            description = describe(
                spec.record.source,
                "" if isinstance(first, EnvFault) else first.observation,
                family=spec.provenance.family,
            )
            skill = spec.skills[0] if spec.skills else ""
            self.add(spec.digest, description, name=spec.name, skill=skill, iteration=SEEDED)

    def nearest(self, text: str, k: int) -> tuple[Neighbour, ...]:
        """Find the `k` held environments whose rules texts are nearest, nearest first."""
        if not self._records:
            return ()
        digests = list(self._records)
        hits = self._index.search(self._embed(text), k)
        return tuple(
            Neighbour(digests[hit.row], hit.similarity, self._records[digests[hit.row]].name)
            for hit in hits
        )

    def exemplars(self, skill: str, k: int, rng: np.random.Generator) -> tuple[MemoryRecord, ...]:
        """Draw up to `k` environments worth imitating, best regret first.

        Measured ones of the skill with a win rate in [0.15, 0.85]; of these the max(3k, 10) of
        highest regret; of these one at random, and then those least like the ones drawn.
        """
        usable = [r for r in self if r.skill == skill and r.learnable]
        pool = sorted(usable, key=_by_regret)[: max(3 * k, 10)]
        if not pool or k < 1:
            return ()
        chosen = [pool.pop(int(rng.integers(len(pool))))]
        while pool and len(chosen) < k:
            chosen.append(pool.pop(self._most_different(pool, chosen)))
        return tuple(sorted(chosen, key=_by_regret))

    def warnings(self, skill: str, k: int, rng: np.random.Generator) -> tuple[MemoryRecord, ...]:
        """Draw up to `k` environments of the skill that turned out too easy or too hard.

        The record's `verdict` says which.
        """
        bad = sorted((r for r in self if r.skill == skill and r.verdict), key=lambda r: r.digest)
        if not bad or k < 1:
            return ()
        rows = rng.choice(len(bad), size=min(k, len(bad)), replace=False)
        return tuple(bad[int(row)] for row in rows)

    def copy(self) -> NoveltyMemory:
        """Return a memory that can be changed without changing this one. They share the embedder."""
        other = copy.copy(self)
        other._records = dict(self._records)
        other._rows = dict(self._rows)
        other._index = FaissIndex.from_vectors(self._index.vectors())
        other._texts = OrderedDict(self._texts)
        return other

    def save(self, path: Path) -> None:
        """Write the memory to one file, in one step. The same content gives the same bytes."""
        settings = {
            "family_quota": self._family_quota,
            "window": self._window,
            "min_parameter_distance": self._min_distance,
        }
        records = tuple(self._records.values())
        write_memory(
            path, SavedMemory(self._embedder.name, settings, records, self._index.vectors())
        )

    @classmethod
    def load(cls, path: Path, embedder: Embedder) -> NoveltyMemory:
        """Read a memory. `SnapshotError` for another file, `ConfigError` for another embedder."""
        saved = read_memory(path)
        if saved.embedder != embedder.name or saved.vectors.shape[1] != embedder.dim:
            raise ConfigError(
                f"{path} holds vectors of embedder {saved.embedder!r}, got {embedder.name!r}: "
                "vectors of different embedders cannot be compared, so load it with its own"
            )
        memory = cls(embedder, **saved.settings)
        memory._records = {record.digest: record for record in saved.records}
        memory._rows = {digest: row for row, digest in enumerate(memory._records)}
        memory._index = FaissIndex.from_vectors(saved.vectors)
        return memory

    def _check_program(self, description: Description, iteration: int) -> tuple[NoveltyReason, str]:
        same = [r for r in self if r.description.ast_hash == description.ast_hash]
        for record in same:
            if record.description.data_hash == description.data_hash:
                return NoveltyReason.COPY, f"same structure and data as {record.name}"
        recent = [r for r in same if self._is_recent(r, iteration)]
        return self._check_quota(len(recent), "programs with this structure")

    def _check_blueprint(
        self, description: Description, iteration: int
    ) -> tuple[NoveltyReason, str]:
        recent = [
            r
            for r in self
            if r.description.family == description.family and self._is_recent(r, iteration)
        ]
        for record in recent:
            distance = parameter_distance(description.parameters, record.description.parameters)
            if distance == 0.0 or distance < self._min_distance - _DISTANCE_SLACK:
                detail = (
                    f"parameters {distance:.3f} from {record.name}; "
                    f"at least {self._min_distance:.3f} is new"
                )
                return NoveltyReason.SAME_PARAMETERS, detail
        return self._check_quota(len(recent), f"blueprints of family {description.family!r}")

    def _check_quota(self, count: int, what: str) -> tuple[NoveltyReason, str]:
        if count < self._family_quota:
            return NoveltyReason.NEW, ""
        return NoveltyReason.FAMILY_FULL, f"{count} {what} in the last {self._window} iterations"

    def _is_recent(self, record: MemoryRecord, iteration: int) -> bool:
        return record.iteration > iteration - self._window

    def _embed(self, text: str) -> Floats:
        """Embed one text; a candidate is checked and then added, so the last ones are kept."""
        if text not in self._texts:
            self._texts[text] = self._embedder([text])[0]
            if len(self._texts) > _CACHED_TEXTS:
                self._texts.popitem(last=False)
        return self._texts[text]

    def _most_different(self, pool: list[MemoryRecord], chosen: list[MemoryRecord]) -> int:
        """Return the position in `pool` of the record least similar to its nearest chosen one."""
        vectors = self._index.vectors().astype(np.float64)
        held = vectors[[self._rows[r.digest] for r in chosen]]
        likeness = [round(float((held @ vectors[self._rows[r.digest]]).max()), 4) for r in pool]
        return min(range(len(pool)), key=lambda i: (likeness[i], i))


def _by_regret(record: MemoryRecord) -> tuple[float, str]:
    return (-(record.regret or 0.0), record.digest)


def _measured(record: MemoryRecord, win_rate: float | None, regret: float | None) -> MemoryRecord:
    """Return `record` with the values that are finite numbers."""
    if win_rate is not None and math.isfinite(win_rate):
        record = replace(record, win_rate=float(win_rate))
    if regret is not None and math.isfinite(regret):
        record = replace(record, regret=float(regret))
    return record
