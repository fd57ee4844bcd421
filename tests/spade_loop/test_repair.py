"""What a designer is told of a design that was not admitted."""

from __future__ import annotations

import pytest

from spade_loop.design.repair import MAX_FAULTS, repair_message
from synthgym.memory.records import NoveltyReason
from synthgym.validation import Finding, Reason

SOURCE = "import random\n\nclass AEnv:\n    max_turns = 9 +\n"
LOST = Finding(
    Reason.SOLUTION_DOES_NOT_WIN,
    "lost 3 of 20 seeds; after 2 actions the sum of rewards is 0.5, not terminated",
    seed=4,
    actions=("look", "take key", "open door", "go north", "push"),
    seen="The door is locked.",
)
MAX_CHARS = 1000
"""Some 250 tokens of English and code."""


def test_a_fault_is_told_with_its_place_what_was_seen_and_what_to_do() -> None:
    message = repair_message("program", ["solution-does-not-win"], [LOST], "")
    assert message.role == "user"
    for part in (
        "solution-does-not-win (seed 4): lost 3 of 20 seeds",
        "Sent: ..., 'take key', 'open door', 'go north', 'push'",
        "Last seen: 'The door is locked'",
        Reason.SOLUTION_DOES_NOT_WIN.remedy,
    ):
        assert part in message.content


def test_the_line_of_a_finding_is_quoted() -> None:
    finding = Finding(Reason.SYNTAX, "invalid syntax", line=4)
    told = repair_message("program", ["syntax"], [finding], "", source=SOURCE).content
    assert "syntax (line 4): invalid syntax. The line: `max_turns = 9 +`" in told
    for line in (0, 5, -1):
        other = Finding(Reason.SYNTAX, "invalid syntax", line=line)
        assert (
            "The line" not in repair_message("edit", ["syntax"], [other], "", source=SOURCE).content
        )


@pytest.mark.parametrize(
    ("dialect", "asked"),
    [
        ("program", "whole corrected file, its docstring too, in one ```python block"),
        ("edit", "SEARCH/REPLACE blocks again, against the environment as it was given"),
        ("blueprint", "one JSON specification"),
    ],
)
def test_each_dialect_is_asked_for_its_own_form(dialect: str, asked: str) -> None:
    assert asked in repair_message(dialect, ["cut"], [], "the token limit cut the reply").content


def test_a_dialect_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError, match="poem"):
        repair_message("poem", ["cut"], [], "")


@pytest.mark.parametrize("reason", [*Reason, *NoveltyReason, "cut", "no-source", "of-tomorrow"])
def test_every_reason_is_told_with_something_to_do(reason: str) -> None:
    told = repair_message("program", [reason], [], "what was said").content
    assert f"- {reason}: what was said. " in told
    line = next(line for line in told.splitlines() if line.startswith(f"- {reason}"))
    assert len(line) > len(f"- {reason}: what was said. ") + 10


def test_findings_of_other_reasons_are_left_out() -> None:
    warning = Finding(Reason.ANSWERABLE_AT_ONCE, "on 3 of 3 seeds")
    told = repair_message("program", ["solution-does-not-win"], [warning, LOST], "").content
    assert "answerable-at-once" not in told


def test_the_message_stays_short_whatever_is_quoted() -> None:
    long = "x" * 5000
    findings = [
        Finding(reason, long, seed=10**18, line=1, actions=(long,) * 40, seen=long)
        for reason in Reason
    ]
    told = repair_message("program", list(Reason), findings, long, source=long).content
    assert len(told) <= MAX_CHARS
    assert 1 <= told.count("\n- ") <= MAX_FAULTS
    assert Reason.NOT_TEXT.remedy[:60] in told


def test_many_short_faults_are_told_up_to_a_number() -> None:
    told = repair_message("program", list(Reason)[:9], [], "no").content
    assert told.count("\n- ") == MAX_FAULTS


def test_what_is_quoted_stays_on_one_line() -> None:
    finding = Finding(Reason.STEP_RAISED, "a\n## system\nb", seen="c\n\n- d", actions=("e\nf",))
    lines = repair_message("program", ["step-raised"], [finding], "").content.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("- step-raised: a ## system b. Sent: 'e f'. Last seen: 'c - d'.")
