from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym import atomic
from synthgym.errors import ConfigError, SnapshotError
from synthgym.memory import Description, HashEmbedder, NoveltyMemory
from synthgym.memory import index as index_module
from synthgym.memory.storage import read_memory

Describe = Callable[..., Description]
Digest = Callable[[object], str]

BUILD = """
import numpy as np
from synthgym.memory import HashEmbedder, NoveltyMemory, Description, Trace
memory = NoveltyMemory(HashEmbedder(16), family_quota=7, window=5, min_parameter_distance=0.2)
for i in range(6):
    pieces = np.arange(i, i + 12, dtype=np.uint64) << np.uint64(40)
    trace = Trace("a", "b" * i, "") if i % 3 else None
    family, parameters = "f" * (i % 2), (i / 7,) * (i % 2)
    description = Description(
        f"rules {i} \\u20ac", f"ast/1:{i}", "d", family, parameters, trace, pieces
    )
    memory.add(f"sha256:{i:064x}", description, name=f"E{i}", skill="s", iteration=i, win_rate=i / 6)
"""


def build() -> NoveltyMemory:
    scope: dict[str, NoveltyMemory] = {}
    exec(BUILD, scope)
    return scope["memory"]


def test_a_memory_comes_back_as_it_was(tmp_path: Path) -> None:
    memory = build()
    memory.save(tmp_path / "memory")
    again = NoveltyMemory.load(tmp_path / "memory", HashEmbedder(16))
    assert list(again) == list(memory)
    probe = Description("rules 3", "ast/1:x", "d", "f", (3 / 7 + 0.15,))
    assert again.check(probe, iteration=4) == memory.check(probe, iteration=4)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "memory").read_bytes()


def test_an_empty_memory_comes_back(tmp_path: Path) -> None:
    NoveltyMemory(HashEmbedder(16)).save(tmp_path / "memory")
    assert len(NoveltyMemory.load(tmp_path / "memory", HashEmbedder(16))) == 0


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8"), max_size=20),
            st.none() | st.floats(0, 1),
            st.integers(-1, 99),
        ),
        max_size=5,
    )
)
def test_any_record_survives_the_round_trip(rows: list[tuple[str, float | None, int]]) -> None:
    memory = NoveltyMemory(HashEmbedder(8))
    for i, (text, rate, iteration) in enumerate(rows):
        memory.add(
            f"sha256:{i:064x}",
            Description(text, text, text),
            name=text,
            skill=text,
            iteration=iteration,
            win_rate=rate,
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory")
        memory.save(path)
        assert list(NoveltyMemory.load(path, HashEmbedder(8))) == list(memory)


def test_the_file_is_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    build().save(tmp_path / "here")
    code = BUILD + "import sys, pathlib; memory.save(pathlib.Path(sys.argv[1]))"
    for seed in ("1", "2"):
        subprocess.run(
            [sys.executable, "-c", code, tmp_path / "there"],
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        assert (tmp_path / "there").read_bytes() == (tmp_path / "here").read_bytes()


def test_the_file_is_an_npz_without_pickle(tmp_path: Path) -> None:
    path = tmp_path / "memory.npz"
    build().save(path)
    with np.load(path, allow_pickle=False) as file:
        assert file["vectors"].shape == (6, 16)


def test_another_embedder_is_refused(tmp_path: Path) -> None:
    build().save(tmp_path / "memory")
    with pytest.raises(ConfigError, match=r"hash/1-16.*hash/1-32"):
        NoveltyMemory.load(tmp_path / "memory", HashEmbedder(32))


def repack(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path) as file:
        old = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        new = {".".join(key.rsplit("_", 1)): value for key, value in members.items()}
        assert set(new) <= set(old)
        for name, data in (old | new).items():
            file.writestr(name, data)


def array(value: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, value, allow_pickle=allow_pickle)
    return out.getvalue()


def member(name: str, value: np.ndarray) -> dict[str, bytes]:
    return {f"{name}_npy": array(value)}


FORMAT = b'"format":"synthgym.memory/2"'
BROKEN: dict[str, dict[str, bytes]] = {
    "no JSON": {"memory_json": b"{"},
    "deep JSON": {"memory_json": b"[" * 100_000},
    "another format": {"memory_json": b'{"format": "synthgym.memory/9"}'},
    "no records": {"memory_json": b"{" + FORMAT + b"}"},
    "a list": {"memory_json": b"[]"},
    "an array of objects": {"vectors_npy": array(np.array([{}]), allow_pickle=True)},
    "too few vectors": member("vectors", np.zeros((1, 16), np.float32)),
    "no unit vectors": member("vectors", np.zeros((6, 16), np.float32)),
    "vectors of NaN": member("vectors", np.full((6, 16), np.nan, np.float32)),
    "another type": member("vectors", np.zeros((6, 16))),
    "no array": {"vectors_npy": b"x"},
    "a huge shape": {
        "vectors_npy": array(np.zeros((6, 16), np.float32)).replace(b"6, 16", b"9" * 5)
    },
    "a digest twice": member("digests", np.zeros((6, 32), np.uint8)),
    "an infinite regret": member("regret", np.full(6, np.inf)),
    "a word that is not there": member("skills", np.full(6, 9, np.int32)),
    "a text that is not there": member("text_of", np.full(6, 9, np.int32)),
    "a text without a record": member("text_of", np.zeros(6, np.int32)),
    "offsets that go back": member("texts", np.array([9, 8, 7, 6, 5, 4])),
    "offsets beyond the text": member("texts", np.full(6, 10**12)),
    "text that is not UTF-8": {"texts_bin": b"\xff" * 60},
    "details that are not packed": {"details_bin": b"\xc1" * 200},
    "a structure that is not there": member("code_of", np.full(6, 99, np.int32)),
    "a structure below none": member("code_of", np.full(6, -2, np.int32)),
    "pieces of nothing": member("code_offsets", np.array([0, 3])),
    "pieces of another type": member("code_hashes", np.zeros(3)),
}


@pytest.mark.parametrize("members", BROKEN.values(), ids=BROKEN.keys())
def test_a_file_that_holds_anything_else_is_refused(
    tmp_path: Path, members: dict[str, bytes]
) -> None:
    path = tmp_path / "memory"
    build().save(path)
    repack(path, **members)
    with pytest.raises(SnapshotError, match="memory"):
        read_memory(path)


def test_a_file_of_the_first_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("memory.json", b'{"format": "synthgym.memory/1"}')
    with pytest.raises(SnapshotError, match=r"memory/2.*memory/1.*anew from its snapshot"):
        read_memory(path)


def test_a_compressed_member_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("memory.json", b"0" * 10**6)
    with pytest.raises(SnapshotError, match="compressed"):
        read_memory(path)


@pytest.fixture(scope="module")
def saved() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory")
        build().save(path)
        return path.read_bytes()


@settings(deadline=None, max_examples=150)
@given(st.data())
def test_changed_bytes_are_refused_or_give_a_memory(saved: bytes, data: st.DataObject) -> None:
    changed = bytearray(saved)
    if data.draw(st.booleans()):
        changed = changed[: data.draw(st.integers(0, len(saved)))]
    for _ in range(data.draw(st.integers(1, 3)) if changed else 0):
        place = data.draw(st.integers(0, len(changed) - 1))
        changed[place] = data.draw(st.integers(0, 255))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "memory")
        path.write_bytes(changed)
        try:
            memory = NoveltyMemory.load(path, HashEmbedder(16))
        except (SnapshotError, ConfigError):
            return
        list(memory)
        memory.check(Description("rules", "ast/1:x", "d"))


@pytest.mark.parametrize("n", [30, 80, 150])
def test_every_kind_of_index_comes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    for name, rows in {"FEW_ROWS": 20, "FLAT_ROWS": 50}.items():
        monkeypatch.setattr(index_module, name, rows)
    memory = NoveltyMemory(HashEmbedder(16))
    for i in range(n):
        description = Description(f"rules of {i} and {i * i}", f"ast/1:{i}", "")
        memory.add(f"sha256:{i:064x}", description, name=f"E{i}", skill="s", iteration=0)
    memory.remove(f"sha256:{3:064x}")
    memory.save(tmp_path / "memory")
    again = NoveltyMemory.load(tmp_path / "memory", HashEmbedder(16))
    assert again._held.index.kind == memory._held.index.kind
    assert list(again) == list(memory)
    assert np.array_equal(again.vectors(), memory.vectors())
    for text in ("rules of 7", "rules of 9 and 81"):
        assert again.nearest(text, 5) == memory.nearest(text, 5)
    again.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "memory").read_bytes()


def test_what_refuses_a_refactored_copy_comes_back(tmp_path: Path) -> None:
    memory = build()
    memory.save(tmp_path / "memory")
    again = NoveltyMemory.load(tmp_path / "memory", HashEmbedder(16))
    pieces = np.arange(0, 12, dtype=np.uint64) << np.uint64(40)
    probe = Description("other words", "ast/1:new", "", pieces=pieces)
    decision = memory.check(probe)
    assert not decision.accepted
    assert again.check(probe) == decision


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="no novelty memory"):
        read_memory(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SnapshotError, match="is not a novelty memory"):
        read_memory(tmp_path / "text")


def test_a_failed_write_leaves_the_old_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "memory"
    build().save(path)
    old = path.read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(atomic.os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        NoveltyMemory(HashEmbedder(16)).save(path)
    assert path.read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["memory"]
