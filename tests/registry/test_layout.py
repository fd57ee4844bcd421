from __future__ import annotations

import os
from pathlib import Path

import pytest

import synthgym
from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry import bundled_root
from synthgym.registry.layout import env_parts, read_file


@pytest.mark.parametrize(
    "name", ["..", "", "a", "A/B", "A\\B", "A\n", "\u00c4b", "A" * 65, "CON.py"]
)
def test_a_name_that_could_leave_its_folder_is_refused(name: str) -> None:
    with pytest.raises(SnapshotError, match="cannot be named"):
        env_parts(name, 0)


@pytest.mark.parametrize("version", [-1, 1_000_000])
def test_a_version_out_of_range_is_refused(version: int) -> None:
    with pytest.raises(SnapshotError, match="version"):
        env_parts("DryDock", version)


def test_a_file_is_read_up_to_its_cap(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    assert read_file(tmp_path, ("a", "b"), 5) == b"12345"
    with pytest.raises(IntegrityError, match="larger than the 4 bytes"):
        read_file(tmp_path, ("a", "b"), 4)


def test_links_pipes_folders_and_missing_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "real" / "file")
    (tmp_path / "linked").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")
    for parts in (("link",), ("linked", "file"), ("pipe",), ("real",), ("none",), ("none", "file")):
        with pytest.raises(IntegrityError, match="regular file"):
            read_file(tmp_path, parts, 10)


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "file").write_bytes(b"x")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert read_file(tmp_path / "root", ("file",), 1) == b"x"


def test_in_a_wheel_the_bundled_environments_lie_in_the_package(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "synthgym"
    (package / "bundled").mkdir(parents=True)
    (package.parent / "registry").mkdir()  # another distribution's
    (package.parent / "pyproject.toml").touch()
    assert bundled_root(package) == package / "bundled"


def test_in_an_editable_install_they_lie_in_the_repository(tmp_path: Path) -> None:
    package = tmp_path / "synthgym"
    package.mkdir()
    (tmp_path / "registry").mkdir()
    (tmp_path / "pyproject.toml").touch()
    assert bundled_root(package) == tmp_path / "registry"


def test_a_foreign_folder_named_registry_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "registry").mkdir()
    with pytest.raises(SnapshotError, match="no bundled environments"):
        bundled_root(tmp_path / "synthgym")


def test_this_install_has_bundled_environments() -> None:
    root = bundled_root()
    package = Path(synthgym.__file__).resolve().parent
    assert root in (package / "bundled", package.parent / "registry")
    assert (root / "envs").is_dir()
