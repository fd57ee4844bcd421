"""The sum of an audit: the same for the same rows, in whatever order they come."""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any, Final

from synthgym.audit.rows import Row, Status
from synthgym.validation import Reason, Verdict

MAX_EXAMPLES: Final = 3
"""Rows kept of each reason: the first by name, so memory does not grow with the audit."""


@dataclass(slots=True)
class Tally:
    """How many sources something was said of, and the first of them."""

    sources: int = 0
    examples: list[Row] = field(default_factory=list)
    """By name. Of sources with the same text only the one that was validated."""

    def add(self, row: Row) -> None:
        """Count one more source."""
        self.sources += 1
        if not row.same_as:
            bisect.insort(self.examples, row, key=lambda example: example.name)
            del self.examples[MAX_EXAMPLES:]


@dataclass(slots=True)
class GateTally:
    """What a gate came to."""

    tried: int = 0
    failed: int = 0


class Summary:
    """Counts of the rows of an audit, by status, gate and reason."""

    def __init__(self) -> None:
        self.sources = 0
        self.copies = 0
        """Sources whose text had been validated under another name."""
        self.warned = 0
        """Sources that are fine but for a warning."""
        self.seconds = 0.0
        """Of all validations, in wall-clock time, those of earlier runs included."""
        self.gates: dict[str, GateTally] = {}
        """By name, in their order."""
        self._statuses: dict[Status, Tally] = {status: Tally() for status in Status}
        self._reasons: dict[str, Tally] = {}

    def add(self, row: Row) -> None:
        """Count a row. Each source must come once."""
        self.sources += 1
        self.copies += bool(row.same_as)
        self.seconds += row.seconds
        self.warned += row.ok and bool(row.reasons)
        self._statuses[row.status].add(row)
        for reason in row.reasons:
            self._reasons.setdefault(reason, Tally()).add(row)
        for name, verdict in row.gates.items():
            gate = self.gates.setdefault(name, GateTally())
            gate.tried += verdict != Verdict.SKIPPED
            gate.failed += verdict == Verdict.FAILED

    @property
    def ok(self) -> bool:
        """Whether every source was validated and is fine."""
        return self.sources == self.of(Status.OK).sources

    def of(self, status: Status) -> Tally:
        """The sources of that status."""
        return self._statuses[status]

    @property
    def reasons(self) -> list[tuple[Reason, Tally]]:
        """Every reason that was found, the most frequent first."""
        known = [(Reason(code), tally) for code, tally in self._reasons.items()]
        return sorted(known, key=lambda item: (-item[1].sources, str(item[0])))

    def share(self, number: int) -> float:
        """`number` as a share of all sources."""
        return number / self.sources if self.sources else 0.0

    def to_json(self) -> dict[str, Any]:
        """JSON object of all counts, with the names of the examples."""
        return {
            "ok": self.ok,
            "sources": self.sources,
            "statuses": {str(status): tally.sources for status, tally in self._statuses.items()},
            "warned": self.warned,
            "copies": self.copies,
            "seconds": round(self.seconds, 3),
            "gates": {
                name: {"tried": gate.tried, "failed": gate.failed}
                for name, gate in self.gates.items()
            },
            "reasons": [
                {
                    "reason": str(reason),
                    "severity": str(reason.severity),
                    "explanation": reason.explanation,
                    "remedy": reason.remedy,
                    "sources": tally.sources,
                    "share": round(self.share(tally.sources), 6),
                    "examples": [row.name for row in tally.examples],
                }
                for reason, tally in self.reasons
            ],
            "problems": [
                {"name": row.name, "status": str(row.status), "detail": row.detail}
                for status in (Status.UNREADABLE, Status.NOT_AUDITED)
                for row in self.of(status).examples
            ],
        }
