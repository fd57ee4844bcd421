"""Small snapshots for warm starts: a game, a liar, one that fails, blueprints, an edit of the game."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from spade_loop.families import load_families, random_blueprint, render
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec
from synthgym.validation import validate

GAME = '''"""Say the number on the wall, twice."""


class WallEnv:
    max_turns = 4

    def reset(self, seed):
        self.number, self.paid = seed % 1000, 0.0
        return f"The wall says {self.number}. Say it.", {}

    def step(self, action):
        if action == str(self.number):
            self.paid += 0.5
            return "Right.", 0.5, self.paid >= 1.0, False, {}
        return f"{action} is wrong.", 0.0, False, False, {}

    def hint(self, level=2):
        return "Read the wall."

    def solution(self):
        return [str(self.number)] * 2
'''
LIAR = GAME.replace("[str(self.number)] * 2", '["nothing"]').replace("WallEnv", "LiarEnv")
BROKEN = GAME.replace("self.number, self.paid =", "raise ValueError(seed)\n        x =").replace(
    "WallEnv", "BrokenEnv"
)
EDITED = GAME.replace("The wall says", "On the wall stands").replace(
    "max_turns = 4", "max_turns = 6"
)


def spec_of(source: str, name: str, *, max_turns: int = 4, **notes: object) -> SynthEnvSpec:
    record = EnvRecord(source=source, entry=_entry(source), max_turns=max_turns)
    told = {"skills": ("logical-deduction",), "title": f"The {name}"}
    return SynthEnvSpec(record=record, name=name, **told | notes)  # type: ignore[arg-type]


def game() -> SynthEnvSpec:
    return spec_of(GAME, "Wall")


def edited(parent: SynthEnvSpec) -> SynthEnvSpec:
    origin = Provenance(dialect="edit", parent=parent.digest)
    return spec_of(EDITED, "Writing", max_turns=6, provenance=origin)


def blueprints(count: int = 2) -> list[SynthEnvSpec]:
    """Blueprints of the family that is solved in the fewest words."""
    families = load_families(["stuck_switches"])
    rng = np.random.default_rng(0)
    found = {}
    while len(found) < count:
        blueprint = random_blueprint(families[0], rng)
        record = validate(render(blueprint, families), seeds=2).record
        assert record is not None
        origin = Provenance(
            dialect="blueprint", family=blueprint.family, parameters=dict(blueprint.parameters)
        )
        spec = SynthEnvSpec(
            record=record,
            name="StuckSwitches",
            version=len(found),
            skills=(families[0].skill,),
            provenance=origin,
        )
        found.setdefault(spec.digest, spec)
    return list(found.values())


def written(folder: Path, specs: list[SynthEnvSpec]) -> Snapshot:
    return write_snapshot(folder, specs, name="warm", version="1.0.0")


def _entry(source: str) -> str:
    return source.split("class ")[1].split("(")[0].split(":")[0]
