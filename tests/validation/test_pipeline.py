from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthgym.agents import scripted
from synthgym.errors import ConfigError
from synthgym.sandbox import Pool
from synthgym.sandbox.results import StepResult
from synthgym.spec import EnvRecord, Limits
from synthgym.validation import Finding, Reason, Report, Severity, Verdict, pipeline, validate
from synthgym.validation.cost_checks import STEP_SECONDS, check_cost
from synthgym.validation.gates import GATES, STATIC_GATE, Gate
from synthgym.validation.plays import Cast, Trial, Undecided
from synthgym.validation.witness_checks import check_witness

DATA = Path(__file__).parents[1] / "data"
LOCKER = (DATA / "good_envs" / "locker.py").read_text()


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as pool:
        yield pool


@pytest.fixture(scope="module")
def locker_report(pool: Pool) -> Report:
    return validate(LOCKER, pool=pool)


def test_every_reason_explains_itself_in_one_line() -> None:
    for reason in Reason:
        assert reason.explanation.endswith("."), reason
        assert reason.remedy.endswith("."), reason
        assert not {"\n", "|"} & {*reason.explanation, *reason.remedy}
        assert reason.__doc__ == reason.explanation
        assert isinstance(reason.severity, Severity)


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
    assert all(0 <= won < played for won, played in report.wins.values())
    assert set(report.gates.values()) == {Verdict.PASSED}


def bad(code: str) -> str:
    return (DATA / "bad_envs" / f"{code}.py").read_text(encoding="utf-8")


def test_a_report_has_a_verdict_of_every_gate_in_their_order(locker_report: Report) -> None:
    assert list(locker_report.gates) == [STATIC_GATE, *(gate.name for gate in GATES)]
    assert len(set(locker_report.gates)) == len(GATES) + 1


def test_after_a_fatal_finding_the_gates_that_follow_are_skipped(pool: Pool) -> None:
    gates = validate(bad("solution-does-not-win"), pool=pool).gates
    names = list(gates)
    after = names[names.index("witness") + 1 :]
    assert gates["witness"] is Verdict.FAILED
    assert {gates[name] for name in after} == {Verdict.SKIPPED}
    assert {gates[name] for name in names[: names.index("witness")]} == {Verdict.PASSED}


def test_what_cannot_run_is_played_by_no_gate(pool: Pool) -> None:
    report = validate(bad("load-raised"), pool=pool)
    assert [name for name, verdict in report.gates.items() if verdict is Verdict.FAILED] == [
        "static"
    ]
    assert set(list(report.gates.values())[1:]) == {Verdict.SKIPPED}


def test_a_finding_can_be_seen_again_by_hand(pool: Pool) -> None:
    report = validate(bad("reward-out-of-range"), pool=pool)
    (finding,) = report.findings
    assert report.record is not None
    assert finding.seed is not None
    with pool.open(report.record) as session:
        session.reset(finding.seed)
        steps = [session.step(action) for action in finding.actions]
    results = [step for step in steps if isinstance(step, StepResult)]
    assert len(results) == len(steps) > 0
    assert sum(result.reward for result in results) > 1
    assert results[-1].observation == finding.seen


def test_a_check_that_cannot_decide_refuses(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def at_a_loss(trial: Trial) -> Iterator[Finding]:
        yield Finding(Reason.NO_STATE, "seen before it gave up")
        raise Undecided(f"{len(trial.seeds)} seeds are not enough")

    gates = (GATES[0], Gate("loss", at_a_loss), GATES[1])
    monkeypatch.setattr(pipeline, "GATES", gates)
    report = validate(LOCKER, pool=pool)
    assert report.reasons == {Reason.NO_STATE, Reason.UNDECIDED}
    assert report.findings[-1].detail == "loss: 20 seeds are not enough"
    assert report.gates["loss"] is Verdict.FAILED
    assert report.gates[GATES[1].name] is Verdict.SKIPPED
    assert not report.ok


def test_a_warning_is_told_and_does_not_refuse(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def careful(_trial: Trial) -> Iterator[Finding]:
        yield Finding(Reason.ANSWERABLE_AT_ONCE, "the first time")
        yield Finding(Reason.ANSWERABLE_AT_ONCE, "the second time")

    monkeypatch.setattr(pipeline, "GATES", (GATES[0], Gate("careful", careful)))
    report = validate(LOCKER, pool=pool)
    assert report.ok
    assert [finding.detail for finding in report.warnings] == ["the first time"]
    assert (report.refusals, report.gates["careful"]) == ((), Verdict.PASSED)


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


SLOW_RESET = '''"""Two doors in a row. Each opens with the number on it."""

import random


class DoorsEnv:
    max_turns = 6

    def reset(self, seed):
        total = 0
        for number in range({work}):
            total += number
        rng = random.Random(seed)
        self.numbers, self.open = [rng.randint(10, 99), rng.randint(10, 99)], 0
        return self.view("Goal: open both."), {{}}

    def view(self, note):
        return f"{{note}} The next door says {{self.numbers[self.open]}}. Command: open <number>."

    def step(self, action):
        if action != f"open {{self.numbers[self.open]}}":
            return self.view("Shut."), 0.0, False, False, {{}}
        self.open += 1
        if self.open == 2:
            return "Both are open.", 1.0, True, False, {{}}
        return self.view("One is open."), 0.0, False, False, {{}}

    def solution(self):
        return [f"open {{number}}" for number in self.numbers]
'''


def test_a_slow_reset_is_no_slow_step(pool: Pool) -> None:
    source = SLOW_RESET.format(work=3_000_000)
    record = EnvRecord(source=source, entry="DoorsEnv", max_turns=6)
    with Trial(record, pool, range(2), Limits()) as trial:
        assert not [*check_witness(trial), *trial.against()]
        assert len(trial.wins) == 2
        began = time.perf_counter()
        trial.play([Cast(0, scripted(()))])
        assert (
            time.perf_counter() - began > 2 * STEP_SECONDS
        )  # spread over two steps it would count
        assert not list(check_cost(trial))
