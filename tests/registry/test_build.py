from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from synthgym.cli.snapshot import app
from synthgym.errors import SnapshotError
from synthgym.registry import Snapshot, build_bundled, bundled_root
from synthgym.sandbox import Pool

CARD = {"title": "Guess the gate", "skills": ["logical-deduction"], "license": "Apache-2.0"}
SOURCE = '''"""Three gates, one of which leads out. Listen at a gate, then open one.

Actions: `listen <gate>`, `open <gate>`; gates are red, blue, green, white and black.
"""

import random

GATES = ("red", "blue", "green", "white", "black")


class GateEnv:
    max_turns = 6

    def reset(self, seed):
        rng = random.Random(seed)
        self.order = list(GATES)
        rng.shuffle(self.order)
        self.heard = False
        return f"There are {len(GATES)} gates: {', '.join(GATES)}. Room {seed}. listen or open.", {}

    def step(self, action):
        verb, _, gate = action.strip().lower().partition(" ")
        if gate not in GATES:
            return f"There is no gate {gate!r}.", 0.0, False, False, {}
        if verb == "listen":
            self.heard = self.heard or gate == self.order[0]
            where = self.order.index(gate)
            return f"The wind at {gate} is {where} of 4 quiet.", 0.0, False, False, {}
        if verb == "open" and self.heard:
            won = gate == self.order[0]
            return ("You are out." if won else "A wall."), float(won), True, False, {}
        return "You must hear the loudest wind first.", 0.0, False, False, {}

    def hint(self, level=2):
        return "Compare the wind at the gates before you open one; the loudest leads out."

    def solution(self):
        return [f"listen {self.order[0]}", f"open {self.order[0]}"]
'''


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_env(tmp_path, "GuessGate", 0, SOURCE)
    return tmp_path


def write_env(root: Path, name: str, version: int, source: str) -> Path:
    folder = root / "envs" / name / f"v{version}"
    folder.mkdir(parents=True)
    (folder / "env.py").write_text(source)
    (folder / "card.json").write_text(json.dumps(CARD, indent=2))
    return folder


def tree(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_a_registry_is_built_from_sources_and_cards(root: Path, pool: Pool) -> None:
    snapshot = build_bundled(root, pool=pool)
    (entry,) = snapshot
    assert (entry.env_id, entry.title) == ("synthgym/GuessGate-v0", "Guess the gate")
    assert (snapshot.name, snapshot.version) == ("bundled", "0.1.0")
    assert snapshot.spec(entry.digest).license == "Apache-2.0"
    assert snapshot.report(entry.digest)["ok"] is True
    assert snapshot.verify() == ()


def test_building_again_changes_no_byte(root: Path, pool: Pool) -> None:
    build_bundled(root, pool=pool)
    before = tree(root)
    build_bundled(root, pool=pool)
    assert tree(root) == before


def test_a_changed_card_is_found_until_the_registry_is_built_again(root: Path, pool: Pool) -> None:
    snapshot = build_bundled(root, pool=pool)
    card = root / "envs" / "GuessGate" / "v0" / "card.json"
    card.write_text(json.dumps(CARD | {"title": "Other"}))
    assert any("card.json" in problem for problem in snapshot.verify())
    rebuilt = build_bundled(root, pool=pool)
    assert rebuilt.core.content_digest == snapshot.core.content_digest
    assert (snapshot.version, rebuilt.version) == ("0.1.0", "0.1.1")
    assert rebuilt.verify() == ()


def test_a_changed_source_needs_a_new_version_or_force(root: Path, pool: Pool) -> None:
    build_bundled(root, pool=pool)
    before = tree(root)
    source = root / "envs" / "GuessGate" / "v0" / "env.py"
    source.write_text(SOURCE.replace("A wall.", "A brick wall."))
    with pytest.raises(SnapshotError, match="next version"):
        build_bundled(root, version="0.2.0", pool=pool)
    assert tree(root)["manifest.json"] == before["manifest.json"]
    assert build_bundled(root, pool=pool, force=True).verify() == ()


def test_a_new_environment_needs_a_new_version_of_the_snapshot(root: Path, pool: Pool) -> None:
    build_bundled(root, pool=pool)
    write_env(root, "GuessGate", 1, SOURCE.replace("A wall.", "A brick wall."))
    with pytest.raises(SnapshotError, match=r"bundled 0\.1\.0 stands for"):
        build_bundled(root, pool=pool)
    assert len(build_bundled(root, version="0.2.0", pool=pool)) == 2


def test_every_refused_environment_is_named_and_nothing_is_written(root: Path, pool: Pool) -> None:
    write_env(root, "NoClass", 0, "x = 1\n")
    write_env(root, "NoPython", 0, "def\n")
    before = tree(root)
    with pytest.raises(SnapshotError, match=r"(?s)NoClass/v0/env\.py is refused.*NoPython"):
        build_bundled(root, pool=pool)
    assert tree(root) == before


CARDS = {
    "no JSON": ("{", "strict JSON"),
    "a duplicate key": ('{"title": "a", "title": "b"}', "duplicate"),
    "a missing key": ('{"title": "a", "skills": ["optimisation"]}', "expected license"),
    "an unknown key": (json.dumps(CARD | {"skill": "x"}), "got"),
    "an unknown skill": (json.dumps(CARD | {"skills": ["optimization"]}), "mean 'optimisation'"),
    "no skill": (json.dumps(CARD | {"skills": []}), "at least one"),
    "an empty title": (json.dumps(CARD | {"title": " "}), "not empty"),
}


@pytest.mark.parametrize(("card", "message"), CARDS.values(), ids=CARDS.keys())
def test_a_card_is_refused_with(root: Path, card: str, message: str) -> None:
    (root / "envs" / "GuessGate" / "v0" / "card.json").write_text(card)
    with pytest.raises(SnapshotError, match=f"card.json.*{message}"):
        build_bundled(root)


@pytest.mark.parametrize("folder", ["guess_gate/v0", "GuessGate/0", "GuessGate/v01", "GuessGate/x"])
def test_a_folder_of_another_form_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "envs" / folder).mkdir(parents=True)
    with pytest.raises(SnapshotError, match="expected envs/<Name>/v<N>"):
        build_bundled(tmp_path)


def test_a_folder_without_environments_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="nothing to build"):
        build_bundled(tmp_path)


def test_the_commands_build_and_verify_and_say_by_their_exit_code(root: Path) -> None:
    cli = CliRunner()
    built = cli.invoke(app, ["build", str(root), "--release", "1.2.3"])
    assert built.exit_code == 0, built.output
    assert "1 environments, bundled 1.2.3" in built.output
    assert cli.invoke(app, ["verify", str(root)]).exit_code == 0
    (root / "extra").write_text("x")
    found = cli.invoke(app, ["verify", str(root)])
    assert found.exit_code == 3
    assert "extra is not in the manifest" in found.output
    (root / "manifest.json").write_text("{}")
    assert cli.invoke(app, ["verify", str(root)]).exit_code == 3
    shutil.rmtree(root / "envs" / "GuessGate")
    assert cli.invoke(app, ["build", str(root)]).exit_code == 1


def test_the_bundled_environments_are_as_promised() -> None:
    snapshot = Snapshot.open(bundled_root())
    assert snapshot.verify() == ()
    assert len(snapshot) >= 12
    for entry in snapshot:
        assert snapshot.report(entry.digest)["ok"] is True
