"""Little that would unfold to much, and vectors of strangers."""

from __future__ import annotations

import io
import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import numpy as np
import pyarrow.parquet as pq
import pytest
from hostile import (
    GAMES,
    I32,
    I64,
    NOTES,
    VECTORS,
    Columns,
    assert_refused,
    field,
    parquet,
    reseal,
    zigzag,
)

from synthgym.errors import IntegrityError
from synthgym.registry import Snapshot


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.write_games(tmp_path_factory.mktemp("shards") / "s")


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "s"))


# --- bombs ---


def size_of(value: int) -> Callable[[int, int], bytes]:
    """A page header that claims another unfolded size."""
    return lambda _, stored: (
        field(1, I32) + zigzag(0) + field(1, I32) + zigzag(value) + field(1, I32) + zigzag(stored)
    )


def twice(value: int, number: bytes) -> Callable[[int, int], bytes]:
    """One that says the true size first, and then another under the same field, written the long way."""
    return lambda unfolded, stored: (
        field(1, I32) + zigzag(0) + field(1, I32) + zigzag(unfolded)
        + bytes([I32]) + number + zigzag(value)
        + bytes([I32]) + zigzag(3) + zigzag(stored)
    )  # fmt: skip


def wide(value: int) -> Callable[[int, int], bytes]:
    """One that says the true size as an i64, which Arrow skips, behind another one as an i32."""
    return lambda unfolded, stored: (
        field(1, I32) + zigzag(0) + field(1, I32) + zigzag(value)
        + bytes([I64]) + zigzag(2) + zigzag(unfolded)
        + bytes([I32]) + zigzag(3) + zigzag(stored)
    )  # fmt: skip


def texts(count: int, length: int, **options: Any) -> Callable[[Columns], bytes]:
    """A table of notes that unfolds to much more than it has."""
    values = {
        "digest": [f"sha256:{number:064x}" for number in range(count)],
        "kind": ["metrics"] * count,
        "payload": ["\u20ac" + "x" * (length - 3)] * count,
    }
    return lambda _: parquet("notes", values, **options)


MORE = 2**31 - 1
DELTAS = dict.fromkeys(("digest", "kind", "payload"), "DELTA_BYTE_ARRAY")
BOMBS: dict[str, tuple[Callable[[Columns], bytes], str]] = {
    "a dictionary": (
        texts(1000, 200_000, use_dictionary=True),
        "with a dictionary",
    ),
    "deltas": (texts(1000, 200_000, column_encoding=DELTAS), "not plain"),
    "one long text": (texts(1, 200_000_000), "unfolds to more than"),
    "one long text among many rows": (
        lambda v: parquet("notes", {
            "digest": [f"sha256:{n:064x}" for n in range(1000)],
            "kind": ["metrics"] * 1000,
            "payload": ["x" * 100_000_000, *["{}"] * 999],
        }),
        "is too long",
    ),
    "many long texts": (texts(200, 1_000_000), "unfolds to more than"),
    "as much as there may be": (texts(125, 1_000_000), "nothing is noted"),
    "a page of 2 GiB": (lambda v: hostile.patch_page(parquet("notes", v), 2, size_of(MORE)), "unfolds to"),
    "a page of less than nothing": (
        lambda v: hostile.patch_page(parquet("notes", v), 2, size_of(-MORE)),
        "claims",
    ),
    "a page that says its size twice": (
        lambda v: hostile.patch_page(parquet("notes", v), 2, twice(MORE, zigzag(2))),
        "field 2 comes twice",
    ),
    "a page that says its size under a field that wraps": (
        lambda v: hostile.patch_page(parquet("notes", v), 2, twice(MORE, zigzag(2**16 + 2))),
        "there is no field 65538",
    ),
    "a page that says its size in two widths": (
        lambda v: hostile.patch_page(parquet("notes", v), 2, wide(MORE)),
        "field 2 comes twice",
    ),
    "a footer that unfolds": (lambda v: hostile.footer_bomb(500_000), "columns, expected 3"),
    "a footer that unfolds too much": (lambda v: hostile.footer_bomb(6_000_000), "footer claims"),
}  # fmt: skip


@pytest.fixture(scope="module")
def read(original: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What a process of 1.5 GiB says of each bomb, one after the other."""
    places = []
    for name, (make, _) in BOMBS.items():
        place = Path(shutil.copytree(original, tmp_path_factory.mktemp("bomb") / "s"))
        data = make(hostile.columns(place / NOTES))
        rows = 10
        if name not in ("a footer that unfolds", "a footer that unfolds too much"):
            rows = pq.ParquetFile(io.BytesIO(data)).metadata.num_rows
        reseal(place, NOTES, data, rows)
        places.append(place)
    found = hostile.read_in_little_memory(places)
    return {"died": found.get("died", [])} | {
        name: found.get(str(place), []) for name, place in zip(BOMBS, places, strict=True)
    }


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_refused_before_it_goes_off(read: dict[str, list[str]], name: str) -> None:
    assert read["died"] == []
    assert re.search(BOMBS[name][1], "\n".join(read[name])), read[name]


# --- vectors ---


def safetensors(arrays: dict[str, Any]) -> bytes:
    from safetensors.numpy import save

    return bytes(save(arrays))


def digests(count: int = 3) -> Any:
    found = sorted(spec.digest for spec in GAMES[:3])[:count]
    return np.frombuffer(bytes.fromhex("".join(d[7:] for d in found)), np.uint8).reshape(-1, 32)


def vectors(**change: Any) -> dict[str, Any]:
    return {"digests": digests(), "vectors": np.ones((3, 4), np.float16)} | change


NAN = np.array([[1, 2, np.nan, 4]] * 3, np.float16)
HEADER = struct.pack("<Q", 2**60) + b"{}"
ARRAYS: dict[str, tuple[bytes, str]] = {
    "another length": (
        safetensors(vectors(vectors=np.ones((3, 5), np.float16))),
        "expected 3 rows",
    ),
    "more rows": (safetensors(vectors(vectors=np.ones((4, 4), np.float16))), "expected 3 rows"),
    "one dimension": (safetensors(vectors(vectors=np.ones(12, np.float16))), "expected 3 rows"),
    "another type": (safetensors(vectors(vectors=np.ones((3, 4), np.int16))), "expected 3 rows"),
    "another tensor": (safetensors(vectors(evil=np.ones(1, np.float16))), "expected 3 rows"),
    "no digests": (safetensors({"vectors": np.ones((3, 4), np.float16)}), "expected 3 rows"),
    "NaN": (safetensors(vectors(vectors=NAN)), "not finite"),
    "infinity": (safetensors(vectors(vectors=NAN * 0 + np.float16(np.inf))), "not finite"),
    "digests out of order": (safetensors(vectors(digests=digests()[::-1].copy())), "out of order"),
    "a digest twice": (safetensors(vectors(digests=digests()[[0, 0, 1]])), "out of order"),
    "the digest of a stranger": (
        safetensors(vectors(digests=np.concatenate([digests(2), np.full((1, 32), 255, np.uint8)]))),
        "which is not there",
    ),
    "other numbers": (safetensors(vectors(vectors=np.zeros((3, 4), np.float16))), "notes_root is"),
    "a huge header": (HEADER, "no safetensors file"),
    "a header that is longer than it may be": (
        struct.pack("<Q", 80_000) + b"{}".ljust(80_000),
        "larger than",
    ),
    "a type that nobody knows": (
        (lambda h: struct.pack("<Q", len(h)) + h + bytes(4))(
            b'{"digests":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}}'
        ),
        "no safetensors file",
    ),
    "a type that NumPy lacks": (
        (lambda h: struct.pack("<Q", len(h)) + h + bytes(4))(
            b'{"digests":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]}}'
        ),
        "no safetensors file|expected 3 rows",
    ),
    "tensors that overlap": (
        (lambda h: struct.pack("<Q", len(h)) + h + bytes(96))(
            b'{"digests":{"dtype":"U8","shape":[3,32],"data_offsets":[0,96]},'
            b'"vectors":{"dtype":"F16","shape":[3,4],"data_offsets":[0,24]}}'
        ),
        "no safetensors file",
    ),
    "half of it": (safetensors(vectors())[:100], "no safetensors file"),
    "nothing": (b"", "no safetensors file"),
    "a pickle": (b"\x80\x04cos\nsystem\n(S'exit 1'\ntR.", "no safetensors file"),
}


@pytest.mark.parametrize(("data", "message"), ARRAYS.values(), ids=ARRAYS.keys())
def test_vectors_are_refused_with(root: Path, data: bytes, message: str) -> None:
    reseal(root, VECTORS, data)
    assert_refused(root, message)


def test_vectors_that_are_refused_are_not_handed_out(root: Path) -> None:
    reseal(root, VECTORS, safetensors(vectors(vectors=NAN)))
    with pytest.raises(IntegrityError, match="not finite"):
        list(Snapshot.open(root).vectors("mini"))
