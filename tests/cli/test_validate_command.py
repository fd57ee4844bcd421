from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import Run

from synthgym.cli.validate_command import _text
from synthgym.registry import write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec
from synthgym.validation import Finding, Reason, Report, Verdict
from synthgym.validation.gates import GATES

DATA = Path(__file__).parents[1] / "data"
LOCKER = DATA / "good_envs" / "locker.py"
BAD = DATA / "bad_envs"


def test_a_good_file_is_one_line(run: Run) -> None:
    ran = run("validate", LOCKER)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"ok  {LOCKER}  sha256:")
    assert ran.out.count("\n") == 1


def test_of_a_good_file_the_gates_the_witness_and_the_unthinking_are_told(run: Run) -> None:
    ran = run("validate", LOCKER, "--explain")
    assert ran.code == 0
    assert "the witness wins in 2 turns, on 20 seeds" in ran.out
    verdicts = [line.split() for line in ran.out.splitlines() if line.endswith(" passed")]
    assert [name for name, _ in verdicts] == ["static", *(gate.name for gate in GATES)]
    assert " failed" not in ran.out


def test_a_refused_file_has_one_line_a_finding_and_code_one(run: Run) -> None:
    bad = BAD / "reward-out-of-range.py"
    ran = run("validate", LOCKER, bad)
    assert ran.code == 1
    good, refused, finding = ran.out.splitlines()
    assert good.startswith("ok  ")
    assert refused.startswith(f"refused  {bad}")
    assert finding.startswith("  reward-out-of-range (seed 0): turn 2: ")


def test_what_is_explained_can_be_seen_again(run: Run) -> None:
    bad = BAD / "reward-out-of-range.py"
    ran = run("validate", bad, "--explain")
    assert ran.code == 1
    reason = Reason.REWARD_OUT_OF_RANGE
    lines = ran.out.splitlines()
    assert f"      wrong    {reason.explanation}" in lines
    assert f"      to do    {reason.remedy}" in lines
    assert "      again    reset with seed 0, then send" in lines
    (report,) = json.loads(run("validate", bad, "--json").out)
    (finding,) = report["findings"]
    for number, action in enumerate(finding["actions"], 1):
        assert f"              {number:>3}. {json.dumps(action)}" in lines
    assert len(finding["actions"]) == 2
    assert f"      seen     {finding['seen']}" in lines
    assert "      witness            failed" in lines
    assert "      determinism        skipped" in lines


def test_a_finding_of_the_text_names_its_line(run: Run) -> None:
    ran = run("validate", BAD / "syntax.py", "--explain")
    assert ran.code == 1
    assert "syntax (line 9)" in ran.out
    assert "      again    read line 9" in ran.out


def report_with(*findings: Finding) -> Report:
    gates = {"static": Verdict.PASSED, "load": Verdict.PASSED}
    return Report(source_digest="sha256:1", findings=findings, gates=gates, wins={"null": (0, 20)})


def test_a_warning_is_called_one() -> None:
    finding = Finding(Reason.ANSWERABLE_AT_ONCE, "a\n  b", 3, None, ("", "look\x1b"), "one\ntwo")
    text = _text(Path("a.py"), report_with(finding), None, explain=True)
    assert text.splitlines() == [
        "ok  a.py",
        "  warning: answerable-at-once (seed 3): a b",
        f"      wrong    {Reason.ANSWERABLE_AT_ONCE.explanation}",
        "      again    reset with seed 3, then send",
        '                1. ""',
        '                2. "look\\u001b"',
        "      seen     one",
        "               two",
        f"      to do    {Reason.ANSWERABLE_AT_ONCE.remedy}",
        "  gates",
        "      static  passed",
        "      load    passed",
        "  agents that understand nothing won",
        "      null  0 of 20",
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"x = '\xe9'", "not-text"),
        (b"x = '\0'", "not-text"),
        (os.urandom(100_000), "not-text"),
        ("é".encode() * 5_000_000, "source-too-large"),
        (b"", "no-env-class"),
    ],
)
def test_whatever_a_file_holds_is_a_finding(
    run: Run, tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(content)
    ran = run("validate", path, "--json")
    assert ran.code == 1
    (report,) = json.loads(ran.out)
    assert (report["path"], report["ok"]) == (str(path), False)
    assert [finding["reason"] for finding in report["findings"]] == [reason]
    assert report["findings"][0]["remedy"] == Reason(reason).remedy


def test_a_file_that_cannot_be_read_is_one_message(run: Run, tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none.py", "No such file or directory"), (tmp_path, "Is a dir")):
        ran = run("validate", LOCKER, path)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"error: cannot read {path}: {why}")
        assert ran.err.count("\n") == 1


def test_a_dialect_may_be_named(run: Run) -> None:
    assert run("validate", LOCKER, "--dialect", "auto").code == 0
    ran = run("validate", LOCKER, "--dialect", "spad")
    assert ran.code == 2
    assert "did you mean 'spade'?" in ran.err


def test_a_copy_of_what_a_snapshot_holds_is_refused(run: Run, tmp_path: Path) -> None:
    record = EnvRecord(
        source=LOCKER.read_text(), entry="LockerEnv", max_turns=8, requires=("random",)
    )
    snapshot = tmp_path / "one"
    write_snapshot(snapshot, [SynthEnvSpec(record=record, name="Locker")], name="one", version="1")
    copy = tmp_path / "copy.py"
    copy.write_text(LOCKER.read_text().replace("locker", "drawer").replace("has_key", "with_key"))
    ran = run("validate", copy, "--against", snapshot)
    assert ran.code == 1
    assert "copy: same structure and data as Locker" in ran.out
    data = json.loads(run("validate", copy, "--against", snapshot, "--json").out)
    assert (data[0]["ok"], data[0]["novelty"]["accepted"]) == (True, False)
