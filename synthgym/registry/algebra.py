"""Snapshots out of snapshots: difference, union, selection, and splits that do not leak.

All of it goes shard by shard, so that what is in memory is one shard and the entries.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.memory.fingerprint import ast_hash, parse_source
from synthgym.registry.core import Parent, check_name, check_version
from synthgym.registry.layout import shard_count
from synthgym.registry.manifest import Entry
from synthgym.registry.notes import ABOUT, REPORT
from synthgym.registry.packed import Packed
from synthgym.registry.snapshot import Snapshot
from synthgym.registry.strict import parse_json
from synthgym.registry.writing import told, write_packed
from synthgym.spec import canonical_json, sha256_digest

CONFLICTS: Final = ("error", "first", "renumber")
"""What `merge` does with an id that stands for two contents."""
MAX_VERSION: Final = 999_999


@dataclass(frozen=True, slots=True)
class Difference:
    """What leads from one snapshot to another."""

    added: tuple[Entry, ...]
    removed: tuple[Entry, ...]
    renamed: tuple[tuple[Entry, Entry], ...]
    """The same content under another id."""
    noted: tuple[Entry, ...]
    """The same content under the same id, with other notes."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.renamed or self.noted)


def diff(old: Snapshot, new: Snapshot, *, notes: bool = True) -> Difference:
    """Compare two snapshots by content; without `notes`, ids and contents alone, and nothing but indexes is read."""
    before, after = old.aliases(), new.aliases()
    gone, come = _only_in(old, before, after), _only_in(new, after, before)
    changed: list[Entry] = []
    if notes and old.core.notes_root != new.core.notes_root:
        changed = [e for e in _other_notes(old, new) if e.digest not in come]
    return Difference(
        added=tuple(entry for digest, entry in come.items() if digest not in gone),
        removed=tuple(entry for digest, entry in gone.items() if digest not in come),
        renamed=tuple((gone[d], entry) for d, entry in come.items() if d in gone),
        noted=tuple(sorted(changed, key=lambda entry: entry.alias)),
    )


def merge(
    target: Path,
    snapshots: Sequence[Snapshot],
    *,
    name: str,
    version: str,
    on_conflict: str = "error",
    layout: str | None = None,
) -> Snapshot:
    """Write the union of snapshots. Of content that several hold, id and notes of the first are kept.

    Notes of a kind that only a later one has are taken from it. An id that stands for two contents is an
    error; with "first" only the first is kept, with "renumber" the later ones get the next free version.
    """
    if on_conflict not in CONFLICTS:
        raise ConfigError(f"on_conflict must be one of {', '.join(CONFLICTS)}, got {on_conflict!r}")
    if len(snapshots) < 2:
        raise ConfigError(f"merging takes at least two snapshots, got {len(snapshots)}")
    chosen = _aliases(snapshots, on_conflict)

    def bucket(shard: int, count: int) -> Iterator[Packed]:
        for item in _united([snapshot.packed(shard, count) for snapshot in snapshots]):
            alias = chosen.get(item.entry.digest)
            if alias is not None:
                item.spec()  # nothing is passed on that is not what its entry says
                yield replace(item, entry=replace(item.entry, name=alias[0], version=alias[1]))

    with told(target):
        return write_packed(
            target,
            bucket,
            len(chosen),
            name=name,
            version=version,
            layout=layout,
            parents=[_parent(snapshot, "merge") for snapshot in snapshots],
        )


def select(  # noqa: PLR0913 -- see `write_snapshot`
    target: Path,
    snapshot: Snapshot,
    wanted: Callable[[Packed], bool],
    *,
    name: str,
    version: str,
    layout: str | None = None,
    relation: str = "filter",
) -> Snapshot:
    """Write the environments for which `wanted` is true; `SnapshotError` when there is none."""
    count = shard_count(len(snapshot))
    chosen = {
        item.entry.digest
        for shard in range(count)
        for item in snapshot.packed(shard, count)
        if wanted(item)
    }
    if not chosen:
        raise SnapshotError(
            f"{snapshot.path} holds no environment of this kind: nothing is written"
        )

    def bucket(shard: int, of: int) -> Iterator[Packed]:
        for item in snapshot.packed(shard, of):
            if item.entry.digest in chosen:
                item.spec()  # nothing is passed on that is not what its entry says
                yield item

    with told(target):
        return write_packed(
            target,
            bucket,
            len(chosen),
            name=name,
            version=version,
            layout=layout,
            parents=[_parent(snapshot, relation)],
        )


def split(
    snapshot: Snapshot, targets: Mapping[str, tuple[Path, float]], *, seed: int, version: str
) -> dict[str, Snapshot]:
    """Write several disjoint parts, by name with their folders and shares, which sum up to 1.

    Environments of one family, or of one structure under other names and data, stay together, so that a
    held-out part holds no near copy. Where a group goes depends on the seed and on the group alone: a
    snapshot that grows keeps the parts that it had, but for groups that what is new joins to one.
    `ConfigError` for other shares, `SnapshotError` when a part would be empty or is there already.
    """
    shares = [share for _, share in targets.values()]
    if len(targets) < 2 or not min(shares) > 0 or not abs(sum(shares) - 1) <= 1e-6:
        raise ConfigError(
            f"a split takes at least two shares above 0 that sum up to 1, got {shares}"
        )
    check_version(version)
    for name, (path, _) in targets.items():
        check_name(name)
        if path.exists() or path.is_symlink():
            raise SnapshotError(f"{path} exists already")
    groups = _groups(snapshot).items()
    where = {digest: _part(group, targets, seed) for digest, group in groups}
    empty = sorted(set(targets) - set(where.values()))
    if empty:
        raise SnapshotError(
            f"no group of environments falls to {empty[0]!r}: change seed or shares"
        )
    return {
        name: select(
            path,
            snapshot,
            lambda item, name=name: where[item.entry.digest] == name,  # type: ignore[misc]
            name=f"{snapshot.name}-{name}",
            version=version,
            relation="split",
        )
        for name, (path, _) in targets.items()
    }


def _united(streams: list[Iterator[Packed]]) -> Iterator[Packed]:
    """Merge streams that are sorted by digest; of equal ones the first, with the kinds of notes of all."""
    ranked = (_ranked(stream, rank) for rank, stream in enumerate(streams))
    last: Packed | None = None
    for _, _, item in heapq.merge(*ranked, key=lambda row: row[:2]):
        if last is not None and item.entry.digest == last.entry.digest:
            last = _with_notes_of(item, last)
            continue
        if last is not None:
            yield last
        last = item
    if last is not None:
        yield last


def _with_notes_of(later: Packed, first: Packed) -> Packed:
    """The first with the kinds of notes that only the later one has; it names the digest of its report."""
    notes = {**later.notes, **first.notes}
    if REPORT in notes and REPORT not in first.notes:
        digest = sha256_digest(notes[REPORT])
        if first.spec().report_digest in ("", digest):
            about = parse_json(first.notes[ABOUT], ABOUT)
            notes[ABOUT] = canonical_json({**about, "report_digest": digest})
        else:  # it came of another validation
            del notes[REPORT]
    return replace(first, notes=dict(sorted(notes.items())))


def _ranked(stream: Iterator[Packed], rank: int) -> Iterator[tuple[str, int, Packed]]:
    return ((item.entry.digest, rank, item) for item in stream)


def _aliases(snapshots: Sequence[Snapshot], on_conflict: str) -> dict[str, tuple[str, int]]:
    """The name and version under which each digest is kept."""
    chosen: dict[str, tuple[str, int]] = {}
    taken: dict[tuple[str, int], str] = {}
    newest: dict[str, int] = {}
    late: list[Entry] = []
    for snapshot in snapshots:
        for entry in snapshot:
            key = (entry.name.casefold(), entry.version)
            newest[key[0]] = max(newest.get(key[0], 0), entry.version)
            # Taken even by content that is kept under another id: an id never changes its content.
            if taken.setdefault(key, entry.digest) == entry.digest:
                chosen.setdefault(entry.digest, (entry.name, entry.version))
            elif on_conflict == "error":
                raise SnapshotError(
                    f"{entry.env_id} stands for {taken[key]} and, in {snapshot.path}, for "
                    f"{entry.digest}: keep the first, or renumber the later ones (--on-conflict)"
                )
            elif on_conflict == "renumber":
                late.append(entry)
    for entry in late:  # after all of them: a free version must be free in every snapshot
        if entry.digest not in chosen:
            newest[entry.name.casefold()] += 1
            chosen[entry.digest] = (entry.name, newest[entry.name.casefold()])
    if any(number > MAX_VERSION for _, number in chosen.values()):
        raise SnapshotError(f"a version beyond {MAX_VERSION} would be needed")
    return chosen


def _only_in(snapshot: Snapshot, aliases: list[str], others: list[str]) -> dict[str, Entry]:
    """Entries whose alias is none of the others, by digest, in the order of the snapshot."""
    known = set(others)
    places = [place for place, alias in enumerate(aliases) if alias not in known]
    found = list(snapshot.entries_at(places))
    if [entry.alias_text for entry in found] != [aliases[place] for place in places]:
        raise IntegrityError(f"{snapshot.path} has changed while it was read: compare it again")
    return {entry.digest: entry for entry in found}


def _other_notes(old: Snapshot, new: Snapshot) -> Iterator[Entry]:
    """Entries of the new one that the old one has with other notes."""
    count = max(shard_count(len(old)), shard_count(len(new)))
    for shard in range(count):
        before = {item.entry.digest: item.notes for item in old.packed(shard, count)}
        for item in new.packed(shard, count):
            if item.entry.digest in before and item.notes != before[item.entry.digest]:
                yield item.entry


def _parent(snapshot: Snapshot, relation: str) -> Parent:
    return Parent(
        name=snapshot.name, version=snapshot.version, digest=snapshot.digest, relation=relation
    )


def _groups(snapshot: Snapshot) -> dict[str, str]:
    """The group of each digest: what shares a family or a structure, also by way of others.

    A group goes by the least of its keys, a family before a structure.
    """
    above: dict[str, str] = {}
    key_of: dict[str, str] = {}

    def least(key: str) -> str:
        while above.setdefault(key, key) != key:
            above[key] = key = above[above[key]]
        return key

    count = shard_count(len(snapshot))
    for shard in range(count):
        for item in snapshot.packed(shard, count):
            keys = _keys(item)
            first, *others = sorted(map(least, keys))
            above |= dict.fromkeys(others, first)
            key_of[item.entry.digest] = keys[0]
    return {digest: least(key) for digest, key in key_of.items()}


def _keys(item: Packed) -> list[str]:
    """What an environment must not be torn apart from."""
    try:
        structure = f"structure:{ast_hash(parse_source(item.source))}"
    except ConfigError:  # it does not parse here: then it is like nothing else
        structure = item.entry.digest
    family = item.spec().provenance.family
    return [f"family:{family}", structure] if family else [structure]


def _part(group: str, targets: Mapping[str, tuple[Path, float]], seed: int) -> str:
    """The part of a group: a point in [0, 1) that its hash gives, and the shares one after the other."""
    digest = hashlib.sha256(f"{seed}\0{group}".encode()).digest()
    point, start = int.from_bytes(digest[:8], "big") / 2**64, 0.0
    names: Iterable[str] = list(targets)
    for name in names:
        start += targets[name][1]
        if point < start:
            return name
    return list(targets)[-1]
