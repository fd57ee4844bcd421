"""Where the files of one snapshot come from: a registry, a folder at a URL, or a packed file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.publishing.chain import (
    MAX_SIGNATURE_BYTES,
    manifest_path,
    manifest_signature_path,
    object_path,
)
from synthgym.publishing.references import ARCHIVE_SUFFIX
from synthgym.publishing.remotes import Remote, open_remote
from synthgym.publishing.staging import Staging
from synthgym.registry.files import open_files, read_file
from synthgym.registry.layout import MANIFEST, MAX_MANIFEST_BYTES, SIGNATURES, FileRef
from synthgym.spec import sha256_digest

MAX_ARCHIVE_BYTES: Final = 1 << 40
_CHUNK: Final = 1 << 20


class Source(Protocol):
    """The files of one snapshot, none of which is trusted."""

    @property
    def url(self) -> str:
        """Where they come from, for messages and for the lock."""
        ...

    def manifest(self) -> bytes:
        """The bytes of `manifest.json`."""
        ...

    def signatures(self, manifest: bytes) -> bytes:
        """The armoured signatures of the manifest, or nothing."""
        ...

    def stream(self, ref: FileRef) -> Iterator[bytes]:
        """The bytes of a file that the manifest names."""
        ...


class RegistrySource:
    """A snapshot in a registry: its files are there by content."""

    def __init__(self, remote: Remote, digest: str) -> None:
        self._remote = remote
        self._digest = digest
        self._manifest = manifest_path(digest)

    @property
    def url(self) -> str:
        """The registry."""
        return self._remote.url

    def manifest(self) -> bytes:
        """The bytes of `manifest.json`; `IntegrityError` when the registry has none of this snapshot."""
        try:
            return self._remote.read(self._manifest, MAX_MANIFEST_BYTES)
        except FileNotFoundError as error:
            raise IntegrityError(
                f"{self.url} names the snapshot in its index, but {self._manifest} is not there"
            ) from error

    def signatures(self, manifest: bytes) -> bytes:
        """The armoured signatures of the manifest, or nothing."""
        path = manifest_signature_path(self._digest, sha256_digest(manifest))
        return _optional(self._remote, path)

    def stream(self, ref: FileRef) -> Iterator[bytes]:
        """The bytes of a file that the manifest names."""
        return self._remote.stream(object_path(ref.sha256), ref.size)


class FolderSource:
    """A snapshot in a folder at a URL."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    @property
    def url(self) -> str:
        """The folder."""
        return self._remote.url

    def manifest(self) -> bytes:
        """The bytes of `manifest.json`; `SnapshotError` when there is none."""
        try:
            return self._remote.read(MANIFEST, MAX_MANIFEST_BYTES)
        except FileNotFoundError as error:
            raise SnapshotError(
                f"{self.url} is not a snapshot: it holds no {MANIFEST}. "
                f"If it is a registry, say which snapshot: {self.url}#name@version"
            ) from error

    def signatures(self, manifest: bytes) -> bytes:  # noqa: ARG002
        """The armoured signatures of the manifest, or nothing."""
        return _optional(self._remote, SIGNATURES)

    def stream(self, ref: FileRef) -> Iterator[bytes]:
        """The bytes of a file that the manifest names."""
        return self._remote.stream(ref.path, ref.size)


class ArchiveSource:
    """A packed snapshot: an .sgz file of this machine."""

    def __init__(self, path: Path, url: str = "") -> None:
        self._files = open_files(path)
        self._url = url or str(path)

    @property
    def url(self) -> str:
        """Where the file comes from."""
        return self._url

    def manifest(self) -> bytes:
        """The bytes of `manifest.json`; `IntegrityError` when there is none."""
        return read_file(self._files, MANIFEST, MAX_MANIFEST_BYTES)

    def signatures(self, manifest: bytes) -> bytes:  # noqa: ARG002
        """The armoured signatures of the manifest, or nothing."""
        if SIGNATURES not in self._files.paths():
            return b""
        return read_file(self._files, SIGNATURES, MAX_SIGNATURE_BYTES)

    def stream(self, ref: FileRef) -> Iterator[bytes]:
        """The bytes of a file that the manifest names."""
        with self._files.open(ref.path) as file:
            while chunk := file.read(_CHUNK):
                yield chunk


def source_at(url: str, staging: Path) -> Source:
    """The snapshot at a URL. A packed one is fetched into the folder `staging`, which is the caller's."""
    if not url.endswith(ARCHIVE_SUFFIX):
        return FolderSource(open_remote(url))
    folder, _, name = url.rpartition("/")
    remote = open_remote(folder)
    target = staging / (hashlib.sha256(url.encode()).hexdigest()[:16] + ARCHIVE_SUFFIX)
    try:
        with Staging(staging).new_file(remote.stream(name, MAX_ARCHIVE_BYTES)) as file:
            file.rename(target)
    except FileNotFoundError as error:
        raise SnapshotError(f"there is nothing at {url}") from error
    return ArchiveSource(target, url)


def _optional(remote: Remote, path: str) -> bytes:
    try:
        return remote.read(path, MAX_SIGNATURE_BYTES)
    except FileNotFoundError:
        return b""
