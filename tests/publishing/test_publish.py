from __future__ import annotations

import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from games import make_spec, write_games
from ssh import GENERATORS, write_key

from synthgym.errors import ConfigError, IntegrityError, SnapshotError, TrustError
from synthgym.publishing.chain import (
    Link,
    manifest_path,
    manifest_signature_path,
    newest,
    object_path,
)
from synthgym.publishing.index import Yank
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.publish import Publishing, publish, yank
from synthgym.publishing.remotes import open_remote
from synthgym.publishing.ssh_keys import load_private_key
from synthgym.publishing.sshsig import parse, sign
from synthgym.publishing.trust import AllowedSigner, AllowedSigners
from synthgym.registry import Snapshot

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
Sign = Callable[[bytes], str]


@pytest.fixture
def games(tmp_path: Path) -> Path:
    write_games(tmp_path / "games")
    return tmp_path / "games"


def signer(path: Path) -> Sign:
    key = load_private_key(write_key(path, GENERATORS["ed25519"]()))
    return lambda data: sign(data, key)


def index_of(remote: Path) -> Link:
    link = newest(open_remote(remote))
    assert link is not None
    return link


def tree(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("layout", ["folder", "shards"])
def test_files_go_by_content_and_the_index_names_the_release(
    tmp_path: Path, remote: Path, layout: str
) -> None:
    snapshot = write_games(tmp_path / "games", layout=layout, vectors=True)
    told: list[tuple[int, int]] = []
    done = publish(tmp_path / "games", remote, Publishing(now=NOW), lambda *pair: told.append(pair))
    size = sum(ref.size for ref in snapshot.manifest.files)
    assert done.uploaded == len({ref.sha256 for ref in snapshot.manifest.files})
    assert done.is_new
    assert told[-1][0] <= told[-1][1] == size
    assert (remote / manifest_path(snapshot.digest)).read_bytes() == (
        tmp_path / "games/manifest.json"
    ).read_bytes()
    for ref in snapshot.manifest.files:
        data = (tmp_path / "games" / ref.path).read_bytes()
        assert (remote / object_path(ref.sha256)).read_bytes() == data
    (release,) = index_of(remote).index.names["games"]
    assert (release.version, release.digest, release.env_count) == ("1.0.0", snapshot.digest, 6)
    assert (release.size, release.license) == (size, "Apache-2.0")
    assert release.manifest_sha256 == done.manifest_sha256
    assert release.published == "2026-05-01T12:00:00Z"


def test_again_changes_nothing_and_a_version_shares_its_files(
    tmp_path: Path, games: Path, remote: Path
) -> None:
    publish(games, remote)
    before = tree(remote)
    again = publish(games, remote)
    assert (again.is_new, again.uploaded, again.serial) == (False, 0, 1)
    assert tree(remote) == before
    write_games(tmp_path / "next", "1.1.0")
    later = publish(tmp_path / "next", remote)
    # Sources and reports are the same files; each spec.json has other metrics.
    assert (later.is_new, later.serial, later.uploaded, later.files) == (True, 2, 6, 18)
    assert {name: data for name, data in tree(remote).items() if name in before} == before | {
        "index/latest.json": b'{"serial": 2}'
    }


def test_the_hub_is_another_matter(games: Path) -> None:
    with pytest.raises(ConfigError, match="publish_to_hub"):
        publish(games, "hf://org/games")


def test_a_half_finished_file_is_put_again(games: Path, remote: Path) -> None:
    publish(games, remote)
    victim = max(remote.glob("objects/*/*"), key=lambda path: path.stat().st_size)
    whole = victim.read_bytes()
    victim.write_bytes(whole[:5])
    assert publish(games, remote).uploaded == 1
    assert victim.read_bytes() == whole


def test_a_damaged_snapshot_is_not_published(games: Path, remote: Path) -> None:
    path = games / "envs/DryDock/v0/env.py"
    path.write_bytes(path.read_bytes() + b"#")
    with pytest.raises(IntegrityError, match=r"not published:\n.*DryDock"):
        publish(games, remote)
    assert not remote.exists()


def test_a_version_stands_for_one_content(tmp_path: Path, games: Path, remote: Path) -> None:
    publish(games, remote)
    before = tree(remote)
    write_games(tmp_path / "other", specs=[make_spec("LedgerAudit", metrics={"regret": 0.5})])
    with pytest.raises(SnapshotError, match="Give it the next version"):
        publish(tmp_path / "other", remote)
    assert tree(remote) == before, "told before anything was sent"


def test_the_same_content_in_other_files_is_not_mixed(
    games: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = Snapshot.open(games).digest
    open_remote(remote).put_if_absent(manifest_path(digest), b"{}")
    with pytest.raises(SnapshotError, match="as other files already"):
        publish(games, remote)
    assert newest(open_remote(remote)) is None


def test_what_is_private_stays(tmp_path: Path, remote: Path) -> None:
    leaky = [make_spec("LedgerAudit", metrics={"run": "/home/kim/runs/1", "by": "kim@corp.io"})]
    write_games(tmp_path / "games", specs=leaky)
    with pytest.raises(SnapshotError, match="this would become public") as caught:
        publish(tmp_path / "games", remote)
    assert "envs/LedgerAudit/v0/spec.json" in str(caught.value)
    assert "kim@corp.io" in str(caught.value)
    with pytest.raises(SnapshotError, match="home-path"):
        publish(tmp_path / "games", remote, Publishing(allow_leaks=("e-mail",)))
    assert not remote.exists()
    publish(tmp_path / "games", remote, Publishing(allow_leaks=("e-mail", "home-path")))


@pytest.mark.parametrize(
    ("license", "name"),
    [("", ""), ("other", "other"), ("MIT OR (LicenseRef-Unknown)", "licenseref-unknown")],
)
def test_an_unclear_license_must_be_allowed(
    tmp_path: Path, remote: Path, license: str, name: str
) -> None:
    specs = [make_spec("DryDock"), make_spec("LedgerAudit", license=license)]
    write_games(tmp_path / "games", specs=specs)
    with pytest.raises(SnapshotError, match="synthgym/LedgerAudit-v0") as caught:
        publish(tmp_path / "games", remote)
    assert "DryDock" not in str(caught.value)
    assert publish(tmp_path / "games", remote, Publishing(allow_licenses=(name,))).is_new


def test_signatures_lie_beside_what_they_sign(games: Path, remote: Path, tmp_path: Path) -> None:
    first, second = signer(tmp_path / "a"), signer(tmp_path / "b")
    data = (games / "manifest.json").read_bytes()
    (games / "manifest.json.sig").write_text(first(data))
    done = publish(games, remote, Publishing(sign=second))
    path = remote / manifest_signature_path(done.digest, done.manifest_sha256)
    assert path.read_text() == first(data) + second(data)
    link = index_of(remote)
    assert link.signatures == second(link.data)
    publish(games, remote, Publishing(sign=second))
    assert path.read_text() == first(data) + second(data), "each once"


def test_a_signature_is_added_to_what_was_published_without(
    games: Path, remote: Path, tmp_path: Path
) -> None:
    publish(games, remote)
    sign = signer(tmp_path / "key")
    with pytest.raises(TrustError, match="vouches for the releases"):
        publish(games, remote, Publishing(sign=sign))
    done = publish(games, remote, Publishing(sign=sign, adopt=True))
    assert (done.is_new, done.serial) == (False, 1)
    assert (remote / manifest_signature_path(done.digest, done.manifest_sha256)).is_file()


def test_nobody_signs_on_top_of_what_they_do_not_trust(
    tmp_path: Path, games: Path, remote: Path
) -> None:
    ours, theirs = signer(tmp_path / "ours"), signer(tmp_path / "theirs")
    publish(games, remote, Publishing(sign=theirs))
    write_games(tmp_path / "next", "1.1.0")
    with pytest.raises(TrustError, match="vouches for the releases"):
        publish(tmp_path / "next", remote, Publishing(sign=ours))
    their_key = AllowedSigner(principals=("them",), key=parse(theirs(b""))[0].key)
    trusting = AllowedSigners((their_key,), Path("allowed_signers"))
    done = publish(tmp_path / "next", remote, Publishing(sign=ours, allowed_signers=trusting))
    assert done.serial == 2
    write_games(tmp_path / "last", "1.2.0")
    assert publish(tmp_path / "last", remote, Publishing(sign=ours)).serial == 3, "upon our own"
    policy = TrustPolicy(allowed=trusting, required=True)
    link = index_of(remote)
    with pytest.raises(TrustError, match="does not name"):
        policy.check("it", link.data, link.signatures)


def test_an_index_that_was_tampered_with_is_not_built_upon(
    tmp_path: Path, games: Path, remote: Path
) -> None:
    sign = signer(tmp_path / "key")
    publish(games, remote, Publishing(sign=sign))
    link = index_of(remote)
    wrong = sign(link.data + b" ")
    (path,) = remote.glob("index/*.sig")
    path.write_text(wrong)
    write_games(tmp_path / "next", "1.1.0")
    with pytest.raises(TrustError, match="does not belong to these bytes"):
        publish(tmp_path / "next", remote, Publishing(sign=sign, adopt=True))


def test_the_index_may_say_how_long_it_is_good(tmp_path: Path, games: Path, remote: Path) -> None:
    publish(games, remote, Publishing(now=NOW, valid_for=timedelta(days=30)))
    assert index_of(remote).index.expires == "2026-05-31T12:00:00Z"
    write_games(tmp_path / "next", "1.1.0")
    publish(tmp_path / "next", remote)
    assert index_of(remote).index.expires == "2026-05-31T12:00:00Z", "as it was"


def test_a_release_is_yanked_and_unyanked(games: Path, remote: Path) -> None:
    publish(games, remote)
    why = Yank(at="2026-05-02T00:00:00Z", reason="the win is one step away", severity="broken")
    assert yank(remote, "games", "1.0.0", why) == 2
    assert yank(remote, "games", "1.0.0", why) == 2
    assert index_of(remote).index.names["games"][0].yanked == why
    assert yank(remote, "games", "1.0.0", None) == 3
    assert index_of(remote).index.names["games"][0].yanked is None
    with pytest.raises(SnapshotError, match="no release 2"):
        yank(remote, "games", "2.0", why)


def test_a_packed_snapshot_and_a_store_are_fine(games: Path, tmp_path: Path) -> None:

    packed = tmp_path / "games.sgz"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(games.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(games).as_posix())
    done = publish(packed, "memory://store")
    assert (done.uploaded, done.remote) == (done.files - 5, "memory://store")
    assert newest(open_remote("memory://store")) is not None
