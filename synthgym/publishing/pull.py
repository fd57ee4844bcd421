"""From a reference to a folder with the snapshot: index, manifest, signatures, and only the files needed."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synthgym.errors import ConfigError, SnapshotError, TrustError
from synthgym.ids import did_you_mean
from synthgym.publishing.cache import Cache
from synthgym.publishing.configuration import configured_remotes, is_offline
from synthgym.publishing.fetching import Fetched, NotCachedError, Pins, Progress, Wanted, fetch
from synthgym.publishing.hub import HubSource
from synthgym.publishing.index import Index
from synthgym.publishing.lock import Lock, Locked
from synthgym.publishing.lookup import Indexes
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.references import (
    HubReference,
    NamedReference,
    PathReference,
    Reference,
    UrlReference,
    parse_named,
    parse_reference,
)
from synthgym.publishing.remotes import open_remote, remote_url
from synthgym.publishing.resolution import Resolved, resolve
from synthgym.publishing.serials import Serials
from synthgym.publishing.sources import RegistrySource, Source, source_at
from synthgym.publishing.staging import make_folder
from synthgym.publishing.trust import AllowedSigners, Verdict
from synthgym.registry.files import open_files, read_file
from synthgym.registry.layout import MANIFEST, MAX_MANIFEST_BYTES, SIGNATURES
from synthgym.registry.manifest import Manifest
from synthgym.spec import sha256_digest

_SEEN: Final = "snapshot.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where to look, and what to trust."""

    cache: Cache
    remotes: Sequence[str | Path]
    """The registries that names are looked up in, in this order."""
    policy: TrustPolicy
    serials: Serials
    wanted: Wanted
    offline: bool = False
    allow_yanked: bool = False
    """Load even what was yanked as unsafe."""
    lock: Lock | None = None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulled:
    """A snapshot that is on this machine now."""

    path: Path
    """Folder, or packed file; `Snapshot.open` reads it."""
    reference: str
    name: str
    version: str
    digest: str
    manifest_sha256: str
    remote: str
    """URL that it came from."""
    verdict: Verdict
    """What its signatures say."""
    warnings: tuple[str, ...] = ()
    """What the user should be told: yanked releases, expired indexes."""

    def locked(self) -> Locked:
        """The entry for a lock."""
        return Locked(
            reference=self.reference,
            name=self.name,
            version=self.version,
            digest=self.digest,
            manifest_sha256=self.manifest_sha256,
            remote=self.remote,
            signer=self.verdict.fingerprint if self.verdict.is_good else "",
        )


def pull(  # noqa: PLR0913 -- all by name, and all optional
    reference: str,
    *,
    cache: Cache | None = None,
    remotes: Sequence[str | Path] | None = None,
    only: Collection[str] | None = None,
    env_ids: Sequence[str] | None = None,
    allowed_signers: AllowedSigners | None = None,
    require_signature: bool = False,
    offline: bool | None = None,
    allow_yanked: bool = False,
    lock: Lock | None = None,
    progress: Progress | None = None,
) -> Path:
    """Bring a snapshot to this machine and return its folder (or packed file), for `Snapshot.open`.

    `reference` is what docs/publishing.md lists. `only` names the parts that are needed ("envs",
    "notes", "vectors"), `env_ids` the environments. What is in the cache is not fetched again; after
    an interruption the next call goes on. With `lock` the references that it knows come to what they
    came to before. `progress` is called with the bytes that are there and those that are wanted.

    `ConfigError` for a reference that does not parse or a setting that is wrong; `TrustError` when a
    signature is wrong, or missing where it is required, or an index went back in time;
    `IntegrityError` for bytes that are not those promised; `SnapshotError` for anything else. Yanked
    releases are a `UserWarning`.
    """
    pulled = pull_release(
        reference,
        make_settings(
            cache=cache,
            remotes=remotes,
            wanted=Wanted(only=only, env_ids=env_ids),
            allowed_signers=allowed_signers,
            require_signature=require_signature,
            offline=offline,
            allow_yanked=allow_yanked,
            lock=lock,
            progress=progress,
        ),
    )
    for warning in pulled.warnings:
        warnings.warn(warning, UserWarning, stacklevel=2)
    return pulled.path


def make_settings(  # noqa: PLR0913 -- all by name, and all optional
    *,
    cache: Cache | None = None,
    remotes: Sequence[str | Path] | None = None,
    wanted: Wanted | None = None,
    allowed_signers: AllowedSigners | None = None,
    require_signature: bool = False,
    offline: bool | None = None,
    allow_yanked: bool = False,
    lock: Lock | None = None,
    progress: Progress | None = None,
) -> Settings:
    """Settings with what is not given taken from the user's files and environment variables."""
    allowed = AllowedSigners.read() if allowed_signers is None else allowed_signers
    return Settings(
        cache=Cache() if cache is None else cache,
        remotes=configured_remotes() if remotes is None else remotes,
        policy=TrustPolicy(allowed=allowed, required=require_signature),
        serials=Serials(),
        wanted=Wanted() if wanted is None else wanted,
        offline=is_offline() if offline is None else offline,
        allow_yanked=allow_yanked,
        lock=lock,
        progress=progress,
    )


def pull_release(reference: str, settings: Settings) -> Pulled:
    """As `pull`, with all that is known of what was pulled; warnings are returned."""
    settings.cache.collect_garbage()
    parsed = parse_reference(reference)
    locked = settings.lock.find(str(parsed)) if settings.lock is not None else None
    if locked is not None and not isinstance(parsed, PathReference):
        return _pull_locked(parsed, locked, settings)
    match parsed:
        case PathReference():
            return _open_path(parsed, settings)
        case NamedReference():
            return _pull_named(parsed, settings)
        case UrlReference() | HubReference():
            return _pull_direct(parsed, settings)


def _open_path(reference: PathReference, settings: Settings) -> Pulled:
    """A snapshot of this machine stays where it is; its files are checked when they are read."""
    files = open_files(reference.path)
    data = read_file(files, MANIFEST, MAX_MANIFEST_BYTES)
    armours = b""
    if SIGNATURES in files.paths():
        armours = read_file(files, SIGNATURES, MAX_MANIFEST_BYTES)
    fetched = Fetched(
        path=reference.path,
        manifest=Manifest.from_bytes(data),
        manifest_sha256=sha256_digest(data),
        verdict=settings.policy.check(str(reference), data, armours.decode("utf-8", "replace")),
    )
    return _pulled(reference, fetched, remote_url(reference.path))


def _pull_named(reference: NamedReference, settings: Settings) -> Pulled:
    indexes = Indexes(settings.cache, settings.policy, settings.serials, offline=settings.offline)
    try:
        url, resolved = _find(reference, settings, indexes)
    except _UnknownError:
        held = _pull_held(reference, settings)
        if held is None:
            raise
        return held
    release = resolved.release
    pins = Pins(
        name=resolved.name,
        version=release.version,
        digest=release.digest,
        manifest_sha256=release.manifest_sha256,
        by_content=bool(reference.digest),
    )
    source = None if settings.offline else RegistrySource(open_remote(url), release.digest)
    fetched = _fetch(source, pins, settings)
    return _pulled(reference, fetched, remote_url(url), [resolved.warning, *indexes.warnings])


class _UnknownError(ConfigError, SnapshotError):
    """No registry that is asked knows the reference."""


def _pull_held(reference: NamedReference, settings: Settings) -> Pulled | None:
    """What is pinned to its content and was pulled before, from wherever; None when it is not here."""
    for view in settings.cache.views(reference.digest) if reference.digest else ():
        pins = Pins(
            name=reference.name,
            digest=reference.digest,
            manifest_sha256=f"sha256:{view.name}",
            by_content=True,
        )
        with suppress(NotCachedError):
            return _pulled(reference, _fetch(None, pins, settings), remote_url(view))
    return None


def _find(
    reference: NamedReference, settings: Settings, indexes: Indexes
) -> tuple[str | Path, Resolved]:
    """The first remote that knows the name (or the digest, when there is no name), and the release."""
    remotes = [reference.remote] if reference.remote else settings.remotes
    if not remotes:
        raise _UnknownError(
            f"{str(reference)!r} is no folder here, and of the registries none is configured: set SYNTHGYM_REMOTES, "
            'or remotes = ["https://host/registry"] in the config file, or write URL#name'
        )
    known: list[str] = []
    for url in remotes:
        index = indexes.read(url)
        if index is None:
            continue
        if settings.offline:
            index = _held(index, settings.cache)
        known.extend(index.names)
        name = reference.name or _name_of(index, reference.digest)
        if name in index.names:
            return url, resolve(
                index,
                name,
                None if reference.digest else reference.wanted or None,
                digest=reference.digest or None,
                allow_yanked=settings.allow_yanked,
            )
    where = "the cache (offline)" if settings.offline else ", ".join(str(url) for url in remotes)
    near = did_you_mean(reference.name, known) if reference.name else ""
    raise _UnknownError(f"there is no snapshot {str(reference)!r} in {where}{near}")


def _name_of(index: Index, digest: str) -> str:
    found = (n for n, all_of in index.names.items() if any(r.digest == digest for r in all_of))
    return next(found, "")


def _held(index: Index, cache: Cache) -> Index:
    """The index with those releases only of which the cache has a view."""
    names = {
        name: tuple(
            r for r in releases if (cache.view(r.digest, r.manifest_sha256) / MANIFEST).is_file()
        )
        for name, releases in index.names.items()
    }
    held = {name: releases for name, releases in names.items() if releases}
    return Index(serial=index.serial, previous=index.previous, names=held, expires=index.expires)


def _pull_direct(reference: UrlReference | HubReference, settings: Settings) -> Pulled:
    """A snapshot at a URL, which no index tells of; offline, what was there when it was last pulled."""
    pins = _selected(reference)
    if settings.offline:
        fetched = _fetch(None, _seen(str(reference), settings.cache), settings)
        return _pulled(reference, fetched, str(reference))
    with _direct_source(reference, settings.cache) as source:
        fetched = _fetch(source, pins, settings)
    seen = {"digest": fetched.manifest.digest, "manifest_sha256": fetched.manifest_sha256}
    settings.cache.remember(str(reference), _SEEN, json.dumps(seen).encode())
    return _pulled(reference, fetched, source.url)


def _pull_locked(reference: Reference, locked: Locked, settings: Settings) -> Pulled:
    """What the reference came to before, out of the cache when that has it."""
    pins = Pins(
        name=locked.name,
        version=locked.version,
        digest=locked.digest,
        manifest_sha256=locked.manifest_sha256,
    )
    is_named = isinstance(reference, NamedReference)
    try:
        fetched = _fetch(None, pins, settings)
        online = False
    except (NotCachedError, TrustError):  # or its author has signed it since
        if settings.offline:
            raise
        online = True
    indexes = Indexes(
        settings.cache, settings.policy, settings.serials, offline=settings.offline or not online
    )
    told = _yank_of(locked, indexes, settings) if is_named else ""
    if online and is_named:
        source = RegistrySource(open_remote(locked.remote), locked.digest)
        fetched = _fetch(source, pins, settings)
    elif online:
        parsed = parse_reference(locked.remote)
        if isinstance(parsed, NamedReference | PathReference):
            raise ConfigError(f"the lock names {locked.remote!r} as the remote of {reference}")
        with _direct_source(parsed, settings.cache) as direct:
            fetched = _fetch(direct, pins, settings)
    return _pulled(reference, fetched, locked.remote, [told, *indexes.warnings])


def _yank_of(locked: Locked, indexes: Indexes, settings: Settings) -> str:
    """What the index that is at hand says against a locked release; `SnapshotError` when it is unsafe."""
    index = indexes.read(locked.remote)
    if index is None or locked.name not in index.names:
        return ""
    resolved = resolve(index, locked.name, digest=locked.digest, allow_yanked=settings.allow_yanked)
    return resolved.warning


def _fetch(source: Source | None, pins: Pins, settings: Settings) -> Fetched:
    return fetch(source, settings.cache, pins, settings.wanted, settings.policy, settings.progress)


@contextmanager
def _direct_source(reference: UrlReference | HubReference, cache: Cache) -> Iterator[Source]:
    if isinstance(reference, HubReference):
        yield HubSource(reference.repository, reference.revision)
        return
    make_folder(cache.root / "tmp")
    with tempfile.TemporaryDirectory(dir=cache.root / "tmp", prefix="packed-") as staging:
        yield source_at(reference.url, Path(staging))


def _selected(reference: UrlReference | HubReference) -> Pins:
    if not isinstance(reference, HubReference) or not reference.selection:
        return Pins()
    named = parse_named(reference.selection)
    return Pins(
        name=named.name, version=named.version, digest=named.digest, by_content=bool(named.digest)
    )


def _seen(reference: str, cache: Cache) -> Pins:
    path = cache.remote_folder(reference) / _SEEN
    try:
        raw = json.loads(path.read_bytes())
        return Pins(digest=str(raw["digest"]), manifest_sha256=str(raw["manifest_sha256"]))
    except FileNotFoundError as error:
        raise NotCachedError(
            f"offline: {reference} is not in the cache: pull it while there is a network"
        ) from error
    except (ValueError, TypeError, KeyError) as error:
        raise SnapshotError(f"{path} is damaged: remove it") from error


def _pulled(
    reference: Reference, fetched: Fetched, remote: str, told: Sequence[str] = ()
) -> Pulled:
    return Pulled(
        path=fetched.path,
        reference=str(reference),
        name=fetched.manifest.name,
        version=fetched.manifest.version,
        digest=fetched.manifest.digest,
        manifest_sha256=fetched.manifest_sha256,
        remote=remote,
        verdict=fetched.verdict,
        warnings=tuple(text for text in (*told, fetched.warning) if text),
    )
