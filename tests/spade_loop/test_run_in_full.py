"""A whole run of the tiny random model with everything turned on, through TRL: and again, interrupted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from whole_runs import rows, run

pytestmark = pytest.mark.slow
EVERYTHING = [
    "trainer.learning_rate=1e-5",
    "iterations=3",
    "schedule.regenerate_every=2",
    "schedule.designer_delay=1",
    "schedule.hinted_replays=true",
    "designer.best_of=2",
    "designer.repairs=1",
    "designer.near_misses=1",
    "designer.rejections=1",
    "designers=[{name='chance', kind='random', share=0.2}]",
    "hints.source=designer",
    "hints.train=true",
    "hints.max_tokens=6",
    "hints.placebo=true",
    "agent.half_width=0.5",
    "agent.max_seeds=4",
    "curriculum.choice=replay",
    "reward.designer=blend",
    "trainer.report_to=[]",
]


def metrics(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows(path, "metrics").splitlines()]


@pytest.fixture(scope="module")
def whole(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("full") / "whole"
    run(tiny_model, "--out", str(path), settings=EVERYTHING)
    return path


def test_designs_that_waited_are_trained_on_with_weights(whole: Path) -> None:
    table = metrics(whole)
    # Three iterations, of which 0 and 2 design; the designs of 2 are trained on after them.
    assert [row["iteration"] for row in table] == [0, 1, 2, 3]
    assert [bool(row["designers"]) for row in table] == [True, False, True, False]
    waited = [row["roles"]["designer"]["rows"] for row in table]
    hints = [row["iteration"] for row in map(json.loads, rows(whole, "hints").splitlines())]
    own = [n - hints.count(i) for i, n in enumerate(waited)]
    designs = [json.loads(line) for line in rows(whole, "designs").splitlines()]
    made = [sum(d["iteration"] == i and d["designer"] == "policy" for d in designs) for i in (0, 2)]
    assert own == [0, made[0], 0, made[1]]
    live = [row["payment"]["delayed"] for row in table]
    assert live[0] == live[2] == 0
    if live[1]:
        assert 0.3 < table[1]["payment"]["effective"] <= 1.0
    assert {d["designer"] for d in designs} == {"policy", "initial", "chance"}
    assert {d["attempt"] for d in designs} == {0, 1}
    assert {d["draw"] for d in designs} == {0, 1}


def test_every_design_is_paid_once(whole: Path) -> None:
    designs = [json.loads(line) for line in rows(whole, "designs").splitlines()]
    paid = [json.loads(line) for line in rows(whole, "payments").splitlines()]
    made = {(d["iteration"], d["index"]): d for d in designs}
    assert [(p["designed"], p["index"]) for p in paid] == list(made)
    assert {(p["designed"], p["iteration"]) for p in paid} == {(0, 1), (2, 3)}
    for p in paid:
        assert p["digest"] == made[p["designed"], p["index"]]["digest"]


def test_the_sampler_and_the_trainer_agree(whole: Path) -> None:
    gaps = [row["update"]["logprob_gap"] for row in metrics(whole)]
    assert any(gap is not None for gap in gaps)
    assert all(gap is None or gap < 1e-3 for gap in gaps)


def test_every_arm_was_played_and_no_iteration_after_the_last(whole: Path) -> None:
    for number, row in enumerate(metrics(whole)):
        for arm in ("plain", "hinted", "placebo"):
            assert bool(row["turns"][arm]) == (number < 3)


def table(path: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rows(path, kind).splitlines()]


def test_tokens_trained_on_are_the_tokens_sampled_to_the_token(whole: Path) -> None:
    """Of the rows that have an advantage, every token that the model chose, and no other."""
    designs = {(d["iteration"], d["index"]): d for d in table(whole, "designs")}
    assert {h["refused"] for h in table(whole, "hints")} == {
        "the token limit cut it"
    }  # none is live
    for number, row in enumerate(metrics(whole)):
        live = [
            designs[p["designed"], p["index"]]["trained_tokens"]
            for p in table(whole, "payments")
            if p["iteration"] == number
            and p["advantage"]
            and not p["dropped"]
            and designs[p["designed"], p["index"]]["designer"] == "policy"
        ]
        assert row["roles"]["designer"]["trained_tokens"] == sum(live)
        assert bool(live) == (number in (1, 3))
        assert row["roles"]["agent"]["trained_tokens"] == sum(agent_tokens(whole, number))


def agent_tokens(whole: Path, number: int) -> list[int]:
    """Tokens of the trained plain episodes whose return is not that of all in their environment."""
    plain = [
        e for e in table(whole, "episodes") if e["iteration"] == number and e["arm"] == "plain"
    ]
    found = []
    for digest in dict.fromkeys(e["digest"] for e in plain):
        own = [e for e in plain if e["digest"] == digest]
        trained = list(dict.fromkeys(e["seed"] for e in own))[:2]  # agent.seeds
        own = [e for e in own if e["seed"] in trained]
        mean = sum(e["return"] for e in own) / len(own)
        found += [e["trained_tokens"] for e in own if abs(e["return"] - mean) > 1e-12]
    return found


def test_a_run_resumed_in_the_middle_is_the_same_run(
    whole: Path, tiny_model: Path, tmp_path: Path
) -> None:
    """As if it had been killed after the second step: what it had committed by then is put back."""
    again = tmp_path / "again"
    run(tiny_model, "--out", str(again), settings=[*EVERYTHING, "iterations=3"])
    for kind in ("metrics", "designs", "episodes", "hints", "payments"):
        assert rows(again, kind) == rows(whole, kind)
    latest = (again / "LATEST").read_text().strip()
    assert latest == "iter-00004"
    # Back to the third step, which keeps its folder.
    (again / "LATEST").write_text("iter-00003\n")
    shutil.rmtree(again / "iter-00004")
    run(tiny_model, "--resume", str(again))
    for kind in ("metrics", "designs", "episodes", "hints", "payments"):
        assert rows(again, kind) == rows(whole, kind)
