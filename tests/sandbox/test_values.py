"""What a worker makes of the values that a source returns, whatever they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from bare_worker import PROGRAM, failure, loaded, returning, stepped

from synthgym.sandbox import values
from synthgym.sandbox.protocol import TERMINATED, TRUNCATED, Failed, Solution


@pytest.mark.parametrize(
    "step",
    [
        "None",
        '("x", 0.0, False, False)',
        '("x", 0.0, False, False, {}, 1)',
        '(i for i in ["x", 0.0, False, False, {}])',
        "{1: 2}",
        "(None, 0.0, False, False, {})",
        '(b"x", 0.0, False, False, {})',
        '("x" * 1001, 0.0, False, False, {})',
        '("x", None, False, False, {})',
        '("x", "1.0", False, False, {})',
        '("x", 1j, False, False, {})',
        '("x", math.nan, False, False, {})',
        '("x", math.inf, False, False, {})',
        '("x", 10 ** 400, False, False, {})',
        '("x", Fraction(10 ** 400), False, False, {})',
        '("x", Decimal("1e999"), False, False, {})',
        '("x", Decimal("sNaN"), False, False, {})',
        '("x", 0.0, None, False, {})',
        '("x", 0.0, "no", False, {})',
        '("x", 0.0, 2, False, {})',
        '("x", 0.0, False, 0.0, {})',
        '("x", 0.0, False, False, [])',
        '("x", 0.0, False, False, "info")',
    ],
)
def test_a_step_of_wrong_types_is_a_bad_value(step: str) -> None:
    kind, _ = failure(stepped(step))
    assert kind == "bad_value"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ('["x", 1, 1, 0, None]', ("x", 1.0, True, False, "")),
        ('("x", True, False, True, {})', ("x", 1.0, False, True, "")),
        ('("x", 1.5, True, True, {})', ("x", 1.5, True, True, "")),
        ('("x", 0.5, False, True, {})', ("x", 0.5, False, True, "")),
        ('("x", Fraction(1, 2), False, False, {})', ("x", 0.5, False, False, "")),
        ('("x", Decimal("0.25"), False, False, {})', ("x", 0.25, False, False, "")),
        (r'("\ud800x", 0.0, False, False, {"\udfff": 1})', ("?x", 0.0, False, False, '{"?":1}')),
        ('("ä" * 1000, 0.0, False, False, {})', ("ä" * 1000, 0.0, False, False, "")),
    ],
)
def test_a_step_of_nearly_right_types_is_converted(
    step: str, expected: tuple[str, float, bool, bool, str]
) -> None:
    rows = stepped(step)
    observation, reward, terminated, truncated, info = expected
    assert rows.failures == {}
    assert (rows.observations, rows.rewards) == ([observation], [reward])
    assert rows.flags == bytes([terminated * TERMINATED + truncated * TRUNCATED])
    assert rows.infos == ({0: info} if info else {})


@pytest.mark.parametrize("reset", ["None", '"x"', '("x",)', '("x", 1)', "(1, {})", '("x", {}, 1)'])
def test_a_reset_of_wrong_types_is_a_bad_value_and_leaves_no_instance(reset: str) -> None:
    worker = loaded(returning(reset=reset))
    assert failure(worker.reset(1, 0))[0] == "bad_value"
    assert failure(worker.step(1, "go"))[0] == "refused"


@pytest.mark.parametrize(
    "solution", ["None", '"go"', "[1]", '["go"] * 1001', '{"go"}', '["x" * 4097]']
)
def test_a_solution_of_wrong_types_is_a_bad_value(solution: str) -> None:
    reply = loaded(returning(solution=solution)).ask(Solution(2, PROGRAM, 0))
    assert isinstance(reply, Failed)
    assert reply.kind == "bad_value"


class EvilDict(dict[str, int]):
    def items(self) -> Any:
        raise AssertionError("a method of a returned object was called")

    __iter__ = keys = values = items


class EvilStr(str):
    def __len__(self) -> int:
        raise AssertionError("a method of a returned object was called")

    encode = __str__ = __len__  # type: ignore[assignment]


def forever() -> Iterator[int]:
    while True:
        yield 1


@pytest.mark.parametrize(
    "value",
    [
        (EvilStr("x"), 0.0, False, False, {}),
        ("x", 0.0, False, False, EvilDict(a=1)),
        forever(),
        ("x", type("float64", (float,), {"__module__": "numpy"})(1.0), False, False, {}),
    ],
    ids=["str subclass", "dict subclass", "generator", "float subclass"],
)
def test_no_method_of_a_returned_object_is_called(value: object) -> None:
    with pytest.raises(values.BadValue):
        values.step_values(value, 100)


def test_info_is_copied_within_bounds() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(20):
        inner["in"] = {}
        inner = inner["in"]
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    info = {
        "none": None, "int": 10**6000, "nan": float("nan"), "bytes": b"x", "set": {1}, "call": len,
        "text": "y" * 5000, "list": [1, (2, 3)], "evil": EvilDict(a=1), "deep": deep, "cyclic": cyclic,
        1: "int key", (1, 2): "tuple key", None: "none key", 2.5: "float key",
    }  # fmt: skip
    copy = msgspec.json.decode(values.info_json(info))
    assert copy["none"] is None
    assert (copy["int"], copy["nan"], copy["bytes"], copy["set"]) == (
        "<int>",
        "<nan>",
        "<bytes>",
        "<set>",
    )
    assert copy["call"] == "<builtin_function_or_method>"
    assert (len(copy["text"]), copy["list"], copy["evil"]) == (2000, [1, [2, 3]], "<EvilDict>")
    assert (copy["1"], copy["<tuple>"], copy["None"], copy["2.5"]) == (
        "int key", "tuple key", "none key", "float key",
    )  # fmt: skip
    assert str(copy["deep"]).count("in") < 10
    assert copy["<replaced>"] is True
    assert "<deep>" in str(copy["cyclic"])


@pytest.mark.parametrize(
    "info",
    [
        dict.fromkeys(range(1_000_000), 1),
        {"a": list(range(1_000_000))},
        {str(i): "z" * 900 for i in range(50)},
    ],
    ids=["wide", "long", "heavy"],
)
def test_a_huge_info_is_cut(info: dict[Any, Any]) -> None:
    text = values.info_json(info)
    assert len(text) <= 16 * 1024
    assert msgspec.json.decode(text)["<replaced>"] is True


def test_a_huge_text_is_refused_by_its_bytes_too() -> None:
    assert values.text("好" * 1000, "observation", 1000) == "好" * 1000
    with pytest.raises(values.BadValue, match="bytes"):
        values.text("好" * 300_000, "observation", sys.maxsize)


def test_an_info_that_is_copied_whole_does_not_say_otherwise() -> None:
    info = {"set": "<set>", "n": [1, 2.5, None, True, {"deep": ["er"]}], 3: "three"}
    assert msgspec.json.decode(values.info_json(info)) == {
        "set": "<set>",
        "n": [1, 2.5, None, True, {"deep": ["er"]}],
        "3": "three",
    }


@pytest.mark.parametrize("value", [{1}, float("inf"), 1 << 80, "y" * 2001, {(1, 2): 3}, len])
def test_an_info_that_is_not_copied_whole_says_so(value: Any) -> None:
    assert msgspec.json.decode(values.info_json({"a": {"b": [value]}}))["<replaced>"] is True
