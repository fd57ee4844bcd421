from __future__ import annotations

import pytest

from synthgym.errors import SnapshotError
from synthgym.registry.strict import parse_json

JSON = {
    "duplicate keys": b'{"a": 1, "a": 2}',
    "inner duplicate keys": b'{"a": [{"b": 1, "b": 1}]}',
    "NaN": b'{"a": NaN}',
    "infinity": b'{"a": -Infinity}',
    "a number that overflows": b'{"a": 1e999}',
    "a huge integer": b'{"a": ' + b"9" * 5000 + b"}",
    "deep nesting": b"[" * 100_000,
    "a lone surrogate": b'{"a": "\\ud800"}',
    "bytes that are not UTF-8": b'{"a": "\xff"}',
    "a byte order mark": b'\xef\xbb\xbf{"a": 1}',
    "trailing bytes": b'{"a": 1} x',
    "no object": b"[1]",
    "nothing": b"",
}


@pytest.mark.parametrize("data", JSON.values(), ids=JSON.keys())
def test_json_is_refused_with(data: bytes) -> None:
    with pytest.raises(SnapshotError, match=r"x\.json"):
        parse_json(data, "x.json")


def test_strict_json_is_read() -> None:
    assert parse_json('{"a": [1, 2.5, null, true, "\u20ac"]}'.encode(), "x") == {
        "a": [1, 2.5, None, True, "\u20ac"]
    }


@pytest.mark.parametrize("depth", [1, 2, 63, 64, 65, 66, 300])
@pytest.mark.parametrize(("open_", "close"), [('{"a":', "}"), ('{"a":[', "]}")])
def test_what_is_nested_too_deep_is_refused(depth: int, open_: str, close: str) -> None:
    count = depth // len(close)
    data = (open_ * count + "1" + close * count).encode()
    if count * len(close) > 64:
        with pytest.raises(SnapshotError, match="nested deeper than 64"):
            parse_json(data, "x.json")
    elif count:
        assert parse_json(data, "x.json")
