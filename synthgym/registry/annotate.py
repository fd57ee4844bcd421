"""Noting figures in a snapshot that is there.

Figures are annotations: the digests of environments stay, and the snapshot gets the next patch version.
Everything that changes does so in one step: a reader, or a crash, sees the old figures or the new ones.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from synthgym.atomic import FolderChangedError, change_folder
from synthgym.errors import EnvNotFoundError, SnapshotError
from synthgym.registry.core import next_patch
from synthgym.registry.folder_layout import file_refs, folder_files, vector_files
from synthgym.registry.layout import FOLDER, MANIFEST, SIGNATURES, env_file
from synthgym.registry.notes import VECTOR
from synthgym.registry.packed import Packed, Roots, Vectors, pack_env, vector_bytes
from synthgym.registry.snapshot import Snapshot
from synthgym.registry.writing import embedder_sizes, make_manifest, manifest_bytes, write_packed
from synthgym.spec import JsonObject, canonical_json

_ATTEMPTS: Final = 50
Change = Callable[[Packed], Packed]
"""What becomes of an environment; itself when nothing does."""


def check_writable(root: Path, package: Path | None = None) -> None:
    """Raise `SnapshotError` when figures cannot be noted in the snapshot at `root`, and say why.

    The environments of an installed wheel belong to the package. `package` is its folder, synthgym's
    own unless given (for tests).
    """
    package = Path(__file__).resolve().parents[1] if package is None else package
    place = root.resolve()
    if place == package.resolve() / "bundled":
        raise SnapshotError(
            f"{place} belongs to the installed package and is not written to: "
            "copy the folder and name the copy with --snapshot"
        )
    if not os.access(place, os.W_OK) or not os.access(place.parent, os.W_OK):
        raise SnapshotError(
            f"{place} is read-only: the folder and the one that holds it must be writable; "
            "copy it and name the copy with --snapshot"
        )
    if Path.cwd().is_relative_to(place):
        raise SnapshotError(
            f"{place} is swapped as a whole, and this process stands in it: run from another folder"
        )


def write_metrics(root: Path, metrics: Mapping[str, JsonObject]) -> Snapshot:
    """Note figures of environments, by their digest, and open the snapshot. One step for all of them.

    Of the metrics that an environment has, those of other names stay. Other files of the folder stay
    as they are. When nothing is new, nothing is written; otherwise the version becomes the next patch.
    `EnvNotFoundError` for a digest that is not there; `IntegrityError` when something in the snapshot is
    not as promised; `SnapshotError` when it cannot be written.
    """

    def noted(item: Packed) -> Packed:
        figures = metrics.get(item.entry.digest)
        if figures is None:
            return item
        spec = item.spec()
        merged = {**spec.metrics, **figures}
        if canonical_json(merged) == canonical_json(spec.metrics):
            return item
        return _with(item, pack_env(dataclasses.replace(spec, metrics=merged)).notes)

    return _annotate(root, metrics, noted)


def write_vectors(root: Path, vectors: Mapping[str, Vectors]) -> Snapshot:
    """Note the rules texts of environments as vectors, by digest and embedder; see `write_metrics`.

    Stored as float16; those of other environments and embedders stay.
    """

    def noted(item: Packed) -> Packed:
        found = vectors.get(item.entry.digest, {})
        notes = {
            VECTOR + embedder: vector_bytes(item.entry.env_id, embedder, vector)
            for embedder, vector in found.items()
        }
        return item if notes.items() <= item.notes.items() else _with(item, notes)

    return _annotate(root, vectors, noted)


def _annotate(root: Path, digests: Iterable[str], noted: Change) -> Snapshot:
    """Change the notes of environments, again on top of what others wrote in the meantime."""
    check_writable(root)
    place = root.resolve()
    if not place.is_dir():
        raise SnapshotError(f"{place} is packed: unpack it, and note figures in the folder")
    for _ in range(_ATTEMPTS):
        snapshot = Snapshot.open(place)
        for digest in digests:
            if digest not in snapshot:
                raise EnvNotFoundError(f"no environment {digest!r} in {place}")
        try:
            if snapshot.manifest.layout == FOLDER:
                _note_in_folder(snapshot, noted)
            else:
                _note_in_shards(snapshot, noted)
        except (FolderChangedError, SnapshotError, OSError, shutil.Error) as error:
            if _is_current(snapshot):
                if isinstance(error, SnapshotError):
                    raise
                raise SnapshotError(f"{place} was left as it is: {error}") from error
            continue  # somebody else noted something: once more, on top of it
        return Snapshot.open(place)
    raise SnapshotError(f"{place} was left as it is: others keep writing to it")


def _is_current(snapshot: Snapshot) -> bool:
    try:
        return Snapshot.open(snapshot.path).manifest == snapshot.manifest
    except SnapshotError:
        return False


def _note_in_folder(snapshot: Snapshot, noted: Change) -> None:
    roots, changes, items = Roots(), dict[str, bytes | None](), list[Packed]()
    refs = {ref.path: ref for ref in snapshot.manifest.files}
    for old in snapshot.packed():
        item = noted(old)
        roots.add(item.entry, item.notes)
        items.append(item)
        if item is old:
            continue
        entry, files = item.entry, folder_files(item)
        for ref in file_refs(entry, files):
            refs[ref.path] = ref
        changes |= {env_file(entry.name, entry.version, name): files[name] for name in files}
    core = roots.core(snapshot.name, snapshot.version, snapshot.core.parents)
    if core == snapshot.core:
        return
    for ref, data in vector_files(items):
        refs[ref.path] = ref
        changes[ref.path] = data
    _check_no_links(snapshot.path, changes)
    core = dataclasses.replace(core, version=next_patch(snapshot.version))
    manifest = make_manifest(core, FOLDER, refs.values(), roots.entries, embedder_sizes(items))
    change_folder(
        snapshot.path,
        changes | {MANIFEST: manifest_bytes(manifest), SIGNATURES: None},
        expected={MANIFEST: snapshot.manifest.to_bytes()},
    )


def _check_no_links(root: Path, paths: Iterable[str]) -> None:
    """Raise `SnapshotError` when a folder of these files is a link: a stranger's leads anywhere."""
    for path in paths:
        for folder in (root / path).parents:
            if folder == root:
                break
            if folder.is_symlink():
                raise SnapshotError(f"{folder} is a link, and nothing is written through it")


def _note_in_shards(snapshot: Snapshot, noted: Change) -> None:
    def changed(shard: int, count: int) -> Iterator[Packed]:
        return map(noted, snapshot.packed(shard, count))

    if all(item is noted(item) for item in snapshot.packed()):
        return
    write_packed(
        snapshot.path,
        changed,
        len(snapshot),
        name=snapshot.name,
        version=next_patch(snapshot.version),
        layout=snapshot.manifest.layout,
        parents=snapshot.core.parents,
        replace=True,
        keep_beside=True,
    )


def _with(item: Packed, notes: Mapping[str, bytes]) -> Packed:
    """The environment with these notes in place of its own of the same kinds."""
    return dataclasses.replace(item, notes=dict(sorted({**item.notes, **notes}.items())))
