from __future__ import annotations

from pathlib import Path

import pytest

from synthgym import atomic
from synthgym.atomic import new_folder, write_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(path: Path, text: str) -> None:
    with new_folder(path) as folder:
        (folder / "file").write_text(text)


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"1")
    write_file(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"2"
    assert names(tmp_path) == ["a"]


def test_a_failed_file_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path / "a", b"1")

    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(atomic.os, "fsync", fail)
    with pytest.raises(OSError, match="no space"):
        write_file(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    assert names(tmp_path) == ["a"]


def interrupted(path: Path) -> None:
    with new_folder(path) as folder:
        (folder / "file").write_text("half")
        raise KeyboardInterrupt


@pytest.mark.parametrize("swap", [True, False], ids=["one-step", "two-renames"])
def test_a_folder_is_made_and_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swap: bool
) -> None:
    if not swap:
        monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    for text in ("1", "2", "3"):
        make(tmp_path / "a", text)
        assert (tmp_path / "a" / "file").read_text() == text
        assert names(tmp_path) == ["a"]
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("there", [True, False], ids=["there", "new"])
def test_an_error_in_the_block_changes_nothing(tmp_path: Path, there: bool) -> None:
    if there:
        make(tmp_path / "a", "old")
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "a")
    assert names(tmp_path) == (["a"] if there else [])
    assert not there or (tmp_path / "a" / "file").read_text() == "old"


def test_when_the_second_rename_fails_the_old_folder_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "a", "old")
    monkeypatch.setattr(atomic, "_exchange", lambda *_: False)
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if target == tmp_path / "a" and not self.name.endswith("-old"):
            raise OSError("rename failed")
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="rename failed"):
        make(tmp_path / "a", "new")
    assert (tmp_path / "a" / "file").read_text() == "old"
    assert names(tmp_path) == ["a"]


def test_a_missing_name_cannot_be_swapped(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(FileNotFoundError):
        atomic._exchange(tmp_path / "a", tmp_path / "b")
    assert names(tmp_path) == ["a"]
