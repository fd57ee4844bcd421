"""A snapshot as one file: a ZIP whose members are stored as they are, in a fixed order, with a fixed time.

The shards are compressed already, and a stored member can be read at any place. The same snapshot gives the
same bytes. `Snapshot.open` reads such a file where it is.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import IO, Final

from synthgym.atomic import new_file, new_folder
from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry.files import Files
from synthgym.registry.layout import MANIFEST, MAX_MANIFEST_BYTES, SIGNATURES, FileRef
from synthgym.registry.snapshot import Snapshot

SUFFIX: Final = ".sgz"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644 << 16
_BLOCK: Final = 1 << 20


def pack(snapshot: Snapshot, target: Path) -> Path:
    """Write the files of a snapshot, and its signatures, as one file.

    `IntegrityError` when a file is not that of the manifest, `SnapshotError` when the target is there already.
    """
    if target.exists() or target.is_symlink():
        raise SnapshotError(f"{target} exists already")
    files, promised = snapshot.files, _promised(snapshot)
    target.parent.mkdir(parents=True, exist_ok=True)
    with new_file(target) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(promised):
            info, ref = zipfile.ZipInfo(path, _EPOCH), promised[path]
            info.create_system, info.external_attr = 3, _MODE
            # Whether the member needs ZIP64 is decided by it.
            info.file_size = MAX_MANIFEST_BYTES if ref is None else ref.size
            with archive.open(info, "w") as member:
                _copy(files, path, ref, member)
    return target


def unpack(snapshot: Snapshot, target: Path) -> Snapshot:
    """Write the files of a snapshot into a new folder, in one step, and open it.

    Only what the manifest promises is written, under paths that were checked; `IntegrityError` when a file
    is not that of the manifest, `SnapshotError` when the target is there already.
    """
    if target.exists() or target.is_symlink():
        raise SnapshotError(f"{target} exists already")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with new_folder(target, replace=False) as folder:
            for path, ref in _promised(snapshot).items():
                inner = folder / path
                inner.parent.mkdir(parents=True, exist_ok=True)
                with inner.open("wb") as file:
                    _copy(snapshot.files, path, ref, file)
    except FileExistsError as error:  # somebody else was faster
        raise SnapshotError(f"{target} exists already") from error
    return Snapshot.open(target)


def _promised(snapshot: Snapshot) -> dict[str, FileRef | None]:
    """What is copied, by path: the manifest, signatures if there are any, and what the manifest says of the rest."""
    signed = SIGNATURES in set(snapshot.files.paths())
    beside = [MANIFEST, SIGNATURES] if signed else [MANIFEST]
    return {
        **dict.fromkeys(beside, None),
        **{ref.path: ref for ref in snapshot.manifest.files},
    }


def _copy(files: Files, path: str, ref: FileRef | None, target: IO[bytes]) -> None:
    cap = MAX_MANIFEST_BYTES if ref is None else ref.size
    copied, digest = 0, hashlib.sha256()
    with files.open(path) as source:
        while block := source.read(_BLOCK):
            copied += len(block)
            if copied > cap:
                raise IntegrityError(
                    f"{files.place}: {path} is larger than the {cap} bytes that were promised"
                )
            digest.update(block)
            target.write(block)
    if ref is not None and f"sha256:{digest.hexdigest()}" != ref.sha256:
        raise IntegrityError(
            f"{files.place}: {path} is not the file of the manifest: promised {ref.sha256}, "
            f"got sha256:{digest.hexdigest()}"
        )
