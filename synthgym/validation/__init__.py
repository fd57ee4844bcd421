"""Whether a source meets the contract, and if not, why."""

from __future__ import annotations

from synthgym.validation.pipeline import validate
from synthgym.validation.reasons import Finding, Reason, Report

__all__ = ["Finding", "Reason", "Report", "validate"]
