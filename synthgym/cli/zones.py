"""Zones that `spade-loop gap --write` noted: which environments a model has mastered, which are its frontier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean
from synthgym.registry import Snapshot
from synthgym.registry.notes import METRICS
from synthgym.registry.packed import Packed
from synthgym.registry.strict import parse_json

METRIC: Final = "gap"
"""Where they are noted: by model, each with its `zone`."""


def zone_test(snapshot: Snapshot, zones: Sequence[str], model: str) -> Callable[[Packed], bool]:
    """Whether an environment is in one of the zones for a model; everything is where no zone is asked for.

    The model may be left out where one alone was measured. `ConfigError` when nothing was measured, for a model or a
    zone that was not noted, and for a model without a zone.
    """
    if not zones:
        if model:
            raise ConfigError("--model says whose zones are meant: give --zone, too")
        return lambda _: True
    noted = _noted(snapshot)
    if not noted:
        raise ConfigError(
            f"no zones are noted in {snapshot.name} {snapshot.version}: measure a model with "
            "`spade-loop gap SNAPSHOT --model NAME --out DIR --write` first"
        )
    chosen = _model(noted, model)
    known = sorted(set(noted[chosen].values()))
    for zone in zones:
        if zone not in known:
            raise ConfigError(
                f"no environment is in the zone {zone!r} of {chosen!r}{did_you_mean(zone, known)} "
                f"(there are {', '.join(known)})"
            )
    by_digest = noted[chosen]
    return lambda item: by_digest.get(item.entry.digest) in zones


def _noted(snapshot: Snapshot) -> dict[str, dict[str, str]]:
    """Zones by model and digest."""
    found: dict[str, dict[str, str]] = {}
    for item in snapshot.packed():
        for model, figures in _measured(item).items():
            zone = figures.get("zone") if isinstance(figures, dict) else None
            if isinstance(zone, str):
                found.setdefault(model, {})[item.entry.digest] = zone
    return found


def _measured(item: Packed) -> Mapping[str, Any]:
    metrics = parse_json(item.notes.get(METRICS, b"{}"), f"{METRICS} of {item.entry.env_id}")
    figures = metrics.get(METRIC)
    return figures if isinstance(figures, dict) else {}


def _model(noted: Mapping[str, object], model: str) -> str:
    models = ", ".join(sorted(noted))
    if model:
        if model not in noted:
            raise ConfigError(
                f"no zones of the model {model!r} are noted{did_you_mean(model, noted)} (there are {models})"
            )
        return model
    if len(noted) > 1:
        raise ConfigError(f"zones of several models are noted: give --model, one of {models}")
    return next(iter(noted))
