"""Runs generated environments in locked-down processes.

Source text goes in; checked values or faults come out. A fault (`EnvFault`) is a value, never an
exception.
"""

from __future__ import annotations

from synthgym.sandbox.batch import Batch
from synthgym.sandbox.compile import Violation, check_source
from synthgym.sandbox.default import default_pool, isolation
from synthgym.sandbox.isolation import IsolationReport, Layer
from synthgym.sandbox.pool import Pool
from synthgym.sandbox.results import (
    EnvFault,
    FaultKind,
    Loaded,
    Origin,
    ResetResult,
    StepResult,
)
from synthgym.sandbox.session import Session

__all__ = [
    "Batch",
    "EnvFault",
    "FaultKind",
    "IsolationReport",
    "Layer",
    "Loaded",
    "Origin",
    "Pool",
    "ResetResult",
    "Session",
    "StepResult",
    "Violation",
    "check_source",
    "default_pool",
    "isolation",
]
