"""Archives of strangers."""

from __future__ import annotations

import contextlib
import shutil
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile import STRANGE

from synthgym.errors import SnapshotError
from synthgym.registry import Snapshot, write_snapshot
from synthgym.registry.archive import pack, unpack

LAYOUTS = ["folder", "shards"]


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("originals")
    return {
        layout: write_snapshot(base / layout, STRANGE, name="g", version="1", layout=layout).path
        for layout in LAYOUTS
    }


@pytest.fixture(params=LAYOUTS)
def root(request: pytest.FixtureRequest, originals: dict[str, Path], tmp_path: Path) -> Path:
    return Path(shutil.copytree(originals[request.param], tmp_path / "s"))


def members(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file()
    }


def archive(place: Path, files: dict[str, bytes], **options: Any) -> Path:
    with zipfile.ZipFile(place, "w", **options) as target:
        for name, data in files.items():
            target.writestr(zipfile.ZipInfo(name), data, options.get("compression"))
    return place


def test_an_archive_of_the_same_files_is_the_same_snapshot(root: Path, tmp_path: Path) -> None:
    snapshot = Snapshot.open(archive(tmp_path / "s.sgz", members(root)))
    assert snapshot.verify() == ()
    assert snapshot.digest == Snapshot.open(root).digest
    assert unpack(snapshot, tmp_path / "again").verify() == ()


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_compressed_member_is_refused(root: Path, tmp_path: Path, method: int) -> None:
    bomb = archive(tmp_path / "s.sgz", {"x": bytes(10_000_000)} | members(root), compression=method)
    assert bomb.stat().st_size < 1_000_000
    with pytest.raises(SnapshotError, match="must be a stored file"):
        Snapshot.open(bomb)


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("link", stat.S_IFLNK),
        ("pipe", stat.S_IFIFO),
        ("folder/", stat.S_IFDIR),
        ("d", stat.S_IFCHR),
    ],
)
def test_a_member_that_is_no_file_is_refused(
    root: Path, tmp_path: Path, name: str, mode: int
) -> None:
    place = archive(tmp_path / "s.sgz", members(root))
    info = zipfile.ZipInfo(name)
    info.external_attr = (mode | 0o777) << 16
    with zipfile.ZipFile(place, "a") as target:
        target.writestr(info, b"/etc/passwd")
    with pytest.raises(SnapshotError, match="no link"):
        Snapshot.open(place)


@pytest.mark.parametrize("name", ["manifest.json", "Manifest.json", "ENVS/x", "a"])
def test_names_that_differ_in_case_only_are_refused(root: Path, tmp_path: Path, name: str) -> None:
    place = archive(tmp_path / "s.sgz", members(root) | {"envs/X": b"", "A": b""})
    with (
        zipfile.ZipFile(place, "a") as target,
        pytest.warns(UserWarning, match="Duplicate")
        if name == "manifest.json"
        else contextlib.nullcontext(),
    ):
        target.writestr(name, b"{}")
    with pytest.raises(SnapshotError, match="there twice"):
        Snapshot.open(place)


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "envs/../../evil", "C:/evil", "x\n"])
def test_a_member_under_another_path_is_named_and_never_written(
    root: Path, tmp_path: Path, name: str
) -> None:
    snapshot = Snapshot.open(archive(tmp_path / "s.sgz", members(root) | {name: b"evil"}))
    (problem,) = snapshot.verify()
    assert "is not in the manifest" in problem
    unpack(snapshot, tmp_path / "deep" / "out")
    assert members(tmp_path / "deep") == {f"out/{k}": v for k, v in members(root).items()}
    assert not any(path.name == "evil" for path in tmp_path.rglob("*"))


def patched(place: Path, change: Callable[[bytearray, int, int], None]) -> Path:
    """Change the directory of an archive at its first member: (bytes, directory, header of it)."""
    data = bytearray(place.read_bytes())
    change(data, data.index(b"PK\1\2"), 0)
    place.write_bytes(data)
    return place


def put(data: bytearray, place: int, kind: str, value: int) -> None:
    struct.pack_into(kind, data, place, value)


def encrypt(data: bytearray, directory: int, header: int) -> None:
    put(data, directory + 8, "<H", 1)


def encrypt_in_the_header_alone(data: bytearray, directory: int, header: int) -> None:
    put(data, header + 6, "<H", 1)


def compress_in_the_header_alone(data: bytearray, directory: int, header: int) -> None:
    put(data, header + 8, "<H", 8)


def lie_over_the_next(data: bytearray, directory: int, header: int) -> None:
    for place in (directory + 20, directory + 24):
        (size,) = struct.unpack_from("<I", data, place)
        put(data, place, "<I", size + 10)


def lie_over_another(data: bytearray, directory: int, header: int) -> None:
    second = data.index(b"PK\1\2", directory + 4)
    put(data, second + 42, "<I", header)


def claim_4_gb(data: bytearray, directory: int, header: int) -> None:
    for place in (directory + 20, directory + 24):
        put(data, place, "<I", 2**32 - 2)


def unfold(data: bytearray, directory: int, header: int) -> None:
    put(data, directory + 24, "<I", 2**31)


def start_nowhere(data: bytearray, directory: int, header: int) -> None:
    put(data, directory + 42, "<I", 7)


ZIPS = {
    "an encrypted member": (encrypt, "not encrypted"),
    "a member that is encrypted in its header": (encrypt_in_the_header_alone, "not where"),
    "a member that is compressed in its header": (compress_in_the_header_alone, "not where"),
    "a member over the next": (lie_over_the_next, "not the file of the manifest|larger than"),
    "two members in one place": (lie_over_another, "lies over another file"),
    "a member of 4 GB": (claim_4_gb, "must be a stored file"),
    "a member that unfolds": (unfold, "must be a stored file"),
    "a member that starts nowhere": (start_nowhere, "not where the archive says"),
}


@pytest.mark.parametrize(("change", "message"), ZIPS.values(), ids=ZIPS.keys())
def test_an_archive_is_refused_with(
    root: Path, tmp_path: Path, change: Callable[[bytearray, int, int], None], message: str
) -> None:
    place = patched(archive(tmp_path / "s.sgz", members(root)), change)
    with pytest.raises(SnapshotError, match=message):
        raise SnapshotError("\n".join(Snapshot.open(place).verify()))
    with pytest.raises(SnapshotError):
        list(unpack(Snapshot.open(place), tmp_path / "out").packed())
    assert not list(tmp_path.glob("*.tmp-*"))


@pytest.mark.parametrize("data", [b"", b"PK\3\4", b"PK\5\6" + bytes(18), b"\x1f\x8b", b"{}"])
def test_what_is_no_archive_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "s.sgz").write_bytes(data)
    with pytest.raises(SnapshotError, match=r"not a packed snapshot|cannot read manifest"):
        Snapshot.open(tmp_path / "s.sgz")


def test_half_an_archive_is_refused(root: Path, tmp_path: Path) -> None:
    data = pack(Snapshot.open(root), tmp_path / "s.sgz").read_bytes()
    for end in range(0, len(data), len(data) // 23):
        (tmp_path / "half").write_bytes(data[:end])
        with pytest.raises(SnapshotError):
            Snapshot.open(tmp_path / "half")


def test_a_changed_member_is_found_and_not_unpacked(root: Path, tmp_path: Path) -> None:
    files = members(root)
    path = min(name for name in files if name.startswith("envs"))
    place = len(files[path]) // 3
    files[path] = files[path][:place] + b"\xff" + files[path][place + 1 :]
    snapshot = Snapshot.open(archive(tmp_path / "s.sgz", files))
    assert snapshot.verify()
    with pytest.raises(SnapshotError):
        list(snapshot.packed())
