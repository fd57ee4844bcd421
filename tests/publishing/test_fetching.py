from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from games import write_games

from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.publishing.cache import Cache
from synthgym.publishing.fetching import NotCachedError, Pins, Wanted, fetch
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.remotes import open_remote
from synthgym.publishing.sources import FolderSource
from synthgym.publishing.trust import AllowedSigners
from synthgym.registry import FileRef, Snapshot
from synthgym.spec import sha256_digest

POLICY = TrustPolicy(allowed=AllowedSigners((), Path("allowed_signers")))


class Counting(FolderSource):
    """A folder that counts what is fetched, and breaks down after so many files."""

    def __init__(self, folder: Path, breaks_after: int = 1000) -> None:
        super().__init__(open_remote(folder))
        self.streamed: list[str] = []
        self.breaks_after = breaks_after

    def stream(self, ref: FileRef) -> Iterator[bytes]:
        if len(self.streamed) >= self.breaks_after:
            raise SnapshotError("the line went dead")
        self.streamed.append(ref.path)
        return super().stream(ref)


@pytest.fixture
def games(tmp_path: Path) -> Snapshot:
    return write_games(tmp_path / "games")


def test_an_interrupted_fetch_goes_on_with_what_is_missing(games: Snapshot, cache: Cache) -> None:
    broken = Counting(games.path, breaks_after=7)
    with pytest.raises(SnapshotError, match="went dead"):
        fetch(broken, cache, Pins(), Wanted(), POLICY)
    assert cache.views(games.digest) == []
    again = Counting(games.path)
    found = fetch(again, cache, Pins(), Wanted(), POLICY)
    unique = {ref.sha256 for ref in games.manifest.files}
    assert len(broken.streamed) == 7
    assert len(again.streamed) <= len(games.manifest.files) - 7
    assert len({*broken.streamed, *again.streamed}) >= len(unique)
    assert Snapshot.open(found.path).verify() == ()
    last = Counting(games.path)
    fetch(last, cache, Pins(), Wanted(), POLICY)
    assert last.streamed == []


@pytest.mark.parametrize("what", ["name", "version", "digest", "manifest_sha256"])
def test_what_was_promised_must_come(games: Snapshot, cache: Cache, what: str) -> None:
    false = {
        "name": "tools",
        "version": "1.0",
        "digest": "sha256:" + "0" * 64,
        "manifest_sha256": "sha256:" + "0" * 64,
    }
    source = Counting(games.path)
    with pytest.raises(IntegrityError, match=f"promised a snapshot of {what} {false[what]}"):
        fetch(source, cache, Pins(**{what: false[what]}), Wanted(), POLICY)
    assert source.streamed == []


def test_without_a_source_the_cache_must_have_it(games: Snapshot, cache: Cache) -> None:
    own = sha256_digest((games.path / "manifest.json").read_bytes())
    pins = Pins(digest=games.digest, manifest_sha256=own)
    with pytest.raises(NotCachedError, match="not in the cache"):
        fetch(None, cache, pins, Wanted(), POLICY)
    fetch(Counting(games.path), cache, pins, Wanted(only=("notes",)), POLICY)
    assert fetch(None, cache, pins, Wanted(only=("notes",)), POLICY).manifest == games.manifest
    with pytest.raises(NotCachedError, match="12 of 18 files"):
        fetch(None, cache, pins, Wanted(), POLICY)


def test_a_part_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no part of a snapshot is called 'vector'.*'vectors'"):
        Wanted(only=("vector",))
