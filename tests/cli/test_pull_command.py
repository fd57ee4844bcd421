from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run
from games import write_games

from synthgym.publishing.lock import LOCK, read_lock
from synthgym.publishing.publish import publish
from synthgym.registry import Snapshot


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTHGYM_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("SYNTHGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SYNTHGYM_REMOTES", str(tmp_path / "remote"))
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    for version in ("1.0.0", "1.1.0"):
        publish(write_games(tmp_path / version, version).path, tmp_path / "remote")


def test_what_is_printed_is_the_folder(run: Run, tmp_path: Path) -> None:
    done = run("pull", "games", "games@1.0.0")
    assert done.code == 0, done.err
    versions = [Snapshot.open(line).version for line in done.out.splitlines()]
    assert versions == ["1.1.0", "1.0.0"]
    assert f"games 1.1.0 of file://{tmp_path}/remote: sha256:" in done.err
    assert "signature: unsigned" in done.err
    (told,) = json.loads(run("pull", "games<1.1", "--json").out)
    assert (told["reference"], told["version"], told["signature"]) == (
        "games<1.1",
        "1.0.0",
        "unsigned",
    )


def test_parts_and_environments_are_chosen(run: Run) -> None:
    done = run("pull", "games", "--only", "envs, notes", "--env", "synthgym/DryDock-v0")
    path = Path(done.out.strip())
    assert [each.name for each in (path / "envs").iterdir()] == ["DryDock"]
    wrong = run("pull", "games", "--only", "env")
    assert wrong.code == 2
    assert "did you mean 'envs'" in wrong.err


def test_a_lock_holds_until_it_is_written_anew(run: Run, tmp_path: Path) -> None:
    assert run("pull", "games", "--lock").code == 0
    lock = tmp_path / "project" / LOCK
    assert read_lock(lock).entries[0].version == "1.1.0"
    publish(write_games(tmp_path / "2", "2.0.0").path, tmp_path / "remote")
    assert Snapshot.open(run("pull", "games").out.strip()).version == "1.1.0"
    assert Snapshot.open(run("pull", "games", "--no-lock").out.strip()).version == "2.0.0"
    assert run("pull", "games", "--lock", "--no-lock").code == 2
    assert run("pull", "games", "--lock").code == 0
    assert Snapshot.open(run("pull", "games").out.strip()).version == "2.0.0"


def test_offline_and_signatures_are_asked_for(run: Run, tmp_path: Path) -> None:
    assert "the cache (offline)" in run("pull", "games", "--offline").err
    assert run("pull", "games@1.0.0").code == 0
    assert run("pull", "games", "--offline").code == 0
    refused = run("pull", "games", "--require-signature")
    assert refused.code == 2
    assert "not signed" in refused.err
    (tmp_path / "signers").write_text("")
    assert run("pull", "games", "--allowed-signers", tmp_path / "signers").code == 0
    assert "no file of allowed signers" in run("pull", "games", "--allowed-signers", "gone").err


def test_warnings_and_remotes_of_the_command_line(run: Run, tmp_path: Path) -> None:
    run("snapshot", "yank", tmp_path / "remote", "games", "1.1.0", "--reason", "no win")
    done = run("pull", "games@1.1.0", "--remote", tmp_path / "remote", "--recheck")
    assert done.code == 0
    assert "warning: games 1.1.0 was yanked" in done.err
    assert "expected a folder" in run("pull", "games@").err
