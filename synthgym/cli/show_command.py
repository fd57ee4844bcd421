"""`synthgym show`: what is known of one environment."""

from __future__ import annotations

from pathlib import Path

from synthgym.cli.entries import find_entry, open_snapshot
from synthgym.cli.output import print_json, print_table, print_text
from synthgym.spec import SynthEnvSpec


def run(path: Path | None, wanted: str, *, with_source: bool, as_json: bool) -> None:
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
        ("metrics", ", ".join(f"{name} {value}" for name, value in sorted(spec.metrics.items()))),
    ]
    return [(name, value) for name, value in rows if value]
