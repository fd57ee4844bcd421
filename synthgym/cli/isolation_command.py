"""`synthgym isolation`: what protects this machine from the code of an environment."""

from __future__ import annotations

import msgspec

from synthgym.cli.output import print_json, print_table, print_text
from synthgym.errors import SandboxError
from synthgym.sandbox import isolation
from synthgym.sandbox.oversight import check_level, known_level


def run(require: str | None, *, as_json: bool) -> str | None:
    """Start one worker and print which layers of protection hold in it.

    Returns what is missing for the level `require`, or None. `ConfigError` when there is no such
    level; then nothing is started.
    """
    known_level(require)
    report = isolation()
    if as_json:
        print_json(msgspec.to_builtins(report))
    else:
        print_text(f"isolation: {report.level}\n")
        rows = [(layer.name, "on" if layer.ok else "off", layer.detail) for layer in report.layers]
        print_table(("layer", "", "detail"), rows)
    try:
        check_level(report, require)
    except SandboxError as error:
        return str(error)
    return None
