from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from games import http_server, write_games
from pulling import get, no_network, publish_versions
from ssh import GENERATORS, write_key

from synthgym.errors import (
    IntegrityError,
    SnapshotError,
    TrustError,
)
from synthgym.publishing.cache import Cache
from synthgym.publishing.chain import manifest_path
from synthgym.publishing.fetching import NotCachedError, Wanted
from synthgym.publishing.index import Yank
from synthgym.publishing.lock import Lock
from synthgym.publishing.publish import Publishing, publish, yank
from synthgym.publishing.pull import pull
from synthgym.publishing.ssh_keys import load_private_key
from synthgym.publishing.sshsig import parse, sign
from synthgym.publishing.trust import AllowedSigner, AllowedSigners
from synthgym.registry import Snapshot
from synthgym.spec import sha256_digest

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


# --- signatures ---


@pytest.fixture
def signed(tmp_path: Path, remote: Path) -> AllowedSigners:
    """A signed release, and the file that trusts its signer."""
    key = load_private_key(write_key(tmp_path / "key", GENERATORS["ed25519"]()))
    write_games(tmp_path / "games")
    publish(tmp_path / "games", remote, Publishing(sign=lambda data: sign(data, key)))
    public = parse(sign(b"", key))[0].key
    return AllowedSigners((AllowedSigner(principals=("kim",), key=public),), tmp_path / "allowed")


def test_a_signature_of_somebody_trusted_is_told(remote: Path, signed: AllowedSigners) -> None:
    pulled = get("games", remotes=[remote], allowed_signers=signed, require_signature=True)
    assert pulled.verdict.is_good
    assert pulled.verdict.principal == "kim"
    assert pulled.locked().signer == pulled.verdict.fingerprint
    again = get(
        "games", remotes=[remote], allowed_signers=signed, require_signature=True, offline=True
    )
    assert again.verdict == pulled.verdict


def test_what_nobody_trusted_has_signed_is_refused_where_that_is_asked(
    tmp_path: Path, remote: Path, signed: AllowedSigners
) -> None:
    nobody = replace(signed, signers=())
    assert not get("games", remotes=[remote], allowed_signers=nobody).verdict.is_good
    with pytest.raises(TrustError, match=r"the index of .* does not name"):
        pull("games", remotes=[remote], allowed_signers=nobody, require_signature=True)
    for path in remote.glob("manifests/*.sig"):
        path.unlink()
    with pytest.raises(TrustError, match=r"games 1\.0\.0 of .*not signed"):
        pull(
            "games",
            remotes=[remote],
            allowed_signers=signed,
            require_signature=True,
            cache=Cache(tmp_path / "c"),
        )


def test_a_wrong_signature_is_refused_always(
    tmp_path: Path, remote: Path, signed: AllowedSigners
) -> None:
    for kind in ("manifests", "index"):
        (path,) = remote.glob(f"{kind}/*.sig")
        text = path.read_text()
        (other,) = remote.glob(f"{'index' if kind == 'manifests' else 'manifests'}/*.sig")
        path.write_text(other.read_text())
        with pytest.raises(TrustError, match="does not belong to these bytes"):
            pull("games", remotes=[remote], cache=Cache(tmp_path / kind))
        path.write_text(text)
    assert pull("games", remotes=[remote], allowed_signers=signed, require_signature=True)


def test_an_index_that_should_have_been_renewed(tmp_path: Path, remote: Path) -> None:
    write_games(tmp_path / "games")
    publish(tmp_path / "games", remote, Publishing(now=NOW, valid_for=timedelta(days=1)))
    (told,) = get("games", remotes=[remote]).warnings
    assert "should have been renewed at 2026-05-02T12:00:00Z" in told


# --- yanks and locks ---


def test_a_yanked_release_is_passed_over_and_kept_for_those_who_name_it(
    tmp_path: Path, remote: Path
) -> None:
    _, new = publish_versions(tmp_path, remote, "1.0.0", "1.1.0")
    lock = Lock(tmp_path / "lock", (get("games", remotes=[remote]).locked(),))
    yank(
        remote,
        "games",
        "1.1.0",
        Yank(at="2026-05-02T00:00:00Z", reason="no win", severity="broken"),
    )
    assert get("games", remotes=[remote]).version == "1.0.0"
    for text, given in (("games@1.1.0", None), (f"@{new.digest}", None), ("games", lock)):
        pulled = get(text, remotes=[remote], lock=given)
        assert pulled.version == "1.1.0"
        assert "was yanked at 2026-05-02T00:00:00Z as broken: no win" in pulled.warnings[0]
    with pytest.warns(UserWarning, match="was yanked"):
        pull("games@1.1.0", remotes=[remote])


def test_what_is_unsafe_must_be_allowed_even_by_a_lock(tmp_path: Path, remote: Path) -> None:
    publish_versions(tmp_path, remote, "1.0.0")
    lock = Lock(tmp_path / "lock", (get("games", remotes=[remote]).locked(),))
    yank(
        remote, "games", "1.0.0", Yank(at="2026-05-02T00:00:00Z", reason="mines", severity="unsafe")
    )
    assert get("games", lock=lock).warnings == (), "what is at hand is not looked up"
    for offline in (False, True):
        with pytest.raises(SnapshotError, match="not loaded unless you allow"):
            get("games@1.0.0", remotes=[remote], offline=offline)
        with pytest.raises(SnapshotError, match="not loaded unless you allow"):
            get("games", lock=lock, offline=offline)
    assert get("games@1.0.0", remotes=[remote], allow_yanked=True).version == "1.0.0"
    assert get("games", lock=lock, allow_yanked=True).version == "1.0.0"


def test_a_lock_holds_a_reference_where_it_was(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, _ = publish_versions(tmp_path, remote, "1.0.0", "1.1.0")
    entry = replace(get("games@1.0.0", remotes=[remote]).locked(), reference="games")
    lock = Lock(tmp_path / "lock", (entry,))
    fresh = Cache(tmp_path / "fresh")
    pulled = get("games", lock=lock, cache=fresh, remotes=[])
    assert (pulled.version, pulled.digest) == ("1.0.0", old.digest)
    no_network(monkeypatch)
    assert get("games", lock=lock, cache=fresh, remotes=[]).path == pulled.path
    wrong = replace(entry, manifest_sha256="sha256:" + "0" * 64)
    with pytest.raises(NotCachedError):
        get("games", lock=Lock(lock.path, (wrong,)), cache=fresh, remotes=[], offline=True)


def test_a_lock_is_not_fooled_by_its_remote(tmp_path: Path, remote: Path) -> None:
    old, new = publish_versions(tmp_path, remote, "1.0.0", "1.1.0")
    lock = Lock(tmp_path / "lock", (get("games", remotes=[remote]).locked(),))
    shutil.copyfile(remote / manifest_path(old.digest), remote / manifest_path(new.digest))
    with pytest.raises(IntegrityError, match="promised a snapshot of version"):
        get("games", remotes=[], lock=lock, cache=Cache(tmp_path / "fresh"))


def test_a_lock_holds_a_url_too(tmp_path: Path) -> None:
    write_games(tmp_path / "web" / "games")
    with http_server(tmp_path / "web") as url:
        entry = get(f"{url}/games", remotes=[]).locked()
        lock = Lock(tmp_path / "lock", (entry,))
        shutil.rmtree(tmp_path / "web" / "games")
        write_games(tmp_path / "web" / "games", "1.1.0")
        assert get(f"{url}/games", remotes=[], lock=lock).version == "1.0.0"
        with pytest.raises(IntegrityError, match="promised a snapshot of version"):
            get(f"{url}/games", remotes=[], lock=lock, cache=Cache(tmp_path / "fresh"))


# --- offline and damage ---


def test_offline_is_what_is_in_the_cache(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_versions(tmp_path, remote, "1.0.0", "1.1.0", "1.2.0")
    with pytest.raises(SnapshotError, match=r"the cache \(offline\)"):
        get("games", remotes=[remote], offline=True)
    paths = [pull(f"games@{v}", remotes=[remote]) for v in ("1.0.0", "1.1.0")]
    shutil.rmtree(remote)
    no_network(monkeypatch)
    monkeypatch.setenv("SYNTHGYM_OFFLINE", "1")
    assert pull("games", remotes=[remote]) == paths[1]
    assert pull("games<1.1", remotes=[remote]) == paths[0]
    with pytest.raises(SnapshotError, match=r"no release of games is ==1\.2"):
        pull("games==1.2", remotes=[remote])


def test_offline_says_which_files_are_missing(tmp_path: Path, remote: Path) -> None:
    publish_versions(tmp_path, remote, "1.0.0", layout="shards", vectors=True)
    pull("games", remotes=[remote], only=("envs", "notes"))
    assert pull("games", remotes=[remote], only=("envs",), offline=True)
    with pytest.raises(NotCachedError, match=r"1 of 4 files are not in the cache .vectors/"):
        pull("games", remotes=[remote], offline=True)


def test_damage_in_the_cache_is_found_and_mended_when_asked(
    tmp_path: Path, remote: Path, cache: Cache
) -> None:
    publish_versions(tmp_path, remote, "1.0.0")
    path = pull("games", remotes=[remote])
    victim = path / "envs/DryDock/v0/env.py"
    victim.chmod(0o644)
    victim.write_bytes(victim.read_bytes()[:-1] + b"~")
    pull("games", remotes=[remote])
    assert Snapshot.open(path).verify() != ()
    get("games", remotes=[remote], wanted=Wanted(recheck=True))
    assert Snapshot.open(path).verify() == ()
    data = victim.read_bytes()
    assert cache.holds(sha256_digest(data), len(data), recheck=True)


def test_two_snapshots_share_their_files(tmp_path: Path, remote: Path) -> None:
    publish_versions(tmp_path, remote, "1.0.0", "1.1.0")
    first, second = (pull(f"games@{v}", remotes=[remote]) for v in ("1.0.0", "1.1.0"))
    name = "envs/DryDock/v0/env.py"
    assert first != second
    assert (first / name).samefile(second / name)
