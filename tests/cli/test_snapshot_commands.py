from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run
from snapshots import game, games, rich, tree, write

from synthgym.publishing import publish
from synthgym.registry import Snapshot


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def ids(place: str) -> list[str]:
    return [entry.env_id.removeprefix("synthgym/") for entry in Snapshot.open(place)]


# --- info, verify ---


def test_info_says_what_the_manifest_says(run: Run, here: Path) -> None:
    made = rich(here / "games", "shards")
    facts = json.loads(run("snapshot", "info", "games", "--json").out)
    assert facts == {
        "name": "games",
        "version": "1.0.0",
        "digest": made.digest,
        "content": made.core.content_digest,
        "environments": 3,
        "notes": made.core.notes_count,
        "license": "Apache-2.0 AND MIT",
        "parents": [],
        "layout": "shards",
        "files": 4,
        "bytes": sum(ref.size for ref in made.manifest.files),
        "embedders": {"unit-test": 8},
        "signatures": "none",
    }
    assert run("snapshot", "filter", "games", "dry", "--search", "dry").code == 0
    shown = run("snapshot", "info", "dry").out
    assert made.digest in shown
    assert f"filter of games 1.0.0 {made.digest}" in shown
    assert "unit-test (8)" in shown


def test_verify_says_that_all_is_as_promised_or_exits_with_3(run: Run, here: Path) -> None:
    made = rich(here / "games", "folder")
    ran = run("snapshot", "verify", "games")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"3 environments as promised: {made.digest}\nsignature: unsigned\n"
    (here / "games" / "envs" / "DryDock" / "v1" / "env.py").write_text("\x1b[2J changed")
    (here / "games" / "notes.txt").write_text("x")
    ran = run("snapshot", "verify", "games")
    assert (ran.code, ran.out) == (3, "")
    assert "env.py of synthgym/DryDock-v1 is not the file of the manifest" in ran.err
    assert "notes.txt is not in the manifest" in ran.err
    assert len(ran.err.splitlines()) == 2
    manifest = here / "games" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes().replace(b"1.0.0", b"1.0.1"))
    ran = run("snapshot", "verify", "games")
    assert ran.code == 3
    assert ran.err.startswith("manifest.json promises digest ")


def test_a_place_that_is_not_there_is_one_message(run: Run, here: Path) -> None:
    write(here / "games", [game()])
    for words in (
        ("snapshot", "verify", "nowhere"),
        ("snapshot", "info", "nowhere/at/all"),
        ("snapshot", "diff", "games", "nowhere"),
        ("snapshot", "pack", "nowhere", "x.sgz"),
        ("snapshot", "unpack", "nowhere.sgz", "x"),
        ("snapshot", "filter", "nowhere", "x"),
        ("search", "x", "--snapshot", "nowhere"),
    ):
        ran = run(*words)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith("error: ")
        assert ran.err.count("\n") == 1
    assert names(here) == ["games"]


# --- diff ---


def test_diff_lists_what_differs_and_exits_with_1(run: Run, here: Path) -> None:
    old = rich(here / "old", "folder")
    specs = [old.spec(digest) for digest in old.digests()]
    write(here / "new", [*specs[1:], game("Come", title="\x1b[31mred")], "shards", version="2")
    gone = specs[0].env_id
    ran = run("snapshot", "diff", "old", "new", "--no-notes")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "added: 1",
        "  synthgym/Come-v0",
        "removed: 1",
        f"  {gone}",
    ]
    ran = run("snapshot", "diff", "old", "new", "--json")
    found = json.loads(ran.out)
    assert ran.code == 1
    assert "\x1b" not in ran.out
    assert [entry["id"] for entry in found["removed"]] == [gone]
    assert found["added"][0]["title"] == "\x1b[31mred"
    assert found["renamed"] == []
    assert found["noted"]  # reports and vectors are gone


def test_diff_of_the_same_says_so_and_exits_with_0(run: Run, here: Path) -> None:
    rich(here / "a", "folder")
    rich(here / "b", "shards")
    ran = run("snapshot", "diff", "a", "b")
    assert (ran.code, ran.out, ran.err) == (0, "no difference\n", "")
    ran = run("snapshot", "diff", "a", "b", "--json")
    assert ran.code == 0
    assert json.loads(ran.out) == {"added": [], "removed": [], "renamed": [], "noted": []}


def test_diff_shows_the_first_twenty_of_many(run: Run, here: Path) -> None:
    write(here / "none", [])
    write(here / "many", games(25))
    out = run("snapshot", "diff", "none", "many").out
    assert out.startswith("added: 25\n")
    assert out.count("synthgym/") == 20
    assert out.endswith("and 5 more (--json lists all)\n")
    assert len(json.loads(run("snapshot", "diff", "none", "many", "--json").out)["added"]) == 25


# --- merge ---


def test_merge_unites_and_tells_the_digest(run: Run, here: Path) -> None:
    write(here / "a", [game("A")])
    write(here / "b", [game("B")], "shards")
    ran = run("snapshot", "merge", "a", "b", "--out", "all", "--name", "all", "--release", "2.1")
    made = Snapshot.open("all")
    assert ran.code == 0, ran.err
    assert ran.out == f"2 environments, all 2.1\n{made.digest}\n"
    assert ids("all") == ["A-v0", "B-v0"]
    assert run("snapshot", "verify", "all").code == 0


def test_merge_with_a_conflict_says_what_to_do(run: Run, here: Path) -> None:
    write(here / "a", [game("Game", text="a")])
    write(here / "b", [game("Game", text="b")])
    words = ("snapshot", "merge", "a", "b", "--out", "all", "--name", "all")
    ran = run(*words)
    assert ran.code == 2
    assert "synthgym/Game-v0 stands for" in ran.err
    assert "--on-conflict" in ran.err
    ran = run(*words, "--on-conflict", "renumbr")
    assert ran.code == 2
    assert "error, first, renumber, got 'renumbr'" in ran.err
    assert names(here) == ["a", "b"]
    assert run(*words, "--on-conflict", "renumber", "--layout", "shards").code == 0
    assert ids("all") == ["Game-v0", "Game-v1"]
    assert Snapshot.open("all").manifest.layout == "shards"
    assert run(*words, "--on-conflict", "first").code == 2  # it is there already
    ran = run("snapshot", "merge", "a", "--out", "one", "--name", "one")
    assert (ran.code, "at least two" in ran.err) == (2, True)


# --- split ---


def test_split_writes_each_part_into_a_folder_of_its_name(run: Run, here: Path) -> None:
    write(here / "games", games(12))
    words = ("snapshot", "split", "games", "parts", "--part", "train=0.7", "--part", "test=.3")
    ran = run(*words, "--seed", 1, "--release", "1.2")
    assert ran.code == 0, ran.err
    train, test = Snapshot.open("parts/train"), Snapshot.open("parts/test")
    assert {*train.digests(), *test.digests()} == set(Snapshot.open("games").digests())
    assert len(train) + len(test) == 12
    assert ran.out.splitlines()[1::2] == [train.digest, test.digest]
    assert (train.version, train.core.parents[0].relation) == ("1.2", "split")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("train=1",), "at least two shares"),
        (("train=0.7", "test=0.7"), "sum up to 1"),
        (("train=nan", "test=0.5"), "sum up to 1"),
        (("train=0.5", "train=0.5"), "a name of its own"),
        (("train=half", "test=0.5"), "as train=0.9, got 'train=half'"),
        (("train", "test"), "as train=0.9, got 'train'"),
        (("../train=0.5", "test=0.5"), "a snapshot's name"),
        (("=0.5", "test=0.5"), "a snapshot's name"),
    ],
)
def test_split_says_what_is_wrong_and_writes_nothing(
    run: Run, here: Path, options: tuple[str, ...], message: str
) -> None:
    write(here / "games", games(12))
    parts = [word for option in options for word in ("--part", option)]
    ran = run("snapshot", "split", "games", "parts", *parts)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert names(here) == ["games"]


# --- pack, unpack, and packed files where folders are taken ---


def test_a_packed_snapshot_is_taken_where_a_folder_is(run: Run, here: Path) -> None:
    made = rich(here / "games", "shards")
    ran = run("snapshot", "pack", "games", "games.sgz")
    assert (ran.code, ran.out) == (0, "games.sgz\n")
    assert run("snapshot", "pack", "games.sgz", "again.sgz").code == 0
    assert (here / "games.sgz").read_bytes() == (here / "again.sgz").read_bytes()
    listed = run("list", "--snapshot", "games.sgz", "--json")
    assert listed == run("list", "--snapshot", "games", "--json")
    assert json.loads(listed.out)[0]["id"] == "synthgym/DryDock-v0"
    shown = run("show", "DryDock", "--snapshot", "games.sgz", "--source", "--json")
    assert json.loads(shown.out)["digest"] == made.versions("DryDock")[-1].digest
    assert run("snapshot", "verify", "games.sgz").code == 0
    assert run("snapshot", "diff", "games", "games.sgz").code == 0
    ran = run("snapshot", "unpack", "games.sgz", "back")
    assert ran.out == f"3 environments, games 1.0.0\n{made.digest}\n"
    assert tree(here / "back") == tree(here / "games")


def test_nothing_that_is_there_is_written_over(run: Run, here: Path) -> None:
    rich(here / "games", "folder")
    (here / "there").write_text("years of work")
    for words in (
        ("pack", "games", "there"),
        ("unpack", "games", "there"),
        ("filter", "games", "there"),
        ("merge", "games", "games", "--out", "there", "--name", "x"),
    ):
        ran = run("snapshot", *words)
        assert (ran.code, ran.out) == (2, "")
        assert "exists already" in ran.err
    assert (here / "there").read_text() == "years of work"
    assert names(here) == ["games", "there"]


# --- references ---


def test_a_reference_is_taken_where_a_folder_is(
    run: Run, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = rich(here / "games", "folder")
    publish(made.path, tmp_path / "remote")
    monkeypatch.setenv("SYNTHGYM_REMOTES", str(tmp_path / "remote"))
    (here / "games").rename(here / "mine")
    assert json.loads(run("snapshot", "info", "games@1.0.0", "--json").out)["digest"] == made.digest
    assert run("snapshot", "diff", "mine", f"games@{made.digest}").code == 0
    ran = run("snapshot", "info", "gmaes")
    assert ran.code == 2
    assert "did you mean 'games'" in ran.err
