"""From a source to a view in the cache: the manifest first, then only the files that are needed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.ids import did_you_mean, is_digest, parse_pinned_id
from synthgym.publishing.cache import Cache
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.sources import Source
from synthgym.publishing.trust import Verdict
from synthgym.registry.layout import (
    FOLDER,
    MANIFEST,
    MAX_MANIFEST_BYTES,
    SIGNATURES,
    FileRef,
    env_parts,
    shard_of,
)
from synthgym.registry.manifest import Manifest
from synthgym.registry.snapshot import Snapshot
from synthgym.spec import sha256_digest

PARTS: Final = {
    "envs": ("envs", "source", "spec"),
    "notes": ("notes", "report", "card"),
    "index": ("index",),
    "vectors": ("vectors",),
}
"""Kinds of files by what a user calls them."""
_ALWAYS: Final = ("index",)
"""Without these nothing can be found in a snapshot."""
_SHARD: Final = re.compile(r"-(?P<number>\d{3})-of-(?P<count>\d{3})\.", re.ASCII)
_WORKERS: Final = 8
"""Files under way at once."""

Progress = Callable[[int, int], None]
"""Called with the bytes that are there, and those that are wanted in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a user wants of a snapshot."""

    only: Collection[str] | None = None
    """Of `PARTS`; all unless given."""
    env_ids: Sequence[str] | None = None
    """Ids or digests; all environments unless given."""
    recheck: bool = False
    """Read what is in the cache as well, and fetch again what is damaged."""

    def __post_init__(self) -> None:
        for part in self.only or ():
            if part not in PARTS:
                raise ConfigError(
                    f"no part of a snapshot is called {part!r}{did_you_mean(part, PARTS)} "
                    f"(there are {', '.join(PARTS)})"
                )

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left out."""
        return self.only is None and self.env_ids is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What is known of a snapshot beforehand; empty where nothing is."""

    name: str = ""
    version: str = ""
    digest: str = ""
    manifest_sha256: str = ""
    by_content: bool = False
    """The user named the digest, and whoever named the manifest is not trusted to have told the truth."""

    def check(self, data: bytes, manifest: Manifest, origin: str) -> None:
        """Raise `IntegrityError` when a manifest is not the one that was meant."""
        found = {
            "name": manifest.name,
            "version": manifest.version,
            "digest": manifest.digest,
            "manifest_sha256": sha256_digest(data),
        }
        for what, came in found.items():
            promised = getattr(self, what)
            if promised and promised != came:
                raise IntegrityError(
                    f"{origin}: promised a snapshot of {what} {promised}, got {came}"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A view that holds what was wanted."""

    path: Path
    manifest: Manifest
    manifest_sha256: str
    verdict: Verdict
    warning: str = ""


class NotCachedError(SnapshotError):
    """Something is not in the cache, and there is no source to fetch it from."""


def fetch(
    source: Source | None,
    cache: Cache,
    pins: Pins,
    wanted: Wanted,
    policy: TrustPolicy,
    progress: Progress | None = None,
) -> Fetched:
    """Bring what is wanted into the cache, and return the view. What is there already is not fetched.

    Without a source the cache must have it all: `NotCachedError` says what is missing. `IntegrityError`
    when bytes are not those that the manifest promises, or the manifest is not the one that was meant;
    `TrustError` as the policy says.
    """
    data, signatures = _manifest(source, cache, pins, policy)
    origin = source.url if source is not None else "the cache"
    manifest = Manifest.from_bytes(data)
    pins.check(data, manifest, origin)
    shown = f"{manifest.name} {manifest.version} of {origin}"
    verdict = policy.check(shown, data, signatures.decode("utf-8", "replace"))
    own = sha256_digest(data)
    if not cache.holds(own, len(data), recheck=True):
        cache.install(own, len(data), (data,), origin)
    view = cache.view(manifest.digest, own)
    signatures = _kept(_signatures_of(view), signatures, data, policy)
    transfer = _Transfer(source, cache, view, wanted, progress)
    if wanted.env_ids is not None:
        transfer.bring([ref for ref in manifest.files if ref.kind in _ALWAYS])
        cache.finish_view(view, own, signatures)
    transfer.bring(needed_files(manifest, wanted, view))
    cache.finish_view(view, own, signatures)
    _check_ids(view, wanted)
    warning = _check_content(cache, view, own, wanted) if pins.by_content else ""
    return Fetched(
        path=view, manifest=manifest, manifest_sha256=own, verdict=verdict, warning=warning
    )


def needed_files(manifest: Manifest, wanted: Wanted, view: Path) -> list[FileRef]:
    """The files that hold what is wanted. For ids the view must have its manifest and its index.

    `EnvNotFoundError` for an id that the snapshot does not have.
    """
    kinds = {kind for part in wanted.only or PARTS for kind in PARTS[part]} | set(_ALWAYS)
    files = [ref for ref in manifest.files if ref.kind in kinds]
    if wanted.env_ids is None:
        return files
    snapshot = Snapshot.open(view)
    folders = set()
    digests = set()
    for env_id in wanted.env_ids:
        beginning = _first_digits(env_id)
        if manifest.layout != FOLDER and beginning:
            digests.add(beginning)  # it says its shard itself, and can be looked up there only
            continue
        entry = snapshot.entry(env_id)
        digests.add(entry.digest)
        folders.add("/".join(env_parts(entry.name, entry.version)))
    return [
        ref
        for ref in files
        if ref.kind in _ALWAYS
        or ref.path.rpartition("/")[0] in folders
        or _is_shard_of(ref.path, digests)
    ]


def _first_digits(env_id: str) -> str:
    """A digest, or what a pinned id tells of one; nothing for an id for people."""
    pinned = parse_pinned_id(env_id)
    return f"sha256:{pinned[1]}" if pinned else env_id if is_digest(env_id) else ""


def _check_ids(view: Path, wanted: Wanted) -> None:
    """Raise `EnvNotFoundError` for a digest that its shard turned out not to hold."""
    held = {kind for part in wanted.only or PARTS for kind in PARTS[part]}
    if wanted.env_ids is not None and "envs" in held:
        snapshot = Snapshot.open(view)
        for env_id in wanted.env_ids:
            snapshot.entry(env_id)


def _is_shard_of(path: str, digests: Iterable[str]) -> bool:
    match = _SHARD.search(path)
    if match is None:
        return False
    number, count = int(match["number"]), int(match["count"])
    return any(shard_of(digest, count) == number for digest in digests)


class _Transfer:
    """Files on their way into a view."""

    def __init__(
        self,
        source: Source | None,
        cache: Cache,
        view: Path,
        wanted: Wanted,
        progress: Progress | None,
    ) -> None:
        self._source = source
        self._cache = cache
        self._view = view
        self._recheck = wanted.recheck
        self._progress = progress

    def bring(self, files: Sequence[FileRef]) -> None:
        """Have all of them in the view; the first error ends it, and what is there stays."""
        missing = [ref for ref in files if not self._is_there(ref)]
        if missing and self._source is None:
            raise NotCachedError(
                f"offline: {len(missing)} of {len(files)} files are not in the cache "
                f"({missing[0].path}): pull them while there is a network"
            )
        done, total = sum(ref.size for ref in files), sum(ref.size for ref in files)
        done -= sum(ref.size for ref in missing)
        self._tell(done, total)
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="synthgym-pull") as pool:
            pending = {pool.submit(self._install, ref): ref for ref in missing}
            try:
                for future in as_completed(pending):
                    future.result()
                    done += pending[future].size
                    self._tell(done, total)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        for ref in files:
            self._cache.link_file(self._view, ref.path, ref.sha256)

    def _is_there(self, ref: FileRef) -> bool:
        return self._cache.holds(ref.sha256, ref.size, recheck=self._recheck)

    def _install(self, ref: FileRef) -> None:
        if self._source is None:
            raise AssertionError("nothing to fetch from")
        origin = f"{self._source.url}: {ref.path}"
        try:
            self._cache.install(ref.sha256, ref.size, self._source.stream(ref), origin)
        except FileNotFoundError as error:
            raise IntegrityError(f"{origin} is in the manifest, but it is not there") from error

    def _tell(self, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(done, total)


def _manifest(
    source: Source | None, cache: Cache, pins: Pins, policy: TrustPolicy
) -> tuple[bytes, bytes]:
    """The bytes of the manifest and of its signatures, out of the cache where that has them."""
    if pins.manifest_sha256 and pins.digest:
        view = cache.view(pins.digest, pins.manifest_sha256)
        held = cache.read(pins.manifest_sha256, MAX_MANIFEST_BYTES)
        if held is not None and (view / MANIFEST).is_file():
            signatures = _signatures_of(view)
            if source is None or not policy.required or policy.is_good(held, signatures):
                return held, signatures
            # Its author may have signed it since; a manifest does not change, its signatures may.
            return held, source.signatures(held)
    if source is None:
        raise NotCachedError(
            f"offline: {pins.name or pins.digest} {pins.version} is not in the cache: "
            "pull it while there is a network"
        )
    data = source.manifest()
    return data, source.signatures(data)


def _signatures_of(view: Path) -> bytes:
    try:
        return (view / SIGNATURES).read_bytes()
    except FileNotFoundError:
        return b""


def _kept(there: bytes, came: bytes, data: bytes, policy: TrustPolicy) -> bytes:
    """The signatures that a view keeps: a good one is not lost to a stranger's of the same manifest."""
    if there and there != came and policy.is_good(data, there) and not policy.is_good(data, came):
        return there
    return came


def _check_content(cache: Cache, view: Path, manifest_sha256: str, wanted: Wanted) -> str:
    """Compute the digest from the files, once for each manifest: that of a stranger could lie.

    Returns what the user should be told when it cannot be done, for not all files are there.
    """
    if cache.is_verified(manifest_sha256):
        return ""
    if not wanted.is_whole:
        return (
            "only a part was pulled: every file is the one that the manifest names, but whether they "
            "come to the digest can be told of the whole only"
        )
    problems = Snapshot.open(view).verify()
    if problems:
        raise IntegrityError("\n".join(problems))
    cache.mark_verified(manifest_sha256)
    return ""
