"""Pools whose diversity is known: written snapshots, and collections without any source."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from synthgym.diversity import Collection, Member
from synthgym.diversity.structures import Structures
from synthgym.memory.fingerprint import ast_hash, data_hash, parse_source
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec, sha256_digest

DOORS = '''"""Three doors. Behind one of them is a way out."""

import random


class DoorsEnv:
    max_turns = 4

    def reset(self, seed):
        self.good = random.Random(seed).choice("abc")
        self.tries = 0
        return "You stand before 3 doors: a, b and c. Say: open <door>.", {}

    def step(self, action):
        self.tries += 1
        verb, _, door = action.partition(" ")
        won = verb == "open" and door == self.good
        return "It opens." if won else "It stays shut.", float(won), won, False, {}

    def hint(self, level=2):
        return "Try one door after the other."

    def solution(self):
        return ["knock", f"open {self.good}"]
'''
RENAMED = (
    DOORS.replace("Doors", "Gates")
    .replace("Three doors. Behind one of them is a way out.", "Three gates lead from the yard.")
    .replace("doors", "gates")
    .replace("self.good", "self.right")
    .replace("max_turns = 4", "max_turns = 5")
)
"""`DOORS` with other names, words and numbers: a copy."""
SCALES = '''"""A pair of scales. Find the heavy ball by weighing balls against each other."""


class ScalesEnv:
    max_turns = 9

    def reset(self, seed):
        self.balls = [10] * 6
        self.balls[seed % 6] += 1
        return "Six balls, 1 to 6; one is heavy. Say: weigh <n> <n>, or: take <n>.", {}

    def step(self, action):
        words = action.split()
        numbers = [int(w) - 1 for w in words[1:] if w.isdigit() and 1 <= int(w) <= 6]
        if words[:1] == ["take"] and len(numbers) == 1:
            won = self.balls[numbers[0]] > 10
            return "You take it.", 0.5 * won if not won else 1.0, True, False, {}
        if words[:1] != ["weigh"] or len(numbers) != 2:
            return "That cannot be done.", 0.0, False, False, {}
        left, right = (self.balls[n] for n in numbers)
        side = "left" if left > right else "right" if right > left else "neither side"
        return f"Down goes {side}.", 0.0, False, False, {}

    def hint(self, level=2):
        return "Weigh them in pairs."

    def solution(self):
        return [f"take {self.balls.index(11) + 1}"]
'''
BROKEN = '''"""Nothing comes of this."""


class BrokenEnv:
    max_turns = 5

    def reset(self, seed):
        raise RuntimeError("<b>no</b> \\x1b[31m")

    def step(self, action):
        return "", 0.0, False, False, {}
'''
REFUSED = '"""A source that is never run."""\nimport os\n\n\nclass RefusedEnv:\n    max_turns = 5\n'


def spec(
    source: str,
    name: str,
    *,
    title: str = "",
    skills: Sequence[str] = (),
    family: str = "",
) -> SynthEnvSpec:
    entry = next(n.name for n in ast.parse(source).body if isinstance(n, ast.ClassDef))
    record = EnvRecord(source=source, entry=entry, max_turns=5)
    return SynthEnvSpec(
        record=record,
        name=name,
        title=title,
        skills=tuple(skills),
        provenance=Provenance(family=family),
    )


def snapshot(path: Path, *specs: SynthEnvSpec, name: str = "pool") -> Snapshot:
    return write_snapshot(path, specs, name=name, version="1.0")


def mixed(path: Path) -> Snapshot:
    """Two copies of one environment, another one, and two that cannot be measured."""
    return snapshot(
        path,
        spec(DOORS, "Doors", title="Doors", skills=["logical-deduction"]),
        spec(RENAMED, "Gates", title="<script>alert(1)</script> \u202egates", skills=["cooking"]),
        spec(SCALES, "Scales", skills=["optimisation", "logical-deduction"]),
        spec(BROKEN, "Broken", title="Broken"),
        spec(REFUSED, "Refused"),
    )


def collection(
    kinds: Sequence[int],
    *,
    vectors: np.ndarray | None = None,
    traces: Sequence[str | None] | None = None,
    skills: Sequence[Sequence[str]] | None = None,
    families: Sequence[str] | None = None,
    name: str = "made 1.0",
) -> Collection:
    """Members of the given kinds: equal numbers are copies, and by default equal texts as well."""
    structures = Structures()
    members = []
    for row, kind in enumerate(kinds):
        tree, structure, data = parsed(kind)
        structures.add(tree, structure)
        members.append(
            Member(
                digest=sha256_digest(f"{name} {row}".encode()),
                env_id=f"synthgym/Made{row}-v0",
                title=f"number {row}",
                skills=tuple(skills[row]) if skills is not None else (),
                family=families[row] if families is not None else "",
                ast_hash=structure,
                data_hash=data,
                trace=traces[row] if traces is not None else None,
            )
        )
    if vectors is None:
        vectors = np.eye(max(kinds, default=0) + 1)[list(kinds)]
    return Collection(
        name=name,
        digest=sha256_digest(name.encode()),
        members=tuple(members),
        vectors=vectors.astype(np.float32),
        embedder="made/1",
        structures=structures,
        traced=traces is not None,
    )


@functools.cache
def parsed(kind: int) -> tuple[ast.Module, str, str]:
    """`program(kind)` as tree, hash of structure and hash of data."""
    tree = parse_source(program(kind))
    return tree, ast_hash(tree), data_hash(tree)


def program(kind: int, lines: int = 12) -> str:
    """A source that shares no piece with one of another kind, made of different operators."""
    operators = "+-*/%&|^"
    rng = np.random.default_rng(kind)
    body = []
    for line in range(lines):
        terms = "".join(f" {operators[int(o)]} a[{line}]" for o in rng.integers(0, 8, 8))
        body.append(f"    a[{line}] = f(a, {line}){terms}")
    return "def play(a):\n" + "\n".join(body) + "\n"
