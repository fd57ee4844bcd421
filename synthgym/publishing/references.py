"""What a user may write for a snapshot, taken apart.

./games, games.sgz, file:///data/games     a folder or a file that is there
games, games@1.2.0, games==1.2             a name in the configured remotes; the newest, or one version
games>=1,<2                                the newest version in a range
games@sha256:<hex>, @sha256:<hex>          one content, whatever it is called
https://host/games, s3://bucket/games.sgz  a snapshot at a URL: a folder or a file
https://host/registry#games@1.2.0          a name in the registry at a URL
hf://org/repository@revision               a data set of the Hugging Face Hub
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

import fsspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from synthgym.errors import ConfigError, SnapshotError
from synthgym.ids import did_you_mean, is_digest
from synthgym.registry.core import check_name, check_version
from synthgym.registry.layout import MANIFEST

ARCHIVE_SUFFIX: Final = ".sgz"
_SPLIT: Final = re.compile(
    r"(?P<name>[^@=<>!~ ]*) *(?:@(?P<exact>.*)|(?P<range>[=<>!~].*))?", re.DOTALL
)
_HUB_REPOSITORY: Final = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?/[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?",
    re.ASCII,
)
_SECRET: Final = re.compile(r"//[^@/]*@")
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}", re.ASCII)
_FORMS: Final = (
    "expected a folder or .sgz file, a name (games, games@1.2.0, games>=1,<2, games@sha256:<hex>), "
    "@sha256:<hex>, hf://org/repository@revision, or a URL such as https://host/registry#games"
)


@dataclass(frozen=True, slots=True)
class PathReference:
    """A folder or an .sgz file of this machine, absolute."""

    path: Path

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True, slots=True)
class NamedReference:
    """A name in a registry; `wanted` says which of its versions."""

    name: str
    wanted: str = ""
    """Empty for the newest, a range of PEP 440 (`==1.2`, `>=1,<2`), or a digest."""
    remote: str = ""
    """URL of the registry; empty for the configured ones."""

    def __str__(self) -> str:
        exact = self.wanted if is_digest(self.wanted) else self.version
        named = f"{self.name}@{exact}" if exact else f"{self.name}{self.wanted}"
        return f"{self.remote}#{named}" if self.remote else named

    @property
    def version(self) -> str:
        """The one version that is meant, or nothing."""
        exact = self.wanted.removeprefix("==")
        return "" if exact == self.wanted or "," in exact or "*" in exact else exact

    @property
    def digest(self) -> str:
        """The one content that is meant, or nothing."""
        return self.wanted if is_digest(self.wanted) else ""


@dataclass(frozen=True, slots=True)
class UrlReference:
    """A snapshot at a URL that fsspec knows: a folder, or an .sgz file."""

    url: str

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class HubReference:
    """A data set repository of the Hugging Face Hub."""

    repository: str
    revision: str = ""
    """Commit, tag or branch; the default branch when empty."""
    selection: str = ""
    """`name@version` that the snapshot there must have, or nothing."""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        return f"hf://{self.repository}{revision}" + (
            f"#{self.selection}" if self.selection else ""
        )


Reference: TypeAlias = PathReference | NamedReference | UrlReference | HubReference


def parse_reference(text: str) -> Reference:
    """Take a reference apart; `ConfigError` says what was expected, what came, and what is near.

    A word that names a folder with a manifest in it, or a file that ends in .sgz, is a path. Write
    `./games` or `games@1.2.0` where both are there and it matters.
    """
    text = text.strip()
    if not text or not text.isprintable():
        raise _bad(text, "it is empty or holds control characters")
    if "://" in text:
        return _parse_url(text)
    try:
        path = Path(text).expanduser()
        is_here = text.endswith(ARCHIVE_SUFFIX) or (path / MANIFEST).is_file()
        if is_here or "/" in text or "\\" in text or text in (".", "..") or text.startswith("~"):
            return _existing(text, path)
    except (OSError, RuntimeError) as error:  # a name that is too long, or nobody's home
        raise _bad(text, str(error)) from error
    return parse_named(text)


def check_url(url: str) -> None:
    """Raise `ConfigError` for a URL that chains file systems, or holds a password or a token."""
    if "::" in url:  # fsspec would read the address of an IPv6 host as a chain, too
        raise _bad(url, "chained file systems (::) are not read: name the snapshot itself")
    try:
        host = urlsplit(url)
    except ValueError as error:
        raise _bad(url, str(error)) from error
    if host.password is not None or ("@" in host.netloc and host.scheme in ("http", "https")):
        raise _bad(url, "it holds a user or password: give those to the file system's own settings")


def parse_named(text: str, remote: str = "") -> NamedReference:
    """Take `name`, `name@1.2.0`, `name>=1,<2` or `name@sha256:<hex>` apart."""
    match = _SPLIT.fullmatch(text)
    if match is None:
        raise _bad(text)
    name, exact, wanted = match["name"], match["exact"], match["range"]
    if not name and not (exact and is_digest(exact)):
        raise _bad(text, "a name is missing")
    try:
        if name:
            check_name(name)
        if exact is not None and not is_digest(exact):
            _check_exact(text, exact)
            exact = f"=={exact}"
    except SnapshotError as error:
        raise _bad(text, str(error)) from error
    return NamedReference(name, exact or _check_range(text, wanted or ""), remote)


def _check_exact(text: str, exact: str) -> None:
    if exact.startswith("sha256") or len(exact) >= 32:
        raise _bad(text, f"{exact!r} is not sha256: and 64 hex digits")
    check_version(exact)


def _check_range(text: str, wanted: str) -> str:
    if not wanted:
        return ""
    if wanted.startswith("=") and not wanted.startswith("=="):
        raise _bad(text, f"did you mean {text.replace('=', '==', 1)!r}?")
    try:
        SpecifierSet(wanted)
    except InvalidSpecifier as error:
        raise _bad(text, f"{wanted!r} is not a range of versions such as >=1,<2") from error
    if "===" in wanted:
        raise _bad(text, "=== compares text; write ==")
    return "".join(wanted.split())


def _existing(text: str, path: Path) -> PathReference:
    if path.is_file() and path.name.endswith(ARCHIVE_SUFFIX):
        return PathReference(path.absolute())
    if (path / MANIFEST).is_file():
        return PathReference(path.absolute())
    if path.is_dir():
        raise _bad(text, f"the folder is there but holds no {MANIFEST}")
    near = ""
    if path.parent.is_dir():
        near = did_you_mean(path.name, (inner.name for inner in path.parent.iterdir()))
    raise _bad(text, f"there is no such folder or file{near}")


def _parse_url(text: str) -> Reference:
    scheme, rest = text.split("://", 1)
    scheme = scheme.lower()
    check_url(text)
    known = fsspec.available_protocols()
    if scheme not in known:
        near = did_you_mean(scheme, known)
        raise _bad(text, f"fsspec knows no file system {scheme!r}{near}")
    if "@" in urlsplit(text).netloc and scheme not in ("hf", "abfs", "adl", "az"):
        raise _bad(
            text, "it holds a user or password: give those to the file system's own settings"
        )
    location, mark, selection = rest.partition("#")
    if mark and not selection:
        raise _bad(text, "after '#' comes a name, for example #games@1.2.0")
    if scheme == "hf":
        return _parse_hub(text, location, selection)
    if scheme in ("file", "local"):
        try:
            path = Path(unquote(location)).expanduser()
            if not selection:
                return _existing(text, path)
        except (OSError, RuntimeError) as error:
            raise _bad(text, str(error)) from error
        return parse_named(selection, f"file://{path.absolute()}")
    url = f"{scheme}://{location}".rstrip("/")
    return parse_named(selection, url) if selection else UrlReference(url)


def _parse_hub(text: str, location: str, selection: str) -> HubReference:
    location = location.rstrip("/").removeprefix("datasets/")
    repository, mark, revision = location.partition("@")
    if _HUB_REPOSITORY.fullmatch(repository) is None:
        raise _bad(text, "a data set of the Hub is hf://org/repository")
    if mark and (_REVISION.fullmatch(revision) is None or ".." in revision):
        raise _bad(text, f"{revision!r} cannot be a revision: write a commit, tag or branch")
    wanted = parse_named(selection) if selection else None
    if wanted is not None and wanted.wanted and not wanted.version:
        raise _bad(text, "a repository holds one snapshot: after '#' comes name or name@version")
    return HubReference(repository, revision, str(wanted) if wanted else "")


def _bad(text: str, why: str = "") -> ConfigError:
    reason = f" ({why})" if why else ""
    shown = _SECRET.sub("//…@", text)  # messages end up in logs
    return ConfigError(f"{shown!r} is not a reference to a snapshot{reason}; {_FORMS}")
