from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from games import write_games

from synthgym.errors import SnapshotError, TrustError
from synthgym.publishing.cache import Cache
from synthgym.publishing.chain import append
from synthgym.publishing.index import Index, with_expiry
from synthgym.publishing.lookup import Indexes
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.publish import publish
from synthgym.publishing.remotes import open_remote
from synthgym.publishing.serials import Serials
from synthgym.publishing.trust import AllowedSigners

POLICY = TrustPolicy(
    allowed=AllowedSigners((), Path("allowed_signers")), at=datetime(2026, 5, 1, tzinfo=UTC)
)


def indexes(cache: Cache, policy: TrustPolicy = POLICY, *, offline: bool = False) -> Indexes:
    return Indexes(cache, policy, Serials(), offline=offline)


def test_what_was_read_is_remembered(tmp_path: Path, remote: Path, cache: Cache) -> None:
    assert indexes(cache).read(remote) is None
    assert indexes(cache, offline=True).read(remote) is None
    publish(write_games(tmp_path / "games").path, remote)
    assert indexes(cache, offline=True).read(remote) is None
    index = indexes(cache).read(remote)
    assert isinstance(index, Index)
    assert index.serial == 1
    assert indexes(cache, offline=True).read(f"file://{remote}/") == index
    seen = Serials().seen(f"file://{remote}")
    assert seen is not None
    assert seen.serial == 1


def test_what_was_remembered_is_checked_again(tmp_path: Path, remote: Path, cache: Cache) -> None:
    publish(write_games(tmp_path / "games").path, remote)
    indexes(cache).read(remote)
    strict = replace(POLICY, required=True)
    for offline in (True, False):
        with pytest.raises(TrustError, match="not signed"):
            indexes(cache, strict, offline=offline).read(remote)
    (path,) = cache.root.glob("refs/*/index.json")
    for damage in ("", "[]", '{"index": 1, "signatures": ""}', '{"index": "{}"}'):
        path.write_text(damage)
        with pytest.raises(SnapshotError, match="is damaged: remove it"):
            indexes(cache, offline=True).read(remote)


def test_an_index_that_is_past_its_time_is_told_or_refused(remote: Path, cache: Cache) -> None:
    append(open_remote(remote), lambda index: with_expiry(index, "2026-04-30T00:00:00Z"))
    for offline in (False, True):
        reading = indexes(cache, offline=offline)
        assert reading.read(remote) is not None
        assert "may be an old one" in reading.warnings[0]
    later = replace(POLICY, at=datetime(2026, 4, 29, tzinfo=UTC))
    reading = indexes(cache, later)
    assert reading.read(remote) is not None
    assert reading.warnings == []
