"""Mistakes at the prompt: a sentence and exit code 2, and nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run
from hostile import NOTES, change_rows, write_games
from snapshots import game, write

from synthgym.cli import embed_command
from synthgym.memory import HashEmbedder
from synthgym.publishing import Cache, publish, pull
from synthgym.registry import write_vectors
from synthgym.registry.layout import embedder_id


def test_figures_are_not_noted_in_the_cache(run: Run, here: Path) -> None:
    publish(write(here / "mine", [game("Game", license="MIT")]).path, here / "remote")
    view = pull(f"file://{here}/remote#games")
    assert view.is_relative_to(Cache().root)
    before = {path: path.read_bytes() for path in view.rglob("*") if path.is_file()}
    for command in (
        ("calibrate", "--write", "--episodes", "1", "--snapshot", str(view)),
        ("snapshot", "embed", str(view), "--embedder", "hash"),
        ("snapshot", "sign", str(view), "--key", "key"),
    ):
        done = run(*command)
        assert (done.code, "is in the cache, which is not written to" in done.err) == (2, True)
    assert {path: path.read_bytes() for path in view.rglob("*") if path.is_file()} == before


def test_a_folder_of_that_name_is_not_pulled_instead(run: Run, here: Path) -> None:
    write(here / "games", [game("Game")])
    done = run("pull", "games", "--remote", str(here / "remote"))
    assert done.code == 2
    assert "'games' is here, and --remote asks a registry" in done.err


@pytest.mark.parametrize("payload", ["nope", '{"x":' + "9" * 5000 + "}", '{"a":' * 5000 + "1"])
def test_figures_of_a_stranger_are_read_strictly(run: Run, here: Path, payload: str) -> None:
    root = write_games(here / "games")

    def strange(rows: dict[str, list[str]]) -> dict[str, list[str]]:
        pairs = zip(rows["kind"], rows["payload"], strict=True)
        return rows | {"payload": [payload if k == "metrics" else p for k, p in pairs]}

    change_rows(root, NOTES, strange)
    done = run("snapshot", "filter", str(root), "out", "--where", "n<1")
    assert (done.code, "is not strict JSON" in done.err) == (2, True)
    assert not (here / "out").exists()


def test_vectors_are_searched_with_the_embedder_that_made_them(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = HashEmbedder()
    made = write(here / "games", [game("Game")])
    (digest,) = made.digests()
    name = embedder_id(embedder.name)
    write_vectors(made.path, {digest: {name: embedder(["Rules."])[0]}})
    asked: list[str] = []

    def load(choice: str) -> HashEmbedder:
        asked.append(choice)
        return embedder

    monkeypatch.setattr(embed_command, "load_embedder", load)
    done = run("search", "--like", "rules", "--snapshot", "games", "--json")
    assert [row["id"] for row in json.loads(done.out)] == ["synthgym/Game-v0"]
    assert asked == ["hash"], "no other is loaded"


@pytest.mark.parametrize("name", ["x" * 300, "https://host/" + "x" * 300 + "::y"])
def test_a_place_that_is_too_long_for_a_path_is_said(run: Run, here: Path, name: str) -> None:
    done = run("list", "--snapshot", name)
    assert (done.code, "is not a reference to a snapshot" in done.err) == (2, True)


@pytest.mark.parametrize("days", [0, 36_501, 10**15])
def test_days_that_no_calendar_has_are_refused(run: Run, here: Path, days: int) -> None:
    games = write(here / "games", [game("Game", license="MIT")]).path
    done = run("publish", games, here / "remote", "--valid-days", str(days))
    assert (done.code, "--valid-days" in done.err) == (2, True)
    assert not (here / "remote").exists()


def test_what_the_system_refuses_is_said(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    write(here / "games", [game("Game")])
    monkeypatch.setattr("synthgym.registry.archive.pack", full)
    done = run("snapshot", "pack", "games", "games.sgz")
    assert (done.code, "No space left on device" in done.err) == (2, True)
