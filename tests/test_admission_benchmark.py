"""The benchmark of admission against an endpoint that answers from a list: rows, repairs, resuming, the summary."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from openai_service import Answer, Service, completion, serving

pytest.importorskip("openai")

ROOT = Path(__file__).parents[1]
LOCKER = (ROOT / "tests" / "data" / "good_envs" / "locker.py").read_text(encoding="utf-8")
GOOD = f"```python\n{LOCKER}```"
BROKEN = f"```python\n{LOCKER.replace('class LockerEnv', 'class Locker')}```"


@pytest.fixture
def admission(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module("admission")


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as made:
        yield made


def run(admission: ModuleType, service: Service, out: Path, *more: str) -> list[dict[str, Any]]:
    plain = ["--endpoint", service.url, "--model", "qwen-coder", "--out", str(out)]
    admission.main([*plain, "--concurrency", "1", "--label", "x", *more])
    rows: list[dict[str, Any]] = admission.read_rows([out])
    return rows


def test_a_refused_program_is_mended_and_nothing_is_asked_twice(
    admission: ModuleType, service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "rows.jsonl"
    service.answers = [completion("Sorry."), completion(BROKEN), completion(GOOD)]
    rows = run(admission, service, out, "--documents", "1", "--attempts", "2")
    assert [(r["outcome"], r["reasons"]) for r in rows] == [
        ("unparsed", ["no-source"]),
        ("refused", ["no-env-class"]),
    ]
    question = service.asked[1]["messages"][-1]["content"]
    assert "no-source: no fenced Python block" in question

    # a third attempt goes on where the second ended
    rows = run(admission, service, out, "--documents", "1", "--attempts", "3")
    assert len(service.asked) == 3
    assert [m["role"] for m in service.asked[2]["messages"][-4:]] == ["assistant", "user"] * 2
    assert "no-env-class" in service.asked[2]["messages"][-1]["content"]
    assert rows[-1]["outcome"] == "admitted"
    assert rows[-1]["attempt"] == 2
    assert len({r["seed"] for r in rows}) == 3

    # what is there is taken up: the same program for another document is none
    rows = run(admission, service, out, "--documents", "2", "--attempts", "1")
    assert len(service.asked) == 4
    assert (rows[-1]["document"], rows[-1]["reasons"]) == (1, ["copy"])
    table = capsys.readouterr().out.rpartition("| label |")[2]
    assert "| x | program | 2 | 1 (50%) |" in table
    assert "| no-env-class | 1 | 25% |" in table


def test_edits_start_from_a_parent_and_copies_of_the_example_are_refused(
    admission: ModuleType, service: Service, tmp_path: Path
) -> None:
    def change(body: dict[str, Any]) -> Answer:
        return completion(
            "<<<<<<< SEARCH\n    max_turns =\n=======\n    max_turns = 3 +\n>>>>>>> REPLACE\n"
        )

    service.answers = [change]
    rows = run(admission, service, tmp_path / "e.jsonl", "--documents", "2", "--dialect", "edit")
    assert {r["parent"] for r in rows} <= {
        "NoState",
        "RewardFarmed",
        "ScrapingAgentWins",
        "WitnessInObservation",
    }
    assert [r["reasons"] for r in rows] == [["no-source"]] * 2
    assert "the SEARCH part does not occur" in rows[0]["detail"]
    for name, source in admission.shown().items():
        service.answers = [completion(f"```python\n{source}\n```")]
        (row,) = run(admission, service, tmp_path / f"{name}.jsonl", "--documents", "1")
        assert row["outcome"] == "duplicate", name


def test_a_line_that_a_kill_cut_short_is_asked_for_again(
    admission: ModuleType, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"a": 1}) + "\n" + '{"a": 2, "b', encoding="utf-8")
    assert admission.read_rows([path]) == [{"a": 1}]


@pytest.mark.parametrize(
    ("successes", "of", "low", "high"),
    [(0, 20, 0.0, 0.161), (10, 40, 0.142, 0.402), (20, 20, 0.839, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_interval_is_wilson_s(
    admission: ModuleType, successes: int, of: int, low: float, high: float
) -> None:
    assert admission.wilson(successes, of) == pytest.approx((low, high), abs=5e-4)


def test_more_documents_begin_with_the_same_ones(admission: ModuleType) -> None:
    few, many = (
        [(a.skill, a.document_id) for a in admission.assignments(n, 0, 50, [_Parent()])]
        for n in (7, 13)
    )
    assert many[:7] == few
    assert len({document for _, document in many}) == 13


class _Parent:
    name = "P"
