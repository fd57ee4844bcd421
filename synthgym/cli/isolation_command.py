"""`synthgym isolation`: what protects this machine from the code of an environment."""

from __future__ import annotations

from dataclasses import asdict

from synthgym.cli.output import print_json, print_table, print_text
from synthgym.sandbox import isolation


def run(*, as_json: bool) -> None:
    """Start one worker and print which layers of protection hold in it."""
    report = isolation()
    if as_json:
        print_json(asdict(report))
        return
    print_text(f"isolation: {report.level}\n")
    rows = [(layer.name, "on" if layer.ok else "off", layer.detail) for layer in report.layers]
    print_table(("layer", "", "detail"), rows)
