from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from games import NAMES, http_server, write_games
from pulling import files_in, get, publish_versions

from synthgym.errors import (
    ConfigError,
    EnvNotFoundError,
    IntegrityError,
    SnapshotError,
    TrustError,
)
from synthgym.publishing.cache import Cache
from synthgym.publishing.chain import LATEST, index_path, manifest_path, newest, object_path
from synthgym.publishing.fetching import NotCachedError, Wanted
from synthgym.publishing.publish import publish
from synthgym.publishing.pull import pull
from synthgym.publishing.remotes import open_remote
from synthgym.publishing.serials import Serials
from synthgym.registry import Snapshot, layout
from synthgym.registry.layout import MANIFEST
from synthgym.spec import canonical_json, sha256_digest

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


# --- what is found ---


def test_names_versions_ranges_and_digests(tmp_path: Path, remote: Path) -> None:
    old, new, last = publish_versions(tmp_path, remote, "1.0.0", "1.5.0", "2.0.0")
    expected = {
        "games": last,
        "games@1.0.0": old,
        "games==1.5": new,
        "games>=1,<2": new,
        f"games@{old.digest}": old,
        f"@{new.digest}": new,
        f"file://{remote}#games<2": new,
    }
    for text, snapshot in expected.items():
        pulled = get(text, remotes=[remote])
        assert (pulled.name, pulled.version, pulled.digest) == (
            "games",
            snapshot.version,
            snapshot.digest,
        )
        opened = Snapshot.open(pulled.path)
        assert opened.verify() == ()
        assert [opened.spec(e.digest) for e in opened] == [
            snapshot.spec(e.digest) for e in snapshot
        ]
        assert pulled.warnings == ()
        assert pulled.remote == f"file://{remote}"


def test_the_first_remote_that_knows_the_name_is_asked(tmp_path: Path) -> None:
    for number, version in ((1, "1.0.0"), (2, "2.0.0")):
        publish_versions(tmp_path / str(number), tmp_path / f"r{number}", version)
    publish_versions(tmp_path / "3", tmp_path / "r2", "1.0", name="tools")
    remotes = [tmp_path / "empty", tmp_path / "r1", tmp_path / "r2"]
    assert get("games", remotes=remotes).version == "1.0.0"
    assert get("tools", remotes=remotes).name == "tools"
    with pytest.raises(SnapshotError, match=r"no release of games is ==2\.0\.0"):
        get("games@2.0.0", remotes=remotes)
    with pytest.raises(SnapshotError, match=r"no snapshot 'gamse' in .*did you mean 'games'"):
        get("gamse", remotes=remotes)
    with pytest.raises(SnapshotError, match="no snapshot '@sha256"):
        get("@sha256:" + "0" * 64, remotes=remotes)


def test_without_a_remote_it_says_where_to_name_one(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match="SYNTHGYM_REMOTES"):
        pull("games")
    publish_versions(tmp_path, remote, "1.0.0")
    monkeypatch.setenv("SYNTHGYM_REMOTES", f"file://{remote}")
    assert Snapshot.open(pull("games")).version == "1.0.0"


def test_a_snapshot_of_this_machine_stays_where_it_is(tmp_path: Path, cache: Cache) -> None:
    snapshot = write_games(tmp_path / "games")
    pulled = get(f"{tmp_path}/games", remotes=[])
    assert (pulled.path, pulled.digest) == (snapshot.path, snapshot.digest)
    assert not (cache.root / "objects").exists()
    with pytest.raises(TrustError, match="not signed"):
        pull(f"{tmp_path}/games", require_signature=True)


def test_a_folder_at_a_url_and_offline_what_it_was(tmp_path: Path) -> None:
    snapshot = write_games(tmp_path / "web" / "games", layout="shards")
    with http_server(tmp_path / "web") as url:
        pulled = get(f"{url}/games", remotes=[])
        assert Snapshot.open(pulled.path).verify() == ()
        with pytest.raises(SnapshotError, match="If it is a registry, say which snapshot"):
            get(url, remotes=[])
    again = get(f"{url}/games", remotes=[], offline=True)
    assert (again.path, again.digest) == (pulled.path, snapshot.digest)
    with pytest.raises(NotCachedError, match="not in the cache"):
        get(f"{url}/other", remotes=[], offline=True)


def test_a_packed_snapshot_at_a_url(tmp_path: Path) -> None:
    write_games(tmp_path / "games")
    (tmp_path / "web").mkdir()
    with zipfile.ZipFile(tmp_path / "web" / "games.sgz", "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files_in(tmp_path / "games")):
            archive.write(tmp_path / "games" / name, name)
    with http_server(tmp_path / "web") as url:
        pulled = get(f"{url}/games.sgz", remotes=[])
        assert Snapshot.open(pulled.path).verify() == ()
        with pytest.raises(SnapshotError, match="nothing at"):
            get(f"{url}/gone.sgz", remotes=[])
    assert get(str(tmp_path / "web" / "games.sgz"), remotes=[]).digest == pulled.digest


def test_a_registry_behind_a_plain_web_server(tmp_path: Path, remote: Path) -> None:
    publish_versions(tmp_path, remote, "1.0.0", "1.1.0", "1.2.0")
    (remote / LATEST).write_text('{"serial": 1}')
    with http_server(remote) as url:
        assert get("games", remotes=[url]).version == "1.2.0"
        assert get(f"{url}#games@1.0.0", remotes=[]).version == "1.0.0"


# --- parts ---


@pytest.mark.parametrize("kind", ["folder", "shards"])
def test_only_the_parts_that_are_wanted_are_fetched(
    tmp_path: Path, remote: Path, kind: str
) -> None:
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0", layout=kind, vectors=True)
    path = pull("games", remotes=[remote], only=("envs", "notes"))
    refs = {ref.path for ref in snapshot.manifest.files if ref.kind != "vectors"}
    assert files_in(path) == refs | {MANIFEST}
    assert Snapshot.open(path).spec("synthgym/DryDock-v0").name == "DryDock"
    with pytest.raises(SnapshotError, match="vectors"):
        list(Snapshot.open(path).vectors("small"))
    assert pull("games", remotes=[remote]) == path
    assert len(list(Snapshot.open(path).vectors("small"))) == len(NAMES)
    with pytest.raises(ConfigError, match="did you mean 'envs'"):
        pull("games", remotes=[remote], only=("env",))


@pytest.mark.parametrize("kind", ["folder", "shards"])
def test_only_the_environments_that_are_wanted_are_fetched(
    tmp_path: Path, remote: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "SHARD_TARGET", 3)  # so that six environments have two shards
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0", layout=kind, vectors=True)
    shards = {e.name: int(e.digest[7], 16) // 8 for e in snapshot}
    first = [name for name, shard in shards.items() if shard == shards["LoomDarn"]]
    chosen = next(name for name in first if name != "LoomDarn")
    digest = snapshot.entry("synthgym/LoomDarn-v0").digest
    ids = [f"synthgym/{chosen}-v0", digest, snapshot.entry(digest).pinned_id]
    path = pull("games", remotes=[remote], env_ids=ids)
    opened = Snapshot.open(path)
    for env_id in (f"synthgym/{chosen}-v0", "synthgym/LoomDarn-v0"):
        assert opened.spec(env_id) == snapshot.spec(env_id)
        assert opened.report(env_id) == snapshot.report(env_id)
    assert len(files_in(path)) < len(snapshot.manifest.files) + 1
    with pytest.raises(EnvNotFoundError, match="did you mean"):
        pull("games", remotes=[remote], env_ids=["synthgym/DryDok-v0"])
    with pytest.raises(EnvNotFoundError, match="no environment"):
        pull("games", remotes=[remote], env_ids=[digest[:-4] + "0000"])


def test_progress_counts_up_to_what_is_wanted(tmp_path: Path, remote: Path) -> None:
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0")
    told: list[tuple[int, int]] = []
    pull("games", remotes=[remote], progress=lambda *pair: told.append(pair))
    total = sum(ref.size for ref in snapshot.manifest.files)
    assert told[0] == (0, total)
    assert told[-1] == (total, total)
    assert told == sorted(told)


# --- what is refused ---


def spoil(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda data: data[:-1] + b"~", "promised sha256"),
        (lambda data: data[:-1], "came"),
        (lambda data: data + b"x", "larger|more came"),
    ],
)
def test_a_file_with_other_bytes_is_never_installed(
    tmp_path: Path, remote: Path, cache: Cache, change: Callable[[bytes], bytes], what: str
) -> None:
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0")
    ref = snapshot.manifest.files[0]
    spoil(remote / object_path(ref.sha256), change)
    with pytest.raises(IntegrityError, match=what):
        pull("games", remotes=[remote])
    assert not cache.object_path(ref.sha256).exists()
    assert cache.views(snapshot.digest) == []


def test_a_file_that_is_missing_and_one_that_comes_back(
    tmp_path: Path, remote: Path, cache: Cache
) -> None:
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0")
    victim = remote / object_path(snapshot.manifest.files[-1].sha256)
    aside = victim.rename(tmp_path / "aside")
    with pytest.raises(IntegrityError, match="is in the manifest, but it is not there"):
        pull("games", remotes=[remote])
    assert cache.views(snapshot.digest) == []
    aside.rename(victim)
    before = files_in(cache.root / "objects")
    path = pull("games", remotes=[remote])
    assert Snapshot.open(path).verify() == ()
    assert before < files_in(cache.root / "objects")


def test_another_manifest_than_the_index_names_is_refused(tmp_path: Path, remote: Path) -> None:
    old, new = publish_versions(tmp_path, remote, "1.0.0", "1.1.0")
    place = remote / manifest_path(new.digest)
    shutil.copyfile(remote / manifest_path(old.digest), place)
    with pytest.raises(
        IntegrityError, match=r"promised a snapshot of version 1\.1\.0, got 1\.0\.0"
    ):
        pull("games", remotes=[remote])
    place.unlink()
    with pytest.raises(IntegrityError, match="names the snapshot in its index"):
        pull("games", remotes=[remote])


def test_a_digest_is_computed_from_the_files_and_not_believed(
    tmp_path: Path, remote: Path, cache: Cache
) -> None:
    """A registry may lie about everything but what the user has named."""
    (snapshot,) = publish_versions(tmp_path, remote, "1.0.0")
    data = json.loads((remote / manifest_path(snapshot.digest)).read_bytes())
    ref = next(ref for ref in data["files"] if ref["path"] == "envs/DryDock/v0/report.json")
    false = b'{"ok":false}\n'
    ref |= {"sha256": sha256_digest(false), "size": len(false)}
    del data["manifest_sha256"]
    data["manifest_sha256"] = sha256_digest(canonical_json(data))
    lie = canonical_json(data)
    open_remote(remote).put(object_path(ref["sha256"]), false)
    (remote / manifest_path(snapshot.digest)).write_bytes(lie)
    index = json.loads((remote / index_path(1)).read_bytes())
    index["names"]["games"][0]["manifest_sha256"] = sha256_digest(lie)
    (remote / index_path(1)).write_bytes(canonical_json(index))
    assert get("games", remotes=[remote]).digest == snapshot.digest
    for _ in range(2):
        with pytest.raises(IntegrityError, match=r"DryDock|notes_root"):
            get(f"games@{snapshot.digest}", remotes=[remote])
    told = get(f"@{snapshot.digest}", remotes=[remote], wanted=Wanted(only=("envs",))).warnings
    assert "of the whole only" in told[0]
    assert not cache.is_verified(sha256_digest(lie))


def test_an_older_index_than_before_is_refused(tmp_path: Path, remote: Path) -> None:
    publish_versions(tmp_path, remote, "1.0.0", "1.1.0")
    pull("games", remotes=[remote])
    (remote / index_path(2)).rename(remote / "aside")
    with pytest.raises(TrustError, match=r"rollback.*serial 1, but 2 was seen"):
        pull("games", remotes=[remote])
    shutil.rmtree(remote / "index")
    with pytest.raises(TrustError, match=r"rollback.*holds no index"):
        pull("games", remotes=[remote])


def test_another_process_may_see_a_newer_index_meanwhile(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_versions(tmp_path, remote, "1.0.0")
    write_games(tmp_path / "next", "1.1.0")
    original, raced = Serials.note, []

    def note(self: Serials, url: str, index: Any) -> None:
        if not raced:
            raced.append(publish(tmp_path / "next", remote))
            link = newest(open_remote(remote))
            assert link is not None
            original(self, url, link.index)
        original(self, url, index)

    monkeypatch.setattr(Serials, "note", note)
    assert get("games", remotes=[remote]).version == "1.1.0"
