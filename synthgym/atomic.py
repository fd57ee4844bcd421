"""Writing files and folders so that a reader, or a crash, never sees half of one.

Everything is written beside its place on the same file system, flushed to the disk, and then
renamed.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_STALE_SECONDS: Final = 3600
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})
"""What the kernel or the file system answers when it cannot swap two names in one step."""


class FolderChangedError(Exception):
    """Somebody else replaced the folder while it was made anew."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was changed by somebody else in the meantime")


def write_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step; on any failure the old file is still there."""
    with new_file(path) as file:
        file.write(data)


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file to fill; leaving the block without an error puts it at `path`, in one step."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.tmp-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def new_folder(
    path: Path, *, replace: bool = True, expected: Mapping[str, bytes] | None = None
) -> Iterator[Path]:
    """Yield an empty folder to fill; leaving the block without an error puts it at `path`.

    A folder that is already at `path` is replaced in one step where the file system can swap two
    names, and by two renames elsewhere (the old one comes back when the second fails). `expected` holds
    bytes of files of the old folder: when it holds others by now, somebody else has replaced it, the
    old one comes back, and `FolderChangedError` is raised. Writers on one machine wait for each other.
    Without `replace`, something that is there is a `FileExistsError`. After an error nothing has
    changed; what a killed process left beside `path` is removed an hour later.
    """
    _sweep(path)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.tmp-", dir=path.parent))
    try:
        temporary.chmod(0o755)
        yield temporary
        sync_tree(temporary)
        with _alone(path.parent):
            if replace and path.exists():
                _replace_folder(temporary, path, expected or {})
            else:
                _place_folder(temporary, path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(
            temporary, ignore_errors=True
        )  # nothing, the unfinished folder, or the old one


def change_folder(
    root: Path, changes: Mapping[str, bytes | None], expected: Mapping[str, bytes] | None = None
) -> None:
    """Replace or add files of a folder, all of them in one step: a copy of hard links takes its place.

    `changes` and `expected` hold bytes by path below `root`; None takes a file away, and `new_folder` says
    what `expected` does. After an error, or a crash, nothing has changed.
    """
    with new_folder(root, expected=expected) as folder:
        shutil.copytree(root, folder, symlinks=True, copy_function=_link, dirs_exist_ok=True)
        for path, data in changes.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            # The linked file is the old one as well: another file takes its place.
            target.unlink(missing_ok=True)
            if data is not None:
                target.write_bytes(data)


def sync_tree(root: Path) -> None:
    """Flush every file and folder under `root` to the disk, children first."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            _sync(Path(folder, name), os.O_RDONLY)
        sync_folder(Path(folder))


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to the disk, so that a rename survives a power cut."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _link(source: str, target: str) -> None:
    """A second name of a file that does not change, or a copy where the file system has no such thing."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for the other writers of this machine. Some network file systems ignore it: see `expected`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _sweep(path: Path) -> None:
    """Remove what writers of `path` left behind when they were killed."""
    for old in path.parent.glob(f".{glob.escape(path.name)}.tmp-*"):
        with suppress(OSError):
            if old.stat().st_mtime < time.time() - _STALE_SECONDS:
                shutil.rmtree(old, ignore_errors=True)


def _place_folder(new: Path, path: Path) -> None:
    try:
        new.rename(path)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, "something is there already", str(path)) from error
        raise


def _replace_folder(new: Path, old: Path, expected: Mapping[str, bytes]) -> None:
    """Put `new` where `old` is; the old content ends up under the name of `new`."""
    if _exchange(new, old):
        if not _holds(new, expected):
            _exchange(new, old)
            raise FolderChangedError(old)
        return
    aside = new.with_name(new.name + "-old")
    old.rename(aside)
    if not _holds(aside, expected):
        aside.rename(old)
        raise FolderChangedError(old)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise
    aside.rename(new)


def _holds(folder: Path, expected: Mapping[str, bytes]) -> bool:
    try:
        return all((folder / path).read_bytes() == data for path, data in expected.items())
    except OSError:
        return False


def _exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step; False when this system cannot."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    names = (os.fsencode(first), os.fsencode(second))
    if renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(first), None, str(second))
