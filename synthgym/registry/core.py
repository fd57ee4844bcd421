"""What a snapshot's digest covers: a small object that holds three Merkle roots.

    env_root      over the digests of the environments, sorted
    alias_root    over [name, version, digest], sorted: which id stands for which content
    notes_root    over [digest, kind, SHA-256 of the payload], sorted by digest and kind

So equal content has an equal digest, whatever files it was put into and in whatever order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from synthgym.errors import SnapshotError
from synthgym.ids import is_digest
from synthgym.registry.layout import MAX_SHARD_ENTRIES
from synthgym.registry.merkle import MerkleRoot
from synthgym.registry.strict import check_keys, is_int
from synthgym.spec import canonical_json, sha256_digest

_DIGEST_DOMAIN: Final = b"synthgym-snapshot-v1\0"
_CONTENT_DOMAIN: Final = b"synthgym-content-v1\0"
_NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?", re.ASCII | re.IGNORECASE)
_VERSION: Final = re.compile(r"(?:0|[1-9]\d{0,8})(?:\.(?:0|[1-9]\d{0,8})){0,2}", re.ASCII)
RELATIONS: Final = ("merge", "filter", "split", "extend")
"""What a snapshot did with its parents."""
MAX_PARENTS: Final = 256
MAX_NOTES: Final = 64 * MAX_SHARD_ENTRIES
"""Notes of a whole snapshot; an environment has five, and one more for each embedder."""
_KEYS: Final = frozenset(
    {"name", "version", "license", "env_count", "env_root", "alias_root"}
    | {"notes_count", "notes_root", "parents"}
)
_PARENT_KEYS: Final = frozenset({"name", "version", "digest", "relation"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A snapshot that this one was made from."""

    name: str
    version: str
    digest: str
    relation: str

    def __post_init__(self) -> None:
        check_name(self.name)
        check_version(self.version)
        if not isinstance(self.digest, str) or not is_digest(self.digest):
            raise SnapshotError(f"a parent's digest must be sha256:<hex>, got {self.digest!r}")
        if self.relation not in RELATIONS:
            raise SnapshotError(
                f"a parent's relation must be one of {', '.join(RELATIONS)}, got {self.relation!r}"
            )

    def to_json(self) -> dict[str, str]:
        """Return the object that stands in the core."""
        return {
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "relation": self.relation,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """A snapshot's identity."""

    name: str
    version: str
    license: str
    """SPDX expression: the licenses of the environments, joined by AND."""
    env_count: int
    env_root: str
    alias_root: str
    notes_count: int
    notes_root: str
    parents: tuple[Parent, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        check_version(self.version)
        if not isinstance(self.license, str):
            raise SnapshotError(f"a snapshot's license must be a text, got {self.license!r}")
        for what, most in (("env_count", MAX_SHARD_ENTRIES), ("notes_count", MAX_NOTES)):
            count = getattr(self, what)
            if not is_int(count) or not 0 <= count <= most:
                raise SnapshotError(f"core: {what} is {str(count)[:80]}, not a count up to {most}")
        for what in ("env_root", "alias_root", "notes_root"):
            if not isinstance(getattr(self, what), str) or not is_digest(getattr(self, what)):
                raise SnapshotError(f"core: {what} is {getattr(self, what)!r}, not sha256:<hex>")
        if len(self.parents) > MAX_PARENTS:
            raise SnapshotError(f"a snapshot names at most {MAX_PARENTS} parents")

    @property
    def digest(self) -> str:
        """The snapshot's identity: everything that it holds, and its name and version."""
        return sha256_digest(_DIGEST_DOMAIN + canonical_json(self.to_json()))

    @property
    def content_digest(self) -> str:
        """Digest of the environments and their ids alone: equal where only notes or names differ."""
        return sha256_digest(_CONTENT_DOMAIN + canonical_json([self.env_root, self.alias_root]))

    def to_json(self) -> dict[str, Any]:
        """Return the object that the digest covers."""
        return {
            "name": self.name,
            "version": self.version,
            "license": self.license,
            "env_count": self.env_count,
            "env_root": self.env_root,
            "alias_root": self.alias_root,
            "notes_count": self.notes_count,
            "notes_root": self.notes_root,
            "parents": [parent.to_json() for parent in self.parents],
        }

    @classmethod
    def from_json(cls, raw: object) -> Core:
        """Read a core; `SnapshotError` for any other object."""
        if not isinstance(raw, dict):
            raise SnapshotError(f"core must be an object, got {type(raw).__name__}")
        check_keys(raw, _KEYS, "core")
        if not isinstance(raw["parents"], list):
            raise SnapshotError("core: parents must be a list")
        return cls(**raw | {"parents": tuple(_parent(item) for item in raw["parents"])})


def env_root(digests: Iterable[str]) -> str:
    """Root over digests that come sorted."""
    root = MerkleRoot()
    root.extend(bytes.fromhex(digest.removeprefix("sha256:")) for digest in digests)
    return root.digest()


def alias_root(aliases: Iterable[tuple[str, int, str]]) -> str:
    """Root over (name, version, digest) that come sorted."""
    root = MerkleRoot()
    root.extend(f'["{name}",{version},"{digest}"]'.encode() for name, version, digest in aliases)
    return root.digest()


def joined_license(licenses: Iterable[str]) -> str:
    """One SPDX expression for all: `A AND B`, each once, sorted; what has an OR in parentheses."""
    found = sorted({text.strip() for text in licenses} - {""})
    if len(found) == 1:
        return found[0]
    return " AND ".join(f"({text})" if " " in text else text for text in found)


def check_name(text: object) -> str:
    """Return a snapshot's name; `SnapshotError` when it can be none."""
    if not isinstance(text, str) or _NAME.fullmatch(text) is None:
        raise SnapshotError(
            f"a snapshot's name must be letters, digits, '.', '_' and '-', got {repr(text)[:80]}"
        )
    return text


def check_version(text: object) -> str:
    """Return a snapshot's version; `SnapshotError` when it can be none."""
    if not isinstance(text, str) or _VERSION.fullmatch(text) is None:
        raise SnapshotError(
            f"a snapshot's version must be for example 1.2.0, got {repr(text)[:80]}"
        )
    return text


def next_patch(version: str) -> str:
    """The version that follows when only notes change: 1.2 becomes 1.2.1."""
    major, minor, patch = [*check_version(version).split("."), "0", "0"][:3]
    return f"{major}.{minor}.{int(patch) + 1}"


def _parent(raw: object) -> Parent:
    if not isinstance(raw, dict):
        raise SnapshotError("core: a parent must be an object")
    check_keys(raw, _PARENT_KEYS, "a parent")
    return Parent(**raw)
