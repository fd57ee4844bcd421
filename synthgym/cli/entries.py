"""Finding what the user named in a snapshot."""

from __future__ import annotations

from pathlib import Path

from synthgym.ids import NAMESPACE, is_name
from synthgym.registry import Entry, Snapshot, bundled_root
from synthgym.registry.files import is_there


def open_snapshot(place: str | None) -> Snapshot:
    """The snapshot of a folder, packed file or reference; the bundled one when there is none."""
    return Snapshot.open(bundled_root()) if place is None else open_place(place)


def open_place(place: str) -> Snapshot:
    """The snapshot of a folder or packed file, or of a reference, which is pulled when it is not here."""
    if is_there(place):
        return Snapshot.open(place)
    # Most commands work on what is here: what talks to registries is imported when it is needed.
    from synthgym.publishing import locate

    return Snapshot.open(locate(place))


def check_own(place: Path) -> None:
    """Raise `SnapshotError` for a snapshot of the cache: its folder stands for one content for ever."""
    # As above: imported when it is needed.
    from synthgym.publishing import check_own as check

    check(place)


def find_entry(snapshot: Snapshot, wanted: str) -> Entry:
    """The entry of an id, a pinned id, a digest, or a name, which stands for its newest version.

    `EnvNotFoundError` names the nearest id.
    """
    name = wanted.removeprefix(f"{NAMESPACE}/")
    versions = snapshot.versions(name) if is_name(name) else []
    return versions[-1] if versions else snapshot.entry(wanted)
