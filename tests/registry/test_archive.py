from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from snapshots import EMBEDDER, LAYOUTS, contents, game, rich, row, tree, write

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry import Snapshot
from synthgym.registry.archive import pack, unpack
from synthgym.registry.layout import MANIFEST, SIGNATURES


@pytest.fixture(params=LAYOUTS)
def snapshot(tmp_path: Path, request: pytest.FixtureRequest) -> Snapshot:
    """Three environments with every kind of note, signatures, and a file that is no part of it."""
    made = rich(tmp_path / "games", request.param)
    (made.path / SIGNATURES).write_bytes(b"-----BEGIN SSH SIGNATURE-----\n")
    (made.path / "README.md").write_text("for people")
    return made


def test_a_packed_snapshot_is_opened_where_it_is(snapshot: Snapshot, tmp_path: Path) -> None:
    packed = Snapshot.open(pack(snapshot, tmp_path / "games.sgz"))
    assert packed.path == tmp_path / "games.sgz"
    assert (packed.digest, packed.manifest) == (snapshot.digest, snapshot.manifest)
    assert list(packed) == list(snapshot)
    assert contents(packed) == contents(snapshot)
    for entry in snapshot:
        assert packed.entry(entry.env_id) == packed.entry(entry.pinned_id) == entry
        assert packed.spec(entry.digest) == snapshot.spec(entry.digest)
    assert packed.report("LedgerAudit-v0") == {"ok": True, "seeds": [0, 1]}
    assert packed.embedders == (EMBEDDER,)
    found = {digest: vector.tolist() for digest, vector in packed.vectors(EMBEDDER)}
    assert found == {digest: row(digest).tolist() for digest in found}
    assert len(found) == 2
    assert packed.verify() == ()


def test_unpacking_gives_the_files_back_and_nothing_else(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    pack(snapshot, tmp_path / "deep" / "games.sgz")
    back = unpack(Snapshot.open(tmp_path / "deep" / "games.sgz"), tmp_path / "further" / "back")
    expected = tree(snapshot.path)
    del expected["README.md"]
    assert tree(back.path) == expected
    assert back.path == tmp_path / "further" / "back"
    assert back.verify() == ()


def test_a_folder_can_be_unpacked_and_an_archive_packed_again(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    first = pack(snapshot, tmp_path / "first.sgz")
    second = pack(Snapshot.open(first), tmp_path / "second.sgz")
    third = pack(unpack(snapshot, tmp_path / "copy"), tmp_path / "third.sgz")
    assert first.read_bytes() == second.read_bytes() == third.read_bytes()


def test_members_are_stored_in_order_with_a_fixed_time_and_mode(
    snapshot: Snapshot, tmp_path: Path
) -> None:
    with zipfile.ZipFile(pack(snapshot, tmp_path / "games.sgz")) as archive:
        members = archive.infolist()
        assert archive.testzip() is None
    names = [member.filename for member in members]
    expected = [MANIFEST, SIGNATURES, *(ref.path for ref in snapshot.manifest.files)]
    assert names == sorted(expected)
    assert {m.compress_type for m in members} == {zipfile.ZIP_STORED}
    assert {m.date_time for m in members} == {(1980, 1, 1, 0, 0, 0)}
    assert {m.external_attr >> 16 for m in members} == {0o100644}
    assert (tmp_path / "games.sgz").stat().st_mode & 0o777 == 0o644


def test_signatures_travel_along_and_are_not_made_up(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain", [game()])
    packed = Snapshot.open(pack(plain, tmp_path / "plain.sgz"))
    assert SIGNATURES not in set(packed.files.paths())
    (plain.path / SIGNATURES).write_bytes(b"signed")
    packed = Snapshot.open(pack(plain, tmp_path / "signed.sgz"))
    assert packed.files.open(SIGNATURES).read() == b"signed"
    assert (unpack(packed, tmp_path / "back").path / SIGNATURES).read_bytes() == b"signed"
    assert packed.digest == plain.digest


PACK = """
import sys
from pathlib import Path
from synthgym.registry import write_snapshot
from synthgym.registry.archive import pack
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec
specs = [
    SynthEnvSpec(
        record=EnvRecord(source=f"# {i}", entry="E", max_turns=5, kwargs={"b": 1, "a": [i]}),
        name=f"Env{i}",
        metrics={"z": 0.1, "a": {"c": 1, "b": 2}},
        provenance=Provenance(parameters={"q": 1, "p": 2}),
    )
    for i in range(4)
]
vectors = {spec.digest: {"b": [1.0, 2.0], "a": [3.0]} for spec in specs}
root = Path(sys.argv[1])
for layout in ("folder", "shards"):
    made = write_snapshot(
        root / layout, specs, name="games", version="1", layout=layout, vectors=vectors
    )
    pack(made, root / f"{layout}.sgz")
"""


def test_another_process_with_another_hash_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", PACK, tmp_path / seed],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"PYTHONHASHSEED": seed},
            timeout=100,
        )
        assert done.returncode == 0, done.stderr
    for name in ("folder.sgz", "shards.sgz"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    opened = [Snapshot.open(tmp_path / "1" / f"{layout}.sgz") for layout in LAYOUTS]
    assert opened[0].digest == opened[1].digest
    assert [len(snapshot) for snapshot in opened] == [4, 4]


@pytest.mark.parametrize("there", ["file", "folder", "link"])
def test_what_is_there_is_never_replaced(snapshot: Snapshot, tmp_path: Path, there: str) -> None:
    target = tmp_path / "target"
    if there == "file":
        target.write_text("years of work")
    elif there == "folder":
        target.mkdir()
    else:
        target.symlink_to(tmp_path / "nowhere")
    before = sorted(path.name for path in tmp_path.iterdir())
    for act in (pack, unpack):
        with pytest.raises(SnapshotError, match="exists already"):
            act(snapshot, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert there != "file" or target.read_text() == "years of work"


@pytest.mark.parametrize("damage", ["longer", "shorter", "missing", "link"])
def test_after_a_failure_nothing_is_left(snapshot: Snapshot, tmp_path: Path, damage: str) -> None:
    victim = snapshot.path / snapshot.manifest.files[-1].path
    if damage == "longer":
        victim.write_bytes(victim.read_bytes() + b" ")
    elif damage == "shorter":
        victim.write_bytes(victim.read_bytes()[:-1])
    else:
        victim.unlink()
    if damage == "link":
        victim.symlink_to("/etc/hostname")
    for act, name in ((pack, "games.sgz"), (unpack, "copy")):
        with pytest.raises(
            IntegrityError, match=r"larger than|cannot read|not the file of the manifest"
        ):
            act(snapshot, tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["games"]


def test_a_crash_while_packing_leaves_nothing(
    snapshot: Snapshot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        assert len(list(tmp_path.iterdir())) == 2  # the temporary file is there
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        pack(snapshot, tmp_path / "games.sgz")
    with pytest.raises(KeyboardInterrupt):
        unpack(snapshot, tmp_path / "copy")
    assert [path.name for path in tmp_path.iterdir()] == ["games"]


def test_a_changed_byte_of_an_archive_is_not_passed_on(snapshot: Snapshot, tmp_path: Path) -> None:
    path = pack(snapshot, tmp_path / "games.sgz")
    with zipfile.ZipFile(path) as archive:
        member = archive.getinfo(snapshot.manifest.files[0].path)
    data = bytearray(path.read_bytes())
    data[member.header_offset + 30 + len(member.filename) + 1] ^= 1
    path.write_bytes(data)
    packed = Snapshot.open(path)
    assert packed.verify() != ()
    with pytest.raises(IntegrityError, match="not the file of the manifest"):
        unpack(packed, tmp_path / "copy")
    with pytest.raises(IntegrityError, match="not the file of the manifest"):
        pack(packed, tmp_path / "again.sgz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "games.sgz"]


def test_a_file_that_is_no_archive_is_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "games.sgz").write_bytes(b"PK\x03\x04 not really")
    with pytest.raises(SnapshotError, match="not a packed snapshot"):
        Snapshot.open(tmp_path / "games.sgz")
    with zipfile.ZipFile(tmp_path / "empty.sgz", "w"):
        pass
    with pytest.raises(SnapshotError, match=r"manifest\.json"):
        Snapshot.open(tmp_path / "empty.sgz")


def test_an_archive_that_was_cut_is_found(snapshot: Snapshot, tmp_path: Path) -> None:
    path = pack(snapshot, tmp_path / "games.sgz")
    data = path.read_bytes()
    for length in (0, 21, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(SnapshotError):
            Snapshot.open(path)


def test_a_member_is_read_at_any_place(snapshot: Snapshot, tmp_path: Path) -> None:
    ref = snapshot.manifest.files[0]
    data = (snapshot.path / ref.path).read_bytes()
    with Snapshot.open(pack(snapshot, tmp_path / "games.sgz")).files.open(ref.path) as member:
        assert member.seek(0, 2) == len(data) == ref.size
        assert member.read() == b""
        assert (member.seek(-4, 2), member.read(2), member.tell()) == (
            len(data) - 4,
            data[-4:-2],
            len(data) - 2,
        )
        assert member.seek(1, 1) == len(data) - 1
        assert (member.read(9), member.seek(0), member.read()) == (data[-1:], 0, data)
        assert member.seek(10**6) == 10**6
        assert member.read() == b""
