from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthgym.errors import ConfigError
from synthgym.sandbox import Pool
from synthgym.spec import Limits
from synthgym.validation import Reason, Report, validate

DATA = Path(__file__).parents[1] / "data"
BAD = sorted((DATA / "bad_envs").glob("*.py"))
LOCKER = (DATA / "good_envs" / "locker.py").read_text()
QUICK = Limits(
    load_seconds=2, reset_seconds=0.5, step_seconds=0.5, hint_seconds=0.5, solution_seconds=0.5
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as pool:
        yield pool


@pytest.fixture(scope="module")
def locker_report(pool: Pool) -> Report:
    return validate(LOCKER, pool=pool)


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_environment_is_refused_for_exactly_its_own_reason(path: Path, pool: Pool) -> None:
    limits = QUICK if path.stem.endswith("-timeout") else Limits()
    report = validate(path.read_text(), pool=pool, limits=limits)
    assert report.reasons == {Reason(path.stem)}, [str(finding) for finding in report.findings]
    assert not report.ok


def test_every_reason_has_a_bad_environment() -> None:
    assert {path.stem for path in BAD} == {reason.value for reason in Reason}


def test_every_reason_explains_itself_in_one_line() -> None:
    for reason in Reason:
        assert reason.explanation.endswith("."), reason
        assert "\n" not in reason.explanation
        assert reason.__doc__ == reason.explanation


def test_a_good_environment_is_accepted_with_its_record(locker_report: Report) -> None:
    report = locker_report
    assert report.ok, [str(finding) for finding in report.findings]
    assert report.record is not None
    assert report.digest == report.record.digest
    assert (report.record.entry, report.record.max_turns) == ("LockerEnv", 8)
    assert report.record.requires == ("random",)
    assert report.docstring.startswith("Locker room.")
    assert report.first_observation.startswith("A note says")
    assert report.seeds == tuple(range(20))
    assert report.witness_turns == (2,) * 20
    assert report.random_wins == 0


def test_the_same_source_gives_the_same_report(locker_report: Report) -> None:
    with Pool(max_workers=2) as other:
        again = validate(LOCKER, pool=other)
    assert json.dumps(again.to_json()) == json.dumps(locker_report.to_json())


def test_a_report_of_a_refused_source_is_json_too(pool: Pool) -> None:
    report = validate("x = (", pool=pool)
    data = json.loads(json.dumps(report.to_json()))
    assert (data["ok"], data["digest"], data["record"]) == (False, "", None)
    assert data["findings"][0]["reason"] == "syntax"
    assert data["findings"][0]["line"] == 1
    assert report.source_digest.startswith("sha256:")


def test_max_turns_may_be_computed(pool: Pool) -> None:
    source = LOCKER.replace("import random\n", "import random\n\nTURNS = {'max': 8}\n")
    report = validate(source.replace("max_turns = 8", "max_turns = TURNS['max']"), pool=pool)
    assert report.ok, [str(finding) for finding in report.findings]
    assert report.record is not None
    assert report.record.max_turns == 8


@pytest.mark.parametrize("turns", ["8.0", "True", "1", "101", "len('x' * 500)", "'8'", "None"])
def test_other_values_of_max_turns_are_refused(turns: str, pool: Pool) -> None:
    report = validate(LOCKER.replace("max_turns = 8", f"max_turns = {turns}"), pool=pool)
    assert report.reasons == {Reason.MAX_TURNS}


def test_methods_may_be_inherited_and_a_hint_may_be_text(pool: Pool) -> None:
    source = LOCKER.replace("class LockerEnv:", "class Room:").replace(
        '    def hint(self, level=2):\n        return "Take', '    hint = ("Take'
    )
    source = source.replace('before you open."\n', 'before you open.")\n', 1)
    source += '\n\nclass LockerEnv(Room):\n    """The one."""\n'
    report = validate(source, pool=pool)
    assert report.ok, [str(finding) for finding in report.findings]


@pytest.mark.parametrize(
    "source",
    [
        "",
        "\0",
        "\udce9",
        "(" * 5000,
        "x = " + "-" * 60_000 + "1",
        '"\\d"\n',
        "class XEnv: pass",
        "raise SystemExit",
    ],
)
def test_whatever_text_comes_is_refused_and_nothing_raises(source: str, pool: Pool) -> None:
    assert not validate(source, pool=pool).ok


def test_a_source_that_says_its_own_name_cannot_drive_the_report(pool: Pool) -> None:
    source = LOCKER.replace("rng = random.Random(seed)", 'raise ValueError("x" * 100_000)')
    report = validate(source, pool=pool)
    assert report.reasons == {Reason.RESET_RAISED}
    assert len(report.findings[0].detail) < 600


def test_one_seed_proves_nothing() -> None:
    with pytest.raises(ConfigError, match="at least 2"):
        validate(LOCKER, seeds=1)
