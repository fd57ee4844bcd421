from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from games import write_games

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.publishing.publish import publish
from synthgym.publishing.remotes import open_remote
from synthgym.publishing.sources import (
    ArchiveSource,
    FolderSource,
    RegistrySource,
    Source,
    source_at,
)
from synthgym.registry import Manifest


@pytest.fixture(params=["registry", "folder", "archive", "url of an archive"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    """One snapshot from each kind of place; its signature file holds the word signed."""
    snapshot = write_games(tmp_path / "games", vectors=True)
    (tmp_path / "games" / "manifest.json.sig").write_text("signed")
    packed = tmp_path / "packed.sgz"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted((tmp_path / "games").rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(tmp_path / "games").as_posix())
    match request.param:
        case "registry":
            publish(tmp_path / "games", tmp_path / "remote")
            return RegistrySource(open_remote(tmp_path / "remote"), snapshot.digest)
        case "folder":
            return source_at(f"file://{tmp_path}/games", tmp_path / "staging")
        case "archive":
            return ArchiveSource(packed)
        case _:
            return source_at(f"file://{packed}", tmp_path / "staging")


def test_every_place_has_the_same_files(source: Source, tmp_path: Path) -> None:
    data = source.manifest()
    assert data == (tmp_path / "games" / "manifest.json").read_bytes()
    assert source.signatures(data) == b"signed"
    for ref in Manifest.from_bytes(data).files:
        assert b"".join(source.stream(ref)) == (tmp_path / "games" / ref.path).read_bytes()
    assert source.url.startswith(("file://", str(tmp_path)))


def test_what_is_not_signed_has_no_signatures(tmp_path: Path) -> None:
    write_games(tmp_path / "games")
    source = FolderSource(open_remote(tmp_path / "games"))
    assert source.signatures(source.manifest()) == b""


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="holds no"):
        FolderSource(open_remote(tmp_path)).manifest()
    with pytest.raises(IntegrityError, match="is not there"):
        RegistrySource(open_remote(tmp_path), "sha256:" + "0" * 64).manifest()
    with pytest.raises(SnapshotError, match="there is nothing at"):
        source_at(f"file://{tmp_path}/gone.sgz", tmp_path / "staging")
