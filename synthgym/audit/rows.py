"""What an audit says of one source, and its form as a line of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, Final

from synthgym.errors import ConfigError
from synthgym.spec import JsonObject
from synthgym.validation import Finding, Reason

ROW_VERSION: Final = 1
"""Of the fields of a row."""
ROW_BEGINS: Final = b'{"audit": 1, '
"""How every line begins: what tells a file of rows from any other."""


class Status(StrEnum):
    """What the audit of one source came to."""

    OK = "ok"
    """Every gate passed; there may be warnings."""
    REFUSED = "refused"
    """Validation found something."""
    UNREADABLE = "unreadable"
    """There is no text to validate: not a regular file, no permission, a broken row."""
    NOT_AUDITED = "not-audited"
    """Validation itself failed on it, twice; the next run tries again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What validation came to for one text."""

    status: Status
    base: str = ""
    env_digest: str = ""
    gates: Mapping[str, str] = field(default_factory=dict, hash=False)
    findings: tuple[Finding, ...] = ()
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What an audit says of one source. But for `seconds`, the same source gives the same row."""

    name: str
    """Where it is: a path, or the path of a file of rows and the line. From strangers: show it, do not trust it."""
    status: Status
    title: str = ""
    """What its row or its snapshot calls it."""
    digest: str = ""
    """`sha256:<hex>` of the text that was judged; empty when there is none. Of a file that is far too
    large only the beginning is read."""
    base: str = ""
    """The contract it was judged by, `EnvRecord.base`; empty when it was not."""
    env_digest: str = ""
    """Digest of its record; empty when there is none."""
    reasons: tuple[str, ...] = ()
    """Codes of all findings, warnings included."""
    gates: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Verdict of each gate, in their order."""
    findings: tuple[Finding, ...] = ()
    """With evidence; empty when `same_as` names the row that has them."""
    detail: str = ""
    """Why it could not be read or audited."""
    same_as: str = ""
    """Name of the source with the same text that was validated for both."""
    seconds: float = 0.0
    """That its validation took, in wall-clock time."""
    validator: str = ""
    """`AuditSettings.validator` of the audit that wrote this."""

    @property
    def ok(self) -> bool:
        """Whether it was validated and is fine."""
        return self.status is Status.OK

    def copy(self, name: str, title: str) -> Row:
        """The row of another source with the same text."""
        return replace(
            self,
            name=name,
            title=title,
            findings=(),
            same_as=self.same_as or self.name,
            seconds=0.0,
        )

    def to_json(self) -> dict[str, Any]:
        """JSON object of every field; the version of the form comes first."""
        return {
            "audit": ROW_VERSION,
            "name": self.name,
            "title": self.title,
            "status": str(self.status),
            "ok": self.ok,
            "digest": self.digest,
            "base": self.base,
            "env_digest": self.env_digest,
            "reasons": list(self.reasons),
            "gates": dict(self.gates),
            "findings": [finding.to_json() for finding in self.findings],
            "detail": self.detail,
            "same_as": self.same_as,
            "seconds": round(self.seconds, 4),
            "validator": self.validator,
        }

    def to_line(self) -> bytes:
        """The row as a line of a file: ASCII, whatever its texts hold."""
        return json.dumps(self.to_json(), ensure_ascii=True).encode("ascii") + b"\n"

    @classmethod
    def from_json(cls, data: JsonObject) -> Row:
        """Inverse of `to_json`; `ConfigError` for what no audit of this version wrote."""
        if not isinstance(data, dict) or data.get("audit") != ROW_VERSION:
            raise ConfigError(f"expected a row of an audit, version {ROW_VERSION}")
        try:
            return cls(
                name=data["name"],
                title=data["title"],
                status=Status(data["status"]),
                digest=data["digest"],
                base=data["base"],
                env_digest=data["env_digest"],
                reasons=tuple(data["reasons"]),
                gates=shared(data["gates"]),
                findings=tuple(_finding(item) for item in data["findings"]),
                detail=data["detail"],
                same_as=data["same_as"],
                seconds=data["seconds"],
                validator=data["validator"],
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise ConfigError(f"expected a row of an audit: {error!r}") from error

    @classmethod
    def from_line(cls, line: bytes) -> Row:
        """Inverse of `to_line`; errors as in `from_json`."""
        try:
            data = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"expected a row of an audit, got no JSON: {error}") from error
        return cls.from_json(data)


def shared(gates: Mapping[str, str]) -> Mapping[str, str]:
    """The same verdicts as one object in all rows: there are few of them, and very many rows."""
    return _shared(tuple(gates.items()))


@lru_cache(4096)
def _shared(items: tuple[tuple[str, str], ...]) -> Mapping[str, str]:
    return dict(items)


def _finding(data: JsonObject) -> Finding:
    return Finding(
        Reason(data["reason"]),
        data["detail"],
        data["seed"],
        data["line"],
        tuple(data["actions"]),
        data["seen"],
    )
