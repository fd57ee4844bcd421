"""From a snapshot to what its diversity is measured by: texts as vectors, structures, skills, traces.

The text of an environment is its docstring and what it shows first, so each is reset once, with
seed 0, in a worker. One that cannot be reset is in no figure; it is counted and named.
"""

from __future__ import annotations

import ast
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.diversity.structures import Structures
from synthgym.diversity.traces import witness_trace
from synthgym.errors import ConfigError
from synthgym.memory import Description, Embedder, describe
from synthgym.registry import Snapshot
from synthgym.sandbox import EnvFault, Pool, ResetResult, default_pool
from synthgym.spec import SynthEnvSpec

_BATCH: Final = 32
"""Environments that are reset together: each has a worker, and a pool has that many."""
_IN_MEMORY: Final = 1 << 29
"""Bytes of vectors above which they are kept in a temporary file."""
Floats = npt.NDArray[np.float32]
Tell = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Member:
    """One environment that could be described."""

    digest: str
    env_id: str
    title: str
    """Text of a stranger."""
    skills: tuple[str, ...]
    family: str
    """Name of the blueprint family, empty for a free program."""
    ast_hash: str
    data_hash: str
    trace: str | None = None
    """What its witness is paid (`synthgym.diversity.traces`); None when it was not asked or has none."""


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """One environment that is in no figure, and why."""

    digest: str
    env_id: str
    kind: str
    """A `FaultKind`, or `unparsed`."""
    call: str
    detail: str
    """Text of a stranger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """Environments of one snapshot, by digest, with everything that is measured."""

    name: str
    """Name and version of the snapshot."""
    digest: str
    members: tuple[Member, ...]
    vectors: Floats
    """Unit vectors of the rules texts: float32 [members, dim]."""
    embedder: str
    """Name of the embedder: figures of different embedders cannot be compared."""
    structures: Structures
    unmeasured: tuple[Unmeasured, ...] = ()
    traced: bool = False
    """Whether traces were asked for."""
    total: int = field(init=False)
    """Environments of the snapshot."""

    def __post_init__(self) -> None:
        if len(self.vectors) != len(self.members):
            raise ConfigError(
                f"expected a vector for each of {len(self.members)} members, got {len(self.vectors)}"
            )
        object.__setattr__(self, "total", len(self.members) + len(self.unmeasured))


def collect(
    snapshot: Snapshot,
    embedder: Embedder,
    *,
    pool: Pool | None = None,
    traces: bool = False,
    tell: Tell | None = None,
) -> Collection:
    """Describe every environment of a snapshot; `tell` is called with how many are done.

    With `traces` the witness of each is played on three instances as well. The same snapshot gives
    the same collection. `SnapshotError` when a file cannot be read or is not what the manifest
    promises, `SandboxError` when no worker can be started.
    """
    pool = pool if pool is not None else default_pool()
    members: list[Member] = []
    unmeasured: list[Unmeasured] = []
    structures = Structures()
    digests = sorted(entry.digest for entry in snapshot)
    vectors = _table(len(digests), embedder.dim)
    for start in range(0, len(digests), _BATCH):
        specs = [snapshot.spec(digest) for digest in digests[start : start + _BATCH]]
        texts: list[str] = []
        for spec, described in _described(specs, pool):
            if isinstance(described, Unmeasured):
                unmeasured.append(described)
                continue
            members.append(_member(spec, described, pool if traces else None))
            structures.add(ast.parse(spec.record.source), described.ast_hash)
            texts.append(described.rules_text)
        vectors[len(members) - len(texts) : len(members)] = embedder(texts)
        if tell is not None:
            tell(min(start + _BATCH, len(digests)))
    return Collection(
        name=f"{snapshot.name} {snapshot.version}",
        digest=snapshot.digest,
        members=tuple(members),
        vectors=vectors[: len(members)],
        embedder=embedder.name,
        structures=structures,
        unmeasured=tuple(unmeasured),
        traced=traces,
    )


def _described(
    specs: Sequence[SynthEnvSpec], pool: Pool
) -> Iterator[tuple[SynthEnvSpec, Description | Unmeasured]]:
    for spec, first in zip(specs, _first_observations(specs, pool), strict=True):
        if isinstance(first, EnvFault):
            yield spec, _unmeasured(spec, first.kind, first.call, first.detail)
            continue
        try:
            family = spec.provenance.family
            yield spec, describe(spec.record.source, first.observation, family=family)
        except ConfigError as error:  # its worker read a source that this interpreter does not
            yield spec, _unmeasured(spec, "unparsed", "load", str(error))


def _first_observations(specs: Iterable[SynthEnvSpec], pool: Pool) -> list[ResetResult | EnvFault]:
    sessions = [pool.open(spec.record, spec.limits) for spec in specs]
    try:
        return pool.reset_many([(session, 0) for session in sessions])
    finally:
        for session in sessions:
            session.close()


def _unmeasured(spec: SynthEnvSpec, kind: str, call: str, detail: str) -> Unmeasured:
    return Unmeasured(spec.digest, spec.env_id, str(kind), call, detail)


def _member(spec: SynthEnvSpec, description: Description, pool: Pool | None) -> Member:
    trace = None if pool is None else witness_trace(spec, pool)
    return Member(
        digest=spec.digest,
        env_id=spec.env_id,
        title=spec.title,
        skills=spec.skills,
        family=description.family,
        ast_hash=description.ast_hash,
        data_hash=description.data_hash,
        trace=None if isinstance(trace, EnvFault) else trace,
    )


def _table(rows: int, dim: int) -> Floats:
    """Room for vectors; many of them lie in a file without a name that goes with the array."""
    shape = (rows, dim)
    if rows * dim * 4 <= _IN_MEMORY:
        return np.zeros(shape, np.float32)
    with tempfile.TemporaryFile() as file:
        table: np.memmap[Any, np.dtype[np.float32]] = np.memmap(file, np.float32, "w+", shape=shape)
    return table
