"""What a Parquet file would unfold to, read from its footer and page headers before Arrow sees them.

Arrow reserves what a page header asks for, up to 2 GiB a page; pages of dictionaries and deltas may stand for
any number of rows; a footer of 3 MB may come to 650 MB; and asking pyarrow for the columns of a footer that
is not well formed may end the process. So footer and headers are read here first, and compared with what a
snapshot's table may be. The structs are those of parquet.thrift.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO, Any, Final

from synthgym.errors import IntegrityError
from synthgym.registry.chunks import usual_chunk
from synthgym.registry.thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Struct,
    ThriftError,
    read_struct,
)

_FOOTER_CAP: Final = 2 * 1024 * 1024
_HEADER: Final = 512
_HEADER_CAP: Final = 64 * 1024
"""Bytes of one page header, mostly and at most: statistics may hold a value of the column."""
_MAGIC: Final = b"PAR1"
_DATA_PAGE: Final = 0
"""1 is an index, 2 a dictionary, 3 a DATA_PAGE_V2, which nobody needs here."""
_PLAIN: Final = 0
_CODECS: Final = frozenset({0, 6})
"""None and ZSTD."""
_ARROW_SCHEMA: Final = b"ARROW:schema"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A column of a row group."""

    place: int
    """Of its first page."""
    size: int
    """In the file."""
    span: tuple[bytes, bytes] | None
    """The least and greatest value, where it is told."""


@dataclass(frozen=True, slots=True)
class Group:
    """A row group."""

    rows: int
    chunks: tuple[Chunk, ...]


def read_footer(file: IO[bytes], size: int, columns: int, shown: str) -> list[Group]:
    """Return the row groups of a file of `size` bytes; `IntegrityError` when it is no table for a snapshot.

    Nothing but the footer is read. That its columns are the right ones is left to Arrow.
    """
    if file.seek(0, 2) != size:
        raise IntegrityError(f"{shown} has {file.tell()} bytes, promised {size}")
    if size < 12:
        raise IntegrityError(f"{shown} is no Parquet file: it is too short")
    file.seek(size - 8)
    tail = file.read(8)
    length = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC:
        raise IntegrityError(f"{shown} is no Parquet file")
    if length > min(size - 12, _FOOTER_CAP):
        raise IntegrityError(f"{shown}: its footer claims {length} bytes")
    file.seek(size - 8 - length)
    try:
        return _groups(file.read(length), columns)
    except (ThriftError, KeyError) as error:
        raise IntegrityError(f"{shown}: its footer is refused: {error}") from error


def check_pages(file: IO[bytes], chunk: Chunk, rows: int, cap: int, shown: str) -> int:
    """Return the bytes that a column of `rows` rows unfolds to; `IntegrityError` when more than `cap`.

    It is refused too when its pages are not PLAIN, hold other rows, or are not where the footer says.
    """
    place, end, total, values = chunk.place, chunk.place + chunk.size, 0, 0
    while place < end:
        try:
            header, length = _header(file, place)
            unfolded, stored = header[2, I32], header[3, I32]
            count = _rows(header)
        except (ThriftError, KeyError) as error:
            raise IntegrityError(f"{shown}: a page header is refused: {error}") from error
        values, total = values + count, total + unfolded
        if count < 1 or unfolded < 0 or stored < 0 or values > rows:
            raise IntegrityError(f"{shown}: a page claims {count} rows and {unfolded} bytes")
        if total > cap:
            raise IntegrityError(f"{shown}: unfolds to more than the {cap} bytes it may have")
        place += length + stored
    if place != end or values != rows:
        raise IntegrityError(f"{shown}: its pages do not end where the footer says")
    return total


def _header(file: IO[bytes], place: int) -> tuple[Struct, int]:
    """The page header at a place, and its length."""
    file.seek(place)
    try:
        return read_struct(file.read(_HEADER))
    except ThriftError:
        file.seek(place)
        return read_struct(file.read(_HEADER_CAP))


def _rows(header: Struct) -> int:
    """Rows of a page."""
    if header[1, I32] != _DATA_PAGE:
        raise ThriftError(f"a page of type {header[1, I32]} is not read")
    data: Struct = header[5, STRUCT]
    if data[2, I32] != _PLAIN:
        raise ThriftError("a page that is not plain is not read")
    return int(data[1, I32])


def _groups(data: bytes, columns: int) -> list[Group]:
    footer, end = read_struct(data, shortcut=usual_chunk)
    if end != len(data):
        raise ThriftError("something comes behind it")
    _check_file(footer)
    groups = [_group(raw, columns) for raw in _structs(footer, 4)]
    if footer[3, I64] != sum(group.rows for group in groups):
        raise ThriftError("it counts other rows than its row groups have")
    return groups


def _check_file(footer: Struct) -> None:
    if any(number > 7 for number, _ in footer):
        raise ThriftError("it is encrypted, or has fields that are not known")
    if any(pair.get((1, BINARY)) == _ARROW_SCHEMA for pair in _structs(footer, 5)):
        raise ThriftError("a schema of Arrow's own is not read")
    version = re.match(rb"parquet-mr version (\d+)\.(\d+)", footer.get((6, BINARY), b""))
    known = (0, 0) if version is None else (int(version[1]), int(version[2]))
    if footer.get((6, BINARY), b"").startswith(b"parquet-mr") and known < (1, 8):
        raise ThriftError("the columns of so old a writer are read beyond their end (PARQUET-816)")


def _group(raw: Struct, columns: int) -> Group:
    chunks, rows = _structs(raw, 1), raw[3, I64]
    if len(chunks) != columns:
        raise ThriftError(f"a row group has {len(chunks)} columns, expected {columns}")
    if rows < 1:
        raise ThriftError(f"a row group has {rows} rows")
    return Group(rows=rows, chunks=tuple(_chunk(chunk, rows) for chunk in chunks))


def _chunk(raw: Struct, rows: int) -> Chunk:
    if any(not 2 <= number <= 7 for number, _ in raw):
        raise ThriftError("a column is encrypted or lies in another file")
    meta: Struct = raw[3, STRUCT]
    place, size, codec = meta[9, I64], meta[7, I64], meta[4, I32]
    if {(10, I64), (11, I64)} & meta.keys():
        raise ThriftError("a column with a dictionary is not read")
    if codec not in _CODECS:
        raise ThriftError(f"codec {codec} is not read")
    if meta[5, I64] != rows:
        raise ThriftError(f"a column has {meta[5, I64]} values in {rows} rows")
    if place < len(_MAGIC) or size < 1:
        raise ThriftError(f"a column of {size} bytes at {place}")
    told: Struct = meta.get((12, STRUCT), {})
    least, most = told.get((6, BINARY)), told.get((5, BINARY))
    span = None if least is None or most is None else (least, most)
    return Chunk(place=place, size=size, span=span)


def _structs(raw: Struct, number: int) -> list[Struct]:
    found: list[Any] = raw.get((number, LIST), [])
    if not all(isinstance(item, dict) for item in found):
        raise ThriftError(f"field {number} holds no structs")
    return found
