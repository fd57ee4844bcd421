from __future__ import annotations

from pathlib import Path

import pytest
from games import make_spec, write_games
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import SnapshotError
from synthgym.publishing.leaks import Leak, LeakKind, check_leaks, find_leaks, find_text_leaks
from synthgym.registry.files import open_files

TOKEN = "hf_" + "a1B2" * 8
PRIVATE = {
    "/home/kim/runs/3": LeakKind.HOME_PATH,
    "see /Users/kim.lee/x": LeakKind.HOME_PATH,
    "model=/data/users/kim/qwen": LeakKind.HOME_PATH,
    "/root/.ssh/id_rsa": LeakKind.HOME_PATH,
    r"C:\Users\Kim\runs": LeakKind.HOME_PATH,
    r"C:\\Users\\Kim": LeakKind.HOME_PATH,
    "by kim.lee+x@lab.uni-x.edu.": LeakKind.EMAIL,
    f"token {TOKEN}": LeakKind.TOKEN,
    "sk-proj-" + "a1B2-" * 8: LeakKind.TOKEN,
    "ghp_" + "a1B2" * 9: LeakKind.TOKEN,
    "AKIA" + "ABCD1234" * 2: LeakKind.TOKEN,
    "-----BEGIN OPENSSH PRIVATE KEY-----": LeakKind.TOKEN,
}
HARMLESS = [
    "",
    "/home/user/file",
    "/home/<name>/file",
    "https://host/home/kim/x",
    "the home/away rule",
    "/rooted/tree",
    "alice@example.com and bob@mail.example",
    "me@localhost",
    "a@b",
    "games@1.2.0",
    "hf_token",
    "task-sk-1",
    "sk-short",
    "sha256:" + "ab" * 32,
]


@pytest.mark.parametrize("text", PRIVATE)
def test_what_is_private_is_found(text: str) -> None:
    (leak,) = find_text_leaks(f"one\n{text} and so on", "README.md")
    assert leak.kind is PRIVATE[text]
    assert leak.where == "README.md, line 2"


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_harmless_is_left_alone(text: str) -> None:
    assert list(find_text_leaks(text, "README.md")) == []


def test_a_secret_is_not_shown_again() -> None:
    (leak,) = find_text_leaks(TOKEN, "README.md")
    assert str(leak) == "README.md: token hf_a…"


@settings(deadline=None)
@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for leak in find_text_leaks(text, "x"):
        assert leak.kind in LeakKind


@pytest.mark.parametrize("layout", ["folder", "shards"])
def test_notes_are_read_for_all_and_sources_for_secrets(tmp_path: Path, layout: str) -> None:
    body = f'    home = "/home/kim/x"\n    mail = "kim@corp.io"\n    key = "{TOKEN}"\n'
    specs = [
        make_spec("Plain"),
        make_spec("Noted", metrics={"run": "/home/kim/runs", "by": "kim@corp.io"}),
        make_spec("Sourced", body=body),
        make_spec("Titled", title="By kim@corp.io"),
    ]
    snapshot = write_games(tmp_path / "games", layout=layout, specs=specs)
    leaks = list(find_leaks(open_files(tmp_path / "games"), snapshot.manifest.files))
    assert {leak.kind for leak in leaks} == set(LeakKind)
    wheres = [leak.where for leak in leaks]
    if layout == "folder":
        assert not any("Plain" in where for where in wheres)
        assert [str(leak.kind) for leak in leaks if "Sourced" in leak.where] == ["token"]
        assert {leak.kind for leak in leaks if "Noted" in leak.where} == {"home-path", "e-mail"}
        assert {leak.where.split(",")[0] for leak in leaks if leak.kind == "e-mail"} == {
            "manifest.json",
            "envs/Noted/v0/spec.json",
            "envs/Titled/v0/spec.json",
        }
    else:
        assert {leak.kind for leak in leaks if leak.where.startswith("envs/")} == {"token"}
        assert {leak.kind for leak in leaks if leak.where.startswith("notes/")} == {
            "home-path",
            "e-mail",
        }
        assert any(leak.where.startswith("index.parquet, row ") for leak in leaks)


def test_leaks_are_listed_until_they_are_allowed() -> None:
    leaks = [Leak(LeakKind.EMAIL, f"file {number}", "a@b.c") for number in range(30)]
    leaks.append(Leak(LeakKind.TOKEN, "other", "hf_a…"))
    with pytest.raises(SnapshotError, match="file 0: e-mail") as caught:
        check_leaks(leaks, ())
    assert "and 11 more" in str(caught.value)
    assert "e-mail, token" in str(caught.value)
    with pytest.raises(SnapshotError, match="other: token"):
        check_leaks(leaks, ("e-mail",))
    check_leaks(leaks, ("e-mail", "token"))
