"""Whether a source meets the contract, and if not, why."""

from __future__ import annotations

from synthgym.validation.pipeline import validate
from synthgym.validation.reasons import Reason, Severity
from synthgym.validation.report import Finding, Report, Verdict
from synthgym.validation.written_hints import check_hint

__all__ = ["Finding", "Reason", "Report", "Severity", "Verdict", "check_hint", "validate"]
