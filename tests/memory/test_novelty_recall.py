"""benchmarks/novelty_recall.py counts what it says it counts; how good the rules are is its own business."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from synthgym.errors import ConfigError
from synthgym.memory.rules import Likeness

ROOT = Path(__file__).parents[2]
BENCHMARKS = ROOT / "benchmarks"
SOURCE = '''
class {name}Env:
    """Somebody wrote {n} numbers on small cards, and you add all of them up."""

    def reset(self, seed):
        self.cards = [(seed * {n} + i * i) % 17 for i in range({n})]
        return "The cards are " + ", ".join(map(str, self.cards)), {{}}

    def step(self, action):
        {body}
        return "You said it.", float(won), True, False, {{}}
'''
BODIES = (
    "won = action.strip() == str(sum(self.cards) - min(self.cards))",
    "won = max(self.cards, key=lambda card: card % 5) == int(action or 0)",
    "won = [c for c in action.split()] == sorted(str(card) for card in self.cards)",
)


@pytest.fixture(scope="module")
def recall() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("novelty_recall")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "benchmarks/novelty_recall.py", "--embedder", "hash", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    for number, body in enumerate(BODIES):
        text = SOURCE.format(name=f"Card{number}", n=9 + number, body=body)
        (tmp_path / f"env_{number}.py").write_text(text)
    return tmp_path


@pytest.mark.slow
def test_a_folder_is_measured(pool: Path) -> None:
    done = run("--folder", str(pool), "--json")
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)
    assert found["environments"] == 3
    assert set(found["levels"]) == {"copy", "refactor", "sibling"}
    copy = found["levels"]["copy"]
    assert copy["false_rejections"] == {"count": 0, "of": 3}
    assert copy["recall"]["reword"] == copy["recall"]["rename"] == {"count": 3, "of": 3}
    assert copy["recall"]["refactor"] == {"count": 0, "of": 3}
    assert found["levels"]["sibling"]["recall"]["rename"] == {"count": 3, "of": 3}


def test_an_exact_duplicate_is_a_false_rejection_here(pool: Path, recall: ModuleType) -> None:
    (pool / "again.py").write_text((pool / "env_0.py").read_text())
    measured = recall.measure(recall.folder(pool), "hash", 0, 1)
    share = measured.false_rejections(recall.rule_of(recall.Strictness.COPY))
    assert (share.count, share.of) == (2, 4)
    assert len(measured.copies["rename"]) == 1
    text = recall.report(measured)
    assert "0.500 (0.150 to 0.850)" in text  # Wilson, 2 of 4
    assert "4 environments" in text


def test_intervals_are_those_of_wilson(recall: ModuleType) -> None:
    low, high = recall.Share(9, 10).interval
    assert (round(low, 4), round(high, 4)) == (0.5958, 0.9821)
    assert recall.Share(0, 10).interval[0] == 0.0
    assert str(recall.Share(0, 0)).startswith("nan")


def test_a_missed_goal_says_by_how_much(recall: ModuleType) -> None:
    copies = {kind: [Likeness(ast_equal=True, data_equal=True)] * 4 for kind in recall.KINDS}
    copies["refactor"] = [Likeness(ast_equal=False, data_equal=False, containment=0.9)] * 3
    copies["refactor"].append(Likeness(ast_equal=False, data_equal=False))
    share = recall.Share(4, 4)
    found = dict.fromkeys(recall.KINDS, share)
    measured = recall.Measured("rlve-gym 1", (), [[], []], copies, found, share)
    text = recall.goals(measured)[1]
    assert "refactor: false rejections 0.000, goal 0.03: met" in text
    assert "refactor: refactor 0.750, goal 0.85: **missed by 0.100**" in text
    assert "sibling: rename 1.000, goal 0.97: met" in text


def test_a_package_that_is_not_there_is_said_to_be_missing(
    recall: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "installed", lambda *_: None)
    [only] = recall.collections([], [])
    assert only.name == "bundled"
    assert "SKIPPED: rlve-gym is not installed: pip install rlve-gym" in capsys.readouterr().err


def test_a_package_is_found_below_a_folder(recall: ModuleType, tmp_path: Path) -> None:
    info = tmp_path / "textarena-9.9.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: textarena\nVersion: 9.9\n")
    game = tmp_path / "textarena" / "envs" / "Cards"
    game.mkdir(parents=True)
    (game / "env.py").write_text("class CardsEnv(ta.Env):\n    pass\n")
    (game.parent / "Broken").mkdir()
    (game.parent / "Broken" / "env.py").write_text("class BrokenEnv(ta.Env:\n")
    (tmp_path / "textarena" / "core.py").write_text("class Env:\n    def step_all(self): ...\n")
    found = recall.installed("textarena", [str(tmp_path)])
    assert found is not None
    assert found.name == "textarena 9.9"
    assert list(found.sources) == ["textarena/envs/Cards/env.py"]
    assert found.skipped == ("textarena/envs/Broken/env.py",)
    assert "step_all" in found.keep


def test_a_folder_without_sources_is_refused(recall: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no Python file with a class"):
        recall.folder(tmp_path)
