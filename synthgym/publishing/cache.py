"""Files of snapshots on this machine, by content; shared by any number of processes without a lock.

    objects/<aa>/<hex>           a file by its SHA-256, read-only
    snapshots/<digest hex>/<manifest hex>/
                                 a view: a snapshot's files under their names, hard links to objects
    refs/<remote>/               what was last seen of each remote
    verified/<manifest hex>      the roots of that snapshot were computed from its files, and are right
    tmp/                         files under way

Every file is written to tmp/, flushed, compared with its digest, and then renamed. A view's manifest
comes last, so a view without one does not exist.
"""

from __future__ import annotations

import filecmp
import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from synthgym.atomic import sync_folder, write_file
from synthgym.errors import SnapshotError
from synthgym.ids import check_digest
from synthgym.publishing.staging import STALE_SECONDS, Staging, checked, make_folder
from synthgym.registry.layout import MANIFEST, SIGNATURES

_READ_ONLY: Final = 0o444


def cache_root(environment: Mapping[str, str] | None = None) -> Path:
    """`$SYNTHGYM_CACHE`, else `$XDG_CACHE_HOME/synthgym`, else `~/.cache/synthgym`."""
    environment = os.environ if environment is None else environment
    own = environment.get("SYNTHGYM_CACHE")
    if own:
        return Path(own).expanduser()
    return Path(environment.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "synthgym"


def check_own(place: Path) -> None:
    """Raise `SnapshotError` for a snapshot of the cache: its folder stands for one content for ever."""
    if place.resolve().is_relative_to(cache_root().resolve()):
        raise SnapshotError(
            f"{place} is in the cache, which is not written to: write a copy of your own, for example by "
            "`synthgym snapshot filter`, and name that"
        )


class Cache:
    """The cache in a folder, which is made when something is first put there."""

    def __init__(self, root: str | Path | None = None) -> None:
        self.root = (cache_root() if root is None else Path(root)).absolute()
        self._staging = Staging(self.root / "tmp")

    def __repr__(self) -> str:
        return f"<Cache at {self.root}>"

    def object_path(self, digest: str) -> Path:
        """Where the file of a digest is, or will be."""
        name = _hex(digest)
        return self.root / "objects" / name[:2] / name

    def holds(self, digest: str, size: int, *, recheck: bool = False) -> bool:
        """Whether the file is there with that size; with `recheck` its bytes are read as well."""
        path = self.object_path(digest)
        try:
            if path.stat().st_size != size:
                return False
        except FileNotFoundError:
            return False
        return not recheck or file_digest(path) == digest

    def install(self, digest: str, size: int, chunks: Iterable[bytes], origin: str) -> Path:
        """Write a file and put it at its place once its size and digest are as promised.

        `IntegrityError` names `origin` when they are not; then nothing was put anywhere. No more than
        `size` bytes are taken from `chunks`.
        """
        target = self.object_path(digest)
        with self._staging.new_file(checked(chunks, size, digest, origin), mode=_READ_ONLY) as file:
            make_folder(target.parent)
            file.replace(target)
        sync_folder(target.parent)
        return target

    def read(self, digest: str, cap: int) -> bytes | None:
        """The bytes of a file that is there, checked; None when it is not, or is damaged."""
        try:
            with self.object_path(digest).open("rb") as file:
                data = file.read(cap + 1)
        except FileNotFoundError:
            return None
        return data if hashlib.sha256(data).hexdigest() == _hex(digest) else None

    def view(self, digest: str, manifest_sha256: str) -> Path:
        """Folder of the view of a snapshot, by what it holds and by the files that hold it.

        The same content can have been written as other files, by another release of pyarrow.
        """
        return self.root / "snapshots" / _hex(digest) / _hex(manifest_sha256)

    def views(self, digest: str) -> list[Path]:
        """The finished views of a snapshot, wherever they came from, the newest first."""
        found = []
        for manifest in (self.root / "snapshots" / _hex(digest)).glob(f"*/{MANIFEST}"):
            with suppress(FileNotFoundError):
                found.append((manifest.stat().st_mtime_ns, manifest.parent))
        return [view for _, view in sorted(found, reverse=True)]

    def link_file(self, view: Path, path: str, digest: str) -> None:
        """Give a file of the view its name. `path` is one that a checked manifest names."""
        target = view.joinpath(*path.split("/"))
        make_folder(target.parent)
        self._link(self.object_path(digest), target)

    def finish_view(self, view: Path, manifest_sha256: str, signatures: bytes) -> None:
        """Put the signatures, and then the manifest, into the view: from now on it exists."""
        make_folder(view)
        if signatures and _read_or_none(view / SIGNATURES) != signatures:
            write_file(view / SIGNATURES, signatures)
        for folder, _, _ in os.walk(view):
            sync_folder(Path(folder))
        self._link(self.object_path(manifest_sha256), view / MANIFEST)
        sync_folder(view)

    def is_verified(self, manifest_sha256: str) -> bool:
        """Whether `mark_verified` was called for this manifest."""
        return (self.root / "verified" / _hex(manifest_sha256)).is_file()

    def mark_verified(self, manifest_sha256: str) -> None:
        """Remember that the snapshot of this manifest is what its digest says, all files included."""
        path = self.root / "verified" / _hex(manifest_sha256)
        make_folder(path.parent)
        write_file(path, b"")

    def remote_folder(self, url: str) -> Path:
        """Folder for what is remembered of a remote. Its name is a hash of the URL."""
        name = hashlib.sha256(url.rstrip("/").encode()).hexdigest()
        return self.root / "refs" / name

    def remember(self, url: str, name: str, data: bytes) -> None:
        """Keep a small file of what was seen of a remote."""
        folder = self.remote_folder(url)
        make_folder(folder)
        write_file(folder / name, data)

    def collect_garbage(self, older_than: float = STALE_SECONDS) -> int:
        """Remove files that were under way in processes that are gone; how many there were."""
        return self._staging.collect_garbage(older_than)

    def _link(self, source: Path, target: Path) -> None:
        """Another name for an object, or a copy where the file system has no such thing."""
        if _equal(source, target):
            return
        with self._staging.new_file(mode=_READ_ONLY) as file:
            file.unlink()
            try:
                os.link(source, file)
            except OSError:
                shutil.copyfile(source, file)
                file.chmod(_READ_ONLY)
            # Renaming a file onto another name of itself does nothing and leaves both.
            file.replace(target)


def file_digest(path: Path) -> str:
    """`sha256:<hex>` of a file's bytes."""
    with path.open("rb") as file:
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def _equal(first: Path, second: Path) -> bool:
    """Whether both names stand for one file, or for files of the same bytes."""
    try:
        if first.samefile(second):
            return True
        same_size = first.stat().st_size == second.stat().st_size
        return same_size and filecmp.cmp(first, second, shallow=False)
    except FileNotFoundError:
        return False


def _hex(digest: str) -> str:
    return check_digest(digest).removeprefix("sha256:")


def _read_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
