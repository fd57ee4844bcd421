"""Reading the files of a snapshot without trust."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from synthgym.errors import IntegrityError
from synthgym.registry.files import FolderFiles, read_file


def test_a_file_is_read_up_to_its_cap(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    assert read_file(FolderFiles(tmp_path), "a/b", 5) == b"12345"
    with pytest.raises(IntegrityError, match="larger than the 4 bytes"):
        read_file(FolderFiles(tmp_path), "a/b", 4)


def test_links_pipes_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    for path in ("link", "linked/file", "pipe", "real", "none", "none/file"):
        with pytest.raises(IntegrityError, match="regular file"):
            read_file(FolderFiles(tmp_path), path, 10)


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"x")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert read_file(FolderFiles(tmp_path / "root"), "file", 1) == b"x"
