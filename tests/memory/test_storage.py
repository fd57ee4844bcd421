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
from hypothesis import given
from hypothesis import strategies as st

from synthgym import atomic
from synthgym.errors import ConfigError, SnapshotError
from synthgym.memory import Description, HashEmbedder, NoveltyMemory
from synthgym.memory.storage import read_memory

Describe = Callable[..., Description]
Digest = Callable[[object], str]

BUILD = """
from synthgym.memory import HashEmbedder, NoveltyMemory, Description
memory = NoveltyMemory(HashEmbedder(16), family_quota=7, window=5, min_parameter_distance=0.2)
for i in range(6):
    description = Description(f"rules {i} \\u20ac", f"ast/1:{i}", "d", "f" * (i % 2), (i / 7,) * (i % 2))
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
        for name, data in (old | {k.replace("_", "."): v for k, v in members.items()}).items():
            file.writestr(name, data)


def array(value: np.ndarray, *, allow_pickle: bool = False) -> bytes:
    out = io.BytesIO()
    np.save(out, value, allow_pickle=allow_pickle)
    return out.getvalue()


BROKEN = {
    "no JSON": {"memory_json": b"{"},
    "another format": {"memory_json": b'{"format": "synthgym.memory/9"}'},
    "no records": {"memory_json": b'{"format": "synthgym.memory/1"}'},
    "a list": {"memory_json": b"[]"},
    "an array of objects": {"vectors_npy": array(np.array([{}]), allow_pickle=True)},
    "too few vectors": {"vectors_npy": array(np.zeros((1, 16), np.float32))},
    "another type": {"vectors_npy": array(np.zeros((6, 16)))},
    "no array": {"vectors_npy": b"x"},
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
