"""Where snapshots are published: files under a URL, in a folder or in anything that fsspec reaches.

    objects/<aa>/<hex>               a file by its SHA-256
    manifests/<digest hex>.json      the manifest of a snapshot
    manifests/<digest hex>.<hex>.sig the signatures of the manifest with that SHA-256
    index/<serial>.json              a link of the chain of indexes, eight digits
    index/<serial>.<hex>.sig         the signatures of the link with that SHA-256
    index/latest.json                {"serial": n}, where to begin looking; nothing relies on it

No file but `latest.json` and signatures changes once it is there, so whatever a reader has read stays right.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, Protocol, TypeVar
from urllib.parse import unquote

import fsspec

from synthgym.atomic import sync_folder
from synthgym.errors import IntegrityError, MissingExtraError, SnapshotError, SynthGymError
from synthgym.publishing.references import check_url
from synthgym.publishing.staging import Staging, checked, make_folder, open_regular

ATTEMPTS: Final = 4
FIRST_WAIT_SECONDS: Final = 0.5
"""Pause after the first failed attempt; it doubles."""
CONNECT_SECONDS: Final = 20.0
READ_SECONDS: Final = 60.0
"""Longest silence of an HTTP server."""
_MAX_IN_MEMORY: Final = 64 << 20
_CHUNK: Final = 8 << 20
_READ_ONLY: Final = ("http", "https")
_FINAL_ERRORS: Final = (
    *(FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError),
    *(ImportError, ValueError, TypeError, NotImplementedError, SynthGymError),
)
"""What a second attempt would only meet again."""
_ABSENT: Final = {"http": (403, 404, 410), "https": (403, 404, 410)}
"""HTTP answers for a file that is not there. Stores that may not be listed say 403."""

T = TypeVar("T")


class Remote(Protocol):
    """Files under a URL. `path` is relative, with '/' between its parts.

    What is not there is FileNotFoundError; anything else that goes wrong is `SnapshotError`.
    """

    @property
    def url(self) -> str:
        """The root, as the user may write it."""
        ...

    def size(self, path: str) -> int | None:
        """Size of a file in bytes, or None when there is none."""
        ...

    def read(self, path: str, cap: int) -> bytes:
        """The whole file; `IntegrityError` when it is larger than `cap` bytes."""
        ...

    def stream(self, path: str, cap: int) -> Iterator[bytes]:
        """The file in pieces; `IntegrityError` once more than `cap` bytes came."""
        ...

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Put a file where none is. False when one is there, which then stays as it is."""
        ...

    def put(self, path: str, data: bytes) -> None:
        """Put a file, whether or not one is there."""
        ...

    def put_object(self, path: str, size: int, digest: str, chunks: Iterable[bytes]) -> None:
        """Put a file whose bytes are known beforehand; `IntegrityError` when others come.

        Whatever is there is replaced: it has the same bytes, or it was left unfinished.
        """
        ...

    def collect_garbage(self) -> int:
        """Remove what publishers that are gone have left, where it can be seen; how many files."""
        ...


def open_remote(location: str | Path) -> Remote:
    """The remote at a folder or a URL; nothing is read yet.

    `MissingExtraError` names the package that the file system of a URL needs.
    """
    folder = _local_folder(location)
    return FsspecRemote(str(location)) if folder is None else LocalRemote(folder)


def remote_url(location: str | Path) -> str:
    """The URL that `open_remote` would have, without opening anything."""
    folder = _local_folder(location)
    return str(location).rstrip("/") if folder is None else f"file://{folder.absolute()}"


def _local_folder(location: str | Path) -> Path | None:
    scheme, mark, rest = str(location).partition("://")
    if mark and scheme not in ("file", "local"):
        check_url(str(location))
        return None
    try:
        return Path(unquote(rest) if mark else location).expanduser()
    except RuntimeError as error:
        raise SnapshotError(f"there is no folder {location}: {error}") from error


class LocalRemote:
    """A folder of this machine, or one that is mounted.

    `put_if_absent` is atomic and exclusive without a lock, on NFS too: the file is written under
    another name, flushed, and linked to its place, which fails where something is. File systems
    without hard links are refused for writing.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._staging = Staging(self._root / "tmp")

    @property
    def url(self) -> str:
        """`file://` and the folder."""
        return f"file://{self._root}"

    def size(self, path: str) -> int | None:
        """Size of a file in bytes, or None when there is none."""
        with _boundary(f"{self.url}/{path}"), suppress(FileNotFoundError, NotADirectoryError):
            return self._place(path).stat().st_size
        return None

    def read(self, path: str, cap: int) -> bytes:
        """The whole file; `IntegrityError` when it is larger than `cap` bytes."""
        return b"".join(self.stream(path, cap))

    def stream(self, path: str, cap: int) -> Iterator[bytes]:
        """The file in pieces; `IntegrityError` once more than `cap` bytes came."""
        shown = f"{self.url}/{path}"
        with _boundary(shown), open_regular(self._place(path)) as file:
            yield from _pieces(file, cap, shown)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Put a file where none is. False when one is there, which then stays as it is."""
        target = self._target(path)
        with self._staging.new_file((data,)) as file:
            try:
                os.link(file, target)
            except FileExistsError:
                return False
            except OSError as error:
                raise SnapshotError(
                    f"{target} cannot be published ({error.strerror}): a registry in a folder needs a "
                    "file system with hard links, which is what keeps two publishers apart"
                ) from error
        sync_folder(target.parent)
        return True

    def put(self, path: str, data: bytes) -> None:
        """Put a file, whether or not one is there, in one step."""
        self._replace(path, (data,))

    def put_object(self, path: str, size: int, digest: str, chunks: Iterable[bytes]) -> None:
        """Put a file whose bytes are known beforehand; `IntegrityError` when others come."""
        self._replace(path, checked(chunks, size, digest, f"{self.url}/{path}"))

    def collect_garbage(self) -> int:
        """Remove what publishers that are gone have left; how many files there were."""
        return self._staging.collect_garbage()

    def _replace(self, path: str, chunks: Iterable[bytes]) -> None:
        target = self._target(path)
        with self._staging.new_file(chunks) as file:
            file.replace(target)
        sync_folder(target.parent)

    def _target(self, path: str) -> Path:
        target = self._place(path)
        try:
            make_folder(target.parent)
        except OSError as error:
            raise SnapshotError(f"{self.url} cannot be written to: {error}") from error
        return target

    def _place(self, path: str) -> Path:
        return self._root.joinpath(*path.split("/"))


class FsspecRemote:
    """Files under a URL, through the user's fsspec backend and its own configuration.

    `put_if_absent` is `pipe_file(mode="create")`. On s3, gs and abfs (s3fs, gcsfs, adlfs of 2025 and
    later) that is a conditional request, which the store decides: exclusive. On `memory://` it is
    exclusive within a thread. Other backends look first and write then: two publishers at the same
    moment could lose one of two releases, so let one publish at a time there. http and https are
    read-only.
    """

    def __init__(self, url: str, options: Mapping[str, Any] | None = None) -> None:
        """`options` are those of the backend."""
        self._url = url.rstrip("/")
        self._scheme = url.partition("://")[0].lower()
        options = dict(options or {})
        with _boundary(self._url):
            if self._scheme in _READ_ONLY:
                options = {"client_kwargs": {"timeout": _http_timeout()}} | options
            self._files, self._root = fsspec.core.url_to_fs(self._url, **options)

    @property
    def url(self) -> str:
        """The URL that was given."""
        return self._url

    def size(self, path: str) -> int | None:
        """Size of a file in bytes, or None when there is none. A server that does not say: -1."""
        self._files.invalidate_cache()
        try:
            info = self._call(path, lambda: self._files.info(self._place(path)))
        except FileNotFoundError:
            return None
        if info.get("type") == "directory":
            return None
        return -1 if info.get("size") is None else int(info["size"])

    def read(self, path: str, cap: int) -> bytes:
        """The whole file; `IntegrityError` when it is larger than `cap` bytes."""
        return self._call(path, lambda: b"".join(self._open(path, cap)))

    def stream(self, path: str, cap: int) -> Iterator[bytes]:
        """The file in pieces; `IntegrityError` once more than `cap` bytes came.

        Opening is tried again after a failure. A file that breaks off later is `SnapshotError`.
        """
        with _boundary(f"{self._url}/{path}"):
            yield from self._open(path, cap)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Put a file where none is. False when one is there, which then stays as it is.

        False also when a first request went through and only its answer was lost: who needs to know
        compares the bytes.
        """
        place = self._writable(path)
        self._make_parents(place)
        try:
            self._call(path, lambda: self._files.pipe_file(place, data, mode="create"))
        except FileExistsError:
            return False
        return True

    def put(self, path: str, data: bytes) -> None:
        """Put a file, whether or not one is there."""
        place = self._writable(path)
        self._make_parents(place)
        self._call(path, lambda: self._files.pipe_file(place, data))

    def put_object(self, path: str, size: int, digest: str, chunks: Iterable[bytes]) -> None:
        """Put a file whose bytes are known beforehand; `IntegrityError` when others come.

        Nothing is sent before all of it was checked: a large file waits on the disk meanwhile.
        """
        place = self._writable(path)
        pieces = checked(chunks, size, digest, f"{self._url}/{path}")
        if size <= _MAX_IN_MEMORY:
            self.put(path, b"".join(pieces))
            return
        self._make_parents(place)
        with (
            tempfile.TemporaryDirectory(prefix="synthgym-") as folder,
            Staging(Path(folder)).new_file(pieces) as file,
        ):
            self._call(path, lambda: self._files.put_file(str(file), place))

    def collect_garbage(self) -> int:
        """Nothing is ever left: stores show a file when all of it has come."""
        return 0

    def _place(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}"

    def _writable(self, path: str) -> str:
        if self._scheme in _READ_ONLY:
            raise SnapshotError(
                f"{self._url} is read-only: publish to the place that the server shows, "
                "for example its folder or bucket"
            )
        return self._place(path)

    def _make_parents(self, place: str) -> None:
        # Object stores have no folders and take this as a question about the bucket.
        if self._scheme in ("memory", "sftp", "ssh", "smb", "hdfs", "webdav", "webhdfs", "ftp"):
            self._call(place, lambda: self._files.makedirs(place.rpartition("/")[0], exist_ok=True))

    def _open(self, path: str, cap: int) -> Iterator[bytes]:
        options: dict[str, Any] = {"cache_type": "none"}
        if self._scheme in (*_READ_ONLY, "hf"):
            options = {"block_size": 0}  # one request for the whole file
        if self._scheme in _READ_ONLY:
            options["size"] = 1  # or it asks for the size first, and takes any trouble for absence
        with self._files.open(self._place(path), "rb", **options) as file:
            yield from _pieces(file, cap, f"{self._url}/{path}")

    def _call(self, path: str, call: Callable[[], T]) -> T:
        with _boundary(f"{self._url}/{path}"):
            try:
                return retrying(lambda: _honest(call))
            except Exception as error:
                if _status(error) in _ABSENT.get(self._scheme, (404, 410)):
                    raise FileNotFoundError(f"{self._url}/{path}: {error}") from error
                raise


def retrying(call: Callable[[], T], wait: float = FIRST_WAIT_SECONDS) -> T:
    """What `call` returns, tried up to four times with a growing pause between."""
    for attempt in range(ATTEMPTS):
        try:
            return call()
        except _FINAL_ERRORS:
            raise
        except Exception as error:
            if attempt == ATTEMPTS - 1 or _is_refusal(error):
                raise
            time.sleep(wait * 2**attempt)
    raise AssertionError("unreachable")


def _honest(call: Callable[[], T]) -> T:
    """What `call` returns or raises; fsspec's HTTP says of any trouble that the file is not there."""
    try:
        return call()
    except FileNotFoundError as error:
        trouble = error.__cause__
        if isinstance(trouble, Exception) and not isinstance(trouble, FileNotFoundError):
            raise trouble from error
        raise


@contextmanager
def _boundary(what: str) -> Iterator[None]:
    """Whatever a backend raises becomes ours, but that a file is there or is not."""
    try:
        yield
    except (FileNotFoundError, FileExistsError, SynthGymError):
        raise
    except ImportError as error:
        raise MissingExtraError(f"{what} needs a package that is not installed: {error}") from error
    except Exception as error:
        raise SnapshotError(f"{what}: {type(error).__name__}: {error}") from error


def _is_refusal(error: Exception) -> bool:
    """Whether an HTTP server said that asking again is of no use."""
    status = _status(error)
    return 400 <= status < 500 and status not in (408, 425, 429)


def _status(error: Exception) -> int:
    """The status that an HTTP server answered with, by aiohttp or httpx; 0 when it was none."""
    status = getattr(error, "status", None)
    if status is None:
        status = getattr(getattr(error, "response", None), "status_code", None)
    return status if isinstance(status, int) else 0


def _pieces(file: IO[bytes], cap: int, shown: str) -> Iterator[bytes]:
    """Everything in `file`, as long as it is not more than `cap` bytes."""
    left = cap
    while piece := file.read(min(_CHUNK, left + 1)):
        left -= len(piece)
        if left < 0:
            raise IntegrityError(f"{shown} is larger than the {cap} bytes it may have")
        yield piece


def _http_timeout() -> object:
    """No limit for the whole of a large file, but for connecting and for silence."""
    aiohttp = importlib.import_module("aiohttp")
    return aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS, sock_read=READ_SECONDS)
