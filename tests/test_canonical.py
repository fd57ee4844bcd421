from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
import os
import subprocess
import sys
import uuid
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from synthgym.canonical import canonical_json

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
INTEGERS = st.integers() | st.integers(2**62, 2**66) | st.integers(-(2**66), -(2**62))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | INTEGERS | FLOATS | TEXT
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


def by_json(value: object) -> bytes:
    """What the standard library writes."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


@given(VALUES)
@example({"\U0001f600": 1, "\ufb33": 2, "\r": 3, "\u20ac": 4})
@example([-0.0, 1e300, 5e-324, 1e16, 1.0, 0.1])
@example('\x00\x1f\x7f\b\f\n\r\t"\\/\u2028')
@example([2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1, 10**400])
def test_it_writes_what_the_standard_library_writes(value: object) -> None:
    assert canonical_json(value) == by_json(value)


@given(VALUES)
def test_what_was_written_comes_back_with_its_types(value: object) -> None:
    again = json.loads(canonical_json(value))
    assert again == value
    assert canonical_json(again) == canonical_json(value)
    assert types(again) == types(value)


def types(value: Any) -> object:
    """The type of every leaf: 1, 1.0 and True are equal and not the same."""
    if isinstance(value, dict):
        return {key: types(item) for key, item in value.items()}
    if isinstance(value, list):
        return [types(item) for item in value]
    return type(value), math.copysign(1, value) if isinstance(value, float) else 0


@given(FLOATS)
def test_a_float_comes_back_as_the_same_float(number: float) -> None:
    text = canonical_json({"rate": number}).decode()
    assert text == f'{{"rate":{number!r}}}'
    again = json.loads(text)["rate"]
    assert type(again) is float
    assert again.hex() == number.hex()


@given(st.dictionaries(TEXT, LEAVES, min_size=2, max_size=8))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    turned = dict(reversed(value.items()))
    assert canonical_json(turned) == canonical_json(value)


class Colour(str, enum.Enum):  # noqa: UP042 -- whose text is its name
    RED = "red"


class Number(enum.IntEnum):
    TWO = 2


class Word(str):
    def __str__(self) -> str:
        return "something else"


@pytest.mark.parametrize("beside", [1, 0.5])
def test_what_stands_for_a_json_value_is_written_as_that_whatever_is_beside_it(
    beside: float,
) -> None:
    value = {
        "tuple": (1, (2,)),
        "mapping": MappingProxyType({"b": 1, "a": 2}),
        "colour": Colour.RED,
        Colour.RED: Number.TWO,
        "word": Word("word"),
        "beside": beside,
    }
    written = {
        "tuple": [1, [2]],
        "mapping": {"a": 2, "b": 1},
        "colour": "red",
        "red": 2,
        "word": "word",
        "beside": beside,
    }
    assert canonical_json(value) == by_json(written)
    assert canonical_json([np.float64(0.25)]) == b"[0.25]"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, np.float64("nan")])
@pytest.mark.parametrize("where", ["alone", "list", "mapping", "deep"])
def test_numbers_that_json_does_not_know_are_refused(number: float, where: str) -> None:
    value = {"alone": number, "list": [1, number], "mapping": {"x": number}}.get(
        where, {"x": [{"y": (number,)}, 0.5]}
    )
    with pytest.raises(ValueError, match="is not a JSON number"):
        canonical_json(value)


@pytest.mark.parametrize("value", ["\ud800", ["a\udfff"], {"\ud800": 1}, {"a": ["\ud83d", 0.5]}])
def test_lone_surrogates_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        canonical_json(value)


WORDLESS: dict[str, Any] = {
    "bytes": b"x",
    "set": {1},
    "date": datetime.date(2020, 1, 1),
    "time": datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC),
    "decimal": decimal.Decimal("1.5"),
    "uuid": uuid.UUID(int=1),
    "complex": 1j,
    "object": object(),
    "type": int,
    "array": np.zeros(2),
    "whole number of NumPy": np.int64(3),
}


@pytest.mark.parametrize("value", WORDLESS.values(), ids=WORDLESS.keys())
def test_what_json_has_no_word_for_is_refused(value: Any) -> None:
    for shown in (value, [value], {"x": (0.5, value)}):
        with pytest.raises(TypeError, match=f"JSON has no {type(value).__name__}"):
            canonical_json(shown)


@pytest.mark.parametrize("key", [1, 1.5, True, None, (1, 2), b"x"])
def test_keys_are_texts(key: object) -> None:
    for value in ({key: 1}, [{"a": {key: 0.5}}]):
        with pytest.raises(TypeError, match="keys of JSON objects are texts"):
            canonical_json(value)


@pytest.mark.parametrize("leaf", [1, 0.5])
def test_what_is_nested_too_deeply_is_refused(leaf: object) -> None:
    value: object = leaf
    for _ in range(50):
        value = [value]
    assert canonical_json(value) == by_json(value)
    for _ in range(100_000):
        value = [value]
    endless: list[object] = [leaf]
    endless.append(endless)
    for deep in (value, endless):
        with pytest.raises(ValueError, match="nested too deeply"):
            canonical_json(deep)


WRITE = """
import hashlib
from synthgym.canonical import canonical_json
keys = [hashlib.sha256(bytes([i])).hexdigest() for i in range(50)]
value = {key: {k: i / 7 for i, k in enumerate(keys)} for key in set(keys)}
for item in (value, {key: len(key) for key in set(keys)}):
    print(hashlib.sha256(canonical_json({k: item[k] for k in item})).hexdigest())
"""


def test_another_process_with_another_hash_seed_writes_the_same_bytes() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", WRITE],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    ]
    assert printed[0] == printed[1]
    assert len(printed[0].split()) == 2
