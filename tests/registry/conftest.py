from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec

MakeSpec = Callable[..., SynthEnvSpec]


@pytest.fixture
def make_spec() -> MakeSpec:
    def make(
        name: str = "LedgerAudit", version: int = 0, body: str = "", **notes: Any
    ) -> SynthEnvSpec:
        source = f'"""Rules of {name}."""\n\n\nclass {name}Env:\n    max_turns = 9\n{body}'
        record = EnvRecord(source=source, entry=f"{name}Env", max_turns=9, requires=("math",))
        return SynthEnvSpec(record=record, name=name, version=version, **notes)

    return make


@pytest.fixture
def specs(make_spec: MakeSpec) -> list[SynthEnvSpec]:
    return [
        make_spec("LedgerAudit", title="Audit of a ledger", skills=("logical-deduction",)),
        make_spec("DryDock", 1, metrics={"regret": 0.25}, hint="Look at the tide."),
        make_spec(
            "DryDock",
            0,
            "# caf\u00e9 \u20ac\r\n",
            provenance=Provenance(author="A. Person", seed=3),
        ),
    ]


@pytest.fixture
def snapshot(tmp_path: Path, specs: list[SynthEnvSpec]) -> Snapshot:
    """Three environments, of which the first has a report."""
    reports = {specs[0].digest: {"ok": True, "seeds": [0, 1]}}
    return write_snapshot(tmp_path / "snap", specs, name="games", version="1.0.0", reports=reports)
