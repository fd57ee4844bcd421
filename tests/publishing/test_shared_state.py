"""What several pulls, people and processes have in common: views, locks, the newest index."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from games import http_server, write_games
from pulling import get, publish_versions
from ssh import GENERATORS, write_key

from synthgym.errors import ConfigError, SnapshotError, TrustError
from synthgym.publishing import lock as lock_module
from synthgym.publishing.chain import newest
from synthgym.publishing.index import Yank
from synthgym.publishing.lock import LOCK, Lock, find_lock, read_lock
from synthgym.publishing.publish import Publishing, publish, yank
from synthgym.publishing.remotes import open_remote
from synthgym.publishing.ssh_keys import load_private_key
from synthgym.publishing.sshsig import parse, sign
from synthgym.publishing.trust import AllowedSigner, AllowedSigners
from synthgym.registry import Snapshot
from synthgym.registry.layout import MANIFEST, SIGNATURES

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
Sign = Callable[[bytes], str]


def signer(path: Path) -> Sign:
    key = load_private_key(write_key(path, GENERATORS["ed25519"]()))
    return lambda data: sign(data, key)


@pytest.fixture
def kim(tmp_path: Path) -> Sign:
    return signer(tmp_path / "kim")


@pytest.fixture
def allowed(tmp_path: Path, kim: Sign) -> AllowedSigners:
    trusted = AllowedSigner(principals=("kim",), key=parse(kim(b""))[0].key)
    return AllowedSigners((trusted,), tmp_path / "allowed")


# --- signatures ---


def test_a_signature_that_came_later_is_fetched(
    tmp_path: Path, remote: Path, kim: Sign, allowed: AllowedSigners
) -> None:
    write_games(tmp_path / "games")
    publish(tmp_path / "games", remote)
    unsigned = get("games", remotes=[remote])
    publish(tmp_path / "games", remote, Publishing(sign=kim, adopt=True))
    lock = Lock(tmp_path / LOCK, (unsigned.locked(),))
    for known in (None, lock):
        pulled = get(
            "games", remotes=[remote], allowed_signers=allowed, require_signature=True, lock=known
        )
        assert (pulled.path, pulled.verdict.principal) == (unsigned.path, "kim")


def test_a_strangers_signature_does_not_take_the_place_of_a_good_one(
    tmp_path: Path, remote: Path, kim: Sign, allowed: AllowedSigners
) -> None:
    games = write_games(tmp_path / "games").path
    publish(games, remote, Publishing(sign=kim))
    asked = {"remotes": [remote], "allowed_signers": allowed, "require_signature": True}
    get("games", **asked)
    stranger = signer(tmp_path / "stranger")
    (games / SIGNATURES).write_text(stranger((games / MANIFEST).read_bytes()))
    with http_server(tmp_path) as url:
        shown = get(f"{url}/games", allowed_signers=allowed)
    assert shown.verdict.status == "unknown-key"
    assert get("games", offline=True, **asked).verdict.is_good


def test_who_publishes_again_signs_the_index_that_is_there(
    tmp_path: Path, remote: Path, kim: Sign, allowed: AllowedSigners
) -> None:
    write_games(tmp_path / "games")
    publish(tmp_path / "games", remote)
    for _ in range(2):  # and once is enough
        done = publish(tmp_path / "games", remote, Publishing(sign=kim, adopt=True))
        link = newest(open_remote(remote))
        assert link is not None
        assert (done.serial, done.is_new, len(parse(link.signatures))) == (1, False, 1)
    get("games", remotes=[remote], allowed_signers=allowed, require_signature=True)


def test_nobody_leaves_a_signed_index_unsigned_by_mistake(
    tmp_path: Path, remote: Path, kim: Sign
) -> None:
    games = write_games(tmp_path / "games").path
    publish(games, remote, Publishing(sign=kim))
    why = Yank(at="2026-05-01T12:00:00Z", reason="wins too early", severity="broken")
    with pytest.raises(TrustError, match="is signed, and yours would not be"):
        yank(remote, "games", "1.0.0", why)
    with pytest.raises(TrustError, match="is signed, and yours would not be"):
        publish(games, remote)
    assert yank(remote, "games", "1.0.0", why, Publishing(adopt=True)) == 2


def test_publishing_again_renews_the_index(tmp_path: Path, remote: Path) -> None:
    games = write_games(tmp_path / "games").path
    for day, serial in ((0, 1), (0, 1), (20, 2)):
        now = NOW + timedelta(days=day)
        done = publish(games, remote, Publishing(valid_for=timedelta(days=30), now=now))
        link = newest(open_remote(remote))
        assert link is not None
        assert link.index.expires == (now + timedelta(days=30)).strftime("%Y-%m-%dT%H:%M:%SZ")
        assert (done.serial, done.is_new) == (serial, day == 0 and done.uploaded > 0)


# --- what is pinned to content ---


def test_pinned_content_is_found_wherever_it_was_pulled_from(tmp_path: Path, remote: Path) -> None:
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0")
    pulled = get(f"file://{remote}#games")
    for reference in (f"games@{snapshot.digest}", f"@{snapshot.digest}"):
        for offline in (False, True):
            found = get(reference, remotes=[], offline=offline)
            assert (found.path, found.digest) == (pulled.path, snapshot.digest)
    with pytest.raises(ConfigError, match="none is configured"):
        get(f"games@{snapshot.digest[:-1]}{'0' if snapshot.digest[-1] != '0' else '1'}", remotes=[])


def test_pinned_content_that_is_unsafe_is_not_found_in_the_cache(
    tmp_path: Path, remote: Path
) -> None:
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0")
    get("games", remotes=[remote])
    yank(remote, "games", "1.0.0", Yank(at="2026-05-01T12:00:00Z", reason="x", severity="unsafe"))
    with pytest.raises(SnapshotError, match=r"yanked .* as unsafe"):
        get(f"games@{snapshot.digest}", remotes=[remote])


# --- the lock ---


def test_a_lock_of_somebody_else_further_up_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / LOCK).touch()
    work = tmp_path / "work" / "inner"
    work.mkdir(parents=True)
    assert find_lock(work) == tmp_path / LOCK
    mine = lock_module._owner(work)
    owners = {tmp_path / LOCK: -1}
    monkeypatch.setattr(lock_module, "_owner", lambda path: owners.get(path, mine))
    assert find_lock(work) is None
    assert find_lock(tmp_path) == tmp_path / LOCK, "who stands there sees it"


NOTE = """
import sys
from pathlib import Path
from synthgym.publishing.lock import Locked, write_lock
digest = "sha256:" + "0" * 64
for number in range(15):
    entry = Locked(reference=f"{sys.argv[2]}{number}", name="a", version="1", digest=digest,
                   manifest_sha256=digest, remote="x")
    write_lock(Path(sys.argv[1]), [entry])
"""


def test_two_who_note_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / LOCK
    running = [subprocess.Popen([sys.executable, "-c", NOTE, str(path), who]) for who in "ab"]
    assert [process.wait(60) for process in running] == [0, 0]
    assert {e.reference for e in read_lock(path).entries} == {
        f"{who}{number}" for who in "ab" for number in range(15)
    }


def test_the_manifest_that_was_checked_is_the_one_that_is_published(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody notes figures between the check and the upload."""
    games = write_games(tmp_path / "games")
    other = write_games(tmp_path / "later", "1.0.1")
    checked = Snapshot.verify

    def swap(snapshot: Snapshot) -> tuple[str, ...]:
        found = checked(snapshot)
        (games.path / MANIFEST).write_bytes((other.path / MANIFEST).read_bytes())
        return found

    monkeypatch.setattr(Snapshot, "verify", swap)
    publish(games.path, remote)
    monkeypatch.undo()
    pulled = get("games", remotes=[remote])
    assert (pulled.digest, pulled.version) == (games.digest, "1.0.0")
