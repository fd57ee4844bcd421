"""The skill ladder: its family, its 96 cells as environments, and what its operations do."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from spade_loop.families import Blueprint, Family, load_families, render
from synthgym.registry import Snapshot
from synthgym.sandbox import Pool
from synthgym.spec import Provenance, SynthEnvSpec
from synthgym.validation import validate

FOLDER: Final = Path(__file__).resolve().parent / "skill_ladder"
LADDERS: Final = 6
LEVELS: Final = 16
LICENSE: Final = "Apache-2.0"


@cache
def family() -> Family:
    """The family, read as a recipe's `designer.families` reads it."""
    (found,) = load_families([f"{FOLDER}"])
    return found


@cache
def shift() -> Callable[[str], int]:
    """How far an operation moves a state, by its name: the function of the environment's own source."""
    found: Callable[[str], int] = runpy.run_path(f"{FOLDER / 'env.py'}")["shift"]
    return found


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """A rung of a ladder."""

    ladder: str
    level: int

    @property
    def blueprint(self) -> Blueprint:
        """What a designer writes for it."""
        return Blueprint(family().name, {"ladder": self.ladder, "level": f"L{self.level:02d}"})

    @property
    def first(self) -> int:
        """Number of the ladder's lowest operation."""
        return ladders().index(self.ladder) * LEVELS


def ladders() -> tuple[str, ...]:
    """The ladders, which are the skills of games."""
    return tuple(family().choices()["ladder"])


def cells() -> list[Cell]:
    """All of them, ladder by ladder."""
    return [Cell(ladder, level) for ladder in ladders() for level in range(LEVELS)]


def cell_of(spec: SynthEnvSpec) -> Cell | None:
    """The cell that an environment is; None for one of another family."""
    origin = spec.provenance
    if origin.family != family().name:
        return None
    return Cell(str(origin.parameters["ladder"]), int(str(origin.parameters["level"])[1:]))


def read_cells(snapshot: Path) -> dict[Cell, SynthEnvSpec]:
    """The cells of a snapshot, in order."""
    opened = Snapshot.open(snapshot)
    found = {cell_of(spec): spec for spec in (opened.spec(entry.digest) for entry in opened)}
    return {cell: found[cell] for cell in cells() if cell in found}


def specs(pool: Pool, seeds: int = 20) -> dict[Cell, SynthEnvSpec]:
    """Every cell as an environment under the name that a run gives to it. `SystemExit` when validation refuses one."""
    found = {}
    for cell in cells():
        report = validate(render(cell.blueprint, [family()]), pool=pool, seeds=seeds)
        if report.record is None or report.refusals:
            raise SystemExit(f"{cell} is refused: {', '.join(map(str, report.refusals))}")
        found[cell] = SynthEnvSpec(
            record=report.record,
            name="SkillLadder" + report.record.digest.removeprefix("sha256:")[:8],
            title=report.docstring.strip().splitlines()[0],
            skills=(cell.ladder,),
            license=LICENSE,
            provenance=Provenance(
                author="benchmark",
                dialect="blueprint",
                family=family().name,
                parameters=dict(cell.blueprint.parameters),
            ),
        )
    return found
