"""From a snapshot on this machine to a registry: files, manifest, index, in this order.

Nothing points at what is not there yet, so a publisher that is killed leaves the registry as it was; its
next attempt goes on where it stopped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from synthgym.errors import ConfigError, IntegrityError, SnapshotError, TrustError
from synthgym.publishing.chain import (
    MAX_SIGNATURE_BYTES,
    Link,
    Sign,
    append,
    manifest_path,
    manifest_signature_path,
    newest,
    object_path,
)
from synthgym.publishing.index import (
    Index,
    Release,
    Yank,
    with_expiry,
    with_release,
    with_yank,
    without_yank,
)
from synthgym.publishing.leaks import check_leaks, find_leaks
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.remotes import Remote, open_remote
from synthgym.publishing.serials import Serials
from synthgym.publishing.sshsig import parse
from synthgym.publishing.trust import AllowedSigner, AllowedSigners
from synthgym.registry.files import Files, open_files, read_file
from synthgym.registry.layout import MAX_MANIFEST_BYTES, SIGNATURES, FileRef
from synthgym.registry.manifest import READER
from synthgym.registry.snapshot import Snapshot
from synthgym.spec import sha256_digest

UNCLEAR_LICENSES: Final = frozenset(
    {"", "other", "unknown", "none", "noassertion", "licenseref-unknown"}
)
_LICENSE_WORD: Final = re.compile(r"[^\s()]+")
_WORKERS: Final = 8
_CHUNK: Final = 1 << 20

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A release that is in the index now."""

    name: str
    version: str
    digest: str
    manifest_sha256: str
    remote: str
    serial: int
    """Of the index that has it."""
    files: int
    uploaded: int
    """Files that were not there already."""
    is_new: bool
    """False when the index had the release before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publishing:
    """How a publisher signs, and what it may let out."""

    sign: Sign | None = None
    """From bytes to an armoured signature; unsigned without one."""
    allowed_signers: AllowedSigners | None = None
    """Whose indexes are built upon when signing, beside one's own; the user's file unless given."""
    adopt: bool = False
    """Sign on top of an index that nobody trusted has signed: whatever is in it is vouched for then."""
    allow_leaks: Collection[str] = ()
    """Kinds of `LeakKind` that are meant to be public."""
    allow_licenses: Collection[str] = ()
    """Of `UNCLEAR_LICENSES`, in lower case; "" for none at all."""
    valid_for: timedelta | None = None
    """How long readers may take the index for the newest; as it was unless given."""
    now: datetime | None = None
    """With a time zone; the clock's unless given."""

    @property
    def time(self) -> datetime:
        """The time of the release."""
        return datetime.now(UTC) if self.now is None else self.now


def publish(
    place: str | Path,
    remote: str | Path,
    publishing: Publishing | None = None,
    progress: Progress | None = None,
) -> Published:
    """Verify a snapshot, put what the registry at `remote` lacks of it, and enter it in the index.

    Before anything is written: `IntegrityError` when the snapshot is not as it promises;
    `SnapshotError` when something private or without a clear license would become public, or its
    version stands for another content there; `TrustError` when the index must not be built upon.
    A release that is there already is left as it is.
    """
    if str(remote).startswith("hf://"):
        raise ConfigError(f"{remote} is no registry: publish_to_hub() puts a snapshot there")
    publishing = publishing or Publishing()
    snapshot = Snapshot.open(place)
    files = open_files(Path(place))
    data = snapshot.manifest.to_bytes()  # and not what somebody may have put there since
    check_publishable(snapshot, files, publishing)
    target = open_remote(remote)
    release = _release(snapshot, data, publishing)
    change = _entering(snapshot.name, release, publishing)
    check = _index_check(target, publishing)
    before = newest(target)
    if before is not None:
        check(before)
    old = Index() if before is None else before.index
    is_new = not _has(old, snapshot)
    change(old)  # a version that stands for another content is refused here
    target.collect_garbage()
    uploaded = _put_files(target, files, snapshot.manifest.files, progress)
    _put_manifest(target, snapshot.digest, data, _own_signatures(files, data, publishing))
    link = append(target, change, sign=publishing.sign, check=check)
    return Published(
        name=snapshot.name,
        version=snapshot.version,
        digest=snapshot.digest,
        manifest_sha256=sha256_digest(data),
        remote=target.url,
        serial=link.index.serial,
        files=len(snapshot.manifest.files),
        uploaded=uploaded,
        is_new=is_new,
    )


def yank(
    remote: str | Path,
    name: str,
    version: str,
    yanked: Yank | None,
    publishing: Publishing | None = None,
) -> int:
    """Mark a release as not to be used any more, or take that back (None); the serial of the index.

    `SnapshotError` when there is no such release.
    """
    publishing = publishing or Publishing()
    target = open_remote(remote)

    def change(index: Index) -> Index:
        if yanked is None:
            return _renewed(index, without_yank(index, name, version), publishing)
        return _renewed(index, with_yank(index, name, version, yanked), publishing)

    check = _index_check(target, publishing)
    return append(target, change, sign=publishing.sign, check=check).index.serial


def check_licenses(snapshot: Snapshot, allowed: Collection[str]) -> None:
    """Raise `SnapshotError` when an environment has no clear license, naming some of them."""
    found: dict[str, list[str]] = {}
    for entry in snapshot:
        words = _LICENSE_WORD.findall(entry.license.lower()) or [""]
        for word in words:
            if word in UNCLEAR_LICENSES and word not in allowed:
                found.setdefault(entry.license, []).append(entry.env_id)
    if found:
        lines = "\n".join(
            f"{text!r}: {', '.join(ids[:3])}{' and more' if len(ids) > 3 else ''}"
            for text, ids in sorted(found.items())
        )
        raise SnapshotError(
            f"nobody could tell what may be done with these environments, by their license:\n{lines}\n"
            "State it as an SPDX expression, or allow it"
        )


def check_publishable(snapshot: Snapshot, files: Files, publishing: Publishing) -> None:
    """Raise `SnapshotError` when a snapshot is not as it promises, or should not become public."""
    problems = snapshot.verify()
    if problems:
        raise IntegrityError("not published:\n" + "\n".join(problems))
    check_licenses(snapshot, publishing.allow_licenses)
    check_leaks(find_leaks(files, snapshot.manifest.files), publishing.allow_leaks)


def _release(snapshot: Snapshot, data: bytes, publishing: Publishing) -> Release:
    return Release(
        version=snapshot.version,
        digest=snapshot.digest,
        manifest_sha256=sha256_digest(data),
        size=sum(ref.size for ref in snapshot.manifest.files),
        env_count=len(snapshot),
        min_reader=READER,
        license=snapshot.core.license,
        published=_rfc3339(publishing.time),
    )


def _entering(name: str, release: Release, publishing: Publishing) -> Callable[[Index], Index]:
    def change(index: Index) -> Index:
        return _renewed(index, with_release(index, name, release), publishing)

    return change


def _has(index: Index, snapshot: Snapshot) -> bool:
    releases = index.names.get(snapshot.name, ())
    return any(release.digest == snapshot.digest for release in releases)


def _renewed(old: Index, new: Index, publishing: Publishing) -> Index:
    """The new index with another expiry, when one is asked for, even if nothing else changes."""
    if publishing.valid_for is None:
        return new
    expires = _rfc3339(publishing.time + publishing.valid_for)
    if new is old:
        return old if old.expires == expires else with_expiry(old, expires)
    return replace(new, expires=expires)


def _index_check(remote: Remote, publishing: Publishing) -> Callable[[Link], None]:
    """What is asked of an index before another is put on top of it.

    A signature on the new one vouches for every release in it, those of others included.
    """
    serials = Serials()

    def check_unsigned(link: Link) -> None:
        serials.check(remote.url, link.index)
        if link.signatures and not publishing.adopt:
            raise TrustError(
                f"the index of {remote.url} is signed, and yours would not be: readers who require "
                "signatures would refuse it. Sign it too, or adopt it (--adopt) to leave it unsigned"
            )

    if publishing.sign is None:
        return check_unsigned
    own = parse(publishing.sign(b""))[0].key
    allowed = publishing.allowed_signers or AllowedSigners.read()
    signers = (*allowed.signers, AllowedSigner(principals=("*",), key=own))
    policy = TrustPolicy(
        allowed=replace(allowed, signers=signers),
        required=not publishing.adopt,
        at=publishing.time,
    )

    def check(link: Link) -> None:
        serials.check(remote.url, link.index)
        try:
            policy.check(f"the index of {remote.url}", link.data, link.signatures)
        except TrustError as error:
            raise TrustError(
                f"{error}. To sign a new index vouches for the releases that this one lists: look at "
                "them, and then adopt it (--adopt)"
            ) from error

    return check


def _put_files(
    remote: Remote, files: Files, refs: Collection[FileRef], progress: Progress | None
) -> int:
    """Put the files that are not there with their size; how many there were."""
    total = sum(ref.size for ref in refs)
    done = uploaded = 0

    def put(ref: FileRef) -> tuple[int, bool]:
        path = object_path(ref.sha256)
        if remote.size(path) == ref.size:
            return ref.size, False
        remote.put_object(path, ref.size, ref.sha256, _chunks(files, ref))
        return ref.size, True

    with ThreadPoolExecutor(_WORKERS, thread_name_prefix="synthgym-publish") as pool:
        unique = {ref.sha256: ref for ref in refs}
        try:
            for size, sent in pool.map(put, unique.values()):
                done, uploaded = done + size, uploaded + sent
                if progress is not None:
                    progress(done, total)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return uploaded


def _chunks(files: Files, ref: FileRef) -> Iterator[bytes]:
    with files.open(ref.path) as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _put_manifest(remote: Remote, digest: str, data: bytes, signatures: list[str]) -> None:
    path = manifest_path(digest)
    if signatures:
        # Before the manifest, so that no reader ever sees it unsigned.
        _put_signatures(remote, manifest_signature_path(digest, sha256_digest(data)), signatures)
    if not remote.put_if_absent(path, data):
        there = remote.read(path, MAX_MANIFEST_BYTES)
        if there != data:
            raise SnapshotError(
                f"{remote.url} holds this content ({digest}) as other files already, from another "
                f"release of pyarrow: its manifest has {sha256_digest(there)}, yours {sha256_digest(data)}. "
                "If no index lists it yet, publish the folder that it came from; or give yours the next "
                "version"
            )


def _put_signatures(remote: Remote, path: str, signatures: list[str]) -> None:
    """Add signatures to those that are there. Two who do that at once may have to do it again."""
    try:
        there = remote.read(path, MAX_SIGNATURE_BYTES).decode("utf-8", "replace")
    except FileNotFoundError:
        there = ""
    missing = [armour for armour in signatures if armour.strip() not in there]
    if missing:
        remote.put(path, (there + "".join(missing)).encode())


def _own_signatures(files: Files, data: bytes, publishing: Publishing) -> list[str]:
    """The signatures that lie beside the manifest, and the publisher's."""
    found = []
    if SIGNATURES in files.paths():
        found.append(read_file(files, SIGNATURES, MAX_SIGNATURE_BYTES).decode("utf-8", "replace"))
    if publishing.sign is not None:
        found.append(publishing.sign(data))
    return found


def _rfc3339(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
