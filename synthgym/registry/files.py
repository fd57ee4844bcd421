"""The files of a snapshot, read without trust: from a folder or out of one ZIP file.

Links are not followed, nothing is read beyond its cap, and no path comes from the archive: the caller
asks for paths of a checked manifest.
"""

from __future__ import annotations

import io
import os
import stat
import struct
import weakref
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry.layout import MAX_FILES

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a pipe that a stranger put there must not wait for a writer.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_ZIP_HEADER: Final = struct.Struct("<4s2xHH16xHH")
"""Of a member: its magic, flags, method, and the lengths of its name and of what else comes before its bytes."""


class Files(Protocol):
    """Where the files of a snapshot are."""

    @property
    def place(self) -> Path:
        """The folder or the archive."""
        ...

    def open(self, path: str) -> IO[bytes]:
        """Open a regular file for reading at any place; `IntegrityError` when there is none."""
        ...

    def paths(self) -> Iterator[str]:
        """Iterate over everything that is there, empty folders included, sorted within a folder."""
        ...


def is_there(place: str) -> bool:
    """Whether a text names something on this machine; texts that can be no path name nothing."""
    try:
        return Path(place).exists()
    except (OSError, ValueError):
        return False


def open_files(place: Path) -> Files:
    """The files of a folder or of an archive; `SnapshotError` when it is neither."""
    return ZipFiles(place) if place.is_file() else FolderFiles(place)


def read_file(files: Files, path: str, cap: int) -> bytes:
    """Return the bytes of a file; `IntegrityError` when it is not there or larger than `cap`."""
    try:
        with files.open(path) as file:
            data = file.read(cap + 1)
    except OSError as error:
        raise IntegrityError(f"{files.place}: cannot read {path}: {error}") from error
    if len(data) > cap:
        raise IntegrityError(f"{files.place}: {path} is larger than the {cap} bytes it may have")
    return data


class FolderFiles:
    """Files of a folder. Only the folder itself may be reached through links."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def open(self, path: str) -> IO[bytes]:
        """Open a regular file, component by component, so that no link on the way is followed."""
        try:
            handle = self._open(path.split("/"))
        except OSError as error:
            raise IntegrityError(
                f"{self.place}: cannot read {path}: expected a regular file (no link), "
                f"{error.strerror}"
            ) from error
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise IntegrityError(f"{self.place}: {path} is not a regular file")
        return os.fdopen(handle, "rb")

    def paths(self) -> Iterator[str]:
        """Iterate over every path but folders that hold something; links as links."""
        for folder, names, files in os.walk(self.place, followlinks=False):
            names.sort()
            inner = Path(folder).relative_to(self.place)
            for name in sorted(files):
                yield (inner / name).as_posix()
            for name in names:
                path = Path(folder, name)
                if stat.S_ISLNK(path.lstat().st_mode) or not any(path.iterdir()):
                    yield (inner / name).as_posix()

    def _open(self, parts: list[str]) -> int:
        folder = os.open(self.place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _FOLDER_FLAGS, dir_fd=folder)
                os.close(folder)
                folder = inner
            return os.open(parts[-1], _FILE_FLAGS, dir_fd=folder)
        finally:
            os.close(folder)


class ZipFiles:
    """Files of one stored ZIP. Compressed, encrypted, linked, doubled or overlapping members are refused."""

    def __init__(self, place: Path) -> None:
        self.place = place
        try:
            self.file = place.open("rb")
            weakref.finalize(self, self.file.close)
            with zipfile.ZipFile(self.file) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, EOFError, OSError, ValueError, NotImplementedError) as error:
            raise SnapshotError(f"{place} is not a packed snapshot: {error}") from error
        self.size = os.fstat(self.file.fileno()).st_size
        self._members = self._checked(members)

    def open(self, path: str) -> IO[bytes]:
        """Open a member."""
        if path not in self._members:
            raise IntegrityError(f"{self.place}: cannot read {path}: it is not in the archive")
        return io.BufferedReader(_Member(self, self._members[path]))

    def paths(self) -> Iterator[str]:
        """Iterate over the members."""
        return iter(sorted(self._members))

    def _checked(self, members: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
        if len(members) > MAX_FILES + 16:
            raise SnapshotError(f"{self.place} holds more than {MAX_FILES} files")
        found: dict[str, zipfile.ZipInfo] = {}
        folded: set[str] = set()
        end = 0
        for member in sorted(members, key=lambda member: member.header_offset):
            kind = stat.S_IFMT(member.external_attr >> 16)
            stored = member.compress_type == zipfile.ZIP_STORED and not member.flag_bits & 1
            stored = stored and member.file_size == member.compress_size <= self.size
            if not stored or kind not in (0, stat.S_IFREG):
                raise SnapshotError(
                    f"{self.place}: {member.filename!r} must be a stored file, uncompressed, "
                    "not encrypted and no link"
                )
            if member.filename.casefold() in folded:
                raise SnapshotError(f"{self.place}: {member.filename!r} is there twice")
            folded.add(member.filename.casefold())
            if member.header_offset < end:
                raise SnapshotError(f"{self.place}: {member.filename!r} lies over another file")
            end = member.header_offset + _ZIP_HEADER.size + member.file_size
            found[member.filename] = member
        return found


class _Member(io.RawIOBase):
    """A stored member: a range of the archive, read at any place.

    `zipfile` would read all that comes before it (Python 3.11). Its checksum is not needed: SHA-256 is compared.
    """

    def __init__(self, archive: ZipFiles, member: zipfile.ZipInfo) -> None:
        super().__init__()
        self._archive = archive  # which closes its file when nothing needs it any more
        self._size, self._at = member.file_size, 0
        header, offset = b"", member.header_offset
        if 0 <= offset < archive.size:
            header = os.pread(archive.file.fileno(), _ZIP_HEADER.size, offset)
        if len(header) == _ZIP_HEADER.size:
            magic, flags, method, name, extra = _ZIP_HEADER.unpack(header)
            self._start = offset + _ZIP_HEADER.size + name + extra
            plain = magic == b"PK\3\4" and not flags & 1 and method == zipfile.ZIP_STORED
            if plain and self._start + self._size <= archive.size:
                return
        raise IntegrityError(
            f"{archive.place}: cannot read {member.filename}: it is not where the archive says"
        )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._size - self._at))
        data = os.pread(self._archive.file.fileno(), count, self._start + self._at)
        view[: len(data)] = data
        self._at += len(data)
        return len(data)
