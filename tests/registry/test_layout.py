from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import synthgym
from synthgym.errors import SnapshotError
from synthgym.registry import bundled_root
from synthgym.registry.layout import env_parts, is_embedder, shard_count, shard_of


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


@pytest.mark.parametrize(
    ("environments", "shards"),
    [(0, 1), (1, 1), (4096, 1), (4097, 2), (8193, 4), (1_000_000, 256), (50_000_000, 256)],
)
def test_the_number_of_shards_is_the_least_power_of_two_that_does(
    environments: int, shards: int
) -> None:
    assert shard_count(environments) == shards


@given(st.integers(0, 2**256 - 1), st.sampled_from([1, 2, 4, 8, 16, 32, 64, 128, 256]))
def test_the_shard_is_the_first_bits_of_the_digest(digest: int, count: int) -> None:
    assert shard_of(f"sha256:{digest:064x}", count) == digest * count >> 256


@pytest.mark.parametrize(
    "text", ["", "A", "MiniLM", "a/b", "..", ".a", "-a", "a" * 64, "a\n", 1, None]
)
def test_an_embedder_that_could_leave_its_folder_is_none(text: object) -> None:
    assert not is_embedder(text)


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
