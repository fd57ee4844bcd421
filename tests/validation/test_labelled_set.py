"""The labelled set: each gate refuses what has its fault, and lets pass what only looks like it."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from synthgym.sandbox import Pool
from synthgym.spec import Limits
from synthgym.validation import Reason, Report, Severity, Verdict, validate

ROOT = Path(__file__).parents[2]
QUICK = Limits(
    load_seconds=2, reset_seconds=0.5, step_seconds=0.5, hint_seconds=0.5, solution_seconds=0.5
)
"""For sources that take for ever."""


def _load_labelled() -> ModuleType:
    spec = importlib.util.spec_from_file_location("labelled", ROOT / "benchmarks" / "labelled.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["labelled"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


labelled = _load_labelled()
BAD = labelled.bad_examples()
NEAR_MISSES = labelled.near_misses()
RENDERED = labelled.rendered()
GOOD = [*labelled.registry(), *RENDERED[:: len(RENDERED) // 6]]
MUTATED = random.Random(1).sample([item for item in BAD if item.name != "step-slow"], 16)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=8) as pool:
        yield pool


def by_name(item: object) -> str:
    return str(getattr(item, "name", item))


def judged(item: labelled.Labelled, pool: Pool) -> Report:
    slow = item.reason is not None and item.reason.endswith("-timeout")
    return validate(item.source, pool=pool, limits=QUICK if slow else Limits())


def told(report: Report) -> list[str]:
    """What is to be read when a test fails."""
    return [f"{finding} {finding.actions} {finding.seen!r}" for finding in report.findings]


def failed(report: Report) -> list[str]:
    return [name for name, verdict in report.gates.items() if verdict is Verdict.FAILED]


# --- the set is whole ---


def test_every_reason_has_a_bad_example_and_a_near_miss() -> None:
    codes = {reason.value for reason in Reason}
    for items in (BAD, NEAR_MISSES):
        assert {item.name for item in items if "--" not in item.name} == codes
        assert {item.name.partition("--")[0] for item in items} == codes


def test_examples_differ_from_each_other() -> None:
    sources = [item.source for item in (*BAD, *NEAR_MISSES, *labelled.registry(), *RENDERED)]
    assert len(set(sources)) == len(sources)
    assert len(RENDERED) == 60


def test_near_misses_are_many_different_games() -> None:
    titles = {item.source.lstrip('"').partition(".")[0] for item in NEAR_MISSES}
    assert len(titles) >= 15


# --- what has the fault is refused, and for nothing else ---


@pytest.mark.parametrize("item", BAD, ids=by_name)
def test_a_bad_example_is_refused_for_exactly_its_own_reason_by_one_gate(
    item: labelled.Labelled, pool: Pool
) -> None:
    report = judged(item, pool)
    assert report.reasons == {item.reason}, told(report)
    refused = item.reason.severity is Severity.REFUSED
    assert len(failed(report)) == refused, failed(report)
    assert report.ok != refused
    assert report.findings[0].severity is item.reason.severity


@pytest.mark.parametrize("item", MUTATED, ids=by_name)
def test_the_fault_is_found_under_other_names_and_numbers(
    item: labelled.Labelled, pool: Pool
) -> None:
    mutation = labelled.mutation(item, 0)
    assert mutation.source != item.source
    report = judged(mutation, pool)
    assert report.reasons == {item.reason}, told(report)


def test_a_mutation_is_the_same_for_the_same_number_and_another_for_another() -> None:
    for item in BAD[::4]:
        first, again, other = (labelled.mutation(item, number) for number in (0, 0, 1))
        assert first == again
        assert len({first.source, other.source, item.source}) == 3, item.name


# --- what only looks like it passes ---


@pytest.mark.parametrize("item", NEAR_MISSES, ids=by_name)
def test_a_near_miss_passes_without_a_finding(item: labelled.Labelled, pool: Pool) -> None:
    report = judged(item, pool)
    assert report.findings == (), told(report)
    assert report.ok, report.gates


@pytest.mark.parametrize("item", GOOD, ids=by_name)
def test_a_good_environment_passes(item: labelled.Labelled, pool: Pool) -> None:
    report = judged(item, pool)
    assert report.findings == (), told(report)
    assert report.ok, report.gates


def test_a_mutation_of_a_good_environment_is_good(pool: Pool) -> None:
    for item in labelled.registry()[::4]:
        report = judged(labelled.mutation(item, 0), pool)
        assert report.ok, told(report)


# --- the same report everywhere ---

_SAME = ("hint-names-answer", "policy", "reward-out-of-range")
_PROGRAM = """
import hashlib, json, sys
from synthgym.sandbox import Pool
from synthgym.validation import validate

with Pool(max_workers=3, sources_per_worker=3, hash_seed=int(sys.argv[1])) as pool:
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            report = validate(file.read(), pool=pool)
        print(hashlib.sha256(json.dumps(report.to_json()).encode()).hexdigest())
"""


def elsewhere(paths: list[Path], hash_seed: str, workers_seed: str) -> list[str]:
    """Digests of the reports that another process comes to, with other hash seeds."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _PROGRAM, workers_seed, *map(str, paths)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_other_processes_pools_and_hash_seeds_give_the_same_reports(pool: Pool) -> None:
    folders = [labelled.DATA / "bad_envs", labelled.DATA / "near_misses"]
    paths = [folder / f"{name}.py" for folder in folders for name in _SAME]
    paths.append(labelled.DATA / "near_misses" / "not-deterministic.py")
    # What this one shows depends on the hash seed of the workers, so it gets the usual one.
    shaky = [labelled.DATA / "bad_envs" / "not-deterministic.py"]
    expected = [
        hashlib.sha256(json.dumps(report.to_json()).encode()).hexdigest()
        for report in (validate(labelled.read(path), pool=pool) for path in (*paths, *shaky))
    ]
    assert elsewhere([*paths, *shaky], "1", "0") == expected
    assert elsewhere(paths, "4242", "77") == expected[: len(paths)]
