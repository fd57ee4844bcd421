"""The indexes of a remote as a chain of files that never change: finding the newest, adding the next.

Each index names the SHA-256 of the one before, and has a file of its own by serial. Who adds one makes
the file of the next serial, which only one can do; who comes second reads what the first has written,
applies its own change to that, and tries the serial after. So nothing is lost and nothing is locked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.ids import check_digest
from synthgym.publishing.index import MAX_INDEX_BYTES, MAX_SERIAL, Index
from synthgym.publishing.remotes import Remote
from synthgym.publishing.sshsig import parse
from synthgym.spec import sha256_digest

LATEST: Final = "index/latest.json"
MAX_SIGNATURE_BYTES: Final = 256 * 1024
_MAX_LATEST_BYTES: Final = 1024
_MAX_RACES: Final = 1000
"""How often others may be first before we give up."""

Sign = Callable[[bytes], str]
"""From the bytes of a file to its armoured signature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One index of the chain."""

    index: Index
    data: bytes
    """The bytes of its file."""
    signatures: str = ""
    """Armoured, or nothing."""


def index_path(serial: int) -> str:
    """Return the path of the index with that serial."""
    return f"index/{serial:08d}.json"


def signature_path(serial: int, data: bytes) -> str:
    """Return the path of an index's signatures. Two who try one serial do not share it."""
    return f"index/{serial:08d}.{sha256_digest(data).removeprefix('sha256:')}.sig"


def manifest_path(digest: str) -> str:
    """Return the path of the manifest of a snapshot."""
    return f"manifests/{check_digest(digest).removeprefix('sha256:')}.json"


def manifest_signature_path(digest: str, manifest_sha256: str) -> str:
    """Return the path of the signatures of a manifest. Two who publish one content may not share it."""
    own = check_digest(manifest_sha256).removeprefix("sha256:")
    return f"{manifest_path(digest).removesuffix('.json')}.{own}.sig"


def object_path(digest: str) -> str:
    """Return the path of a file, by its SHA-256."""
    hexes = check_digest(digest).removeprefix("sha256:")
    return f"objects/{hexes[:2]}/{hexes}"


def newest(remote: Remote, seen: int = 0) -> Link | None:
    """The newest index of a remote; None when there is none. No listing is needed.

    The search begins at what `latest.json` says or at the serial that was `seen`, whichever is higher
    and there, and goes on until a serial is absent.
    """
    for start in sorted({seen, _latest(remote)}, reverse=True):
        if start and _is_there(remote, start):
            return read_link(remote, _last(remote, start))
    last = _last(remote, 0)
    return read_link(remote, last) if last else None


def read_link(remote: Remote, serial: int) -> Link:
    """One index with its signatures, which are not checked; `IntegrityError` for another serial."""
    shown = f"{remote.url}/{index_path(serial)}"
    data = remote.read(index_path(serial), MAX_INDEX_BYTES)
    index = Index.from_bytes(data)
    if index.serial != serial:
        raise IntegrityError(f"{shown} says that it has serial {index.serial}")
    return Link(index=index, data=data, signatures=_signatures(remote, serial, data))


def append(
    remote: Remote,
    change: Callable[[Index], Index],
    *,
    sign: Sign | None = None,
    check: Callable[[Link], None] = lambda _link: None,
) -> Link:
    """Add an index to the chain, and return it, or the newest when `change` has nothing to add.

    The newest gets the signature of who publishes then, when it has none of theirs.

    `change` is applied to the newest index, more than once when others are faster; when it returns
    what it was given, nothing is written. `check` is shown each index that is built upon, before, and
    raises when it must not be.
    """
    for _ in range(_MAX_RACES):
        base = newest(remote)
        if base is not None:
            check(base)
        old = Index() if base is None else base.index
        new = change(old)
        if new is old and base is not None:
            return _signed(remote, base, sign)
        data = new.to_bytes()
        link = Link(index=new, data=data, signatures=sign(data) if sign else "")
        if _put(remote, link):
            return link
    raise SnapshotError(
        f"{remote.url}: others have published {_MAX_RACES} times meanwhile; try again later"
    )


def _signed(remote: Remote, link: Link, sign: Sign | None) -> Link:
    """An index that is there, with the signature of who publishes beside those of others."""
    if sign is None:
        return link
    armour = sign(link.data)
    key = parse(armour)[0].key
    if any(signature.key == key for signature in parse(link.signatures)):
        return link
    signatures = f"{link.signatures.rstrip()}\n{armour}".lstrip()
    remote.put(signature_path(link.index.serial, link.data), signatures.encode())
    return replace(link, signatures=signatures)


def _put(remote: Remote, link: Link) -> bool:
    """Try to put an index; False when somebody else has put another one of this serial."""
    serial = link.index.serial
    if link.signatures:
        # Before the index, so that no reader ever sees it unsigned.
        remote.put(signature_path(serial, link.data), link.signatures.encode())
    if not remote.put_if_absent(index_path(serial), link.data):
        # The same bytes: two publishers of one release, or ours, whose answer was lost.
        return remote.read(index_path(serial), MAX_INDEX_BYTES) == link.data
    if serial > _latest(remote):
        remote.put(LATEST, json.dumps({"serial": serial}).encode())
    return True


def _last(remote: Remote, start: int) -> int:
    """The last serial that is there, from one that is there (or 0): by strides, then by halves."""
    low, stride = start, 1
    while _is_there(remote, low + stride):
        low += stride
        stride *= 2
    high = low + stride
    while high - low > 1:
        middle = (low + high) // 2
        if _is_there(remote, middle):
            low = middle
        else:
            high = middle
    return low


def _is_there(remote: Remote, serial: int) -> bool:
    return serial <= MAX_SERIAL and remote.size(index_path(serial)) is not None


def _latest(remote: Remote) -> int:
    """What `latest.json` says, or 0. It is a hint: nobody vouches for it."""
    with suppress(FileNotFoundError, IntegrityError, ValueError):
        said = json.loads(remote.read(LATEST, _MAX_LATEST_BYTES))
        serial = said.get("serial") if isinstance(said, dict) else None
        if isinstance(serial, int) and not isinstance(serial, bool) and 0 < serial <= MAX_SERIAL:
            return serial
    return 0


def _signatures(remote: Remote, serial: int, data: bytes) -> str:
    try:
        found = remote.read(signature_path(serial, data), MAX_SIGNATURE_BYTES)
    except FileNotFoundError:
        return ""
    return found.decode("utf-8", "replace")
