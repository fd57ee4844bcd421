"""Files in folders of strangers: found without following links, read without ever waiting."""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synthgym.contract import MAX_DIALECT_BYTES

ENDING: Final = ".py"
SKIPPED: Final = ("__init__.py", "__pycache__")
"""Names of packages and caches, which are no environments; names that begin with a dot are skipped too."""
MAX_DEPTH: Final = 64
"""Folders within folders."""
MAX_READ: Final = MAX_DIALECT_BYTES + 4
"""Bytes read of a file. When the last character is cut in two, what is whole is still one byte too many."""
NO_FILE: Final = "not a regular file"
LINK: Final = "a link, and links are not followed: copy what it stands for (cp -rL)"

_PROBLEMS: Final = {"file": "", "link": LINK, "other": NO_FILE}
"""Why something of that kind is left out."""

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe that a stranger put there must not wait for a writer.
FILE_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may be a source, or something that the walk leaves out."""

    parts: Parts
    """Its path below the root."""
    problem: str = ""
    """Why it is left out; empty for a file to read."""


def walk(root: Path) -> Iterator[Found]:
    """Every file below `root` that ends in `.py`, in the order of the names, folder by folder.

    Links are left out, and folders that cannot be opened; `root` itself may be a link.
    """
    waiting: list[Parts] = [()]
    while waiting:
        parts = waiting.pop()
        try:
            names = _listing(root, parts)
        except OSError as error:
            yield Found(parts, f"a folder that cannot be read: {error.strerror}")
            continue
        inner: list[Parts] = []
        for name, kind in names:
            path = (*parts, name)
            if kind == "folder" and len(path) <= MAX_DEPTH:
                inner.append(path)
            elif kind == "folder":
                yield Found(path, f"below more than {MAX_DEPTH} folders")
            else:
                yield Found(path, _PROBLEMS[kind])
        waiting += reversed(inner)


def read_text(root: Path, parts: Parts) -> str:
    """The text of a regular file below `root`, at most `MAX_READ` bytes of it. `OSError` when there is none.

    No link on the way is followed. Bytes that are not UTF-8 become surrogates, which validation refuses.
    """
    with _opened(root, parts, FILE_FLAGS | os.O_NOFOLLOW) as handle:
        return read_handle(handle)


def read_handle(handle: int) -> str:
    """The text of an open file; as in `read_text`."""
    check_regular(handle)
    data = b""
    while len(data) < MAX_READ and (piece := os.read(handle, MAX_READ - len(data))):
        data += piece
    return decoded(data)


def decoded(data: bytes) -> str:
    """The text of a file of which at most `MAX_READ` bytes were read, bytes that are not UTF-8 as surrogates."""
    decode = codecs.getincrementaldecoder("utf-8")("surrogateescape").decode
    return decode(data, final=len(data) < MAX_READ)


def check_regular(handle: int) -> None:
    """`OSError` unless `handle` is a regular file: a pipe or a device may never end."""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(0, NO_FILE)


def _listing(root: Path, parts: Parts) -> list[tuple[str, str]]:
    """(name, kind) of what matters in a folder, by name; kinds are `folder` and those of `_PROBLEMS`."""
    with _opened(root, parts, _FOLDER | os.O_NOFOLLOW) as folder, os.scandir(folder) as entries:
        found = [
            (entry.name, kind)
            for entry in entries
            if not entry.name.startswith(".") and entry.name not in SKIPPED
            if (kind := _kind(entry))
        ]
    return sorted(found)


def _kind(entry: os.DirEntry[str]) -> str:
    """What an entry is to the walk; nothing for what it passes over in silence."""
    if entry.is_symlink():
        return "link" if entry.name.endswith(ENDING) or _leads_to_folder(entry) else ""
    if entry.is_dir(follow_symlinks=False):
        return "folder"
    if not entry.name.endswith(ENDING):
        return ""
    return "file" if entry.is_file(follow_symlinks=False) else "other"


def _leads_to_folder(link: os.DirEntry[str]) -> bool:
    try:
        return link.is_dir()
    except OSError:  # a circle of links, or no permission
        return True


@contextmanager
def _opened(root: Path, parts: Parts, flags: int) -> Iterator[int]:
    """A descriptor of `parts` below `root`, opened folder by folder so that no link is followed."""
    handle = os.open(root, _FOLDER)
    try:
        for number, part in enumerate(parts, 1):
            last = number == len(parts)
            inner = os.open(part, flags if last else _FOLDER | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)
