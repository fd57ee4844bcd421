"""From what a user asks for to one release of an index.

    nothing, or a range such as >=1.2,<2     the highest release that was not yanked
    a version such as 1.2, or ==1.2          that one; with a warning when it was yanked
    a digest                                 that one; with a warning when it was yanked

What was yanked as unsafe is refused in the last two cases, too, unless the user allows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from synthgym.errors import ConfigError, SnapshotError
from synthgym.ids import did_you_mean, is_digest
from synthgym.publishing.index import Index, Release
from synthgym.registry.manifest import READER

_VERSION: Final = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_SHOWN: Final = 10
"""Versions that a message names at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The release that was asked for."""

    name: str
    release: Release
    warning: str = ""
    """What the user should be told, as a sentence; mostly empty."""


def resolve(
    index: Index,
    name: str,
    version: str | None = None,
    *,
    digest: str | None = None,
    allow_yanked: bool = False,
) -> Resolved:
    """Return one release of `name`: by version, by range (PEP 440), by digest, or the highest.

    With a version or range and a digest, both must hold. `SnapshotError` when there is none,
    `ConfigError` for a range or digest that does not parse.
    """
    releases = index.names.get(name)
    if releases is None:
        raise SnapshotError(
            f"the index knows no snapshot {name!r}{did_you_mean(name, index.names)}"
        )
    wanted = _specifiers(version)
    matching = [release for release in releases if wanted.contains(release.key)]
    if digest is not None:
        matching = [release for release in matching if release.digest == _checked(digest)]
    if not matching:
        raise SnapshotError(
            f"no release of {name} is {_asked(version, digest)}; there is {_versions(releases)}"
        )
    if digest is not None or _is_exact(wanted):
        return _exact(name, matching[-1], allow_yanked)
    return _highest(name, matching, version)


def _exact(name: str, release: Release, allow_yanked: bool) -> Resolved:
    if release.min_reader > READER:
        raise SnapshotError(
            f"{name} {release.version} needs a reader of version {release.min_reader}, this "
            f"synthgym is {READER}: install a newer synthgym"
        )
    yank = release.yanked
    if yank is None:
        return Resolved(name=name, release=release)
    said = f"{name} {release.version} was yanked at {yank.at} as {yank.severity}: {yank.reason}"
    if yank.severity == "unsafe" and not allow_yanked:
        raise SnapshotError(f"{said}. It is not loaded unless you allow yanked releases")
    return Resolved(name=name, release=release, warning=said)


def _highest(name: str, matching: list[Release], version: str | None) -> Resolved:
    readable = [release for release in matching if release.min_reader <= READER]
    usable = [release for release in readable if release.yanked is None]
    if usable:
        return Resolved(name=name, release=usable[-1])
    if not readable:
        raise SnapshotError(
            f"every release of {name} that is {_asked(version, None)} needs a newer synthgym"
        )
    last = readable[-1]
    raise SnapshotError(
        f"every release of {name} that is {_asked(version, None)} was yanked: "
        f"{_versions(tuple(readable))}. To use one all the same, ask for exactly it, for example "
        f"version {last.version} or {last.digest}"
    )


def _specifiers(version: str | None) -> SpecifierSet:
    text = version or ""
    try:
        return SpecifierSet(f"=={text}" if _VERSION.fullmatch(text) else text)
    except InvalidSpecifier as error:
        raise ConfigError(
            f"expected a version such as 1.2.0 or a range such as '>=1.2,<2', got {version!r}"
        ) from error


def _is_exact(wanted: SpecifierSet) -> bool:
    """Whether only one version can be meant, as PEP 592 says: `==` without a wildcard."""
    return any(one.operator in ("==", "===") and not one.version.endswith(".*") for one in wanted)


def _checked(digest: str) -> str:
    if not is_digest(digest):
        raise ConfigError(f"expected a digest sha256:<64 hex digits>, got {digest!r}")
    return digest


def _asked(version: str | None, digest: str | None) -> str:
    return " and ".join(part for part in (version, digest) if part) or "there"


def _versions(releases: tuple[Release, ...]) -> str:
    shown = [release.version for release in releases[-_SHOWN:]]
    left = len(releases) - len(shown)
    return ", ".join(shown) + (f" and {left} older ones" if left else "")
