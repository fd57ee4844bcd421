"""The manifest: what a snapshot promises, read without trust and written canonically.

One object with exactly these keys:

    format            "synthgym.snapshot/1"
    min_reader        1; a reader that knows less refuses
    name, version     of the snapshot
    digest            over the sorted pairs of environment digest and id
    entries           sorted by name and version
    manifest_sha256   over the canonical JSON of all the rest, so that any changed byte shows
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from synthgym.contract import MAX_TURNS, MIN_TURNS
from synthgym.errors import IntegrityError, SnapshotError
from synthgym.ids import EnvId, is_digest, is_name, pinned_id
from synthgym.registry.layout import FILE_CAPS, MAX_ENTRIES, REQUIRED_FILES
from synthgym.spec import canonical_json, sha256_digest

FORMAT: Final = "synthgym.snapshot/1"
READER: Final = 1
"""The newest `min_reader` that this version reads."""
_DIGEST_DOMAIN: Final = b"synthgym-snapshot-v1\0"
_SNAPSHOT_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?", re.ASCII)
_SNAPSHOT_VERSION: Final = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,2}", re.ASCII)
_KEYS: Final = frozenset(
    {"format", "min_reader", "name", "version", "digest", "entries", "manifest_sha256"}
)
_ENTRY_KEYS: Final = frozenset(
    {"env_id", "name", "version", "digest", "title", "skills", "max_turns", "files"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What the manifest says of one environment."""

    name: str
    version: int
    digest: str
    title: str
    skills: tuple[str, ...]
    max_turns: int
    files: Mapping[str, str] = field(hash=False)
    """`sha256:<hex>` by file name."""

    @property
    def env_id(self) -> str:
        """`synthgym/<Name>-v<N>`."""
        return str(EnvId(self.name, self.version))

    @property
    def pinned_id(self) -> str:
        """The id that is pinned to the content."""
        return pinned_id(self.name, self.digest)

    def to_json(self) -> dict[str, Any]:
        """Return the object that stands in the manifest."""
        return {
            "env_id": self.env_id,
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "title": self.title,
            "skills": list(self.skills),
            "max_turns": self.max_turns,
            "files": dict(self.files),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A checked manifest."""

    name: str
    version: str
    entries: tuple[Entry, ...]

    def __post_init__(self) -> None:
        _check_text(self.name, _SNAPSHOT_NAME, "name", "letters, digits, '.', '_' and '-'")
        _check_text(self.version, _SNAPSHOT_VERSION, "version", "for example 1.2.0")
        if len(self.entries) > MAX_ENTRIES:
            raise SnapshotError(f"a snapshot holds at most {MAX_ENTRIES} environments")
        for what in ("env_id", "digest"):
            seen: set[str] = set()
            for entry in self.entries:
                value = getattr(entry, what)
                if value in seen:
                    raise SnapshotError(
                        f"{entry.env_id}: {value} is there twice; an id stands for one digest "
                        "and a digest for one id"
                    )
                seen.add(value)

    @property
    def digest(self) -> str:
        """The snapshot's identity: its environments and their ids, whatever is noted of them."""
        pairs = sorted([entry.digest, entry.env_id] for entry in self.entries)
        return sha256_digest(_DIGEST_DOMAIN + canonical_json(pairs))

    def to_bytes(self) -> bytes:
        """Return the canonical bytes of `manifest.json`."""
        ordered = sorted(self.entries, key=lambda entry: (entry.name, entry.version))
        body = {
            "format": FORMAT,
            "min_reader": READER,
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "entries": [entry.to_json() for entry in ordered],
        }
        return canonical_json(body | {"manifest_sha256": sha256_digest(canonical_json(body))})

    @classmethod
    def from_bytes(cls, data: bytes) -> Manifest:
        """Read `manifest.json`; `IntegrityError` for changed bytes, `SnapshotError` otherwise."""
        raw = parse_json(data, "manifest.json")
        if raw.get("format") != FORMAT:
            raise SnapshotError(
                f"expected a snapshot of format {FORMAT}, got {raw.get('format')!r}"
            )
        needed = raw.get("min_reader")
        if not isinstance(needed, int) or isinstance(needed, bool) or needed > READER:
            raise SnapshotError(
                f"the snapshot needs a reader of version {needed!r}, this synthgym is {READER}: "
                "install a newer synthgym"
            )
        _check_keys(raw, _KEYS, "manifest.json")
        if not isinstance(raw["entries"], list):
            raise SnapshotError("manifest.json: entries must be a list")
        entries = tuple(_entry(item) for item in raw["entries"])
        manifest = cls(name=raw["name"], version=raw["version"], entries=entries)
        # One comparison covers the digests, the order and every byte of white space.
        if manifest.to_bytes() != data:
            raise IntegrityError(_what_differs(manifest, raw))
        return manifest


def parse_json(data: bytes, what: str) -> dict[str, Any]:
    """Parse an object strictly: UTF-8, no duplicate keys, no NaN or infinity, no lone surrogates.

    `SnapshotError` names `what` and the fault.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        canonical_json(value)  # a surrogate written as an escape cannot be encoded
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{what} is not strict JSON: {error}") from error
    if not isinstance(value, dict):
        raise SnapshotError(f"{what} must hold a JSON object, got {type(value).__name__}")
    return value


def _entry(raw: object) -> Entry:
    if not isinstance(raw, dict):
        raise SnapshotError("manifest.json: an entry must be an object")
    _check_keys(raw, _ENTRY_KEYS, "an entry of manifest.json")
    name, version, turns = raw["name"], raw["version"], raw["max_turns"]
    if not isinstance(name, str) or not is_name(name):
        raise SnapshotError(f"manifest.json: {name!r} cannot be the name of an environment")
    if not _is_int(version) or not 0 <= version < 1_000_000:
        raise SnapshotError(f"manifest.json: {name} has version {version!r}")
    if not _is_int(turns) or not MIN_TURNS <= turns <= MAX_TURNS:
        raise SnapshotError(f"manifest.json: {name} has max_turns {turns!r}")
    if not isinstance(raw["digest"], str) or not is_digest(raw["digest"]):
        raise SnapshotError(f"manifest.json: {name} has digest {raw['digest']!r}")
    if not isinstance(raw["title"], str) or not _is_strings(raw["skills"]):
        raise SnapshotError(f"manifest.json: {name} has a title or skills of another type")
    entry = Entry(
        name=name,
        version=version,
        digest=raw["digest"],
        title=raw["title"],
        skills=tuple(raw["skills"]),
        max_turns=turns,
        files=_files(name, raw["files"]),
    )
    if raw["env_id"] != entry.env_id:
        raise SnapshotError(
            f"manifest.json: expected env_id {entry.env_id!r}, got {raw['env_id']!r}"
        )
    return entry


def _files(name: str, raw: object) -> dict[str, str]:
    if not isinstance(raw, dict) or not all(isinstance(v, str) for v in raw.values()):
        raise SnapshotError(f"manifest.json: the files of {name} must map names to digests")
    if not (raw.keys() >= REQUIRED_FILES and raw.keys() <= FILE_CAPS.keys()):
        raise SnapshotError(
            f"manifest.json: {name} must have {', '.join(sorted(REQUIRED_FILES))} and may have "
            f"{', '.join(sorted(FILE_CAPS.keys() - REQUIRED_FILES))}, got {sorted(raw)}"
        )
    if not all(is_digest(value) for value in raw.values()):
        raise SnapshotError(f"manifest.json: a file of {name} has no sha256 digest")
    return dict(raw)


def _what_differs(manifest: Manifest, raw: Mapping[str, Any]) -> str:
    if raw["digest"] != manifest.digest:
        return (
            f"manifest.json promises snapshot digest {raw['digest']}, "
            f"its entries come to {manifest.digest}"
        )
    body = {key: value for key, value in raw.items() if key != "manifest_sha256"}
    found = sha256_digest(canonical_json(body))
    if raw["manifest_sha256"] != found:
        return f"manifest.json promises its own digest {raw['manifest_sha256']}, got {found}"
    return "manifest.json is not canonical: its bytes are not those that synthgym writes"


def _check_text(text: object, pattern: re.Pattern[str], what: str, expected: str) -> None:
    if not isinstance(text, str) or pattern.fullmatch(text) is None:
        raise SnapshotError(f"a snapshot's {what} must be {expected}, got {text!r}")


def _check_keys(raw: Mapping[str, Any], expected: frozenset[str], what: str) -> None:
    if raw.keys() != expected:
        missing, unknown = sorted(expected - raw.keys()), sorted(raw.keys() - expected)
        raise SnapshotError(f"{what}: missing keys {missing}, unknown keys {unknown}")


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(k for k in keys if keys.count(k) > 1)!r}")
    return out


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large for a number")
    return value
