"""`synthgym.lock`: what each reference of a project came to, so that it comes to the same again.

    version = 1

    [[snapshot]]
    reference = "games>=1,<2"
    name = "games"
    version = "1.4.0"
    digest = "sha256:…"
    manifest_sha256 = "sha256:…"
    remote = "https://host/registry"
    signer = "SHA256:…"

It belongs under version control. Comments and what others wrote around an entry stay.
"""

from __future__ import annotations

import fcntl
import os
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import AoT

from synthgym.atomic import write_file
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean, is_digest

LOCK: Final = "synthgym.lock"
FORMAT: Final = 1
MAX_LOCK_BYTES: Final = 4 * 1024 * 1024
_HEADER: Final = (
    "Written by `synthgym pull --lock`. Commit it: everybody gets the same environments."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What a reference came to."""

    reference: str
    name: str
    version: str
    digest: str
    manifest_sha256: str
    remote: str
    """URL that it was pulled from."""
    signer: str = ""
    """Fingerprint of the key whose signature was good, or nothing."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if not isinstance(value, str):
                raise ConfigError(f"{item.name} must be a text, got {value!r}")
        for name in ("digest", "manifest_sha256"):
            if not is_digest(getattr(self, name)):
                raise ConfigError(f"{name} must be sha256:<hex>, got {getattr(self, name)!r}")
        if not self.reference:
            raise ConfigError("reference is empty")


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock that was read."""

    path: Path
    entries: tuple[Locked, ...] = ()

    def find(self, reference: str) -> Locked | None:
        """What a reference came to, or None when it is not locked."""
        return next((entry for entry in self.entries if entry.reference == reference), None)


_FIELDS: Final = tuple(item.name for item in fields(Locked))


def find_lock(start: Path | None = None) -> Path | None:
    """The lock of the folder `start` (the current one) or of one above, up to the root of its repository.

    One above that is neither the user's nor of the owner of `start` is passed over.
    """
    start = (Path.cwd() if start is None else start).absolute()
    mine = {os.getuid(), _owner(start)}
    for folder in (start, *start.parents):
        # In a folder that others may write to, such as /tmp, anybody could leave one.
        if (folder / LOCK).is_file() and (folder == start or _owner(folder / LOCK) in mine):
            return folder / LOCK
        if (folder / ".git").exists():
            return None
    return None


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None


def read_lock(path: Path) -> Lock:
    """Read a lock; `ConfigError` names the file and what is wrong with it."""
    text = _read(path)
    try:
        return _lock(path, tomllib.loads(text))
    except ConfigError:
        raise
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, lists without end
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _lock(path: Path, raw: dict[str, Any]) -> Lock:
    _check_format(path, raw)
    items = raw.get("snapshot", [])
    if not isinstance(items, list):
        raise ConfigError(f"{path}: expected [[snapshot]] tables, got {items!r}")
    entries = tuple(_entry(path, item) for item in items)
    seen: set[str] = set()
    for entry in entries:
        if entry.reference in seen:
            raise ConfigError(f"{path}: {entry.reference!r} is there twice")
        seen.add(entry.reference)
    return Lock(path, entries)


def write_lock(path: Path, entries: Iterable[Locked]) -> None:
    """Note what references came to, in one step. Entries of other references stay, and so do comments.

    `ConfigError` when there is a file that is not a lock: it stays as it is.
    """
    with _alone(path.absolute().parent):
        document = _document(path)
        tables = document.get("snapshot")
        if not isinstance(tables, AoT):
            document.pop("snapshot", None)
            tables = tomlkit.aot()
            document.append("snapshot", tables)
        for entry in entries:
            _put(tables, entry)
        write_file(path, tomlkit.dumps(document).encode())


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Wait for the others of this machine who note something, or one would undo the other's."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # some network file systems know no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _document(path: Path) -> tomlkit.TOMLDocument:
    """What is there, or an empty lock."""
    if path.exists():
        read_lock(path)
        return _parse(path)
    document = tomlkit.document()
    document.add(tomlkit.comment(_HEADER))
    document.add("version", tomlkit.item(FORMAT))
    return document


def _put(tables: AoT, entry: Locked) -> None:
    table = next((item for item in tables if item.get("reference") == entry.reference), None)
    if table is None:
        table = tomlkit.table()
        tables.append(table)
    for name, value in asdict(entry).items():
        if table.get(name) != value:
            table[name] = value


def _check_format(path: Path, raw: dict[str, Any]) -> None:
    found = raw.get("version")
    if not isinstance(found, int) or isinstance(found, bool):
        raise ConfigError(
            f"{path} is not a synthgym.lock: expected version = {FORMAT}, got {found!r}"
        )
    if found < FORMAT:
        raise ConfigError(f"{path} is of version {found}, this synthgym reads {FORMAT}")
    if found > FORMAT:
        raise ConfigError(
            f"{path} is of version {found}, this synthgym reads {FORMAT}: install a newer one"
        )


def _entry(path: Path, raw: object) -> Locked:
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a snapshot must be a table, got {raw!r}")
    shown = f"{path}: snapshot {raw.get('reference', '')!r}"
    for key in raw:
        if key not in _FIELDS:
            raise ConfigError(f"{shown}: unknown key {key!r}{did_you_mean(key, _FIELDS)}")
    missing = [name for name in _FIELDS if name not in raw and name != "signer"]
    if missing:
        raise ConfigError(f"{shown}: missing {', '.join(missing)}")
    try:
        return Locked(**raw)
    except ConfigError as error:
        raise ConfigError(f"{shown}: {error}") from error


def _parse(path: Path) -> tomlkit.TOMLDocument:
    try:
        return tomlkit.parse(_read(path))
    except TOMLKitError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_LOCK_BYTES + 1)
        if len(data) > MAX_LOCK_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_LOCK_BYTES} bytes")
        return data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
