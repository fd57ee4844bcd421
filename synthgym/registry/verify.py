"""Reading all of a snapshot against what its manifest promises."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from synthgym.canonical import is_canonical
from synthgym.errors import SnapshotError
from synthgym.registry.core import Core
from synthgym.registry.files import Files
from synthgym.registry.layout import ENVS, MANIFEST, is_beside, shard_count
from synthgym.registry.manifest import Manifest, check_unique
from synthgym.registry.notes import REPORT, VECTOR, notes_of
from synthgym.registry.packed import Packed, Roots
from synthgym.registry.snapshot import Snapshot, read_manifest
from synthgym.registry.usual import is_usual
from synthgym.spec import SynthEnvSpec, sha256_digest


def find_problems(snapshot: Snapshot, files: Files) -> Iterator[str]:
    """Yield every difference between the files and the manifest, in a fixed order."""
    manifest, place = snapshot.manifest, snapshot.path
    try:
        if read_manifest(files) != manifest:
            yield f"{place}: {MANIFEST} has changed since the snapshot was opened"
    except SnapshotError as error:
        yield str(error)
    found = False
    for problem in snapshot.file_problems():
        found = True
        yield problem
    if not found:  # or the same would be said twice
        yield from _logical_problems(snapshot)
    expected = {MANIFEST, *(ref.path for ref in manifest.files)}
    if not manifest.files:
        expected.add(ENVS)
    for path in files.paths():
        if path not in expected and not is_beside(path):
            yield f"{place}: {path} is not in the manifest"


def computed_core(snapshot: Snapshot) -> Core:
    """Compute the core anew from everything that is there.

    `SnapshotError` when an environment is not what its entry says, or something is there twice.
    """
    roots, manifest = Roots(), snapshot.manifest
    count = shard_count(len(snapshot))
    for shard in range(count):
        for item in snapshot.packed(shard, count):
            _check_notes(item, manifest)
            roots.add(item.entry, item.notes)
    core = roots.core(manifest.name, manifest.version, manifest.core.parents)
    check_unique(roots.entries)
    if snapshot.lists(roots.entries):
        return core
    for listed, computed in zip_longest(snapshot, roots.entries):
        if listed != computed:
            raise SnapshotError(f"{(listed or computed).env_id} is listed other than it is")
    return core


def _check_notes(item: Packed, manifest: Manifest) -> None:
    """Raise `SnapshotError` unless the notes are those that any other layout would hold as well."""
    plain = {kind: data for kind, data in item.notes.items() if not kind.startswith(VECTOR)}
    usual = is_usual(item.entry, item.record, item.source, plain)
    spec = None if usual else item.spec()
    if len(plain) < len(item.notes):
        _check_vectors(item, manifest)
    if spec is None:
        return
    report = plain.pop(REPORT, None)
    if notes_of(spec) != plain or (report is not None and not _is_named(report, spec)):
        raise SnapshotError(
            f"notes of {item.entry.env_id} are not canonical: an unknown kind or key, an empty note, "
            "other JSON than synthgym writes, or a report that is not the one that is named"
        )


def _check_vectors(item: Packed, manifest: Manifest) -> None:
    for kind, payload in item.notes.items():
        if not kind.startswith(VECTOR):
            continue
        if len(payload) != 2 * manifest.embedders.get(kind.removeprefix(VECTOR), 0):
            raise SnapshotError(f"{kind} of {item.entry.env_id} has another length")


def _is_named(report: bytes, spec: SynthEnvSpec) -> bool:
    """Whether a report is canonical, an object, and the one whose digest the environment names."""
    named = sha256_digest(report) == spec.report_digest
    return named and report[:1] == b"{" and is_canonical(report)


def _logical_problems(snapshot: Snapshot) -> Iterator[str]:
    place, promised = snapshot.path, snapshot.core.to_json()
    try:
        computed = computed_core(snapshot).to_json()
    except SnapshotError as error:
        yield f"{place}: {error}"
        return
    for key, value in promised.items():
        if computed[key] != value:
            yield f"{place}: {key} is {computed[key]!r}, the manifest promises {value!r}"
