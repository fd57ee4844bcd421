"""Checked code, kept so that a source is compiled once and not at every start of a worker.

A worker compiles its source before it runs it for the first time, and hands the bytes out. They are
stored here unread: only a worker of that same source, locked down like the first, ever turns them
into code again. The key is the content of the source, the version of the checker, and the
interpreter; anything else makes it another entry.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import stat
import sys
import threading
from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from synthgym.atomic import write_file
from synthgym.contract import BASE, PRELUDES
from synthgym.errors import ConfigError
from synthgym.preludes import prelude
from synthgym.sandbox.compile import CHECKER_VERSION
from synthgym.sandbox.protocol import MAX_CODE

_MAX_HELD: Final = 1024
"""Entries held in memory."""
_MAX_FILE: Final = 4 << 20
_MAX_FILES: Final = 8192
"""Entries kept in a folder; the oldest go when it is opened with more."""
_KEY: Final = re.compile(r"[0-9a-f]{64}\.")
"""How the name of an entry begins; nothing else in the folder is touched."""


class CheckedCode(msgspec.Struct, frozen=True):
    """What a source compiles to."""

    code: bytes
    """Marshalled; never read outside a worker. Empty when it is too large to be handed out."""
    requires: tuple[str, ...]
    docstring: str
    violations: tuple[tuple[int, str], ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry on disk."""

    sha256: str
    """Of the key and `checked` in its encoded form."""
    checked: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode_checked = msgspec.msgpack.Decoder(CheckedCode).decode
_decode_file = msgspec.msgpack.Decoder(_File).decode


class CodeCache:
    """Checked code by source, in memory and, with a folder, on disk too.

    A file that is damaged or of another key is compiled anew and replaced. `ConfigError` for a
    folder that cannot be used, or that others may write to: who can write there chooses what workers
    run.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._held: OrderedDict[str, CheckedCode] = OrderedDict()
        self._lock = threading.Lock()
        self._folder = _private(folder) if folder is not None else None
        if self._folder is not None:
            _prune(self._folder)

    def get(self, source: str, base: str = BASE) -> CheckedCode | None:
        """Return what `source` of that base compiles to, if it was compiled before."""
        key = cache_key(source, base)
        with self._lock:
            found = self._held.get(key)
            if found is not None:
                self._held.move_to_end(key)
                return found
        found = self._read(key)
        if found is not None:
            self._hold(key, found)
        return found

    def put(self, source: str, checked: CheckedCode, *, lasting: bool, base: str = BASE) -> None:
        """Keep `checked`; on disk only when `lasting`."""
        key = cache_key(source, base)
        self._hold(key, checked)
        if self._folder is None or not lasting or not checked.code:
            return
        body = _encode(checked)
        try:
            write_file(self._folder / key, _encode(_File(_seal(key, body), body)))
        except OSError:
            self._folder = None  # a full or read-only disk costs speed, nothing else

    def _hold(self, key: str, checked: CheckedCode) -> None:
        with self._lock:
            self._held[key] = checked
            while len(self._held) > _MAX_HELD:
                self._held.popitem(last=False)

    def _read(self, key: str) -> CheckedCode | None:
        if self._folder is None:
            return None
        path = self._folder / key
        try:
            if path.stat().st_size > _MAX_FILE:
                return None
            file = _decode_file(path.read_bytes())
            if _seal(key, file.checked) != file.sha256:
                return None
            checked = _decode_checked(file.checked)
            return checked if len(checked.code) <= MAX_CODE else None
        except (OSError, ValueError):
            return None


def default_folder() -> Path | None:
    """Return where the default pool keeps checked code; None for nowhere.

    `SYNTHGYM_CODE_CACHE` names another folder, or switches it off when it is empty.
    """
    named = os.environ.get("SYNTHGYM_CODE_CACHE")
    if named is not None:
        return Path(named) if named else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "synthgym" / "code"
    except RuntimeError:  # no home
        return None


def cache_key(source: str, base: str = BASE) -> str:
    """Return the name of the entry of `source`, equal for equal code on equal interpreters.

    What stands in front of the sources of a base belongs to the code.
    """
    front = "" if base not in PRELUDES else f"{base}\0{prelude(PRELUDES[base])}\0"
    digest = hashlib.sha256((front + source).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{digest}.{_suffix()}"


@cache
def _suffix() -> str:
    magic = importlib.util.MAGIC_NUMBER.hex()
    policy = importlib.metadata.version("RestrictedPython")
    return f"{sys.implementation.cache_tag}-{magic}-{CHECKER_VERSION}-{policy}"


def _seal(key: str, body: bytes) -> str:
    return hashlib.sha256(key.encode() + b"\0" + body).hexdigest()


def _prune(folder: Path) -> None:
    """Forget sources, checkers and interpreters of the past."""
    with contextlib.suppress(OSError):  # another process may be at it too
        files = [path for path in folder.iterdir() if _KEY.match(path.name)]
        if len(files) > _MAX_FILES:
            files.sort(key=lambda path: path.stat().st_mtime)
            for path in files[:-_MAX_FILES]:
                path.unlink(missing_ok=True)


def _private(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = folder.stat()
    except OSError as error:
        raise ConfigError(f"the code cache {folder} cannot be used: {error}") from error
    if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigError(
            f"the code cache {folder} must belong to this user and be writable by nobody else: "
            f"chmod 700 it, or choose another folder"
        )
    return folder
