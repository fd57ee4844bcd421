from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import ConfigError
from synthgym.publishing.references import (
    HubReference,
    NamedReference,
    PathReference,
    UrlReference,
    parse_reference,
)

DIGEST = "sha256:" + "ab" * 32
HOST = "https://host/registry"

GOOD = {
    "games": NamedReference("games"),
    "games@1.2.0": NamedReference("games", "==1.2.0"),
    "games==1.2": NamedReference("games", "==1.2"),
    "games >=1, <2": NamedReference("games", ">=1,<2"),
    "games~=1.4": NamedReference("games", "~=1.4"),
    f"games@{DIGEST}": NamedReference("games", DIGEST),
    f"@{DIGEST}": NamedReference("", DIGEST),
    f"{HOST}#games": NamedReference("games", remote=HOST),
    f"{HOST}/#games@1": NamedReference("games", "==1", HOST),
    f"memory://r#@{DIGEST}": NamedReference("", DIGEST, "memory://r"),
    "file:///srv/registry#games>1": NamedReference("games", ">1", "file:///srv/registry"),
    "https://host/games": UrlReference("https://host/games"),
    "S3://bucket/a/games.sgz": UrlReference("s3://bucket/a/games.sgz"),
    "hf://org/games": HubReference("org/games"),
    "hf://datasets/org/games@refs/pr/1": HubReference("org/games", "refs/pr/1"),
    "hf://org/games@main#games@1.0": HubReference("org/games", "main", "games@1.0"),
}


@pytest.mark.parametrize("text", GOOD)
def test_a_reference_is_taken_apart_and_written_again(text: str) -> None:
    found = parse_reference(text)
    assert found == GOOD[text]
    assert parse_reference(str(found)) == found


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "empty"),
        ("a\x1bb", "control characters"),
        ("@1.0", "a name is missing"),
        ("ga mes", "expected a folder"),
        ("games@", "1.2.0"),
        ("games@1.2.x", "1.2.0"),
        ("games@01", "1.2.0"),
        ("games=1.2", "did you mean 'games==1.2'"),
        ("games===1.2", "write =="),
        ("games>=", "range of versions"),
        ("games>=one", "range of versions"),
        (f"games@{DIGEST[:-1]}", "64 hex digits"),
        (f"games@{DIGEST.upper()}", "1.2.0"),
        ("-games", "name"),
        ("acme/games", "no such folder"),
        ("games.sgz", "no such folder"),
        ("htps://host/games", "did you mean 'https'"),
        ("https://me:secret@host/games", "user or password"),
        ("simplecache::s3://bucket/x", "chained"),
        ("https://host#", "after '#'"),
        ("hf://games", "hf://org/repository"),
        ("hf://org/games@../x", "revision"),
        ("hf://org/games#games>=1", "one snapshot"),
        ("file:///nowhere/at/all", "no such folder"),
    ],
)
def test_a_bad_reference_says_what_was_expected(text: str, hint: str) -> None:
    with pytest.raises(ConfigError, match="is not a reference to a snapshot") as caught:
        parse_reference(text)
    assert hint in str(caught.value)
    assert "secret" not in str(caught.value).replace(text, "")


def test_a_folder_with_a_manifest_is_a_path_before_it_is_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_reference("games") == NamedReference("games")
    (tmp_path / "games").mkdir()
    assert parse_reference("games") == NamedReference("games")
    (tmp_path / "games" / "manifest.json").touch()
    (tmp_path / "games.sgz").touch()
    for text in ("games", "./games", f"file://{tmp_path}/games", "~/games"):
        monkeypatch.setenv("HOME", str(tmp_path))
        assert parse_reference(text) == PathReference(tmp_path / "games")
    assert parse_reference("games.sgz") == PathReference(tmp_path / "games.sgz")
    assert parse_reference("games@1") == NamedReference("games", "==1")


def test_a_folder_that_is_no_snapshot_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    with pytest.raises(ConfigError, match=r"holds no manifest\.json"):
        parse_reference(f"{tmp_path}/games")
    with pytest.raises(ConfigError, match="did you mean 'games'"):
        parse_reference(f"{tmp_path}/gamse")


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_reference_or_a_config_error(text: str) -> None:
    try:
        found = parse_reference(text)
    except ConfigError:
        return
    assert parse_reference(str(found)) == found
