"""Thrift's compact protocol, read strictly: what two readers could read in two ways is refused.

Parquet's footer and page headers are such structs. Other readers skip fields of another type, take the last
of fields that come twice and cut numbers off; whoever checks a header for them must see what they see.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

I32: Final = 5
I64: Final = 6
BINARY: Final = 8
LIST: Final = 9
STRUCT: Final = 12
_TRUE, _FALSE, _BYTE, _I16, _DOUBLE = 1, 2, 3, 4, 7
_BITS: Final = {_I16: 15, I32: 31, I64: 63}
_DEPTH: Final = 8
_FIELDS: Final = 2**15
_COLUMNS_DEPTH: Final = 2
"""Of the list of columns, in a struct in a list."""

Struct = dict[tuple[int, int], Any]
"""Values by number and type of the field; structs and lists inside each other."""

Shortcut = Callable[[bytes, int], tuple[Struct, int] | None]
"""Reads a struct at a place at once, or not at all: what it returns may lack fields, but never end elsewhere."""


class ThriftError(ValueError):
    """The bytes are no struct, or one that can be read in two ways."""


def read_struct(
    data: bytes, place: int = 0, shortcut: Shortcut | None = None
) -> tuple[Struct, int]:
    """Return the struct at a place and the place behind it; `ThriftError` when there is none.

    `shortcut` is asked for the structs in lists that are two deep: the columns of a footer's row groups.
    """
    try:
        return _struct(data, place, 0, shortcut)
    except IndexError:
        raise ThriftError("it ends too early") from None


def _struct(data: bytes, place: int, depth: int, shortcut: Shortcut | None) -> tuple[Struct, int]:
    if depth > _DEPTH:
        raise ThriftError("structs are nested too deep")
    found: Struct = {}
    number, last = 0, 0
    seen: set[int] | None = None  # only when the numbers do not go up
    while True:
        head = data[place]
        place += 1
        if head == 0:
            return found, place
        kind, step = head & 0x0F, head >> 4
        if step:
            number += step
        else:
            number, place = _zigzag(data, place)
        if not 0 < number < _FIELDS:
            raise ThriftError(f"there is no field {number}")
        if number <= last or seen is not None:
            seen = {field for field, _ in found} if seen is None else seen
            if number in seen:
                raise ThriftError(f"field {number} comes twice")
            seen.add(number)
        last = number
        if kind <= _FALSE:
            found[number, kind] = kind == _TRUE
        else:
            found[number, kind], place = _value(data, place, kind, depth, shortcut)


def _value(
    data: bytes, place: int, kind: int, depth: int, shortcut: Shortcut | None
) -> tuple[Any, int]:
    if kind in _BITS:
        value, place = _zigzag(data, place)
        if not -1 << _BITS[kind] <= value < 1 << _BITS[kind]:
            raise ThriftError(f"{value} does not fit its type")
        return value, place
    if kind == BINARY:
        size, place = _varint(data, place)
        if size > len(data) - place:
            raise ThriftError("it ends too early")
        return data[place : place + size], place + size
    if kind == STRUCT:
        return _struct(data, place, depth + 1, shortcut)
    if kind == LIST:
        return _list(data, place, depth, shortcut)
    if kind in (_BYTE, _DOUBLE):
        size = 1 if kind == _BYTE else 8
        return data[place : place + size], place + size
    raise ThriftError(f"type {kind} is not read")


def _list(data: bytes, place: int, depth: int, shortcut: Shortcut | None) -> tuple[list[Any], int]:
    if depth > _DEPTH:
        raise ThriftError("lists are nested too deep")
    head = data[place]
    count, kind = head >> 4, head & 0x0F
    place += 1
    if count == 15:
        count, place = _varint(data, place)
    if count > len(data) - place:  # an item has a byte at least
        raise ThriftError("it ends too early")
    found: list[Any] = []
    quick = shortcut if kind == STRUCT and depth == _COLUMNS_DEPTH else None
    for _ in range(count):
        read = None if quick is None else quick(data, place)
        value: Any
        if read is not None:
            value, place = read
        elif kind in (_TRUE, _FALSE):
            value, place = data[place] == _TRUE, place + 1
        else:
            value, place = _value(data, place, kind, depth + 1, shortcut)
        found.append(value)
    return found, place


def _varint(data: bytes, place: int) -> tuple[int, int]:
    byte = data[place]
    place += 1
    if byte < 0x80:
        return byte, place
    value, shift = byte & 0x7F, 7
    while shift < 64:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7
    raise ThriftError("a number has more than 64 bits")


def _zigzag(data: bytes, place: int) -> tuple[int, int]:
    value, place = _varint(data, place)
    return (value >> 1) ^ -(value & 1), place
