"""Finding what the user named in a snapshot."""

from __future__ import annotations

from pathlib import Path

from synthgym.ids import NAMESPACE, is_name
from synthgym.registry import Entry, Snapshot, bundled_root


def open_snapshot(path: Path | None) -> Snapshot:
    """The snapshot in that folder; the bundled one when there is no path."""
    return Snapshot.open(bundled_root() if path is None else path)


def find_entry(snapshot: Snapshot, wanted: str) -> Entry:
    """The entry of an id, a pinned id, a digest, or a name, which stands for its newest version.

    `EnvNotFoundError` names the nearest id.
    """
    name = wanted.removeprefix(f"{NAMESPACE}/")
    versions = [entry for entry in snapshot if is_name(name) and entry.name == name]
    if versions:
        return max(versions, key=lambda entry: entry.version)
    return snapshot.entry(wanted)
