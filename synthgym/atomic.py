"""Writing files and folders so that a reader, or a crash, never sees half of one.

Everything is written beside its place on the same file system, flushed to the disk, and then
renamed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

_AT_FDCWD: Final = -100
_RENAME_EXCHANGE: Final = 2
_NO_EXCHANGE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM})
"""What the kernel or the file system answers when it cannot swap two names in one step."""


def write_file(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step; on any failure the old file is still there."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.tmp-", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; leaving the block without an error puts it at `path`.

    A folder that is already at `path` is replaced in one step where the file system can swap two
    names, and by two renames elsewhere (the old one comes back when the second fails). After an
    error nothing has changed.
    """
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.tmp-", dir=path.parent))
    try:
        temporary.chmod(0o755)
        yield temporary
        sync_tree(temporary)
        if path.exists():
            _replace_folder(temporary, path)
        else:
            temporary.rename(path)
        sync_folder(path.parent)
    finally:
        shutil.rmtree(
            temporary, ignore_errors=True
        )  # nothing, the unfinished folder, or the old one


def sync_tree(root: Path) -> None:
    """Flush every file and folder under `root` to the disk, children first."""
    for folder, _, files in os.walk(root, topdown=False):
        for name in files:
            _sync(Path(folder, name), os.O_RDONLY)
        sync_folder(Path(folder))


def sync_folder(path: Path) -> None:
    """Flush the names in a folder to the disk, so that a rename survives a power cut."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _replace_folder(new: Path, old: Path) -> None:
    """Put `new` where `old` is; the old content ends up under the name of `new`."""
    if _exchange(new, old):
        return
    aside = new.with_name(new.name + "-old")
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise
    aside.rename(new)


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
