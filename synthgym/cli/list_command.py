"""`synthgym list`: the environments of a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from synthgym.cli.entries import open_snapshot
from synthgym.cli.output import print_json, print_table
from synthgym.contract import SKILLS, TOOL_SKILLS
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean
from synthgym.registry import Entry


def search(
    path: str | None, text: str, skill: str | None, limit: int, *, like: bool, as_json: bool
) -> bool:
    """Print the entries whose name or title holds every word, or whose rules are nearest; whether any."""
    snapshot = open_snapshot(path)
    if like:
        from synthgym.cli.embed_command import nearest

        entries = [entry for entry, _ in nearest(snapshot, text, skill, limit)]
    else:
        entries = list(snapshot.search(text, skill=skill, limit=limit))
    if skill is not None and not entries:
        _check_skill(skill, snapshot)
    _print(entries, as_json=as_json)
    return bool(entries)


def run(path: str | None, skill: str | None, *, as_json: bool) -> None:
    """Print the entries of a snapshot, those of one skill when it is given."""
    entries = list(open_snapshot(path))
    if skill is not None:
        _check_skill(skill, entries)
        entries = [entry for entry in entries if skill in entry.skills]
    _print(entries, as_json=as_json)


def _check_skill(skill: str, entries: Iterable[Entry]) -> None:
    known = set(SKILLS).union(TOOL_SKILLS, *(entry.skills for entry in entries))
    if skill not in known:
        raise ConfigError(
            f"unknown skill {skill!r}{did_you_mean(skill, known)}; "
            f"the skills are {', '.join(sorted(known))}"
        )


def _print(entries: Sequence[Entry], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "id": entry.env_id,
                    "digest": entry.digest,
                    "title": entry.title,
                    "license": entry.license,
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
