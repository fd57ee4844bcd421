"""The manifest: what a snapshot promises, read without trust and written canonically.

One object with these keys:

    format            "synthgym.snapshot/1"
    min_reader        1; a reader that knows less refuses
    critical          keys that a reader must understand; the rest of the unknown ones are ignored
    core              what the digest covers, see `core.py`
    digest            of the core
    layout            "folder" (files that people read) or "shards" (Parquet)
    entries           of the folder layout, by name and version; empty for shards, which have an index
    files             path, SHA-256, size, kind and rows of every file, by path
    embedders         what the vectors were made with, and how long they are
    manifest_sha256   over the canonical JSON of all the rest, so that any changed byte shows
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from synthgym.contract import MAX_TURNS, MIN_TURNS
from synthgym.errors import IntegrityError, SnapshotError
from synthgym.ids import env_id, is_digest, is_name, pinned_id
from synthgym.registry.core import Core, alias_root, env_root
from synthgym.registry.layout import (
    FOLDER,
    LAYOUTS,
    MAX_ENTRIES,
    SHARDS,
    FileRef,
    check_files,
    embedders_of,
    is_embedder,
)
from synthgym.registry.strict import check_keys, is_int, is_strings, parse_json
from synthgym.spec import canonical_json, sha256_digest

FORMAT: Final = "synthgym.snapshot/1"
READER: Final = 1
"""The newest `min_reader` that this version reads."""
MAX_DIMENSION: Final = 8192
MAX_VERSION: Final = 999_999
"""Of an environment; its id has six digits for it."""
_KEYS: Final = frozenset(
    {"format", "min_reader", "critical", "core", "digest", "layout", "entries", "files"}
    | {"embedders", "manifest_sha256"}
)
_ENTRY_KEYS: Final = frozenset(
    {"name", "version", "digest", "title", "skills", "license", "max_turns"}
)
_FILE_KEYS: Final = frozenset({"path", "sha256", "size", "kind", "rows"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a snapshot says of one environment without reading it."""

    name: str
    version: int
    digest: str
    title: str
    skills: tuple[str, ...]
    license: str
    max_turns: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not is_name(self.name):
            raise SnapshotError(f"{self.name!r} cannot be the name of an environment")
        if not is_int(self.version) or not 0 <= self.version <= MAX_VERSION:
            raise SnapshotError(f"{self.name} has version {self.version!r}")
        if not is_int(self.max_turns) or not MIN_TURNS <= self.max_turns <= MAX_TURNS:
            raise SnapshotError(f"{self.name} has max_turns {self.max_turns!r}")
        if not isinstance(self.digest, str) or not is_digest(self.digest):
            raise SnapshotError(f"{self.name} has digest {self.digest!r}")
        texts = isinstance(self.title, str) and isinstance(self.license, str)
        if not texts or not is_strings(self.skills):
            raise SnapshotError(f"{self.name} has a title, license or skills of another type")

    @property
    def env_id(self) -> str:
        """`synthgym/<Name>-v<N>`."""
        return env_id(self.name, self.version)

    @property
    def pinned_id(self) -> str:
        """The id that is pinned to the content."""
        return pinned_id(self.name, self.digest)

    @property
    def alias(self) -> tuple[str, int, str]:
        """(name, version, digest): what the alias root covers."""
        return self.name, self.version, self.digest

    @property
    def alias_text(self) -> str:
        """The same as one text, with spaces between: none of them has any."""
        return f"{self.name} {self.version} {self.digest}"

    def to_json(self) -> dict[str, Any]:
        """Return the object that stands in the manifest."""
        return {
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "title": self.title,
            "skills": list(self.skills),
            "license": self.license,
            "max_turns": self.max_turns,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A checked manifest."""

    core: Core
    layout: str
    files: tuple[FileRef, ...]
    entries: tuple[Entry, ...] = ()
    embedders: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Length of the vectors by embedder."""
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Keys that this reader does not know, kept as they are."""

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise SnapshotError(f"layout must be one of {', '.join(LAYOUTS)}, got {self.layout!r}")
        if self.layout == FOLDER:
            self._check_entries()
        elif self.entries:
            raise SnapshotError("a manifest of shards lists no entries: they have an index")
        check_files(self.files, self.layout, [(e.name, e.version) for e in self.entries])
        if self.layout == SHARDS:
            self._check_rows()
        for embedder, dim in self.embedders.items():
            if not is_embedder(embedder) or not is_int(dim) or not 1 <= dim <= MAX_DIMENSION:
                raise SnapshotError(f"embedder {embedder!r} has vectors of length {dim!r}")
        if self.embedders.keys() != embedders_of(self.files):
            raise SnapshotError("manifest.json: embedders must be those that there are vectors of")

    @property
    def name(self) -> str:
        """Name of the snapshot."""
        return self.core.name

    @property
    def version(self) -> str:
        """Version of the snapshot."""
        return self.core.version

    @property
    def license(self) -> str:
        """SPDX expression for the whole."""
        return self.core.license

    @property
    def env_count(self) -> int:
        """Number of environments."""
        return self.core.env_count

    @property
    def digest(self) -> str:
        """The snapshot's identity."""
        return self.core.digest

    def to_bytes(self) -> bytes:
        """Return the canonical bytes of `manifest.json`."""
        body = dict(self.extra) | {
            "format": FORMAT,
            "min_reader": READER,
            "critical": [],
            "core": self.core.to_json(),
            "digest": self.digest,
            "layout": self.layout,
            "entries": [entry.to_json() for entry in self.entries],
            "files": [file.to_json() for file in self.files],
            "embedders": dict(self.embedders),
        }
        return canonical_json(body | {"manifest_sha256": sha256_digest(canonical_json(body))})

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Read `manifest.json`; `IntegrityError` for changed bytes, `SnapshotError` otherwise."""
        raw = parse_json(data, "manifest.json")
        _check_reader(raw)
        extra = {key: value for key, value in raw.items() if key not in _KEYS}
        check_keys({key: raw[key] for key in raw.keys() - extra.keys()}, _KEYS, "manifest.json")
        if not isinstance(raw["embedders"], dict):
            raise SnapshotError("manifest.json: embedders must be an object")
        manifest = cls(
            core=Core.from_json(raw["core"]),
            layout=raw["layout"],
            entries=tuple(_entry(item) for item in _list(raw, "entries")),
            files=tuple(_file(item) for item in _list(raw, "files")),
            embedders=raw["embedders"],
            extra=extra,
        )
        # One comparison covers the digests, the order and every byte of white space.
        if manifest.to_bytes() != data:
            raise IntegrityError(_what_differs(manifest, raw))
        return manifest

    def _check_rows(self) -> None:
        for kind in ("index", "envs"):
            rows = sum(ref.rows for ref in self.files if ref.kind == kind)
            if rows != self.env_count:
                raise IntegrityError(
                    f"manifest.json promises {self.env_count} environments, and {rows} rows of {kind}"
                )

    def _check_entries(self) -> None:
        if len(self.entries) > MAX_ENTRIES:
            raise SnapshotError(
                f"a snapshot of the folder layout holds at most {MAX_ENTRIES} environments"
            )
        check_unique(self.entries)
        aliases = [entry.alias for entry in self.entries]
        if aliases != sorted(aliases):
            raise IntegrityError("manifest.json is not canonical: entries go by name and version")
        promised = (self.core.env_count, self.core.env_root, self.core.alias_root)
        found = env_root(sorted(e.digest for e in self.entries))
        if promised != (len(self.entries), found, alias_root(aliases)):
            raise IntegrityError("the entries of manifest.json are not those of its core")


def check_unique(entries: tuple[Entry, ...] | list[Entry]) -> None:
    """Raise `SnapshotError` when an id or a digest comes twice, or two names differ in case only."""
    ids_found = {entry.env_id.casefold() for entry in entries}
    if len(ids_found) == len(entries) == len({entry.digest for entry in entries}):
        return
    ids: dict[str, str] = {}
    digests: dict[str, str] = {}
    for entry in entries:
        for known, key in ((ids, entry.env_id.casefold()), (digests, entry.digest)):
            if key in known:
                raise SnapshotError(
                    f"{entry.env_id}: {known[key]} is there twice; an id stands for one digest "
                    "and a digest for one id, and ids differ in more than their case"
                )
            known[key] = entry.env_id if known is ids else entry.digest


def _check_reader(raw: Mapping[str, Any]) -> None:
    if raw.get("format") != FORMAT:
        raise SnapshotError(f"expected a snapshot of format {FORMAT}, got {raw.get('format')!r}")
    needed, critical = raw.get("min_reader"), raw.get("critical")
    if not isinstance(needed, int) or isinstance(needed, bool) or needed > READER:
        raise SnapshotError(
            f"the snapshot needs a reader of version {needed!r}, this synthgym is {READER}: "
            "install a newer synthgym"
        )
    if critical != []:
        raise SnapshotError(
            f"the snapshot needs a reader that understands {critical!r}: install a newer synthgym"
        )


def _list(raw: Mapping[str, Any], key: str) -> list[Any]:
    if not isinstance(raw[key], list):
        raise SnapshotError(f"manifest.json: {key} must be a list")
    return list(raw[key])


def _entry(raw: object) -> Entry:
    if not isinstance(raw, dict):
        raise SnapshotError("manifest.json: an entry must be an object")
    check_keys(raw, _ENTRY_KEYS, "an entry of manifest.json")
    if not is_strings(raw["skills"]):
        raise SnapshotError(f"manifest.json: skills must be a list of texts, got {raw['skills']!r}")
    return Entry(**raw | {"skills": tuple(raw["skills"])})


def _file(raw: object) -> FileRef:
    if not isinstance(raw, dict):
        raise SnapshotError("manifest.json: a file must be an object")
    check_keys(raw, _FILE_KEYS, "a file of manifest.json")
    return FileRef(**raw)


def _what_differs(manifest: Manifest, raw: Mapping[str, Any]) -> str:
    if raw["digest"] != manifest.digest:
        return f"manifest.json promises digest {raw['digest']}, its core comes to {manifest.digest}"
    body = {key: value for key, value in raw.items() if key != "manifest_sha256"}
    found = sha256_digest(canonical_json(body))
    if raw["manifest_sha256"] != found:
        return f"manifest.json promises its own digest {raw['manifest_sha256']}, got {found}"
    return "manifest.json is not canonical: its bytes are not those that synthgym writes"
