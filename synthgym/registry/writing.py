"""Writing snapshots: into a folder beside the target, flushed, and then put in its place in one step."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from synthgym.atomic import FolderChangedError, new_folder
from synthgym.errors import SnapshotError
from synthgym.registry.core import Core, Parent
from synthgym.registry.files import FolderFiles
from synthgym.registry.folder_layout import write_folder
from synthgym.registry.layout import (
    ATTRIBUTES,
    CROISSANT,
    ENVS,
    FOLDER,
    LAYOUTS,
    MANIFEST,
    MAX_ENTRIES,
    MAX_MANIFEST_BYTES,
    README,
    SHARDS,
    FileRef,
    shard_count,
    shard_of,
)
from synthgym.registry.manifest import Entry, Manifest, check_unique
from synthgym.registry.notes import VECTOR
from synthgym.registry.packed import Packed, Roots, Vectors, pack_env
from synthgym.registry.snapshot import Snapshot, read_manifest
from synthgym.spec import JsonObject, SynthEnvSpec

READABLE: Final = 256
"""More environments than this go into shards, unless a layout is given."""

Buckets = Callable[[int, int], Iterable[Packed]]
"""The environments of shard i of n, by digest."""


def write_snapshot(  # noqa: PLR0913 -- what a snapshot is made of, all by name
    path: str | Path,
    specs: Iterable[SynthEnvSpec],
    *,
    name: str,
    version: str,
    reports: Mapping[str, JsonObject] | None = None,
    vectors: Mapping[str, Vectors] | None = None,
    layout: str | None = None,
    parents: Iterable[Parent] = (),
    replace: bool = False,
) -> Snapshot:
    """Write a snapshot in one step and open it. The same content gives the same digest in any order.

    `reports` holds validation reports and `vectors` vectors by embedder, both by environment digest; the
    spec that is written names the digest of its report. `layout` is "folder" or "shards"; without one,
    more than 256 environments go into shards. With `replace` a snapshot that is there is replaced; after
    a failure or a crash the old one is there unchanged. `SnapshotError` when something is there already
    (without `replace`), when an id or a digest comes twice, or when the name and version, or an id, of
    the replaced snapshot would stand for another content.
    """
    packed = [pack_env(spec, reports, vectors) for spec in specs]
    items = sorted(packed, key=lambda item: item.entry.digest)
    count = shard_count(len(items))
    buckets: list[list[Packed]] = [[] for _ in range(count)]
    for item in items:
        buckets[shard_of(item.entry.digest, count)].append(item)

    def bucket(number: int, of: int) -> Iterable[Packed]:
        return items if of == 1 else buckets[number]

    with told(path):
        return write_packed(
            path,
            bucket,
            len(items),
            name=name,
            version=version,
            layout=layout,
            parents=parents,
            replace=replace,
        )


@contextmanager
def told(path: str | Path) -> Iterator[None]:
    """Raise `SnapshotError` when somebody else wrote at `path` while we did."""
    try:
        yield
    except (FolderChangedError, FileExistsError) as error:
        raise SnapshotError(
            f"{path} was written by somebody else in the meantime, and is left as it is: {error}"
        ) from error


def write_packed(  # noqa: PLR0913 -- see `write_snapshot`
    path: str | Path,
    buckets: Buckets,
    size: int,
    *,
    name: str,
    version: str,
    layout: str | None = None,
    parents: Iterable[Parent] = (),
    replace: bool = False,
    keep_beside: bool = False,
) -> Snapshot:
    """Write a snapshot of about `size` environments that come shard by shard; see `write_snapshot`.

    What is in memory at once is one shard, and the entries. With `keep_beside` the files that lie beside
    a snapshot that is replaced stay, but for signatures, which were of the old manifest. `FolderChangedError`
    or `FileExistsError` when somebody else wrote there in the meantime.
    """
    target = Path(path)
    layout = layout or (FOLDER if size <= READABLE else SHARDS)
    if layout not in LAYOUTS:
        raise SnapshotError(f"layout must be one of {', '.join(LAYOUTS)}, got {layout!r}")
    if layout == FOLDER and size > MAX_ENTRIES:
        raise SnapshotError(
            f"the folder layout holds at most {MAX_ENTRIES} environments: use shards"
        )
    there = target.exists() or target.is_symlink()
    if there and not replace:
        raise SnapshotError(
            f"{target} exists already: choose another place (or replace=True in Python)"
        )
    old = _replaceable(target) if there else None
    expected = {} if old is None else {MANIFEST: old.manifest.to_bytes()}
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_folder(target, replace=replace, expected=expected) as folder:
        manifest, entries = _fill(folder, buckets, size, layout, name, version, tuple(parents))
        if old is not None:
            check_succession(old, manifest, entries)
        (folder / MANIFEST).write_bytes(manifest_bytes(manifest))
        for name in (README, CROISSANT, ATTRIBUTES) if keep_beside else ():
            if (target / name).is_file():
                shutil.copy2(target / name, folder / name, follow_symlinks=False)
    return Snapshot.open(target)


def make_manifest(
    core: Core,
    layout: str,
    files: Iterable[FileRef],
    entries: Iterable[Entry],
    embedders: Mapping[str, int],
) -> Manifest:
    """Return the manifest of files that were written."""
    return Manifest(
        core=core,
        layout=layout,
        files=tuple(sorted(files, key=lambda ref: ref.path)),
        entries=tuple(entries) if layout == FOLDER else (),
        embedders=embedders,
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    """Return the bytes of a manifest; `SnapshotError` when it could not be read again."""
    data = manifest.to_bytes()
    if len(data) > MAX_MANIFEST_BYTES:
        raise SnapshotError(
            f"{MANIFEST} may have {MAX_MANIFEST_BYTES} bytes, got {len(data)}: use shards"
        )
    return data


def check_succession(old: Snapshot, new: Manifest, entries: Iterable[Entry]) -> None:
    """Raise `SnapshotError` when an id, of a snapshot or an environment, changes its content."""
    if (old.name, old.version) == (new.name, new.version) and old.digest != new.digest:
        raise SnapshotError(
            f"{old.name} {old.version} stands for {old.digest}, the new content comes to "
            f"{new.digest}: give the snapshot the next version"
        )
    if old.core.alias_root == new.core.alias_root:
        return
    known = {entry.env_id: entry.digest for entry in old}
    for entry in entries:
        if known.get(entry.env_id, entry.digest) != entry.digest:
            raise SnapshotError(
                f"{entry.env_id} stands for {known[entry.env_id]}, the new content comes to "
                f"{entry.digest}: an id stands for one content for ever, so give the environment "
                "the next version"
            )


def embedder_sizes(items: Iterable[Packed]) -> dict[str, int]:
    """Length of the vectors by embedder; `SnapshotError` when they differ."""
    found: dict[str, int] = {}
    for item in items:
        for kind, payload in item.notes.items():
            if kind.startswith(VECTOR):
                embedder, dim = kind.removeprefix(VECTOR), len(payload) // 2
                if found.setdefault(embedder, dim) != dim:
                    raise SnapshotError(
                        f"vectors of {embedder} have lengths {found[embedder]} and {dim}"
                    )
    return found


def _fill(  # noqa: PLR0913
    folder: Path,
    buckets: Buckets,
    size: int,
    layout: str,
    name: str,
    version: str,
    parents: tuple[Parent, ...],
) -> tuple[Manifest, list[Entry]]:
    roots = Roots()
    embedders: dict[str, int] = {}
    if layout == FOLDER:
        items = list(buckets(0, 1))
        embedders = embedder_sizes(items)
        for item in items:
            roots.add(item.entry, item.notes)
        check_unique(roots.entries)
        (folder / ENVS).mkdir()
        files = write_folder(folder, items)
    else:
        from synthgym.registry.shard_layout import write_shards

        count = shard_count(size)

        def checked() -> Iterator[list[Packed]]:
            for number in range(count):
                bucket = list(buckets(number, count))
                for embedder, dim in embedder_sizes(bucket).items():
                    if embedders.setdefault(embedder, dim) != dim:
                        raise SnapshotError(f"vectors of {embedder} have different lengths")
                yield bucket

        files = write_shards(folder, count, checked(), roots)
        check_unique(roots.entries)
    core = roots.core(name, version, parents)
    return make_manifest(core, layout, files, roots.entries, embedders), roots.entries


def _replaceable(target: Path) -> Snapshot | None:
    if target.is_symlink() or not target.is_dir():
        raise SnapshotError(f"{target} is not a folder, so it is not replaced by a snapshot")
    if not any(target.iterdir()):
        return None
    files = FolderFiles(target)
    return Snapshot(files, read_manifest(files))  # and nothing but a snapshot is replaced
