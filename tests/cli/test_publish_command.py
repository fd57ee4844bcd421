from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run
from games import make_spec, write_games
from hub_server import hub_server
from ssh import GENERATORS, write_key

from synthgym.publishing.chain import newest
from synthgym.publishing.remotes import open_remote


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SYNTHGYM_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("SYNTHGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("SYNTHGYM_REMOTES", raising=False)
    write_games(tmp_path / "games")


def test_a_snapshot_is_published_once(run: Run, tmp_path: Path) -> None:
    done = run("publish", tmp_path / "games", tmp_path / "remote")
    assert done.code == 0, done.err
    assert f"games 1.0.0 in file://{tmp_path}/remote\n" in done.out
    again = run("publish", tmp_path / "games", tmp_path / "remote", "--json")
    told = json.loads(again.out)
    assert (told["is_new"], told["uploaded"], told["serial"]) == (False, 0, 1)


def test_it_is_signed_with_a_key_and_may_expire(run: Run, tmp_path: Path) -> None:
    key = write_key(tmp_path / "key", GENERATORS["ed25519"]())
    options = ("--sign-key", key, "--valid-days", 3)
    done = run("publish", tmp_path / "games", tmp_path / "remote", *options)
    assert done.code == 0, done.err
    link = newest(open_remote(tmp_path / "remote"))
    assert link is not None
    assert link.signatures.startswith("-----BEGIN SSH SIGNATURE-----")
    assert link.index.expires is not None


def test_what_must_not_get_out_is_a_mistake_until_it_is_allowed(run: Run, tmp_path: Path) -> None:
    specs = [make_spec("DryDock", license="other", metrics={"by": "kim@corp.io"})]
    write_games(tmp_path / "leaky", specs=specs)
    words = ["publish", tmp_path / "leaky", tmp_path / "remote"]
    for option, hint in (
        (["--allow-license", "other"], "kim@corp.io"),
        (["--allow-leak", "e-mail"], "their license"),
        (["--allow-leak", "email"], "did you mean 'e-mail'"),
        (["--allow-license", "others"], "did you mean 'other'"),
    ):
        refused = run(*words, *option)
        assert refused.code == 2
        assert hint in refused.err
    assert run(*words, "--allow-leak", "e-mail", "--allow-license", "Other").code == 0


def test_a_release_is_yanked_for_a_reason(run: Run, tmp_path: Path) -> None:
    run("publish", tmp_path / "games", tmp_path / "remote")
    words = ("snapshot", "yank", tmp_path / "remote", "games", "1.0.0")
    assert run(*words).code == 2
    assert run(*words, "--reason", "no win", "--undo").code == 2
    assert "yanked.severity" in run(*words, "--reason", "no win", "--severity", "bad").err
    assert run(*words, "--reason", "no win").out == "games 1.0.0 yanked, index 2\n"
    assert run(*words, "--undo").out == "games 1.0.0 not yanked any more, index 3\n"


def test_the_hub_is_a_remote_too(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    constants = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    with hub_server() as hub:
        monkeypatch.setattr(constants, "ENDPOINT", hub.url)
        done = run("publish", tmp_path / "games", "hf://org/games")
        assert done.code == 0, done.err
        assert done.out.startswith(f"hf://org/games@1.0.0 at commit {hub.head('org/games')}")
    assert "hf://org/name" in run("publish", tmp_path / "games", "hf://org/games@main").err
