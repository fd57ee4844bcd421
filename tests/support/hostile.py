"""What strangers might give us as a snapshot: changed files with fitting manifests, and crafted Parquet."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from synthgym.errors import SnapshotError
from synthgym.registry import Snapshot, write_snapshot
from synthgym.registry.tables import SORTED_BY, schema
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec, canonical_json, sha256_digest

Columns = dict[str, list[Any]]
INDEX = "index.parquet"
ENVS = "envs/envs-000-of-001.parquet"
NOTES = "notes/notes-000-of-001.parquet"
VECTORS = "vectors/mini/vectors-000-of-001.safetensors"
ESCAPES = "\x1b[31mred\x1b]0;owned\x07 \u202eevil\u2066 \x9b2J <script>alert(1)</script> [bold]"
GAMES = [
    SynthEnvSpec(
        record=EnvRecord(source=f"# {number}\n", entry="E", max_turns=5),
        name=f"Env{number}",
        title="A title",
        metrics={"n": number},
    )
    for number in range(5)
]
STRANGE = [
    SynthEnvSpec(
        record=EnvRecord(source=f"# {number}\n", entry="E", max_turns=5),
        name=f"Env{number}",
        title=ESCAPES,
        skills=(ESCAPES,),
        license=ESCAPES,
        hint=ESCAPES,
        metrics={ESCAPES: ESCAPES, "agents": {ESCAPES: {"solve_rate": ESCAPES}}},
        provenance=Provenance(author=ESCAPES, document_id=ESCAPES),
    )
    for number in range(2)
]
LIMIT = 3 * 2**29
"""Address space of the process that reads what may be a bomb: 1.5 GiB."""


def write_games(place: Path) -> Path:
    """Write a good snapshot of shards, with vectors of three of its five environments."""
    vectors = {spec.digest: {"mini": np.ones(4)} for spec in GAMES[:3]}
    return write_snapshot(
        place, GAMES, name="games", version="1", layout="shards", vectors=vectors
    ).path


def problems(root: Path) -> str:
    """What is said of a snapshot. Everything is read, so that nothing but our errors may come."""
    try:
        snapshot = Snapshot.open(root)
    except SnapshotError as error:
        return str(error)
    for read in (snapshot.digests, lambda: list(snapshot), lambda: list(snapshot.packed())):
        with contextlib.suppress(SnapshotError):
            read()
    return "\n".join(snapshot.verify())


def assert_refused(root: Path, message: str) -> None:
    found = problems(root)
    assert re.search(message, found), found


def sealed(raw: Mapping[str, Any]) -> bytes:
    """Bytes of a manifest with its own digest made to fit."""
    body = {key: value for key, value in raw.items() if key != "manifest_sha256"}
    return canonical_json(body | {"manifest_sha256": sha256_digest(canonical_json(body))})


def reseal(
    root: Path, path: str = "", data: bytes = b"", rows: int | None = None, **change: Any
) -> None:
    """Put `data` at `path`, and change the manifest to fit."""
    raw = json.loads((root / "manifest.json").read_bytes())
    if path:
        (root / path).write_bytes(data)
        (ref,) = [ref for ref in raw["files"] if ref["path"] == path]
        ref |= {"sha256": sha256_digest(data), "size": len(data)}
        ref |= {} if rows is None else {"rows": rows}
    (root / "manifest.json").write_bytes(sealed(raw | change))


def columns(path: Path) -> Columns:
    """What a table holds."""
    found: Columns = pq.ParquetFile(path).read().to_pydict()
    return found


def parquet(kind: str, values: Columns, fields: pa.Schema | None = None, **options: Any) -> bytes:
    """A table as synthgym writes it, but for the options."""
    target = io.BytesIO()
    settings: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": False,
        "write_statistics": [SORTED_BY[kind]],
        "store_schema": False,
    }
    pq.write_table(
        pa.table(values, schema=schema(kind) if fields is None else fields),
        target,
        **settings | options,
    )
    return target.getvalue()


def change_rows(root: Path, path: str, change: Callable[[Columns], Columns]) -> None:
    """Change what a table of a snapshot holds; the manifest fits, the core stays."""
    values = change(columns(root / path))
    data = parquet(path.partition("/")[0].removesuffix(".parquet"), values)
    reseal(root, path, data, len(next(iter(values.values()))))


# --- Thrift, as Parquet uses it ---


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def field(step: int, kind: int) -> bytes:
    return bytes([step << 4 | kind])


def items(kind: int, count: int, item: bytes) -> bytes:
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + varint(count)
    return head + item * count


I32, I64, BINARY, LIST, STRUCT, STOP = 5, 6, 8, 9, 12, b"\0"


def footer_bomb(size: int) -> bytes:
    """A Parquet file with a footer of about `size` bytes: one row group of very many empty columns."""
    column = field(2, I64) + zigzag(4) + STOP
    group = field(1, LIST) + items(STRUCT, size // len(column), column)
    group += field(1, I64) + zigzag(0) + field(1, I64) + zigzag(0) + STOP
    root = field(4, BINARY) + varint(1) + b"r" + field(1, I32) + zigzag(1) + STOP
    leaf = field(1, I32) + zigzag(6) + field(2, I32) + zigzag(0)
    leaf += field(1, BINARY) + varint(1) + b"a" + STOP
    meta = field(1, I32) + zigzag(2) + field(1, LIST) + bytes([0x20 | STRUCT]) + root + leaf
    meta += field(1, I64) + zigzag(0) + field(1, LIST) + items(STRUCT, 1, group) + STOP
    return b"PAR1" + meta + struct.pack("<I", len(meta)) + b"PAR1"


def page_header(data: bytes, place: int) -> tuple[int, int, int]:
    """(place behind the sizes of a page header, unfolded size, stored size)."""
    numbers = []
    place += 1
    for _ in range(3):
        value = shift = 0
        while data[place] & 0x80:
            value |= (data[place] & 0x7F) << shift
            place, shift = place + 1, shift + 7
        value |= data[place] << shift
        numbers.append((value >> 1) ^ -(value & 1))
        place += 2
    return place - 1, numbers[1], numbers[2]


def patch_page(data: bytes, column: int, header: Callable[[int, int], bytes]) -> bytes:
    """Give the first page of a column another header in the same place.

    `header` returns its first bytes for an unfolded and a stored size. What they are longer is taken from
    the page, so that nothing else of the file moves.
    """
    chunk = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(column)
    place = chunk.data_page_offset
    behind, unfolded, stored = page_header(data, place)
    head = header(unfolded, stored)
    for _ in range(3):  # the stored size is part of what is measured
        longer = len(head) - (behind - place)
        head = header(unfolded, stored - longer)
    rest_of_header = data[behind : place + chunk.total_compressed_size - stored]
    page = data[place + chunk.total_compressed_size - stored :][: stored - longer]
    patched = head + rest_of_header + page
    assert len(patched) == chunk.total_compressed_size
    return data[:place] + patched + data[place + len(patched) :]


# --- a process that may use little memory ---

_READ = """
import json, resource, sys
import pyarrow.parquet, safetensors.numpy, synthgym.registry.shard_layout
from synthgym.errors import SnapshotError
from synthgym.registry import Snapshot
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
for place in sys.argv[2:]:
    problems = []
    try:
        snapshot = Snapshot.open(place)
        problems = list(snapshot.verify())
        for read in (lambda: list(snapshot), snapshot.digests, lambda: list(snapshot.packed())):
            try:
                read()
            except SnapshotError:
                pass
    except SnapshotError as error:
        problems = [str(error)]
    print(json.dumps([place, problems]), flush=True)
"""


def read_in_little_memory(places: list[Path]) -> dict[str, list[str]]:
    """What `verify` says of each snapshot, in one process of 1.5 GiB; what it died of is missing."""
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(LIMIT), *map(str, places)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env=os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"},
    )
    found = {line[0]: line[1] for line in map(json.loads, done.stdout.splitlines())}
    if done.returncode:
        found["died"] = [done.stderr[-2000:]]
    return found
