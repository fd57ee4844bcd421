"""The benchmarks run and do equal work; how fast they are is not a test's business."""

from __future__ import annotations

import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from synthgym import Pool, validate
from synthgym.spec import EnvRecord

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", f"benchmarks/{script}.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def rows(output: str) -> list[list[str]]:
    """Cells of the lines of all Markdown tables, without the rulers."""
    lines = [line for line in output.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if not set("".join(row)) <= set("-")]


def number(cell: str) -> float:
    return float(cell.replace(",", "").split()[0])


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module `headline`; the others can be imported then, too."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("headline")


@pytest.mark.slow
def test_every_contestant_does_the_same_work_and_is_timed() -> None:
    few = ("--sources", "2", "--episodes", "2", "--rounds", "1", "--seconds", "0.01")
    done = run("headline", *few)
    assert done.returncode == 0, done.stderr
    timed = [row for row in rows(done.stdout) if len(row) == 12 and row[0] != "contestant"]
    with_gem = importlib.util.find_spec("gem") is not None
    assert len(timed) == 2 * (10 if with_gem else 8)
    assert all(number(row[1]) > 0 and number(row[7]) > 0 for row in timed)
    assert with_gem or done.stderr.count("SKIPPED: GEM") == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "arguments", "measured"),
    [
        ("latency", ("--calls", "30"), 2 * 7),
        ("scale", ("--envs", "40", "--ticks", "1"), 2 * 4),
        ("validation", ("--sources", "2"), 2 * 5),
        ("load", ("--sources", "2"), 2 * 4),
    ],
)
def test_every_script_measures_all_its_rows(
    script: str, arguments: tuple[str, ...], measured: int
) -> None:
    done = run(script, "--rounds", "1", *arguments)
    assert done.returncode == 0, done.stderr
    found = [row for row in rows(done.stdout) if not any("CPU" in cell for cell in row)]
    gem = 2 if script == "latency" and importlib.util.find_spec("gem") is not None else 0
    assert len(found) == measured + gem
    assert "- isolation: " in done.stdout
    assert f"- command: `python benchmarks/{script}.py" in done.stdout


@pytest.mark.slow
def test_the_gates_are_counted_and_priced_over_the_labelled_set() -> None:
    few = ("--sample", "2", "--mutations", "1", "--sources", "2", "--rounds", "1")
    done = run("gates", *few, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sources"] == {"bad": 2, "mutation": 2, "near miss": 2, "good": 4}
    assert found["mistakes"] == {}
    judged = [*found["gates"].values(), *found["reasons"].values()]
    kinds = ("true_positives", "false_positives", "false_negatives", "true_negatives")
    assert {sum(count[kind] for kind in kinds) for count in judged} == {10}
    assert sum(count["true_positives"] for count in found["reasons"].values()) == 4
    assert [cost["environments"] for cost in found["costs"].values()] == [2, 2, 6]
    assert all(cost["cpu_ms"] > 0 < cost["per_second"] for cost in found["costs"].values())


def test_a_gate_that_overlooks_a_fault_or_refuses_what_is_good_is_not_enough(
    scripts: ModuleType,
) -> None:
    del scripts
    gates = importlib.import_module("gates")

    def counted(right: int, wrongly: int, overlooked: int) -> bool:
        count = gates.Count()
        for expected, found, times in ((1, 1, right), (0, 1, wrongly), (1, 0, overlooked)):
            for _ in range(times):
                count.enter(bool(expected), bool(found))
        enough: bool = count.enough
        return enough

    assert counted(10, 0, 0)
    assert counted(0, 0, 0)
    assert counted(98, 2, 0)
    assert not counted(97, 2, 0)
    assert not counted(99, 0, 1)


@pytest.mark.parametrize("script", ["headline", "latency", "scale", "validation", "load", "gates"])
def test_a_number_that_makes_no_sense_is_refused(script: str) -> None:
    done = run(script, "--rounds", "0")
    assert done.returncode == 2
    assert "at least 1" in done.stderr


def test_contestants_that_saw_different_things_stop_the_benchmark(scripts: ModuleType) -> None:
    same = {"texts": "a", "outcomes": "b"}
    scripts.check_equal_work("light", {"one": [same, same], "other": [same]})
    for key in same:
        with pytest.raises(SystemExit, match=f"did not do the same work \\({key}\\)"):
            scripts.check_equal_work("light", {"one": [same], "other": [same | {key: "c"}]})


def test_what_a_contestant_returns_decides_its_digests(scripts: ModuleType) -> None:
    workload = importlib.import_module("workload")
    contestants = importlib.import_module("contestants")
    cast = workload.Cast(workload.load("light", 2), 4)
    script = cast.workload.script(4)
    other = [list(reversed(actions)) for actions in script]

    def digests(actions: list[list[str]]) -> dict[str, str]:
        player = contestants.BareLoop(cast)
        found: dict[str, str] = scripts._record(player, player.reset(), actions, 60)
        return found

    assert digests(script) == digests(script)
    assert digests(script)["texts"] != digests(other)["texts"]


def test_a_missed_goal_says_by_how_much(scripts: ModuleType) -> None:
    goal = importlib.import_module("harness").Goal
    assert goal(20).verdict(20.0) == goal(3, at_most=True).verdict(2.9) == "met"
    assert goal(20).verdict(15.0) == "**missed by 25%**"
    assert goal(3, at_most=True).verdict(3.3) == "**missed by 10%**"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["light", "heavy"])
def test_the_workloads_meet_the_contract_and_their_variants_are_different_environments(
    scripts: ModuleType, name: str
) -> None:
    del scripts
    loaded = importlib.import_module("workload").load(name, 3)
    with Pool() as pool:
        reports = [validate(source, pool=pool, seeds=3) for source in loaded.sources]
    assert all(report.ok for report in reports), [report.findings for report in reports]
    known = [
        EnvRecord(source=source, entry=loaded.entry, max_turns=loaded.max_turns)
        for source in loaded.sources
    ]
    assert len({record.digest for record in known}) == 3
