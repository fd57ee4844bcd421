"""Why a source is refused, as values: reason codes, findings, reports.

A reason's value is the file stem of its bad example, `tests/data/bad_envs/<code>.py`. To add one:
add the member, its check, and its bad example; a test compares the three.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from synthgym.contract import CONTRACT_VERSION, MAX_SOURCE_BYTES, MAX_TURNS, MIN_TURNS
from synthgym.errors import SandboxError
from synthgym.sandbox.results import EnvFault, FaultKind, Origin
from synthgym.spec import EnvRecord


class Reason(StrEnum):
    """A stable code for one way to break the contract; `explanation` is its one line for people."""

    explanation: str
    """What is wrong and what to do, in one line."""

    def __new__(cls, value: str, explanation: str = "") -> Reason:
        """A member: its code, and its one line."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.explanation = member.__doc__ = explanation
        return member

    SOURCE_TOO_LARGE = "source-too-large", f"The source is longer than {MAX_SOURCE_BYTES} bytes."
    SYNTAX = "syntax", "The source is not Python that parses."
    POLICY = "policy", "The source uses something that sandboxed code may not use."
    NO_ENV_CLASS = "no-env-class", "No class at the top level has a name that ends in `Env`."
    SEVERAL_ENV_CLASSES = (
        "several-env-classes",
        "More than one class at the top level has a name that ends in `Env`.",
    )
    MISSING_RESET = "missing-reset", "The class has no `reset(self, seed)`."
    MISSING_STEP = "missing-step", "The class has no `step(self, action)`."
    MISSING_SOLUTION = "missing-solution", "The class has no `solution(self)`."
    MISSING_HINT = "missing-hint", "The class has neither `hint(self, level=2)` nor a text `hint`."
    MAX_TURNS = (
        "max-turns",
        f"The class attribute `max_turns` is not a whole number from {MIN_TURNS} to {MAX_TURNS}.",
    )
    MISSING_DOCSTRING = (
        "missing-docstring",
        "Neither the module nor the class has a docstring that tells the rules.",
    )
    LOAD_RAISED = "load-raised", "Running the module or building the class raised."
    LOAD_TIMEOUT = "load-timeout", "Running the module or building the class took too long."
    RESET_RAISED = "reset-raised", "`reset` raised."
    RESET_TYPE = "reset-type", "`reset` did not return (text, dict)."
    RESET_EMPTY = "reset-empty", "`reset` returned an observation without any text."
    RESET_TIMEOUT = "reset-timeout", "`reset` took too long."
    STEP_RAISED = (
        "step-raised",
        "`step` raised; an unknown command must get a helpful observation and no reward.",
    )
    STEP_TYPE = "step-type", "`step` did not return (text, number, bool, bool, dict)."
    STEP_TIMEOUT = "step-timeout", "`step` took too long."
    REWARD_NOT_FINITE = "reward-not-finite", "A reward is infinite or not a number."
    REWARD_OUT_OF_RANGE = (
        "reward-out-of-range",
        "The running sum of rewards left [0, 1]; on the win pay `1.0 - paid so far`.",
    )
    FULL_REWARD_WITHOUT_END = (
        "full-reward-without-end",
        "The running sum of rewards reached 1 on a step that is not terminated.",
    )
    SOLUTION_RAISED = "solution-raised", "`solution` raised."
    SOLUTION_TYPE = "solution-type", "`solution` did not return a list of texts."
    SOLUTION_TIMEOUT = "solution-timeout", "`solution` took too long."
    SOLUTION_DOES_NOT_WIN = (
        "solution-does-not-win",
        "Playing `solution()` as text does not win within `max_turns` on every seed.",
    )
    NULL_AGENT_WINS = "null-agent-wins", "An agent that only sends empty actions wins."
    REPEATING_AGENT_WINS = "repeating-agent-wins", "An agent that repeats one command wins."
    RANDOM_AGENT_WINS = (
        "random-agent-wins",
        "An agent that sends random words of the observation wins more than 2 % of its episodes.",
    )
    HINT_RAISED = "hint-raised", "`hint` raised."
    HINT_TYPE = "hint-type", "`hint` did not return text."
    HINT_EMPTY = "hint-empty", "`hint` returned no text."
    HINT_TIMEOUT = "hint-timeout", "`hint` took too long."
    SAME_INSTANCE = (
        "same-instance",
        "Every seed gives the same instance: `reset` must use its seed.",
    )
    NOT_DETERMINISTIC = (
        "not-deterministic",
        "The same seed and actions gave something else in a fresh worker.",
    )
    MEMORY = "memory", "The memory quota was reached."
    CRASH = "crash", "The worker process died, or sent what is not a reply."


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    reason: Reason
    detail: str = ""
    """Where and how; may quote text of the untrusted source: show it, do not parse it."""
    seed: int | None = None
    """The first seed that shows it."""
    line: int | None = None
    """Line of the source, from 1."""

    def to_json(self) -> dict[str, Any]:
        """JSON object of every field."""
        return {
            "reason": str(self.reason),
            "detail": self.detail,
            "seed": self.seed,
            "line": self.line,
        }

    def __str__(self) -> str:
        place = "" if self.line is None else f" (line {self.line})"
        place += "" if self.seed is None else f" (seed {self.seed})"
        return f"{self.reason}{place}: {self.detail or self.reason.explanation}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What validation found out about a source. The same source gives the same report."""

    source_digest: str
    """`sha256:<hex>` of the source text; there even when the source makes no record."""
    digest: str = ""
    """Digest of the record; empty when there is none."""
    findings: tuple[Finding, ...] = ()
    record: EnvRecord | None = None
    """There from the moment the static checks pass; good for use only when `ok`."""
    docstring: str = ""
    first_observation: str = ""
    """The observation of seed 0."""
    seeds: tuple[int, ...] = ()
    """The seeds that the checks used."""
    witness_turns: tuple[int, ...] = ()
    """Length of the winning play of `solution()`, by seed."""
    random_wins: int | None = None
    """Episodes of the random agent that were won; None when it did not play."""
    contract_version: int = CONTRACT_VERSION

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def reasons(self) -> frozenset[Reason]:
        """The codes of all findings."""
        return frozenset(finding.reason for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """JSON object of the report; the record as its own JSON form, without the source."""
        return {
            "ok": self.ok,
            "source_digest": self.source_digest,
            "digest": self.digest,
            "findings": [finding.to_json() for finding in self.findings],
            "record": None if self.record is None else self.record.to_json(),
            "docstring": self.docstring,
            "first_observation": self.first_observation,
            "seeds": list(self.seeds),
            "witness_turns": list(self.witness_turns),
            "random_wins": self.random_wins,
            "contract_version": self.contract_version,
        }

    def __str__(self) -> str:
        return json.dumps(self.to_json(), indent=2, ensure_ascii=False)


_BY_FAULT: Final[Mapping[tuple[str, FaultKind], Reason]] = {
    ("load", FaultKind.ERROR): Reason.LOAD_RAISED,
    ("load", FaultKind.BAD_VALUE): Reason.LOAD_RAISED,
    ("load", FaultKind.TIMEOUT): Reason.LOAD_TIMEOUT,
    ("reset", FaultKind.ERROR): Reason.RESET_RAISED,
    ("reset", FaultKind.BAD_VALUE): Reason.RESET_TYPE,
    ("reset", FaultKind.TIMEOUT): Reason.RESET_TIMEOUT,
    ("step", FaultKind.ERROR): Reason.STEP_RAISED,
    ("step", FaultKind.BAD_VALUE): Reason.STEP_TYPE,
    ("step", FaultKind.TIMEOUT): Reason.STEP_TIMEOUT,
    ("hint", FaultKind.ERROR): Reason.HINT_RAISED,
    ("hint", FaultKind.BAD_VALUE): Reason.HINT_TYPE,
    ("hint", FaultKind.TIMEOUT): Reason.HINT_TIMEOUT,
    ("solution", FaultKind.ERROR): Reason.SOLUTION_RAISED,
    ("solution", FaultKind.BAD_VALUE): Reason.SOLUTION_TYPE,
    ("solution", FaultKind.TIMEOUT): Reason.SOLUTION_TIMEOUT,
}


_NOT_FINITE: Final = ("reward must be finite", "reward is out of the range of a float")
"""How the sandbox words it. The text only decides between two reasons to refuse."""


def reason_of(fault: EnvFault) -> Reason:
    """The reason that a fault amounts to.

    `SandboxError` when it is not the environment's: nothing can be said of it then.
    """
    if fault.origin is Origin.INFRASTRUCTURE:
        raise SandboxError(f"workers were lost again and again: {fault.detail}")
    if fault.kind is FaultKind.MEMORY:
        return Reason.MEMORY
    if fault.kind is FaultKind.REFUSED:
        return Reason.POLICY
    if fault.kind is FaultKind.BAD_VALUE and fault.detail.startswith(_NOT_FINITE):
        return Reason.REWARD_NOT_FINITE
    return _BY_FAULT.get((fault.call, fault.kind), Reason.CRASH)
