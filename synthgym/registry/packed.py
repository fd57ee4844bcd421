"""One environment as it travels: entry, record, source and notes, ready to be written in any layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.registry.core import Core, Parent, alias_root, joined_license
from synthgym.registry.layout import is_embedder
from synthgym.registry.manifest import MAX_DIMENSION, Entry
from synthgym.registry.merkle import MerkleRoot
from synthgym.registry.notes import REPORT, VECTOR, note_leaf, notes_of, spec_from_notes
from synthgym.registry.strict import parse_json
from synthgym.spec import EnvRecord, JsonObject, SynthEnvSpec, canonical_json, sha256_digest

VECTOR_TYPE: Final = np.dtype("<f2")
Vectors = Mapping[str, npt.NDArray[Any]]
"""Vectors of one environment by embedder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """One environment with all its notes."""

    entry: Entry
    record: str
    """Canonical JSON of the record, without the source."""
    source: str
    notes: Mapping[str, bytes]
    """Payloads by kind, sorted; vectors among them."""

    def spec(self) -> SynthEnvSpec:
        """Return the environment, its digest computed anew.

        `IntegrityError` when the record is not that of the digest, `SnapshotError` when a note is wrong.
        """
        entry = self.entry
        try:
            raw = parse_json(self.record.encode(), f"record of {entry.env_id}")
            record = EnvRecord.from_json(raw, self.source)
            digest = record.digest
        except (ConfigError, UnicodeEncodeError) as error:
            raise SnapshotError(f"record of {entry.env_id}: {error}") from error
        compare(entry, "digest", digest, entry.digest)
        spec = spec_from_notes(entry.name, entry.version, record, self.notes)
        for what in ("title", "skills", "license"):
            compare(entry, what, getattr(spec, what), getattr(entry, what))
        compare(entry, "max_turns", record.max_turns, entry.max_turns)
        if REPORT in self.notes:
            found = sha256_digest(self.notes[REPORT])
            compare(entry, "report_digest", found, spec.report_digest)
        return spec


def pack_env(
    spec: SynthEnvSpec,
    reports: Mapping[str, JsonObject] | None = None,
    vectors: Mapping[str, Vectors] | None = None,
) -> Packed:
    """Return an environment as it travels, with what `reports` and `vectors` hold for its digest.

    `SnapshotError` when it cannot be written.
    """
    try:
        record = canonical_json(spec.record.to_json()).decode()
        digest = spec.digest
    except (ValueError, TypeError) as error:
        raise SnapshotError(
            f"{spec.env_id} cannot be written as UTF-8 and strict JSON: {error}"
        ) from error
    notes = notes_of(spec, (reports or {}).get(digest))
    for embedder, vector in (vectors or {}).get(digest, {}).items():
        notes[VECTOR + embedder] = vector_bytes(spec.env_id, embedder, vector)
    entry = Entry(
        name=spec.name,
        version=spec.version,
        digest=digest,
        title=spec.title,
        skills=spec.skills,
        license=spec.license,
        max_turns=spec.record.max_turns,
    )
    return Packed(
        entry=entry, record=record, source=spec.record.source, notes=dict(sorted(notes.items()))
    )


def compare(entry: Entry, what: str, came: object, promised: object) -> None:
    """Raise `IntegrityError` when something of an environment is not what its entry says."""
    if came != promised:
        raise IntegrityError(
            f"{what} of {entry.env_id} is {came!r}, the snapshot promises {promised!r}"
        )


class Roots:
    """The roots of a core, over environments that come by digest."""

    def __init__(self) -> None:
        self._envs = MerkleRoot()
        self._notes = MerkleRoot()
        self._last = ""
        self.entries: list[Entry] = []

    def add(self, entry: Entry, notes: Mapping[str, bytes]) -> None:
        """Take the next environment; `SnapshotError` when its digest does not follow the last one."""
        if entry.digest <= self._last:
            raise SnapshotError(
                f"{entry.env_id}: {entry.digest} is there twice; an id stands for one digest "
                "and a digest for one id"
            )
        self._last = entry.digest
        self._envs.add(bytes.fromhex(entry.digest[7:]))
        for kind in sorted(notes):
            self._notes.add(note_leaf(entry.digest, kind, notes[kind]))
        self.entries.append(entry)

    def core(self, name: str, version: str, parents: Iterable[Parent] = ()) -> Core:
        """Return the core of what was taken. Sorts `entries` by name and version."""
        self.entries.sort(key=lambda entry: entry.alias)
        return Core(
            name=name,
            version=version,
            license=joined_license(entry.license for entry in self.entries),
            env_count=len(self._envs),
            env_root=self._envs.digest(),
            alias_root=alias_root(entry.alias for entry in self.entries),
            notes_count=len(self._notes),
            notes_root=self._notes.digest(),
            parents=tuple(parents),
        )


def vector_bytes(env_id: str, embedder: str, vector: npt.NDArray[Any]) -> bytes:
    """The payload of a vector; `SnapshotError` when it can be none."""
    if not is_embedder(embedder):
        raise SnapshotError(
            "an embedder is named by lower-case letters, digits, '.', '_' and '-', "
            f"got {embedder!r}"
        )
    row = np.asarray(vector, VECTOR_TYPE)
    if row.ndim != 1 or not 1 <= len(row) <= MAX_DIMENSION or not np.isfinite(row).all():
        raise SnapshotError(f"the vector of {env_id} must be 1..{MAX_DIMENSION} finite numbers")
    return row.tobytes()
