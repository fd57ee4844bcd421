"""The environments that a run knows: the starting snapshot's and its own, with their reports and what was measured."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from spade_loop.errors import BlueprintError, RunStateError
from spade_loop.families import Blueprint, load_families, parameter_vector
from spade_loop.measurement import Measured
from spade_loop.state import Record
from spade_loop.types import Candidate
from synthgym.memory import NoveltyMemory
from synthgym.publishing import locate
from synthgym.registry import Snapshot, bundled_root, write_snapshot
from synthgym.spec import SynthEnvSpec

STARTING = -1
"""Iteration of an environment that the starting snapshot brought."""
BUNDLED = "bundled"
"""How commands name the snapshot that comes with synthgym."""


def open_snapshot(place: str) -> Snapshot:
    """The bundled snapshot, or that of a folder, a packed file, or a reference, which is pulled when it is not here."""
    if place == BUNDLED and not Path(place).exists():
        return Snapshot.open(bundled_root())
    return Snapshot.open(Path(place) if Path(place).exists() else locate(place))


@dataclass(slots=True)
class Library:
    """Specs by digest, in order of arrival. Records are state; specs and reports are what they describe."""

    specs: dict[str, SynthEnvSpec] = field(default_factory=dict)
    reports: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    records: dict[str, Record] = field(default_factory=dict)

    @classmethod
    def start(cls, snapshot: Snapshot) -> Library:
        """A library that holds a snapshot's environments, each verified as it is read."""
        library = cls()
        library.include(snapshot.spec(entry.digest) for entry in snapshot)
        return library

    def include(self, specs: Iterable[SynthEnvSpec]) -> None:
        """Hold environments that were there before the run."""
        for spec in specs:
            self.specs[spec.digest] = spec
            self.records[spec.digest] = Record(
                digest=spec.digest, skill=_first_skill(spec), iteration=STARTING
            )

    def restore(self, own: Snapshot, records: Iterable[Record]) -> None:
        """Add the environments of an earlier part of the run, and put every record as it was.

        `RunStateError` when an environment of a record is neither in `own` nor in the starting snapshot. What the
        starting snapshot has gained since is left out: a resumed run equals an uninterrupted one.
        """
        for entry in own:
            self.specs[entry.digest] = own.spec(entry.digest)
            self.reports[entry.digest] = own.report(entry.digest)
        self.records = {r.digest: r for r in records}
        for record in self.records.values():
            if record.hint is not None and record.digest in self.specs:
                self.specs[record.digest] = replace(self.specs[record.digest], hint=record.hint)
        missing = [digest for digest in self.records if digest not in self.specs]
        if missing:
            raise RunStateError(
                f"the registry that the run started from has changed: {len(missing)} of its environments are gone, "
                f"the first is {missing[0]}. Put the snapshot back as it was, or start a new run"
            )

    def copy(self) -> Library:
        """A library that can be changed without changing this one: an iteration is committed, or never was."""
        return Library(dict(self.specs), dict(self.reports), dict(self.records))

    def add(self, candidate: Candidate, report: Mapping[str, Any], iteration: int) -> Candidate:
        """Take in an admitted candidate; the candidate, with the spec under which the library holds it.

        The novelty gate forgets, so content that is held already may be admitted again. It keeps its id, what was
        measured of it, and its quarantine.
        """
        if candidate.spec is None:
            return candidate
        digest = candidate.spec.digest
        if digest in self.records:
            return replace(candidate, spec=self.specs[digest])
        self.specs[digest] = candidate.spec
        self.reports[digest] = report
        self.records[digest] = Record(digest=digest, skill=candidate.skill, iteration=iteration)
        return candidate

    def annotate(self, digest: str, hint: str) -> None:
        """Let a hint stand in for the environment's own. Its digest stays: a hint is an annotation."""
        self.specs[digest] = replace(self.specs[digest], hint=hint)
        self.records[digest] = replace(self.records[digest], hint=hint)

    def describe_blueprints(self, memory: NoveltyMemory, own: Sequence[str] = ()) -> None:
        """Give a memory the parameters of the blueprints that it holds, or they would count as new again.

        They are of the bundled families, or of those that `own` names.
        """
        families = {f.name: f for f in (*load_families(), *load_families(own))}
        for record in tuple(memory):
            spec = self.specs.get(record.digest)
            if spec is None or spec.provenance.family not in families:
                continue
            provenance = spec.provenance
            try:
                vector = parameter_vector(
                    Blueprint(provenance.family, provenance.parameters),
                    [families[provenance.family]],
                )
            except BlueprintError:
                continue  # of a family that has changed since: its parameters cannot be compared
            memory.add(
                record.digest,
                replace(record.description, parameters=vector),
                name=record.name,
                skill=record.skill,
                iteration=record.iteration,
            )

    def record(self, measured: Measured) -> None:
        """Add an iteration's plays to what is known of an environment."""
        digest = measured.spec.digest
        old = self.records[digest]
        played = int(measured.regret.seeds * (len(measured.plain) // len(measured.seeds)))
        wins = measured.regret.solve_rate * played if played else 0.0
        self.records[digest] = replace(
            old,
            episodes=old.episodes + played,
            plain_wins=old.plain_wins + wins,
            regret=measured.regret.value if measured.measurable else old.regret,
            quarantined=old.quarantined or measured.quarantined,
        )

    @property
    def own(self) -> list[SynthEnvSpec]:
        """Environments designed in this run, with what was measured of them, oldest first."""
        specs = []
        for digest, record in self.records.items():
            if record.iteration > STARTING:
                metrics = {
                    "episodes": record.episodes,
                    "solve_rate": record.win_rate,
                    "regret": record.regret,
                    "quarantined": record.quarantined,
                }
                specs.append(replace(self.specs[digest], metrics=metrics))
        return specs

    def write(self, path: Path, *, name: str, version: str) -> None:
        """Write the environments designed in this run as a snapshot, in place of an earlier one."""
        own = self.own
        reports = {spec.digest: self.reports[spec.digest] for spec in own}
        write_snapshot(path, own, name=name, version=version, reports=reports, replace=True)

    def fit(self, digests: Iterable[str]) -> list[str]:
        """Those of `digests` that are not in quarantine, in their order."""
        return [digest for digest in digests if not self.records[digest].quarantined]

    def playable(self, *, exclude: Collection[str] = ()) -> list[str]:
        """Digests that may be played again, sorted: not quarantined, and not among `exclude`."""
        return sorted(d for d, r in self.records.items() if not r.quarantined and d not in exclude)


def note_measured(library: Library, memory: NoveltyMemory, measured: Sequence[Measured]) -> None:
    """Add an iteration's plays to what is known of each environment."""
    for m in measured:
        library.record(m)
        if m.spec.digest in memory:  # a pool that is played without a designer is not held
            memory.update(
                m.spec.digest,
                win_rate=m.regret.solve_rate,
                regret=m.regret.value,
                regret_se=m.regret.standard_error,
            )


def _first_skill(spec: SynthEnvSpec) -> str:
    return spec.skills[0] if spec.skills else ""
