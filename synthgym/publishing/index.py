"""The index of a remote: which releases there are, and which of them were yanked.

One object, canonical JSON, with exactly these keys:

    format, min_reader   "synthgym.index/1"; a reader that knows less refuses
    serial               one more with every change, so that an old index shows
    previous             SHA-256 of the index file that this one replaced; "" for the first
    expires              when the owner promises to have renewed it; null for never
    names                releases by name of the snapshot, oldest version first

A name and version stand for one digest for ever. Nothing is taken out: a release that must not be
used any more is yanked. It is then left out of `latest` and of ranges, and stays for those who name
exactly it (as PEP 592 and cargo have it).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, TypeVar

from packaging.version import Version

from synthgym.errors import SnapshotError
from synthgym.ids import is_digest
from synthgym.registry.core import check_name, check_version
from synthgym.registry.strict import check_keys, is_int, parse_json
from synthgym.spec import canonical_json, sha256_digest

FORMAT: Final = "synthgym.index/1"
READER: Final = 1
"""The newest `min_reader` that this version reads."""
MAX_INDEX_BYTES: Final = 16 * 1024 * 1024
MAX_NAMES: Final = 10_000
MAX_SERIAL: Final = 2**53 - 1
SEVERITIES: Final = ("broken", "license", "unsafe")
_MAX_TEXT: Final = 4096
_KEYS: Final = frozenset({"format", "min_reader", "serial", "previous", "expires", "names"})
_RELEASE_KEYS: Final = frozenset(
    {"version", "digest", "manifest_sha256", "size", "env_count", "min_reader", "license"}
    | {"published", "yanked"}
)
_YANK_KEYS: Final = frozenset({"at", "reason", "severity"})
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII
)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yank:
    """Why a release should not be used any more."""

    at: str
    """RFC 3339."""
    reason: str
    severity: str
    """`broken`, `license`, or `unsafe`: the last one is not even loaded by digest unless allowed."""

    def __post_init__(self) -> None:
        check_time(self.at, "yanked.at")
        _check_text(self.reason, "yanked.reason")
        if not self.reason:
            raise SnapshotError("a release is yanked for a reason: expected a text, got none")
        if self.severity not in SEVERITIES:
            raise SnapshotError(
                f"yanked.severity must be one of {', '.join(SEVERITIES)}, got {self.severity!r}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """One version of a snapshot, as an index tells of it."""

    version: str
    digest: str
    """Of the snapshot's content."""
    manifest_sha256: str
    """`sha256:<hex>` of the bytes of `manifest.json`."""
    size: int
    """Of all files, in bytes."""
    env_count: int
    min_reader: int
    """Of the snapshot's format."""
    license: str
    """SPDX expression."""
    published: str
    """RFC 3339."""
    yanked: Yank | None = None

    def __post_init__(self) -> None:
        check_version(self.version)
        for what in ("digest", "manifest_sha256"):
            value = getattr(self, what)
            if not isinstance(value, str) or not is_digest(value):
                raise SnapshotError(
                    f"release {self.version}: {what} is {value!r}, not sha256:<hex>"
                )
        for what in ("size", "env_count", "min_reader"):
            value = getattr(self, what)
            if not is_int(value) or not 0 <= value <= MAX_SERIAL:
                raise SnapshotError(f"release {self.version}: {what} is {value!r}, not a count")
        _check_text(self.license, f"release {self.version}: license")
        check_time(self.published, f"release {self.version}: published")

    @property
    def key(self) -> Version:
        """The version as it is compared: 1.0 and 1.0.0 are one."""
        return Version(self.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A checked index. `Index()` is that of a remote where nothing was published yet."""

    serial: int = 0
    previous: str = ""
    names: Mapping[str, tuple[Release, ...]] = field(default_factory=dict, hash=False)
    """Releases by name, oldest version first."""
    expires: str | None = None
    """RFC 3339."""

    def __post_init__(self) -> None:
        if not is_int(self.serial) or not 0 <= self.serial <= MAX_SERIAL:
            raise SnapshotError(f"index: serial is {self.serial!r}, not a count")
        if not isinstance(self.previous, str) or (self.previous and not is_digest(self.previous)):
            raise SnapshotError(f"index: previous is {self.previous!r}, not sha256:<hex>")
        if (self.serial > 1) != bool(self.previous):
            raise SnapshotError(
                "index: the first one has no previous and serial 1, all others have one; "
                f"got serial {self.serial} and previous {self.previous!r}"
            )
        if self.expires is not None:
            check_time(self.expires, "index: expires")
        if len(self.names) > MAX_NAMES:
            raise SnapshotError(f"an index holds at most {MAX_NAMES} names, got {len(self.names)}")
        folded: dict[str, str] = {}
        for name, releases in self.names.items():
            check_name(name)
            if folded.setdefault(name.casefold(), name) != name:
                raise SnapshotError(f"index: {name!r} differs from another name in case only")
            _check_releases(name, releases)
        object.__setattr__(self, "names", dict(self.names))

    @property
    def digest(self) -> str:
        """SHA-256 of the index file."""
        return sha256_digest(self.to_bytes())

    def is_expired(self, at: datetime) -> bool:
        """Whether the owner should have renewed it before `at`, a time with a zone."""
        return self.expires is not None and check_time(self.expires, "expires") < at

    def to_bytes(self) -> bytes:
        """Return the canonical bytes of the index file; `SnapshotError` when they are too many."""
        names = {
            name: [_object(release) for release in releases]
            for name, releases in self.names.items()
        }
        data = canonical_json(
            {
                "format": FORMAT,
                "min_reader": READER,
                "serial": self.serial,
                "previous": self.previous,
                "expires": self.expires,
                "names": names,
            }
        )
        if len(data) > MAX_INDEX_BYTES:
            raise SnapshotError(f"an index of {len(data)} bytes; at most {MAX_INDEX_BYTES}")
        return data

    @classmethod
    def from_bytes(cls, data: bytes) -> Index:
        """Read an index file; `SnapshotError` unless it is one that this version would write."""
        if len(data) > MAX_INDEX_BYTES:
            raise SnapshotError(f"an index of {len(data)} bytes; at most {MAX_INDEX_BYTES}")
        raw = parse_json(data, "the index")
        if raw.get("format") != FORMAT:
            raise SnapshotError(f"expected an index of format {FORMAT}, got {raw.get('format')!r}")
        needed = raw.get("min_reader")
        if not is_int(needed) or needed != READER:
            raise SnapshotError(
                f"the index needs a reader of version {needed!r}, this synthgym is {READER}: "
                "install a newer synthgym"
            )
        check_keys(raw, _KEYS, "index: the whole")
        if not isinstance(raw["names"], dict):
            raise SnapshotError("index: names must be an object")
        index = cls(
            serial=raw["serial"],
            previous=raw["previous"],
            expires=raw["expires"],
            names={name: _releases(name, items) for name, items in raw["names"].items()},
        )
        if index.serial < 1 or index.to_bytes() != data:
            raise SnapshotError(
                "the index is not canonical: its bytes are not what synthgym writes"
            )
        return index


def with_release(index: Index, name: str, release: Release) -> Index:
    """Return the next index, with a release more; `index` itself when its digest is there.

    `SnapshotError` when the version stands for another digest, or is there under another spelling.
    """
    check_name(name)
    releases = index.names.get(name, ())
    for known in releases:
        if known.version == release.version and known.digest == release.digest:
            return index
        if known.key == release.key:
            raise SnapshotError(
                f"{name} {release.version} cannot be published: {known.version} stands for "
                f"{known.digest} for ever, got {release.digest}. Give it the next version"
            )
    return _with_releases(index, name, (*releases, release))


def with_yank(index: Index, name: str, version: str, yank: Yank) -> Index:
    """Return the next index, with a release yanked; `index` itself when it is, for this reason.

    `SnapshotError` when there is no such release.
    """
    return _changed(index, name, version, yank)


def without_yank(index: Index, name: str, version: str) -> Index:
    """Return the next index, with a yank taken back; `index` itself when there is none.

    `SnapshotError` when there is no such release.
    """
    return _changed(index, name, version, None)


def with_expiry(index: Index, expires: str | None) -> Index:
    """Return the next index, with another time at which it should be renewed (RFC 3339)."""
    return _next(index, expires=expires)


def check_time(text: object, what: str) -> datetime:
    """Return a time of RFC 3339; `SnapshotError` names `what` it should have been."""
    try:
        if isinstance(text, str) and _TIME.fullmatch(text):
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise SnapshotError(f"{what} must be a time as in 2026-05-31T12:00:00Z, got {text!r}")


def _changed(index: Index, name: str, version: str, yank: Yank | None) -> Index:
    releases = index.names.get(name, ())
    found = [release for release in releases if release.version == version]
    if not found:
        known = ", ".join(release.version for release in releases) or "no release at all"
        raise SnapshotError(f"there is no release {version} of {name}; there is {known}")
    if found[0].yanked == yank:
        return index
    others = tuple(release for release in releases if release is not found[0])
    return _with_releases(index, name, (*others, replace(found[0], yanked=yank)))


def _with_releases(index: Index, name: str, releases: tuple[Release, ...]) -> Index:
    ordered = tuple(sorted(releases, key=lambda release: release.key))
    return _next(index, names={**index.names, name: ordered})


def _next(index: Index, **changes: Any) -> Index:
    previous = index.digest if index.serial else ""
    return replace(index, serial=index.serial + 1, previous=previous, **changes)


def _object(value: Release | Yank) -> dict[str, Any]:
    made = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Release) and value.yanked is not None:
        made["yanked"] = _object(value.yanked)
    return made


def _check_releases(name: str, releases: tuple[Release, ...]) -> None:
    if not releases:
        raise SnapshotError(f"index: {name} has no release")
    keys = [release.key for release in releases]
    if any(later <= earlier for earlier, later in pairwise(keys)):
        raise SnapshotError(f"index: the releases of {name} must go by version, each once")
    if len({release.digest for release in releases}) < len(releases):
        raise SnapshotError(f"index: two releases of {name} have one digest")


def _releases(name: str, items: object) -> tuple[Release, ...]:
    if not isinstance(items, list):
        raise SnapshotError(f"index: the releases of {name!r} must be a list")
    return tuple(_made(_release, item, _RELEASE_KEYS, f"a release of {name!r}") for item in items)


def _release(raw: dict[str, Any]) -> Release:
    yanked = raw["yanked"]
    if yanked is not None:
        yanked = _made(lambda inner: Yank(**inner), yanked, _YANK_KEYS, "yanked")
    return Release(**raw | {"yanked": yanked})


def _made(make: Callable[[dict[str, Any]], _T], raw: object, keys: frozenset[str], what: str) -> _T:
    if not isinstance(raw, dict):
        raise SnapshotError(f"index: {what} must be an object, got {type(raw).__name__}")
    check_keys(raw, keys, f"index: {what}")
    return make(raw)


def _check_text(text: object, what: str) -> None:
    """Raise `SnapshotError` unless `text` is short and cannot drive a terminal."""
    if not isinstance(text, str) or len(text) > _MAX_TEXT or not text.isprintable():
        shown = repr(text)[:80]
        raise SnapshotError(
            f"{what} must be one line of printable text, at most {_MAX_TEXT} characters, got {shown}"
        )
