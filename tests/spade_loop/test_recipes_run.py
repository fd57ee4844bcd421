"""The recipes of the baselines, run with a model of two layers in place of theirs: their settings go together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spade_loop.config import load_config
from spade_loop.progress import Silent
from spade_loop.run import start

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
SMALL = (
    "iterations=2",
    "policy.device=cpu",
    "policy.backend=transformers",
    "policy.dtype=float32",
    "novelty.embedder=hash",
    "trainer.rows_per_step=8",
    "agent.environments=4",
    "agent.turn_tokens=4",
    "agent.max_turns=2",
    "agent.context=1800",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("fixed-pool", []),
        ("robust-plr", []),
        ("random-designer", ["schedule.regenerate_every=1"]),
        ("accel", []),
    ],
)
def test_a_baseline_runs(name: str, settings: list[str], tiny_model: Path, tmp_path: Path) -> None:
    one_skill = ["designer.skills_per_iteration=1"]
    designs = ["designer.candidates=4"] if load_config(name).designer.candidates else []
    config = load_config(
        name, [*SMALL, f"policy.model={tiny_model}", *one_skill, *designs, *settings]
    )
    start(config, tmp_path / "run", Silent())
    rows = [
        json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    ]
    assert [row["played"] for row in rows] == [4, 4]
    assert all(row["roles"]["designer"]["rows"] == 0 for row in rows)
    assert all(row["roles"]["agent"]["rows"] <= 4 * 8 for row in rows)
    attempts = sum(counts["attempts"] for row in rows for counts in row["designers"].values())
    assert attempts == (8 if designs else 0)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["name"] == name
