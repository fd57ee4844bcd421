"""Noting what was measured in the snapshot itself: metrics of its environments, under `gap` and the model's name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from spade_loop.errors import ConfigError
from spade_loop.gap.report import GapReport
from spade_loop.gap.results import Rate, Result
from spade_loop.gap.subjects import Field
from spade_loop.types import JsonRow
from synthgym.publishing import check_own
from synthgym.registry import Snapshot, check_writable, write_metrics

METRIC: Final = "gap"


def check_notable(field: Field) -> Snapshot:
    """The snapshot that can be written to: asked before anything is played.

    `ConfigError` for tasks, `SnapshotError` for a snapshot of the cache, of the installed package, or read-only.
    """
    if field.snapshot is None:
        raise ConfigError("--write notes figures in a snapshot, and a file of tasks is none")
    check_own(field.snapshot.path)
    check_writable(field.snapshot.path)
    return field.snapshot


def note(report: GapReport, field: Field) -> Snapshot:
    """Write the figures of every environment that was measured, in one step; the snapshot as it is then.

    Figures of other models stay, and so do other metrics.
    """
    path = check_notable(field).path
    now = Snapshot.open(path)  # somebody else may have written since
    metrics: dict[str, JsonRow] = {}
    for result in report.results:
        noted = now.spec(result.digest).metrics.get(METRIC)
        kept: dict[str, Any] = dict(noted) if isinstance(noted, dict) else {}
        figures = figures_of(result, report)
        metrics[result.digest] = {METRIC: kept | {str(report.model["name"]): figures}}
    return write_metrics(path, metrics)


def figures_of(result: Result, report: GapReport) -> JsonRow:
    """What is noted of an environment: its figures, and what it takes to measure them again. No clock."""
    low, high = result.regret_interval
    return {
        "zone": str(result.zone),
        "solve_rate": _round(result.plain.value),
        "solve_rate_interval": _rounded(result.plain),
        "hinted_solve_rate": _round(result.hinted.value),
        "hinted_solve_rate_interval": _rounded(result.hinted),
        "regret": _round(result.regret),
        "regret_se": _round(result.regret_error),
        "regret_interval": [round(low, 6), round(high, 6)],
        "confidence": round(result.confidence, 6),
        "method": result.method,
        "pairs": result.measured,
        "faults": result.faults,
        "backend": report.model["backend"],
        "settings": report.settings.to_json(),
        "zone_rules": report.to_json()["zone_rules"],
        "synthgym": report.version,
    }


def _rounded(rate: Rate) -> Sequence[float]:
    return [round(end, 6) for end in rate.interval]


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
