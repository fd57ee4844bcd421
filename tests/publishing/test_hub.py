from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from games import make_spec, write_games
from hub_server import Hub, hub_server

from synthgym.errors import IntegrityError, MissingExtraError, SnapshotError
from synthgym.publishing import hub as hub_module
from synthgym.publishing.cache import Cache
from synthgym.publishing.fetching import Pins, Wanted, fetch
from synthgym.publishing.hub import HubSource, publish_to_hub
from synthgym.publishing.policy import TrustPolicy
from synthgym.publishing.publish import Publishing
from synthgym.publishing.pull import make_settings, pull_release
from synthgym.registry import Snapshot

pytest.importorskip("huggingface_hub")
# huggingface_hub 2.4 uploads large files in a way that its own HTTP library will not have in future.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")
REPO = "org/games"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub of our own behind the real client. Large files go by LFS, not by Xet."""
    import huggingface_hub.constants as constants
    from huggingface_hub import HfFileSystem

    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    HfFileSystem.clear_instance_cache()
    with hub_server() as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        yield server
    HfFileSystem.clear_instance_cache()


def get(hub: Hub, revision: str = "") -> Snapshot:
    source = HubSource(REPO, revision, endpoint=hub.url)
    found = fetch(source, Cache(), Pins(), Wanted(), TrustPolicy())
    return Snapshot.open(found.path)


@pytest.mark.parametrize("layout", ["folder", "shards"])
def test_what_is_published_is_pulled(hub: Hub, tmp_path: Path, layout: str) -> None:
    snapshot = write_games(tmp_path / "games", layout=layout, vectors=True)
    done = publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url)
    assert hub.tags[REPO] == {"1.0.0": done.commit}
    tree = hub.trees[REPO][done.commit]
    assert set(tree) == {
        *(ref.path for ref in snapshot.manifest.files),
        *("manifest.json", "README.md", "croissant.json", ".gitattributes"),
    }
    for text in (f"hf://{REPO}", f"hf://{REPO}@1.0.0", f"hf://{REPO}@{done.commit}#games@1.0.0"):
        pulled = pull_release(text, make_settings(remotes=[]))
        assert pulled.remote == f"hf://{REPO}@{done.commit}"
        assert Snapshot.open(pulled.path).verify() == ()
        assert pulled.digest == snapshot.digest
    with pytest.raises(IntegrityError, match="promised a snapshot of name tools"):
        pull_release(f"hf://{REPO}#tools", make_settings(remotes=[]))
    locked = pull_release(f"hf://{REPO}", make_settings(remotes=[])).locked()
    assert locked.remote == f"hf://{REPO}@{done.commit}"


def test_the_default_branch_holds_the_old_snapshot_or_the_new(hub: Hub, tmp_path: Path) -> None:
    first = write_games(tmp_path / "1.0.0", "1.0.0")
    more = [make_spec(f"Env{n}", metrics={"n": n}) for n in range(25)]
    second = write_games(tmp_path / "1.1.0", "1.1.0", specs=more)
    for snapshot in (first, second):
        publish_to_hub(snapshot.path, REPO, endpoint=hub.url)
    assert max(hub.commit_sizes[:-1]) <= 50
    assert len(hub.commit_sizes) == 2 + 3
    seen = []
    for commit, tree in hub.trees[REPO].items():
        if "manifest.json" in tree:
            opened = get(hub, commit)
            assert opened.verify() == ()
            seen.append(opened.version)
    assert seen == ["1.0.0"] * 3 + ["1.1.0"]
    assert not any("DryDock" in path for path in hub.trees[REPO][hub.head(REPO)])
    assert get(hub, "1.0.0").digest == first.digest


def test_a_publisher_that_was_stopped_goes_on(hub: Hub, tmp_path: Path) -> None:
    specs = [make_spec(f"Env{n}", metrics={"n": n}) for n in range(40)]
    snapshot = write_games(tmp_path / "games", specs=specs)
    hub.fail_at_commit = 2
    with pytest.raises(SnapshotError, match="500"):
        publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url)
    assert hub.commit_sizes == [50, 50]
    assert hub.tags[REPO] == {}
    with pytest.raises(SnapshotError, match=r"holds no manifest\.json"):
        get(hub)
    done = publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url)
    assert hub.commit_sizes == [50, 50, 20, 3]
    assert done.uploaded == 23
    assert get(hub).digest == snapshot.digest
    before = len(hub.trees[REPO])
    assert publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url).uploaded == 0
    assert len(hub.trees[REPO]) == before


def test_who_commits_meanwhile_is_not_written_over(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_games(tmp_path / "games")
    upload = hub_module._Upload.run

    def raced(self: hub_module._Upload, *rest: object) -> None:
        hub.commit(REPO, {"theirs": b"x"})
        upload(self, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(hub_module._Upload, "run", raced)
    with pytest.raises(SnapshotError, match="somebody else has committed meanwhile"):
        publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url)
    assert hub.trees[REPO][hub.head(REPO)] == {"theirs": b"x"}


def test_a_version_stands_for_one_content(hub: Hub, tmp_path: Path) -> None:
    write_games(tmp_path / "one")
    write_games(tmp_path / "two", specs=[make_spec("Other")])
    done = publish_to_hub(tmp_path / "one", REPO, endpoint=hub.url)
    with pytest.raises(SnapshotError, match="give the snapshot the next version"):
        publish_to_hub(tmp_path / "two", REPO, endpoint=hub.url)
    write_games(tmp_path / "next", "1.1.0")
    later = publish_to_hub(tmp_path / "next", REPO, endpoint=hub.url)
    assert publish_to_hub(tmp_path / "one", REPO, endpoint=hub.url).commit == done.commit
    assert hub.head(REPO) == later.commit, "the newer one stays on the default branch"


def test_a_card_that_its_owner_wrote_stays(hub: Hub, tmp_path: Path) -> None:
    write_games(tmp_path / "games")
    card = tmp_path / "games" / "README.md"
    card.write_text("---\nlicense: mit\n---\nOurs, by kim@corp.io\n")
    with pytest.raises(SnapshotError, match=r"README\.md, line 4: e-mail"):
        publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url)
    allowed = Publishing(allow_leaks=("e-mail",))
    done = publish_to_hub(tmp_path / "games", REPO, allowed, endpoint=hub.url)
    assert hub.trees[REPO][done.commit]["README.md"] == card.read_bytes()


def test_a_file_that_the_hub_changed_is_not_installed(hub: Hub, tmp_path: Path) -> None:
    write_games(tmp_path / "games", layout="shards")
    done = publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url)
    tree = hub.trees[REPO][done.commit]
    tree["index.parquet"] = tree["index.parquet"][:-1] + b"~"
    with pytest.raises(IntegrityError, match=r"index\.parquet: promised sha256"):
        get(hub)


def test_what_the_hub_does_not_have_is_told(hub: Hub, tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="not there, or is private"):
        HubSource("org/nothing", endpoint=hub.url)
    write_games(tmp_path / "games")
    publish_to_hub(tmp_path / "games", REPO, endpoint=hub.url)
    with pytest.raises(SnapshotError, match="no such revision"):
        HubSource(REPO, "9.9", endpoint=hub.url)
    with pytest.raises(SnapshotError, match="cannot be the name"):
        publish_to_hub(tmp_path / "games", "a/b/c", endpoint=hub.url)


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"synthgym\[hub\]"):
        HubSource(REPO)
