"""The indexes of remotes as they may be relied on: signatures checked, never older than one seen before."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Final

from synthgym.errors import SnapshotError, TrustError
from synthgym.publishing.cache import Cache
from synthgym.publishing.chain import Link, newest
from synthgym.publishing.index import MAX_INDEX_BYTES, Index
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.remotes import open_remote, remote_url
from synthgym.publishing.serials import Serials

_FILE: Final = "index.json"
_RACES: Final = 2


class Indexes:
    """Reads indexes, over the network or as they were when last seen."""

    def __init__(
        self, cache: Cache, policy: TrustPolicy, serials: Serials, *, offline: bool = False
    ) -> None:
        self._cache = cache
        self._policy = policy
        self._serials = serials
        self._offline = offline
        self.warnings: list[str] = []
        """What the user should be told."""

    def read(self, location: str | Path) -> Index | None:
        """The newest index of a remote, or the last one seen when offline; None when there is none.

        `TrustError` when its signatures are not as the policy asks, or it is older than one that was
        seen before.
        """
        return self.remembered(location) if self._offline else self._newest(location)

    def remembered(self, location: str | Path) -> Index | None:
        """The index that was last seen of a remote, without the network."""
        url = remote_url(location)
        path = self._cache.remote_folder(url) / _FILE
        try:
            with path.open("rb") as file:
                raw = json.loads(file.read(4 * MAX_INDEX_BYTES))
            data, signatures = raw["index"].encode(), str(raw["signatures"])
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise SnapshotError(f"{path} is damaged: remove it") from error
        return self._checked(
            url, Link(index=Index.from_bytes(data), data=data, signatures=signatures)
        )

    def _newest(self, location: str | Path) -> Index | None:
        for _ in range(_RACES):
            with suppress(
                TrustError
            ):  # or another process of this user was faster, and saw a newer one
                return self._read(location)
        return self._read(location)

    def _read(self, location: str | Path) -> Index | None:
        remote = open_remote(location)
        seen = self._serials.seen(remote.url)
        link = newest(remote, seen.serial if seen else 0)
        if link is None:
            if seen is not None:
                raise TrustError(
                    f"rollback: {remote.url} holds no index, but one of serial {seen.serial} was seen "
                    "there before"
                )
            return None
        index = self._checked(remote.url, link)
        self._serials.note(remote.url, index)
        kept = {"index": link.data.decode(), "signatures": link.signatures}
        self._cache.remember(remote.url, _FILE, json.dumps(kept).encode())
        return index

    def _checked(self, url: str, link: Link) -> Index:
        shown = f"the index of {url}"
        self._policy.check(shown, link.data, link.signatures)
        if link.index.is_expired(self._policy.at):
            said = f"{shown} should have been renewed at {link.index.expires}: it may be an old one"
            if self._policy.required and not self._offline:
                raise TrustError(said)
            self.warnings.append(said)
        return link.index
