"""What decides the verdicts of an audit, and how it runs."""

from __future__ import annotations

import importlib.metadata
import os
from dataclasses import dataclass

from synthgym.errors import ConfigError
from synthgym.sandbox.isolation import Level
from synthgym.sandbox.oversight import known_level
from synthgym.validation.dialects import base_of
from synthgym.validation.report import REPORT_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """How sources are audited. The defaults suit a pool of files from strangers."""

    dialect: str = "auto"
    """`program`, `spade`, or `auto` for whichever a text looks like."""
    seeds: int = 20
    """Instances that each source is tried on."""
    workers: int | None = None
    """Processes that validate; as many as this process may use CPUs when None."""
    require: Level | None = None
    """Isolation below which nothing is run."""
    sources_per_worker: int = 64
    """Sources that may share a sandbox worker: they are one trust domain. 1 keeps them all apart."""
    source_seconds: float = 300.0
    """After these, in wall-clock time, a source is given up as not audited. The slowest bad examples take a tenth."""

    def __post_init__(self) -> None:
        base_of("", self.dialect)
        known_level(self.require)
        least = {"seeds": 2, "sources_per_worker": 1}
        if self.workers is not None:
            least["workers"] = 1
        for name, floor in least.items():
            if getattr(self, name) < floor:
                raise ConfigError(f"{name} must be at least {floor}, got {getattr(self, name)}")
        if not self.source_seconds > 0:
            raise ConfigError(f"source_seconds must be positive, got {self.source_seconds}")

    @property
    def processes(self) -> int:
        """How many processes validate."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def validator(self) -> str:
        """What the verdict on a source depends on besides its text: equal for equal verdicts."""
        version = importlib.metadata.version("synthgym")
        return (
            f"synthgym {version}, report {REPORT_VERSION}, "
            f"{self.seeds} seeds, dialect {self.dialect}"
        )
