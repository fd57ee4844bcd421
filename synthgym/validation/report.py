"""What validation says: findings with their evidence, gates with their verdict, the whole report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from synthgym.contract import CONTRACT_VERSION
from synthgym.errors import SandboxError
from synthgym.sandbox.results import EnvFault, FaultKind, Origin
from synthgym.spec import EnvRecord
from synthgym.validation.reasons import Reason, Severity

REPORT_VERSION: Final = 2
"""Of the fields of a report and of the rules behind them: raise it when either changes."""
MAX_EVIDENCE_ACTIONS: Final = 40
MAX_EVIDENCE_CHARS: Final = 300
"""What a finding keeps of each action and of what was seen; more is cut."""


class Verdict(StrEnum):
    """What a gate came to."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """It was not tried: an earlier gate found something that it would only find again."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, with what it takes to see it again."""

    reason: Reason
    detail: str = ""
    """Where and how; may quote text of the untrusted source: show it, do not parse it."""
    seed: int | None = None
    """The first seed that shows it."""
    line: int | None = None
    """Line of the source, from 1."""
    actions: tuple[str, ...] = ()
    """What was sent, from the reset with `seed` on. Long ones are cut, and of many the first are kept."""
    seen: str = ""
    """The last observation, or what else was seen; untrusted and cut."""

    def __post_init__(self) -> None:
        kept = tuple(_cut(action) for action in self.actions[:MAX_EVIDENCE_ACTIONS])
        object.__setattr__(self, "actions", kept)
        object.__setattr__(self, "seen", _cut(self.seen))

    @property
    def severity(self) -> Severity:
        """That of its reason."""
        return self.reason.severity

    def to_json(self) -> dict[str, Any]:
        """JSON object of every field, and of what the reason says."""
        return {
            "reason": str(self.reason),
            "severity": str(self.severity),
            "detail": self.detail,
            "seed": self.seed,
            "line": self.line,
            "actions": list(self.actions),
            "seen": self.seen,
            "remedy": self.reason.remedy,
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
    """One a reason, in the order in which the gates came upon them."""
    gates: Mapping[str, Verdict]
    """Every gate by name, in the order in which they are tried."""
    record: EnvRecord | None = None
    """There from the moment the static checks pass; good for use only when `ok`."""
    docstring: str = ""
    first_observation: str = ""
    """The observation of seed 0."""
    seeds: tuple[int, ...] = ()
    """The seeds that the checks used."""
    witness_turns: tuple[int, ...] = ()
    """Length of the winning play of `solution()`, by seed."""
    wins: Mapping[str, tuple[int, int]]
    """(episodes won, episodes played) of each agent that understands nothing, by its name."""
    contract_version: int = CONTRACT_VERSION

    @property
    def ok(self) -> bool:
        """Whether every gate passed. Warnings do not count against it."""
        return all(verdict is Verdict.PASSED for verdict in self.gates.values())

    @property
    def reasons(self) -> frozenset[Reason]:
        """The reasons of all findings, warnings included."""
        return frozenset(finding.reason for finding in self.findings)

    @property
    def refusals(self) -> tuple[Finding, ...]:
        """The findings for which the environment is not admitted."""
        return tuple(item for item in self.findings if item.severity is Severity.REFUSED)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that do not keep it from being admitted."""
        return tuple(item for item in self.findings if item.severity is Severity.WARNING)

    def to_json(self) -> dict[str, Any]:
        """JSON object of the report; the record as its own JSON form, without the source."""
        return {
            "report_version": REPORT_VERSION,
            "ok": self.ok,
            "source_digest": self.source_digest,
            "digest": self.digest,
            "findings": [finding.to_json() for finding in self.findings],
            "gates": {name: str(verdict) for name, verdict in self.gates.items()},
            "record": None if self.record is None else self.record.to_json(),
            "docstring": self.docstring,
            "first_observation": self.first_observation,
            "seeds": list(self.seeds),
            "witness_turns": list(self.witness_turns),
            "wins": {name: list(pair) for name, pair in self.wins.items()},
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
_OUT_OF_RANGE: Final = "reward must lie in"
"""How the adapter of another dialect words it."""


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
    if fault.kind is FaultKind.BAD_VALUE and fault.detail.startswith(_OUT_OF_RANGE):
        return Reason.REWARD_OUT_OF_RANGE
    return _BY_FAULT.get((fault.call, fault.kind), Reason.CRASH)


def _cut(text: str) -> str:
    if len(text) <= MAX_EVIDENCE_CHARS:
        return text
    return f"{text[: MAX_EVIDENCE_CHARS - 1]}…"
