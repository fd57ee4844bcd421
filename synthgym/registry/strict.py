"""JSON from strangers, read strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import msgspec

from synthgym.errors import SnapshotError
from synthgym.spec import canonical_json

MAX_DEPTH: Final = 64
"""Objects and lists inside each other; what is deeper would end in a RecursionError somewhere."""


def parse_json(data: bytes, what: str, depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Parse an object strictly: UTF-8, no duplicate keys, no NaN or infinity, no lone surrogates, not too deep.

    `SnapshotError` names `what` and the fault.
    """
    value = _parsed(data, what)
    check_depth(data, value, what, depth)
    return value


def check_depth(data: bytes, value: object, what: str, depth: int = MAX_DEPTH) -> None:
    """Raise `SnapshotError` when `value`, whose JSON is `data`, is nested deeper than that."""
    if data.count(b"[") + data.count(b"{") <= depth:
        return
    level = [value]
    for _ in range(depth):
        level = [
            inner
            for outer in level
            if isinstance(outer, Mapping | list | tuple)
            for inner in (outer.values() if isinstance(outer, Mapping) else outer)
        ]
    if any(isinstance(inner, Mapping | list | tuple) for inner in level):
        raise SnapshotError(f"{what} is nested deeper than {depth}")


def _parsed(data: bytes, what: str) -> dict[str, Any]:
    quick = _canonical(data)
    if quick is not None:
        return quick
    try:
        value: object = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
        canonical_json(value)  # a surrogate written as an escape cannot be encoded
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{what} is not strict JSON: {error}") from error
    if not isinstance(value, dict):
        raise SnapshotError(f"{what} must hold a JSON object, got {type(value).__name__}")
    return value


def check_keys(raw: dict[str, Any], expected: frozenset[str], what: str) -> None:
    """Raise `SnapshotError` unless `raw` has exactly the expected keys."""
    if raw.keys() != expected:
        missing, unknown = sorted(expected - raw.keys()), sorted(raw.keys() - expected)
        raise SnapshotError(f"{what}: missing keys {missing}, unknown keys {str(unknown)[:200]}")


def is_int(value: object) -> bool:
    """Whether `value` is an integer and not a truth value."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_strings(value: object) -> bool:
    """Whether `value` is a list or tuple of texts."""
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


def _canonical(data: bytes) -> dict[str, Any] | None:
    """The object, when `data` is just what a canonical writer gives: then nothing of it can be doubled."""
    try:
        value = msgspec.json.decode(data)
        same = msgspec.json.encode(value, order="sorted") == data
    except (msgspec.MsgspecError, ValueError, RecursionError, UnicodeEncodeError):
        return None
    return value if same and isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        seen = set[str]()
        for key, _ in pairs:  # once through: a stranger may send half a million keys
            if key in seen:
                raise ValueError(f"duplicate key {key!r}")
            seen.add(key)
    return out


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large for a number")
    return value
