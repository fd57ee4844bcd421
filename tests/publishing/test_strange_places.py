"""References, remotes and locks that a stranger wrote, or somebody in a hurry."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pulling import get

from synthgym.errors import ConfigError, IntegrityError, SnapshotError
from synthgym.publishing.lock import LOCK, Lock, Locked, read_lock
from synthgym.publishing.references import parse_reference
from synthgym.publishing.remotes import open_remote, remote_url
from synthgym.publishing.ssh_keys import load_private_key

DIGEST = "sha256:" + "ab" * 32
SECRET = "hunter2"


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300,
        "~nobody-of-this-name/games",
        "file://~nobody-of-this-name/games",
        "file://~nobody-of-this-name/r#games",
        "s3://[bad",
        "https://[x]/y#g",
        "games>=1" + "," * 3000,
        f"https://kim:{SECRET}@host/r#games",
        f"https://{SECRET}@host/games",
    ],
)
def test_what_is_no_reference_is_said_and_no_secret(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a reference to a snapshot") as caught:
        parse_reference(text)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"https://kim:{SECRET}@host/r",
        f"https://{SECRET}@host/r",
        f"ssh://kim:{SECRET}@host/r",
        "simplecache::https://host/r",
        "reference::file:///tmp/made-up.json",
        "zip://x::file:///tmp/x.zip",
    ],
)
def test_a_remote_is_neither_chained_nor_holds_a_secret(tmp_path: Path, url: str) -> None:
    for make in (open_remote, remote_url):
        with pytest.raises(ConfigError, match=r"chained|user or password") as caught:
            make(url)
        assert SECRET not in str(caught.value)
    entry = Locked(
        reference="games",
        name="games",
        version="1.0.0",
        digest=DIGEST,
        manifest_sha256=DIGEST,
        remote=url,
    )
    with pytest.raises(ConfigError, match=r"chained|user or password"):
        get("games", lock=Lock(tmp_path / LOCK, (entry,)))


@pytest.mark.parametrize("url", ["~nobody-of-this-name/r", "file:///a%00b", "/tmp/" + "x" * 3000])
def test_a_folder_that_cannot_be_is_said(url: str) -> None:
    with pytest.raises(SnapshotError):
        get("games", remotes=[url])


def test_a_public_key_is_not_said_to_be_too_open(tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_text("ssh-ed25519 AAAA kim@host")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match="is a public key; expected the private one"):
        load_private_key(path)


def test_a_pipe_in_a_registry_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    for name in ("latest.json", "00000001.json"):
        os.mkfifo(tmp_path / "index" / name)
    with pytest.raises(IntegrityError, match="not a regular file"):
        get("games", remotes=[tmp_path])


@pytest.mark.parametrize(
    "text",
    [
        "version = " + "1" * 5000,
        "version = 0x" + "1" * 50_000,
        "version = 1\na = " + "[" * 3000 + "]" * 3000,
        "version = 0",
        "version = -5",
    ],
)
def test_a_lock_that_is_none_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK).write_text(text)
    with pytest.raises(ConfigError, match=LOCK):
        read_lock(tmp_path / LOCK)
