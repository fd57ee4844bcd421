"""Tables of strangers: whatever is in them, they are read as promised or refused."""

from __future__ import annotations

import io
import json
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile import (
    ENVS,
    GAMES,
    I32,
    INDEX,
    NOTES,
    VECTORS,
    Columns,
    assert_refused,
    field,
    parquet,
    reseal,
    zigzag,
)

from synthgym.errors import SnapshotError
from synthgym.registry import Snapshot, tables, write_snapshot


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.write_games(tmp_path_factory.mktemp("shards") / "s")


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "s"))


# --- rows ---


def rows(
    change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]],
) -> Callable[[Columns], Columns]:
    def changed(values: Columns) -> Columns:
        found = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
        return {name: [row[name] for row in change(found)] for name in values}

    return changed


def other(number: int, **values: Any) -> Callable[[Columns], Columns]:
    """One row with other values."""
    return rows(lambda found: [r | (values if i == number else {}) for i, r in enumerate(found)])


STRANGER = "sha256:" + "f" * 64
ROWS: dict[str, tuple[str, Callable[[Columns], Columns], str]] = {
    "environments out of order": (ENVS, rows(lambda r: r[::-1]), "nothing is noted|out of order"),
    "an environment twice": (ENVS, rows(lambda r: [r[0], *r]), "out of order|promises 5"),
    "an environment less": (ENVS, rows(lambda r: r[1:]), "nothing is noted|a note of|promises 5"),
    "no environments": (ENVS, rows(lambda r: []), "0 rows"),
    "another source": (ENVS, other(0, source="# evil\n"), "digest of"),
    "another record": (ENVS, other(0, record="{}"), "schema must be 1"),
    "a record that is no JSON": (ENVS, other(0, record="{"), "strict JSON"),
    "a record that is too deep": (ENVS, other(0, record='{"a":' * 500 + "1" + "}" * 500), "deeper"),
    "another title": (ENVS, other(0, title="Evil"), "title of"),
    "another turn limit": (ENVS, other(0, max_turns=6), "max_turns of"),
    "an impossible turn limit": (ENVS, other(0, max_turns=-6), "max_turns"),
    "an impossible name": (ENVS, other(0, name="../x"), "cannot be the name"),
    "a name that is taken": (
        ENVS,
        rows(lambda r: [r[0], r[1] | {"name": r[0]["name"]}, *r[2:]]),
        "is there twice",
    ),
    "skills that are no list": (ENVS, other(0, skills='{"a": 1}'), "skills must be"),
    "skills without end": (ENVS, other(0, skills="[" * 100_000), "skills must be"),
    "a digest that is none": (ENVS, other(0, digest="sha256:0"), "order|digest|range"),
    "an index out of order": (INDEX, rows(lambda r: r[::-1]), "is listed other than"),
    "an index with another title": (INDEX, other(0, title="Evil"), "is listed other than"),
    "an index with another digest": (INDEX, other(0, digest=STRANGER), "is listed other than"),
    "an index that lacks the last": (
        INDEX,
        rows(lambda r: r[:-1]),
        "is listed other than|promises 5",
    ),
    "an index that is empty": (INDEX, rows(lambda r: []), "0 rows"),
    "an index with one too many": (
        INDEX,
        rows(lambda r: [*r, r[-1] | {"name": "Zed", "digest": STRANGER}]),
        "is listed other than|promises 5",
    ),
    "notes out of order": (NOTES, rows(lambda r: r[::-1]), "nothing is noted|out of order"),
    "a note twice": (NOTES, rows(lambda r: [r[0], *r]), "out of order"),
    "a note less": (NOTES, rows(lambda r: [r[0], *r[2:]]), "notes_count is|notes_root is"),
    "no notes": (NOTES, rows(lambda r: []), "0 rows"),
    "a note of a stranger": (
        NOTES,
        rows(lambda r: [*r, r[-1] | {"digest": STRANGER}]),
        "a note of sha256:f+, which is not there",
    ),
    "a note of an unknown kind": (
        NOTES,
        rows(lambda r: [r[0], r[0] | {"kind": "b"}, *r[1:]]),
        "not canonical: an unknown kind",
    ),
    "a vector among the notes": (
        NOTES,
        rows(lambda r: [*r, r[-1] | {"kind": "vector/mini", "payload": "12345678"}]),
        "lies among the notes",
    ),
    "an unknown key": (NOTES, other(0, payload='{"evil":1}'), "missing keys"),
    "white space": (NOTES, other(1, payload='{"n": 0}'), "not canonical"),
    "a duplicate key": (NOTES, other(1, payload='{"n":0,"n":1}'), "duplicate key"),
    "NaN": (NOTES, other(1, payload='{"n":NaN}'), "NaN"),
    "a number that overflows": (NOTES, other(1, payload='{"n":1e999}'), "too large"),
    "an empty note": (NOTES, other(1, payload="{}"), "not canonical"),
    "a note that is too deep": (NOTES, other(1, payload='{"a":' * 99 + "1" + "}" * 99), "deeper"),
    "other figures": (NOTES, other(1, payload='{"n":77}'), "notes_root is"),
}


@pytest.mark.parametrize(("path", "change", "message"), ROWS.values(), ids=ROWS.keys())
def test_a_table_is_refused_with(
    root: Path, path: str, change: Callable[[Columns], Columns], message: str
) -> None:
    hostile.change_rows(root, path, change)
    assert_refused(root, message)


# --- files ---

NULLABLE = {name: pa.field(name, pa.string()) for name in ("digest", "kind", "payload")}
TEXT = pa.field("x", pa.string(), nullable=False)


def notes_with(fields: list[pa.Field], **more: list[Any]) -> Callable[[Columns], bytes]:
    return lambda values: parquet("notes", values | more, pa.schema(fields))


FIELDS = [pa.field(name, pa.string(), nullable=False) for name in ("digest", "kind", "payload")]
NESTED = pa.field("payload", pa.list_(pa.string()), nullable=False)
FILES: dict[str, tuple[Callable[[Columns], bytes], str]] = {
    "nullable columns": (notes_with(list(NULLABLE.values())), "other columns"),
    "a nullable column": (notes_with([*FIELDS[:2], NULLABLE["payload"]]), "other columns"),
    "an extra column": (notes_with([*FIELDS, TEXT], x=["x"] * 10), "has 4 columns, expected 3"),
    "a missing column": (
        lambda v: parquet("notes", {k: v[k] for k in ("digest", "kind")}, pa.schema(FIELDS[:2])),
        "has 2 columns, expected 3",
    ),
    "columns in another order": (notes_with(FIELDS[::-1]), "tell its range|other columns"),
    "a nested column": (notes_with([*FIELDS[:2], NESTED], payload=[["x"]] * 10), "other columns"),
    "bytes for texts": (
        notes_with([*FIELDS[:2], pa.field("payload", pa.binary(), nullable=False)]),
        "other columns",
    ),
    "a schema of dictionaries": (
        lambda v: parquet(
            "notes",
            v,
            pa.schema([*FIELDS[:2], FIELDS[2].with_type(pa.dictionary(pa.int32(), pa.string()))]),
            store_schema=True,
        ),
        "schema of Arrow's own",
    ),
    "dictionaries": (lambda v: parquet("notes", v, use_dictionary=True), "with a dictionary"),
    "deltas": (
        lambda v: parquet("notes", v, column_encoding=dict.fromkeys(v, "DELTA_BYTE_ARRAY")),
        "not plain",
    ),
    "pages of version 2": (lambda v: parquet("notes", v, data_page_version="2.0"), "of type 3"),
    "no statistics": (lambda v: parquet("notes", v, write_statistics=False), "tell its range"),
    "bytes behind the footer": (lambda v: parquet("notes", v) + b"x", "no Parquet|claims"),
    "half of it": (lambda v: parquet("notes", v)[:400], "no Parquet file|footer claims"),
    "nothing": (lambda v: b"", "too short"),
    "a footer that is larger than the file": (
        lambda v: parquet("notes", v)[:-8] + struct.pack("<I", 2**31) + b"PAR1",
        "footer claims",
    ),
    "a footer of zeros": (lambda v: b"PAR1" + bytes(100) + b"\x64\0\0\0PAR1", "footer is refused"),
    "an encrypted footer": (lambda v: parquet("notes", v)[:-4] + b"PARE", "no Parquet"),
    "an old writer, whose columns Arrow reads beyond their end": (
        lambda v: created_by(parquet("notes", v), "parquet-mr version 1.2.8"),
        "so old a writer",
    ),
    "a writer that is no text": (
        lambda v: created_by(parquet("notes", v), "\udcff"),
        "tell its range|nobody|columns|refused|^$",
    ),
    "a codec that is unknown": (lambda v: codec(parquet("notes", v), 20), "codec"),
}


def created_by(data: bytes, name: str) -> bytes:
    """The same file by another writer."""
    (old,) = {pq.ParquetFile(io.BytesIO(data)).metadata.created_by.encode()}
    new = name.encode(errors="surrogateescape").ljust(len(old))
    assert data.count(old) == 1
    return data.replace(old, new)


def codec(data: bytes, number: int) -> bytes:
    """The same file with another codec named in its footer."""
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path = b"\x19\x18\x07payload"  # path_in_schema, and then the codec as an i32
    place = data.index(path, start) + len(path)
    assert data[place : place + 2] == field(1, I32) + zigzag(6)
    return data[: place + 1] + zigzag(number) + data[place + 2 :]


@pytest.mark.parametrize(("make", "message"), FILES.values(), ids=FILES.keys())
def test_a_file_is_refused_with(root: Path, make: Callable[[Columns], bytes], message: str) -> None:
    data = make(hostile.columns(root / NOTES))
    reseal(root, NOTES, data)
    assert_refused(root, message)


@pytest.mark.parametrize("count", [0, 9, 11, 2**31])
def test_rows_that_are_not_there_are_not_promised(root: Path, count: int) -> None:
    reseal(root, NOTES, (root / NOTES).read_bytes(), rows=count)
    assert_refused(root, "has 10 rows, promised|has rows 2147483648")


@pytest.mark.parametrize("path", [INDEX, ENVS, NOTES])
def test_ranges_that_lie_are_found(root: Path, path: str) -> None:
    """A reader finds rows by the ranges; a row outside of them could be hidden from it."""
    data = (root / path).read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    kind = path.partition("/")[0].removesuffix(".parquet")
    least = min(hostile.columns(root / path)[tables.SORTED_BY[kind]]).encode()
    lie = least[:-1] + bytes([least[-1] + 1])
    reseal(root, path, data[:start] + data[start:].replace(least, lie))
    assert_refused(root, "row group 0 tells another range than it has")


@pytest.mark.parametrize("path", [INDEX, ENVS, NOTES, VECTORS])
def test_a_link_is_not_followed(root: Path, path: str) -> None:
    away = root.parent / "away"
    (root / path).rename(away)
    (root / path).symlink_to(away)
    assert_refused(root, "no link")


@pytest.mark.parametrize(
    "change", ["names of several sets", "a shard that is missing", "an unknown table"]
)
def test_shards_are_complete_and_of_one_set(root: Path, change: str) -> None:
    raw = json.loads((root / "manifest.json").read_bytes())
    refs = {ref["path"]: ref for ref in raw["files"]}
    if change == "names of several sets":
        refs["notes/notes-000-of-002.parquet"] = refs[NOTES] | {
            "path": "notes/notes-000-of-002.parquet"
        }
        refs["notes/notes-001-of-002.parquet"] = refs[NOTES] | {
            "path": "notes/notes-001-of-002.parquet"
        }
    elif change == "a shard that is missing":
        del refs[NOTES]
    else:
        path = "prints/prints-000-of-001.parquet"
        refs[path] = refs[NOTES] | {"path": path}
    reseal(root, files=[refs[path] for path in sorted(refs)])
    with pytest.raises(SnapshotError, match=r"is missing|several sets|no file of this layout"):
        Snapshot.open(root)


def test_what_is_written_large_can_be_read_again(tmp_path: Path) -> None:
    reports = {spec.digest: {"log": ["\u20ac" * 300_000]} for spec in GAMES}
    snapshot = write_snapshot(
        tmp_path / "s", GAMES, name="large", version="1", reports=reports, layout="shards"
    )
    assert snapshot.verify() == ()
