"""What is asked of the signatures of a manifest or an index."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from synthgym.errors import TrustError
from synthgym.publishing.trust import AllowedSigners, Status, Verdict, check_signatures

UNCHECKED = Verdict(status=Status.UNSIGNED, detail="nobody asked for a check")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustPolicy:
    """Whose signatures count, and whether one must be there."""

    allowed: AllowedSigners = field(default_factory=AllowedSigners.read)
    required: bool = False
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """The time of the check."""

    def is_good(self, data: bytes, armours: bytes) -> bool:
        """Whether somebody who is trusted has signed `data`."""
        text = armours.decode("utf-8", "replace")
        return check_signatures(data, text, self.allowed, at=self.at).is_good

    def check(self, what: str, data: bytes, armours: str) -> Verdict:
        """What the signatures say of `data`.

        `TrustError` when one is of other bytes or cannot be read, and, where a signature is required,
        when nobody who is trusted has signed. `MissingExtraError` when there are signatures and the
        extra `sign` is not installed.
        """
        verdict = check_signatures(data, armours, self.allowed, at=self.at)
        if self.required:
            return verdict.require(what)
        if verdict.status is Status.BAD:
            raise TrustError(f"{what}: {verdict.detail}")
        return verdict
