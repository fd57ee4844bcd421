"""Column chunks of a Parquet footer that are written as Arrow writes them, read at once.

A footer has one for each column of each row group, some twenty fields in each. Read field by field they take most
of the time that it takes to open a table, so what has the usual shape is matched as a whole. The pattern is
narrower than `thrift.read_struct` is strict: what it matches, that would read alike. All else is left to it.
"""

from __future__ import annotations

import re
from typing import Final

from synthgym.registry.thrift import BINARY, I32, I64, STRUCT, Struct

_I32: Final = rb"[\x80-\xff]{0,3}[\0-\x7f]"
"""A number of at most 28 bits: no such field can be out of its range."""
_I64: Final = rb"[\x80-\xff]{0,7}[\0-\x7f]"
"""At most 56 bits."""


def _text(longest: int) -> bytes:
    """A length in one byte and as many bytes."""
    return b"(?:%s)" % b"|".join(rb"\x%02x.{%d}" % (n, n) for n in range(1, longest + 1))


def _named(name: str, pattern: bytes) -> bytes:
    return b"(?P<%s>%s)" % (name.encode(), pattern)


_STATISTICS: Final = b"".join(
    (
        rb"<6" + _I64,  # 3: nulls
        rb"\(" + _named("most", _text(80)),
        rb"\x18" + _named("least", _text(80)),
        rb"[\x11\x12][\x11\x12]\0",  # 7, 8: whether they are exact
        rb"\x19",  # 13, after 12
    )
)
_SIZES: Final = rb"<\x16" + _I64 + rb"\x19\x06\x19\x06\0"
"""16: bytes of the texts; no levels, since nothing is nested or may lack."""
_CHUNK: Final = re.compile(
    b"".join(
        (
            rb"&" + _I64,  # 2: place in the file, out of use
            rb"\x1c\x15" + _I32,  # 3: the column; 1: type
            rb"\x19(?:\x15" + _I32 + rb"|\x25(?:" + _I32 + rb"){2}|\x35(?:" + _I32 + rb"){3})",
            rb"\x19\x18" + _text(16),  # 3: name
            rb"\x15" + _named("codec", _I32),
            rb"\x16" + _named("values", _I64),
            rb"\x16" + _I64,  # 6: bytes unfolded
            rb"\x16" + _named("size", _I64),
            rb"&" + _named("place", _I64),
            rb"(?:" + _STATISTICS + rb"|I)",
            rb"\x1c\x15" + _I32 + rb"\x15" + _I32 + rb"\x15" + _I32 + rb"\0",  # encodings of pages
            rb"(?:" + _SIZES + rb")?\0\0",
        )
    ),
    re.DOTALL,
)


def usual_chunk(data: bytes, place: int) -> tuple[Struct, int] | None:
    """Return the column chunk at a place, with the fields that are looked at, and the place behind it.

    None when it is none, or of another shape.
    """
    match = _CHUNK.match(data, place)
    if match is None:
        return None
    codec, values, size, start, most, least = match.group(
        "codec", "values", "size", "place", "most", "least"
    )
    column: Struct = {
        (4, I32): _number(codec),
        (5, I64): _number(values),
        (7, I64): _number(size),
        (9, I64): _number(start),
    }
    if most is not None:
        column[12, STRUCT] = {(5, BINARY): most[1:], (6, BINARY): least[1:]}
    return {(3, STRUCT): column}, match.end()


def _number(text: bytes) -> int:
    """A zigzag number of bytes that are known to be one."""
    value = 0
    for byte in reversed(text):
        value = value << 7 | byte & 0x7F
    return (value >> 1) ^ -(value & 1)
