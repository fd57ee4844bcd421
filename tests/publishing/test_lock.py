from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import ConfigError
from synthgym.publishing.lock import LOCK, Lock, Locked, find_lock, read_lock, write_lock

DIGEST = "sha256:" + "ab" * 32
GAMES = Locked(
    reference="games>=1",
    name="games",
    version="1.2.0",
    digest=DIGEST,
    manifest_sha256="sha256:" + "cd" * 32,
    remote="https://host/registry",
    signer="SHA256:abc",
)
TOOLS = replace(GAMES, reference="tools", name="tools", signer="")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / LOCK


def test_what_is_written_is_read(path: Path) -> None:
    write_lock(path, [GAMES, TOOLS])
    lock = read_lock(path)
    assert lock == Lock(path, (GAMES, TOOLS))
    assert lock.find("games>=1") == GAMES
    assert lock.find("games") is None
    before = path.read_bytes()
    write_lock(path, [GAMES])
    assert path.read_bytes() == before


def test_comments_and_entries_of_others_stay(path: Path) -> None:
    write_lock(path, [GAMES, TOOLS])
    text = path.read_text().replace('name = "tools"', 'name = "tools"  # ask Kim before changing')
    path.write_text("# ours\n" + text)
    newer = replace(GAMES, version="1.3.0", digest="sha256:" + "ef" * 32)
    write_lock(path, [newer, replace(GAMES, reference="third")])
    after = path.read_text()
    assert after.startswith("# ours\n# Written by")
    assert "# ask Kim before changing" in after
    assert read_lock(path).entries == (newer, TOOLS, replace(GAMES, reference="third"))
    changed = set(after.splitlines()) - set(("# ours\n" + text).splitlines())
    assert {line.split(" = ")[0] for line in changed} == {"version", "digest", "reference"}


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("version = ", "is not TOML"),
        ("", "is not a synthgym.lock"),
        ("version = true", "is not a synthgym.lock"),
        ("version = 2", "install a newer one"),
        ("version = 1\nsnapshot = 3", "expected"),
        ("version = 1\nsnapshot = [3]", "must be a table"),
        ("version = 1\n[[snapshot]]\nreference = 'a'", "missing name"),
        ("version = 1\n[[snapshot]]\nreferense = 'a'", "did you mean 'reference'"),
    ],
)
def test_a_lock_that_is_wrong_is_named_and_not_written_over(
    path: Path, text: str, hint: str
) -> None:
    path.write_text(text)
    for act in (lambda: read_lock(path), lambda: write_lock(path, [GAMES])):
        with pytest.raises(ConfigError, match=hint) as caught:
            act()
        assert str(path) in str(caught.value)
    assert path.read_text() == text


def test_wrong_values_and_doubled_references_are_refused(path: Path) -> None:
    write_lock(path, [GAMES])
    text = path.read_text()
    path.write_text(text.replace(DIGEST, "sha256:ab"))
    with pytest.raises(ConfigError, match="digest must be sha256"):
        read_lock(path)
    path.write_text(text.replace('"1.2.0"', "12"))
    with pytest.raises(ConfigError, match="version must be a text"):
        read_lock(path)
    path.write_text(text + text[text.index("[[") :])
    with pytest.raises(ConfigError, match="is there twice"):
        read_lock(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="cannot read"):
        read_lock(path)


def test_a_lock_is_looked_for_up_to_the_root_of_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "project" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / LOCK).touch()
    assert find_lock(inner) == tmp_path / LOCK
    (tmp_path / "project" / ".git").touch()
    assert find_lock(inner) is None
    (tmp_path / "project" / LOCK).touch()
    monkeypatch.chdir(inner)
    assert find_lock() == tmp_path / "project" / LOCK


@settings(max_examples=25, deadline=None)
@given(st.text(min_size=1, max_size=30), st.text(max_size=30))
def test_any_text_survives(reference: str, remote: str) -> None:
    entry = replace(GAMES, reference=reference, remote=remote)
    with TemporaryDirectory() as folder:
        path = Path(folder) / LOCK
        write_lock(path, [entry])
        assert read_lock(path).entries == (entry,)
