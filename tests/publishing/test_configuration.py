from __future__ import annotations

import os
from pathlib import Path

import pytest

from synthgym.errors import ConfigError
from synthgym.publishing.configuration import config_path, configured_remotes, is_offline


def write(text: str) -> Path:
    path = config_path()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def test_the_environment_comes_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    assert configured_remotes() == ()
    path = write('remotes = ["https://host/registry", "/srv/games"]\n')
    assert path == Path(os.environ["XDG_CONFIG_HOME"]) / "synthgym" / "config.toml"
    assert configured_remotes() == ("https://host/registry", "/srv/games")
    monkeypatch.setenv("SYNTHGYM_REMOTES", " s3://bucket/a  /b ")
    assert configured_remotes() == ("s3://bucket/a", "/b")
    monkeypatch.setenv("SYNTHGYM_REMOTES", "")
    assert configured_remotes() == ()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("remotes = ", "cannot read"),
        ('remote = ["x"]', "unknown key 'remote'; did you mean 'remotes'"),
        ('remotes = "x"', "must be a list"),
        ("remotes = [1]", "must be a list"),
    ],
)
def test_a_wrong_file_is_named(text: str, hint: str) -> None:
    path = write(text)
    with pytest.raises(ConfigError, match=hint) as caught:
        configured_remotes()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("Yes", True), ("", False), ("0", False), ("off", False)]
)
def test_offline_is_yes_or_no(value: str, expected: bool) -> None:
    assert is_offline({"SYNTHGYM_OFFLINE": value}) is expected
    assert not is_offline({})


def test_offline_that_is_neither_is_an_error() -> None:
    with pytest.raises(ConfigError, match="must be 1 or 0, got 'maybe'"):
        is_offline({"SYNTHGYM_OFFLINE": "maybe"})
