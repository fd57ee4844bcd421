from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from synthgym.audit import folders
from synthgym.audit.folders import MAX_READ, Found, read_text, walk
from synthgym.contract import MAX_DIALECT_BYTES


def paths(root: Path) -> list[str]:
    return ["/".join(found.parts) for found in walk(root) if not found.problem]


def left_out(root: Path) -> dict[str, str]:
    return {"/".join(found.parts): found.problem for found in walk(root) if found.problem}


def test_python_files_are_found_in_the_order_of_names_folder_by_folder(tmp_path: Path) -> None:
    for name in ("b.py", "a.py", "z/a.py", "m/n/o.py", "m/a.py", "m/readme.md", "x.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert paths(tmp_path) == ["a.py", "b.py", "m/a.py", "m/n/o.py", "z/a.py"]
    assert left_out(tmp_path) == {}


def test_hidden_files_caches_and_packages_are_passed_over(tmp_path: Path) -> None:
    for name in (".venv/x.py", "__pycache__/y.py", "__init__.py", ".z.py", "inner/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert list(walk(tmp_path)) == []


def test_links_are_told_and_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("1")
    root = tmp_path / "root"
    root.mkdir()
    (root / "loop").symlink_to(root)
    (root / "self").symlink_to("self")
    (root / "away").symlink_to(outside)
    (root / "file.py").symlink_to(outside / "secret.py")
    (root / "nowhere.py").symlink_to("nothing")
    (root / "notes").symlink_to(outside / "secret.py")
    (root / "real.py").touch()
    assert paths(root) == ["real.py"]
    assert sorted(left_out(root)) == ["away", "file.py", "loop", "nowhere.py", "self"]
    assert set(left_out(root).values()) == {folders.LINK}
    with pytest.raises(OSError, match="symbolic links"):
        read_text(root, ("file.py",))
    with pytest.raises(OSError, match="Not a directory"):
        read_text(root, ("away", "secret.py"))


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_text("1")
    (tmp_path / "link").symlink_to("real")
    assert paths(tmp_path / "link") == ["a.py"]
    assert read_text(tmp_path / "link", ("a.py",)) == "1"


def test_folders_within_folders_end_somewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "MAX_DEPTH", 2)
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    (deep / "x.py").touch()
    (tmp_path / "a" / "b" / "y.py").touch()
    assert list(walk(tmp_path)) == [
        Found(("a", "b", "c"), "below more than 2 folders"),
        Found(("a", "b", "y.py")),
    ]


def test_a_folder_that_vanishes_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / "b").mkdir()
    found = walk(tmp_path)
    assert next(found) == Found(("a.py",))
    (tmp_path / "b").rmdir()
    assert list(found) == [Found(("b",), "a folder that cannot be read: No such file or directory")]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_folder_without_permission_is_told(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir(mode=0)
    assert left_out(tmp_path) == {"b": "a folder that cannot be read: Permission denied"}


def test_pipes_and_sockets_are_no_files_and_nobody_waits_for_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.py"))
        assert left_out(tmp_path) == dict.fromkeys(["pipe.py", "socket.py"], folders.NO_FILE)
        # As if they had come after the folder was listed.
        with pytest.raises(OSError, match="not a regular file"):
            read_text(tmp_path, ("pipe.py",))
        with pytest.raises(OSError, match="No such device"):
            read_text(tmp_path, ("socket.py",))


@pytest.mark.parametrize("char", ["x", "é", "€", "😀"])
@pytest.mark.parametrize("shift", range(4))
def test_of_a_huge_file_the_beginning_is_read_and_no_character_is_cut(
    tmp_path: Path, char: str, shift: int
) -> None:
    text = "x" * shift + char * (10_000_000 // len(char.encode()))
    (tmp_path / "huge.py").write_text(text)
    read = read_text(tmp_path, ("huge.py",))
    assert text.startswith(read)
    assert MAX_DIALECT_BYTES < len(read.encode()) <= MAX_READ


def test_bytes_that_are_no_text_come_as_surrogates(tmp_path: Path) -> None:
    (tmp_path / "latin.py").write_bytes(b"x = '\xe9'")
    assert read_text(tmp_path, ("latin.py",)) == "x = '\udce9'"
    (tmp_path / "cut.py").write_bytes("é".encode()[:1])
    assert read_text(tmp_path, ("cut.py",)) == "\udcc3"


def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.py").symlink_to("y")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        list(walk(tmp_path))
        for parts in (("a", "x.py"), ("a", "none.py"), ("b", "none.py")):
            with pytest.raises(OSError, match=r"."):
                read_text(tmp_path, parts)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
