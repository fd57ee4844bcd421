"""The environments that a run knows: the starting snapshot's and its own, with their reports and what was measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from spade_loop.measurement import Measured
from spade_loop.state import Record
from spade_loop.types import Candidate
from synthgym.registry import Snapshot
from synthgym.spec import SynthEnvSpec

STARTING = -1
"""Iteration of an environment that the starting snapshot brought."""


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
        for entry in snapshot:
            spec = snapshot.spec(entry.digest)
            library.specs[spec.digest] = spec
            library.records[spec.digest] = Record(
                digest=spec.digest, skill=_first_skill(spec), iteration=STARTING
            )
        return library

    def restore(self, own: Snapshot, records: Iterable[Record]) -> None:
        """Add the environments of an earlier part of the run, and put every record as it was."""
        for entry in own:
            self.specs[entry.digest] = own.spec(entry.digest)
            self.reports[entry.digest] = own.report(entry.digest)
        self.records = {r.digest: r for r in records}

    def copy(self) -> Library:
        """A library that can be changed without changing this one: an iteration is committed, or never was."""
        return Library(dict(self.specs), dict(self.reports), dict(self.records))

    def add(self, candidate: Candidate, report: Mapping[str, Any], iteration: int) -> None:
        """Take in an admitted candidate."""
        if candidate.spec is None:
            return
        digest = candidate.spec.digest
        self.specs[digest] = candidate.spec
        self.reports[digest] = report
        self.records[digest] = Record(digest=digest, skill=candidate.skill, iteration=iteration)

    def record(self, measured: Measured) -> None:
        """Add an iteration's plays to what is known of an environment."""
        digest = measured.spec.digest
        old = self.records[digest]
        played = int(measured.regret.seeds * (len(measured.plain) // len(measured.seeds)))
        wins = 0.0 if played == 0 else measured.regret.solve_rate * played
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

    def draw(
        self, count: int, rng: np.random.Generator, *, exclude: Iterable[str]
    ) -> list[SynthEnvSpec]:
        """Up to `count` distinct environments to be played again; quarantined and excluded ones are left out."""
        left_out = set(exclude)
        usable = sorted(
            d for d, r in self.records.items() if not r.quarantined and d not in left_out
        )
        if not usable:
            return []
        chosen = rng.choice(len(usable), size=min(count, len(usable)), replace=False)
        return [self.specs[usable[i]] for i in chosen]


def _first_skill(spec: SynthEnvSpec) -> str:
    return spec.skills[0] if spec.skills else ""
