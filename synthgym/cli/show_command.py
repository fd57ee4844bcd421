"""`synthgym show`: what is known of one environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from synthgym.cli.entries import find_entry, open_snapshot
from synthgym.cli.output import print_json, print_table, print_text
from synthgym.spec import SynthEnvSpec


def run(path: str | None, wanted: str, *, with_source: bool, as_json: bool) -> None:
    """Print the spec of an environment, and its source on request."""
    snapshot = open_snapshot(path)
    spec = snapshot.spec(find_entry(snapshot, wanted).digest)
    if as_json:
        print_json(spec.to_json() | ({"source": spec.record.source} if with_source else {}))
        return
    print_table(("", ""), _rows(spec))
    if with_source:
        print_text("\n" + spec.record.source)


def _rows(spec: SynthEnvSpec) -> list[tuple[str, str]]:
    origin = spec.provenance
    rows = [
        ("id", spec.env_id),
        ("pinned id", spec.pinned_id),
        ("title", spec.title),
        ("skills", ", ".join(spec.skills)),
        ("max turns", str(spec.record.max_turns)),
        ("digest", spec.digest),
        ("license", spec.license),
        ("author", " ".join((origin.author, origin.revision)).strip()),
        ("written as", origin.dialect),
        ("document", " ".join((origin.document_id, origin.document_license)).strip()),
        ("parent", origin.parent),
        ("hint", spec.hint or ""),
        ("metrics", ", ".join(_metrics(spec.metrics))),
        ("agents", ", ".join(_solve_rates(spec.metrics))),
    ]
    return [(name, value) for name, value in rows if value]


def _metrics(metrics: Mapping[str, Any]) -> list[str]:
    return [f"{name} {value}" for name, value in sorted(metrics.items()) if name != "agents"]


def _solve_rates(metrics: Mapping[str, Any]) -> list[str]:
    """How often each agent that was calibrated wins."""
    agents = metrics.get("agents")
    scores = agents.items() if isinstance(agents, dict) else ()
    return [
        f"{name} {score['solve_rate']}"
        for name, score in scores
        if isinstance(score, dict) and "solve_rate" in score
    ]
