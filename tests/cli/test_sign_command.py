from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Run
from snapshots import rich
from ssh import keygen, needs_keygen


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def new_key(path: Path, passphrase: str = "") -> Path:
    """A key made by ssh-keygen itself."""
    made = keygen("-q", "-t", "ed25519", "-N", passphrase, "-C", "me@example.org", "-f", path)
    assert made.returncode == 0, made.stderr
    return path


def allow(path: Path, key: Path, who: str = "me@example.org") -> Path:
    public = Path(f"{key}.pub").read_text()
    path.write_text(f'{who} namespaces="synthgym-*" {public}')
    return path


@needs_keygen
def test_a_signed_snapshot_is_verified_by_us_and_by_ssh_keygen(
    run: Run, here: Path, tmp_path: Path
) -> None:
    rich(here / "games", "shards")
    key = new_key(tmp_path / "key")
    signers = allow(tmp_path / "signers", key)
    ran = run("snapshot", "sign", "games", "--key", key)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0] == "games 1.0.0 signed: games/manifest.json.sig"
    fingerprint = ran.out.splitlines()[1]
    assert fingerprint in keygen("-l", "-f", f"{key}.pub").stdout.decode()
    words = ("--allowed-signers", signers, "--require-signature")
    ran = run("snapshot", "verify", "games", *words)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1] == f"signed by me@example.org ({fingerprint})"
    run("snapshot", "pack", "games", "games.sgz")
    assert run("snapshot", "verify", "games.sgz", *words).code == 0
    info = json.loads(run("snapshot", "info", "games.sgz", "--json").out)
    assert info["signatures"] == "manifest.json.sig"
    there = keygen(
        *("-Y", "verify", "-f", signers, "-I", "me@example.org", "-n", "synthgym-snapshot"),
        *("-s", here / "games" / "manifest.json.sig"),
        stdin=(here / "games" / "manifest.json").read_bytes(),
    )
    assert there.returncode == 0, there.stderr


@needs_keygen
def test_a_signature_by_ssh_keygen_is_good_too(run: Run, here: Path, tmp_path: Path) -> None:
    rich(here / "games", "folder")
    key = new_key(tmp_path / "key")
    made = keygen("-Y", "sign", "-f", key, "-n", "synthgym-snapshot", here / "games/manifest.json")
    assert made.returncode == 0, made.stderr
    signers = allow(tmp_path / "signers", key)
    ran = run("snapshot", "verify", "games", "--allowed-signers", signers, "--require-signature")
    assert ran.code == 0, ran.err
    assert "signed by me@example.org" in ran.out


@needs_keygen
def test_a_signature_that_is_missing_unknown_or_wrong_exits_with_4(
    run: Run, here: Path, tmp_path: Path
) -> None:
    rich(here / "games", "folder")
    key, other = new_key(tmp_path / "key"), new_key(tmp_path / "other")
    signers = allow(tmp_path / "signers", other)
    words = ("snapshot", "verify", "games", "--allowed-signers", signers)
    ran = run(*words, "--require-signature")
    assert ran.code == 4
    assert ran.err.startswith("error: games 1.0.0: ")
    assert run(*words).out.splitlines()[1] == "signature: unsigned"
    assert run("snapshot", "sign", "games", "--key", key).code == 0
    ran = run(*words)
    assert (ran.code, ran.out.splitlines()[1]) == (0, "signature: unknown-key")
    assert run(*words, "--require-signature").code == 4
    # Two sign, and one of them is known: that is enough.
    assert run("snapshot", "sign", "games", "--key", other).code == 0
    assert run(*words, "--require-signature").code == 0
    # A signature over another manifest is wrong, whether one is required or not.
    rich(here / "moved", "shards")
    signature = (here / "games" / "manifest.json.sig").read_bytes()
    (here / "moved" / "manifest.json.sig").write_bytes(signature)
    ran = run("snapshot", "verify", "moved", "--allowed-signers", signers)
    assert ran.code == 4
    assert ran.err.startswith("error: games 1.0.0: ")
    (here / "moved" / "manifest.json.sig").write_bytes(b"\xff nonsense")
    assert run("snapshot", "verify", "moved").code == 4


@needs_keygen
def test_sign_says_what_is_wrong(run: Run, here: Path, tmp_path: Path) -> None:
    rich(here / "games", "folder")
    key = new_key(tmp_path / "key")
    assert run("snapshot", "pack", "games", "games.sgz").code == 0
    ran = run("snapshot", "sign", "games.sgz", "--key", key)
    assert (ran.code, "unpack it" in ran.err) == (2, True)
    for path, message in (
        (tmp_path / "none", "none"),
        (tmp_path / "key.pub", "key.pub"),
        (here / "games" / "manifest.json", "manifest.json"),
    ):
        ran = run("snapshot", "sign", "games", "--key", path)
        assert (ran.code, ran.out) == (2, "")
        assert message in ran.err
    assert "manifest.json.sig" not in names(here / "games")
    assert run("snapshot", "sign", "games", "--key", key).code == 0
    ran = run("snapshot", "sign", "games", "--key", key)
    assert (ran.code, "already" in ran.err) == (2, True)


@needs_keygen
def test_a_key_with_a_passphrase_asks_for_it(
    run: Run, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rich(here / "games", "folder")
    key = new_key(tmp_path / "key", "open sesame")
    answers = iter(["wrong", "open sesame"])
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert run("snapshot", "sign", "games", "--key", key).code == 2
    assert run("snapshot", "sign", "games", "--key", key).code == 0
    signers = allow(tmp_path / "signers", key)
    words = ("--allowed-signers", signers, "--require-signature")
    assert run("snapshot", "verify", "games", *words).code == 0
