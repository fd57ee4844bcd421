"""The one serialisation that is hashed: JSON as RFC 8785 (JCS) writes it, but for two things.

Sorted keys, no spaces, UTF-8, no NaN, no infinity, nothing but JSON types. Floats, which no record holds, are
written as Python's `repr` writes them: the shortest digits, always with a point or an exponent, so that they
come back as floats. Keys go by code points; by UTF-16 units, as in RFC 8785, ASCII keys come out the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

_Value = TypeVar("_Value")


class _FloatError(Exception):
    """There is a float that msgspec writes in its own way."""


def _float(text: str) -> float:
    value = float(text)
    if repr(value) != text:
        raise _FloatError(text)
    return value


_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_DECODER: Final = msgspec.json.Decoder(float_hook=_float)
_INT64: Final = 2**63


def canonical_json(value: object) -> bytes:
    """Canonical bytes of a JSON value: the same value gives the same bytes in every process.

    `ValueError` for NaN, infinity, lone surrogates and what is nested too deeply, `TypeError` for what JSON
    has no word for.
    """
    try:
        data = _ENCODER.encode(value)
        # msgspec writes NaN as null and dates as texts: what does not come back is written the strict way.
        if _DECODER.decode(data) == value:
            return data
    except (_FloatError, msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        pass
    try:
        return _ENCODER.encode(_strict(value))
    except RecursionError:
        raise ValueError("a value of JSON that is nested too deeply, or holds itself") from None


def is_canonical(data: bytes) -> bool:
    """Whether `data` is what `canonical_json` writes of some value."""
    try:
        return _ENCODER.encode(_DECODER.decode(data)) == data
    except (_FloatError, msgspec.MsgspecError, ValueError, RecursionError):
        pass
    try:
        return canonical_json(msgspec.json.decode(data)) == data
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError):
        return False


def canonical_reader(kind: type[_Value]) -> Callable[[bytes], _Value | None]:
    """Return a function that reads canonical bytes of one type, a `msgspec.Struct` for example.

    What it returns is the value whose canonical bytes those are: no key comes twice, nothing is of another type
    or beyond its range. None means nothing: bytes with a large number may be canonical all the same.
    """
    decoder = msgspec.json.Decoder(kind, float_hook=_float)

    def read(data: bytes) -> _Value | None:
        try:
            value = decoder.decode(data)
            return value if _ENCODER.encode(value) == data else None
        except (_FloatError, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            return None

    return read


def canonical_text(text: str) -> bytes:
    """Canonical bytes of a text; `ValueError` for a lone surrogate."""
    return _ENCODER.encode(text)


def _strict(value: object) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        value.encode()  # ValueError for a lone surrogate
        return str.__str__(value)  # of an enumeration the text, not the name
    if isinstance(value, int):
        return int(value) if -_INT64 <= value < _INT64 else msgspec.Raw(str(int(value)).encode())
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a JSON number")
        return msgspec.Raw(repr(float(value)).encode())
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"keys of JSON objects are texts, got {key!r}")
        return {_strict(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(item) for item in value]
    raise TypeError(f"JSON has no {type(value).__name__}")
