"""Files under way: written and flushed in a folder of their own, before they are put in their place."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from synthgym.atomic import sync_folder
from synthgym.errors import IntegrityError, SnapshotError

STALE_SECONDS: Final = 3600.0
"""Age at which a file under way belongs to a process that is gone."""


class Staging:
    """A folder on the file system of the places that its files go to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def new_file(self, chunks: Iterable[bytes] = (), *, mode: int = 0o644) -> Iterator[Path]:
        """Yield a flushed file of these bytes; it is gone after the block unless it was renamed.

        `SnapshotError` when nothing can be written there.
        """
        try:
            make_folder(self.folder)
            handle, name = tempfile.mkstemp(prefix="new-", dir=self.folder)
        except OSError as error:
            raise SnapshotError(f"cannot write to {self.folder}: {error.strerror}") from error
        path = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                for chunk in chunks:
                    file.write(chunk)
                file.flush()
                os.fsync(file.fileno())
            path.chmod(mode)
            yield path
        finally:
            path.unlink(missing_ok=True)

    def collect_garbage(self, older_than: float = STALE_SECONDS) -> int:
        """Remove what processes that are gone have left; how many files there were."""
        oldest = time.time() - older_than
        removed = 0
        with suppress(FileNotFoundError):
            for entry in os.scandir(self.folder):
                with suppress(FileNotFoundError):
                    if _last_change(entry) >= oldest:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        shutil.rmtree(entry.path, ignore_errors=True)
                    else:
                        Path(entry.path).unlink()
                    removed += 1
        return removed


def _last_change(entry: os.DirEntry[str]) -> float:
    """When a file was written to, or the newest of a folder: a download in it may take for hours."""
    found = entry.stat(follow_symlinks=False).st_mtime
    if entry.is_dir(follow_symlinks=False):
        for inner in os.scandir(entry.path):
            found = max(found, inner.stat(follow_symlinks=False).st_mtime)
    return found


def checked(chunks: Iterable[bytes], size: int, digest: str, origin: str) -> Iterator[bytes]:
    """Pass bytes on; `IntegrityError`, at the end at the latest, unless they are what was promised.

    Never more than `size` bytes are passed on. Nothing may be made of them before the end.
    """
    found = hashlib.sha256()
    count = 0
    for chunk in chunks:
        count += len(chunk)
        if count > size:
            raise IntegrityError(f"{origin}: promised {size} bytes, more came")
        found.update(chunk)
        yield chunk
    if count != size:
        raise IntegrityError(f"{origin}: promised {size} bytes, {count} came")
    if found.hexdigest() != digest.removeprefix("sha256:"):
        raise IntegrityError(f"{origin}: promised {digest}, got sha256:{found.hexdigest()}")


def open_regular(path: Path) -> IO[bytes]:
    """Open a file for reading; `IntegrityError` for a pipe, which would be waited for, or a folder."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise IntegrityError(f"{path} is not a regular file")


def make_folder(path: Path) -> None:
    """Make a folder and those above it, each flushed into the one that holds it."""
    if path.is_dir():
        return
    missing = [path]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)
