"""The micro experiment: its family, its words, its lessons, its oracle, and what is made of its runs."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_loop.config import load_config
from spade_loop.curriculum import Held, plugin
from spade_loop.families import render
from synthgym.sandbox import Pool
from synthgym.validation import validate

ROOT = Path(__file__).parents[1]
MICRO = ROOT / "benchmarks" / "micro"
RECIPES = sorted((MICRO / "recipes").glob("*.toml"))


@pytest.fixture(autouse=True)
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(MICRO))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as shared:
        yield shared


@pytest.fixture
def ladder() -> ModuleType:
    return importlib.import_module("ladder")


@pytest.fixture
def words() -> ModuleType:
    return importlib.import_module("words")


@pytest.fixture
def lessons() -> ModuleType:
    return importlib.import_module("lessons")


@pytest.fixture
def analyse() -> ModuleType:
    return importlib.import_module("analyse")


@pytest.mark.parametrize("level", [0, 1, 2, 15])
def test_a_rung_passes_every_gate(ladder: ModuleType, level: int, pool: Pool) -> None:
    cell = ladder.Cell("spatial-reasoning", level)
    report = validate(render(cell.blueprint, [ladder.family()]), pool=pool, seeds=8)
    assert report.record is not None
    assert not report.refusals


def test_every_word_is_one_token_and_all_others_are_dropped(words: ModuleType, ladder: Any) -> None:
    tokenizer = words.build_tokenizer(ladder.family())
    known = words.words(ladder.family())
    assert len(known) == len(set(known)) < 160
    for number, word in enumerate(known[3:], start=3):
        assert tokenizer.encode(word) == [number]
        assert tokenizer.encode(f"which says {word}, please") == [number]
        assert tokenizer.decode([number]) == word
    blueprint = ladder.cells()[37].blueprint.to_json()
    ids = tokenizer.encode(blueprint)
    assert tokenizer.decode(ids) == blueprint
    assert len(ids) <= len(words.pieces(ladder.family())) + 2


def test_the_lessons_tell_the_truth_about_operations(lessons: ModuleType, ladder: Any) -> None:
    family = ladder.family()
    spare = importlib.import_module("words").spare_operations(family)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from(["spare", "low"]))
    def check(seed: int, kind: str) -> None:
        row = lessons.lesson(kind, np.random.default_rng(seed))
        turns = [m.content for m in (*row.prompt, *row.completion)]
        told = [re.search(r"State s(\d)\. Next: (op\d+)\.", text) for text in turns]
        asked = [(found.groups(), turns[i + 1]) for i, found in enumerate(told) if found]
        assert len(asked) == 3
        for (state, name), reply in asked:
            moved = spare[name] if name in spare else ladder.shift()(name)
            assert reply == rf"\boxed{{{(int(state) + moved) % 5}}}"

    check()


def test_lessons_are_a_function_of_their_seed(lessons: ModuleType) -> None:
    drawn = [lessons.lessons(50, np.random.default_rng(3)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert {row.id for row in drawn[0]} == set(lessons.MIX)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipes_play_equally_many_episodes(path: Path) -> None:
    config = load_config(f"{path}", [f'designer.families=["{MICRO / "skill_ladder"}"]'])
    arms = 2 if config.hints.play else 1
    assert config.agent.environments * config.agent.seeds * config.agent.plays * arms == 192
    assert config.rehearsal.share == 0.1


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 15)), st.floats(0, 1), max_size=40),
    st.integers(1, 12),
    st.integers(0, 99),
)
def test_the_oracle_plays_the_lowest_rungs_that_are_not_mastered(
    rates: dict[tuple[int, int], float], k: int, seed: int
) -> None:
    names = importlib.import_module("ladder").ladders()
    oracle_class = importlib.import_module("oracle").Oracle
    rungs = {f"{i} {level}": (names[i], level) for i in range(6) for level in range(16)}
    oracle = oracle_class(rungs=rungs)
    for (i, level), rate in rates.items():
        oracle = oracle.observe(f"{i} {level}", rate, 0)
    held = [Held(digest=d, skill="", iteration=-1) for d in rungs]
    chosen = oracle.choose(held, k, np.random.default_rng(seed))
    assert len(chosen) == len(set(chosen)) == k
    lowest = [
        next((level for level in range(16) if rates.get((i, level), 0.0) < 0.75), 15)
        for i in range(6)
    ]
    frontier = {f"{i} {level}" for i, level in enumerate(lowest)}
    assert frontier <= set(chosen) if k >= 6 else set(chosen) <= frontier
    assert chosen == oracle.choose(held[::-1], k, np.random.default_rng(seed))
    assert oracle_class.from_json(json.loads(json.dumps(oracle.to_json()))) == oracle


def test_the_oracle_is_a_plug_in(ladder: ModuleType, pool: Pool) -> None:
    found = plugin("oracle")
    assert found is not None
    cell = ladder.Cell("optimisation", 3)
    report = validate(render(cell.blueprint, [ladder.family()]), pool=pool, seeds=4)
    assert report.record is not None
    assert found.kind == "oracle"


def probe(levels: float, *, hinted: float = 0.0) -> dict[str, Any]:
    """A probe of 4 seeds: so many levels are mastered, and at the next one `hinted` of the hinted plays win."""
    plain = [[8] * 4 if level < levels else [0] * 4 for level in range(16)]
    with_hint = [
        [int(seed < 4 * (level < levels or (level == levels) * hinted)) for seed in range(4)]
        for level in range(16)
    ]
    greedy = [[int(level < levels)] * 4 for level in range(16)]
    each = {"plain": plain, "hinted": with_hint, "greedy": greedy}
    shown = {way: {str(i): rows for i in range(6)} for way, rows in each.items()}
    return {**shown, "seeds": 4, "plays": 8}


def write_probes(folder: Path, scores: dict[str, list[float]]) -> None:
    folder.mkdir(exist_ok=True)
    for condition, levels in scores.items():
        for seed, count in enumerate(levels):
            path = folder / f"{condition}-{seed}.probe.json"
            path.write_text(json.dumps(probe(count, hinted=1.0)))


def test_a_probe_is_scored_from_level_four_on_and_for_chance(analyse: ModuleType) -> None:
    found = analyse.result("full", 0, probe(10, hinted=0.75))
    rate = 6 / 12
    assert found.score == pytest.approx((rate - 5**-3) / (1 - 5**-3))
    assert found.greedy == pytest.approx(found.score)
    assert found.pass_at_8 == pytest.approx(rate)
    assert found.mastered == 10
    assert found.frontier_gain == pytest.approx(0.75)
    assert found.beyond_gain == 0.0
    assert analyse.result("full", 0, probe(4)).score < 0.0


def test_full_is_compared_seed_by_seed_and_corrected(analyse: ModuleType, tmp_path: Path) -> None:
    seeds = range(8)
    write_probes(
        tmp_path,
        {
            "full": [10.0] * 8,
            "frozen": [8.0] * 8,
            "uniform": [9.0, 11.0] * 4,
            "oracle": [14.0] * 8,
            "start": [2.0] * 8,
        },
    )
    results = analyse.read_results(tmp_path, list(seeds))
    rows = {row["comparison"]: row for row in analyse.compare(results, np.random.default_rng(0))}
    assert set(rows) == {"full - frozen", "full - uniform"}
    # All eight differences are positive: 2 of the 2**8 patterns of signs are as extreme.
    assert rows["full - frozen"]["p"] == pytest.approx(2 / 256)
    assert rows["full - frozen"]["p_holm"] == pytest.approx(4 / 256)
    assert rows["full - frozen"]["low"] > 0
    assert rows["full - uniform"]["p"] == 1.0
    gates = {row["gate"]: row["met"] for row in analyse.gates(results)}
    assert all(met is np.True_ or met is True for met in gates.values())
    fewer = [r for r in results if r.condition != "oracle"]
    assert {row["met"] for row in analyse.gates(fewer)} == {"missing", True}


def test_the_page_is_written_between_its_marks(
    analyse: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_probes(tmp_path / "runs", {"full": [10.0, 9.0], "frozen": [8.0, 8.0]})
    page = tmp_path / "page.md"
    page.write_text(f"before\n{analyse.BEGIN}\nold\n{analyse.END}\nafter\n")
    words = [str(tmp_path / "runs"), "--seeds", "0", "1", "--out", str(tmp_path / "out")]
    for _ in range(2):
        analyse.main([*words, "--page", str(page)])
    text = page.read_text()
    assert text.startswith(f"before\n{analyse.BEGIN}\n")
    assert text.endswith(f"{analyse.END}\nafter\n")
    assert "old" not in text
    assert text.count("| full - frozen |") == 1
    assert (tmp_path / "out" / "runs.csv").read_text().count("\n") == 5
    page.write_text("no marks")
    with pytest.raises(SystemExit, match="must hold the line"):
        analyse.main([*words, "--page", str(page)])
    with pytest.raises(SystemExit, match="no finished run"):
        analyse.main([*words[:2], "7", *words[4:]])
    capsys.readouterr()


def test_the_page_of_the_docs_has_its_marks(analyse: ModuleType) -> None:
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    assert text.count(analyse.BEGIN) == text.count(analyse.END) == 1


@pytest.mark.slow
def test_a_run_goes_from_a_start_to_a_probe_and_again(tmp_path: Path) -> None:
    """Two updates of the whole method and of the oracle, from a start that was hardly taught."""
    words = [sys.executable, str(MICRO / "run.py"), str(tmp_path), "--seeds", "5", "--jobs", "2"]
    words += ["--conditions", "full", "oracle", "--rows", "300", "--set", "iterations=2"]
    words += ["--instances", "1"]
    first = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "2 of 2 runs are finished" in first.stdout
    for condition in ("full", "oracle"):
        rows = (tmp_path / f"{condition}-5" / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(row)["iteration"] for row in rows] == [0, 1]
        assert json.loads((tmp_path / f"{condition}-5.probe.json").read_text())["plays"] == 8
    again = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert again.returncode == 0
    assert "2 of 2 runs are finished" in again.stdout
