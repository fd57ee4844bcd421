"""`synthgym list`: the environments of a snapshot."""

from __future__ import annotations

from pathlib import Path

from synthgym.cli.entries import open_snapshot
from synthgym.cli.output import print_json, print_table
from synthgym.contract import SKILLS, TOOL_SKILLS
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean


def run(path: Path | None, skill: str | None, *, as_json: bool) -> None:
    """Print the entries of a snapshot, those of one skill when it is given."""
    entries = list(open_snapshot(path))
    if skill is not None:
        known = set(SKILLS).union(TOOL_SKILLS, *(entry.skills for entry in entries))
        if skill not in known:
            raise ConfigError(
                f"unknown skill {skill!r}{did_you_mean(skill, known)}; "
                f"the skills are {', '.join(sorted(known))}"
            )
        entries = [entry for entry in entries if skill in entry.skills]
    if as_json:
        print_json(
            [
                {
                    "id": entry.env_id,
                    "digest": entry.digest,
                    "title": entry.title,
                    "skills": list(entry.skills),
                    "max_turns": entry.max_turns,
                }
                for entry in entries
            ]
        )
        return
    rows = [
        (entry.env_id, str(entry.max_turns), ", ".join(entry.skills), entry.title)
        for entry in entries
    ]
    print_table(("id", "turns", "skills", "title"), rows)
