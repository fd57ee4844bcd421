"""What a worker makes of a source and of the values that it returns, without a process around it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from synthgym.sandbox import values
from synthgym.sandbox.protocol import (
    Drop,
    DropDone,
    Failed,
    Hint,
    HintDone,
    Load,
    LoadDone,
    Reply,
    Reset,
    ResetDone,
    Solution,
    SolutionDone,
    Step,
    StepDone,
)
from synthgym.sandbox.runtime import Runtime
from synthgym.sandbox.worker import Interpreter

RUNTIME = Runtime()

DICE = '''
"""Guess a number."""
import random

class DiceEnv:
    """Rolls."""
    max_turns = 5

    def reset(self, seed: int):
        self._rolled = [random.randint(1, 100)]
        return f"first {self._rolled[0]}", {}

    def step(self, action: str):
        self._rolled.append(random.randint(1, 100))
        return f"{action} {self._rolled}", 0.25, False, False, {"turn": len(self._rolled)}

    def hint(self, level: int = 2):
        return f"level {level} of {self._rolled[0]}"

    def solution(self):
        return [str(roll) for roll in self._rolled]
'''


def returning(
    step: str = '"x", 0.0, False, False, {}', reset: str = '"x", {}', **extra: str
) -> str:
    """Source of a class whose methods return the expressions given."""
    methods = "\n".join(
        f"    def {name}(self):\n        return {body}" for name, body in extra.items()
    )
    return f"""
import math
from decimal import Decimal
from fractions import Fraction

class PlainEnv:
    max_turns = 5

    def reset(self, seed):
        return {reset}

    def step(self, action):
        return {step}
{methods}
"""


def loaded(source: str, **settings: Any) -> tuple[Interpreter, Reply]:
    """An interpreter that was asked to load `source`, and its reply."""
    interpreter = Interpreter(RUNTIME)
    fields = {"entry": "", "kwargs": b"{}", "observation_chars": 1000} | settings
    return interpreter, interpreter.answer(Load(1, source, **fields))


def stepped(step: str, before: str = "pass") -> Reply:
    """The reply to a step that runs the statement `before` and returns the expression `step`."""
    head = "step(self, action):"
    source = returning(step=step).replace(head, f"{head}\n        {before}")
    interpreter, reply = loaded(source)
    assert isinstance(reply, LoadDone), reply
    assert isinstance(interpreter.answer(Reset(2, 1, 0)), ResetDone)
    return interpreter.answer(Step(3, 1, "go"))


def test_a_source_is_loaded_with_what_it_holds() -> None:
    _, reply = loaded(DICE, entry="DiceEnv")
    assert reply == LoadDone(1, "DiceEnv", 5, "Guess a number.", ["random"], True, True)


def test_an_instance_is_reset_stepped_and_dropped() -> None:
    interpreter, _ = loaded(DICE)
    first = interpreter.answer(Reset(2, 7, 3))
    second = interpreter.answer(Step(3, 7, "go"))
    assert isinstance(first, ResetDone)
    assert isinstance(second, StepDone)
    assert (second.reward, second.info) == (0.25, '{"turn":2}')
    assert interpreter.answer(Drop(4, 7)) == DropDone(4)
    assert isinstance(interpreter.answer(Step(5, 7, "go")), Failed)


def test_instances_do_not_share_a_random_stream() -> None:
    alone, _ = loaded(DICE)
    alone.answer(Reset(1, 1, 3))
    expected = [alone.answer(Step(2, 1, "go")) for _ in range(5)]
    shared, _ = loaded(DICE)
    shared.answer(Reset(1, 1, 3))
    found = []
    for number in range(5):
        shared.answer(Reset(1, 2, number))
        shared.answer(Step(1, 2, "other"))
        shared.answer(Solution(1, number))
        found.append(shared.answer(Step(2, 1, "go")))
    assert found == expected


def test_nothing_leaks_from_one_episode_to_the_next() -> None:
    source = returning(step="str(SEEN.append(action) or SEEN), 0.0, False, False, {}")
    interpreter, _ = loaded("SEEN = []\n" + source)
    replies = []
    for _ in range(2):
        interpreter.answer(Reset(1, 1, 0))
        replies.append(interpreter.answer(Step(2, 1, "go")))
    assert replies[0] == replies[1]
    assert isinstance(replies[0], StepDone)


def test_hint_and_solution_come_from_another_instance() -> None:
    interpreter, _ = loaded(DICE)
    first = interpreter.answer(Reset(2, 1, 3))
    before = interpreter.answer(Step(3, 1, "go"))
    assert isinstance(first, ResetDone)
    roll = first.observation.removeprefix("first ")
    assert interpreter.answer(Hint(4, 3, 1)) == HintDone(4, f"level 1 of {roll}")
    assert interpreter.answer(Solution(5, 3)) == SolutionDone(5, [roll])
    interpreter.answer(Reset(6, 2, 3))
    assert isinstance(before, StepDone)
    assert interpreter.answer(Step(3, 2, "go")) == before


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("    def hint(self, level=2):\n        return str(level)", "3"),
        ("    def hint(self, level):\n        return str(level)", "3"),
        ("    def hint(self, *, level=2):\n        return str(level)", "3"),
        ("    def hint(self, *args):\n        return str(args[0])", "3"),
        ("    def hint(self):\n        return 'plain'", "plain"),
        ("    @staticmethod\n    def hint():\n        return 'static'", "static"),
        ("    hint = 'attribute'", "attribute"),
    ],
)
def test_every_form_of_hint_serves_every_level(hint: str, expected: str) -> None:
    interpreter, reply = loaded(returning() + hint + "\n")
    assert isinstance(reply, LoadDone)
    assert reply.has_hint
    assert interpreter.answer(Hint(2, 0, 3)) == HintDone(2, expected)


def test_an_environment_without_hint_and_solution_says_so() -> None:
    interpreter, reply = loaded(returning())
    assert isinstance(reply, LoadDone)
    assert (reply.has_hint, reply.has_solution) == (False, False)
    assert isinstance(interpreter.answer(Hint(2, 0, 2)), Failed)
    assert isinstance(interpreter.answer(Solution(2, 0)), Failed)


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("class AEnv(:", "line 1: syntax error"),
        ("import os", "line 1"),
        ("x = 1", "exactly one class"),
        (returning() + returning().replace("Plain", "Other"), "got 2"),
        (returning().replace("def step", "def other"), r"needs a method step\(\)"),
        (returning().replace("def reset", "def other"), r"needs a method reset\(\)"),
        (returning().replace("max_turns = 5", "pass"), "max_turns.*got NoneType"),
        (returning().replace("= 5", "= True"), "max_turns.*got bool"),
        (returning().replace("= 5", "= 1"), "max_turns.*got 1"),
        (returning().replace("= 5", "= 10 ** 5000"), "max_turns.*got int"),
    ],
)
def test_a_source_outside_the_contract_is_refused(source: str, detail: str) -> None:
    _, reply = loaded(source)
    assert isinstance(reply, Failed)
    assert reply.kind == "refused"
    assert re.search(detail, reply.detail), reply.detail


def test_the_class_must_be_the_one_of_the_record() -> None:
    _, reply = loaded(DICE, entry="OtherEnv")
    assert isinstance(reply, Failed)
    assert "'OtherEnv'" in reply.detail
    assert "'DiceEnv'" in reply.detail


def test_keyword_arguments_reach_the_class() -> None:
    source = DICE.replace(
        "    def reset", "    def __init__(self, top):\n        self.top = top\n\n    def reset"
    )
    interpreter, _ = loaded(
        source.replace('f"first', 'f"top {self.top} first'), kwargs=b'{"top":9}'
    )
    reply = interpreter.answer(Reset(2, 1, 0))
    assert isinstance(reply, ResetDone)
    assert reply.observation.startswith("top 9 first")


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        ('ValueError("why")', "ValueError: why"),
        ("KeyError(3)", "KeyError: "),
        ("SystemExit(0)", "SystemExit: "),
        ("KeyboardInterrupt()", "KeyboardInterrupt: "),
        ("GeneratorExit()", "GeneratorExit: "),
        ("StopIteration(5)", "StopIteration: "),
        ('ValueError("x" * 10_000)', "ValueError: x"),
    ],
)
def test_whatever_is_raised_becomes_an_error(error: str, detail: str) -> None:
    reply = stepped('("x", 0.0, False, False, {})', before=f"raise {error}")
    assert isinstance(reply, Failed)
    assert reply.kind == "error"
    assert reply.detail.startswith(detail)
    assert len(reply.detail) <= 500


def test_private_names_in_an_error_are_spelled_as_in_the_source() -> None:
    reply = stepped('("x", 0.0, False, False, {})', before="self._missing")
    assert isinstance(reply, Failed)
    assert reply.detail == "AttributeError: 'PlainEnv' object has no attribute '_missing'"


def test_used_up_memory_is_a_failure_of_its_own_kind() -> None:
    reply = stepped('("x", 0.0, False, False, {})', before="raise MemoryError")
    assert isinstance(reply, Failed)
    assert reply.kind == "memory"


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
    reply = stepped(step)
    assert isinstance(reply, Failed)
    assert reply.kind == "bad_value"


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ('["x", 1, 1, 0, None]', ("x", 1.0, True, False, "")),
        ('("x", True, False, True, {})', ("x", 1.0, False, True, "")),
        ('("x", Fraction(1, 2), False, False, {})', ("x", 0.5, False, False, "")),
        ('("x", Decimal("0.25"), False, False, {})', ("x", 0.25, False, False, "")),
        (r'("\ud800x", 0.0, False, False, {"\udfff": 1})', ("?x", 0.0, False, False, '{"?":1}')),
    ],
)
def test_a_step_of_nearly_right_types_is_converted(step: str, expected: tuple[Any, ...]) -> None:
    assert stepped(step) == StepDone(3, *expected)


@pytest.mark.parametrize("reset", ["None", '"x"', '("x",)', '("x", 1)', "(1, {})", '("x", {}, 1)'])
def test_a_reset_of_wrong_types_is_a_bad_value_and_leaves_no_instance(reset: str) -> None:
    interpreter, _ = loaded(returning(reset=reset))
    reply = interpreter.answer(Reset(2, 1, 0))
    assert isinstance(reply, Failed)
    assert reply.kind == "bad_value"
    assert isinstance(interpreter.answer(Step(3, 1, "go")), Failed)


@pytest.mark.parametrize(
    "solution", ["None", '"go"', "[1]", '["go"] * 1001', '{"go"}', '["x" * 4097]']
)
def test_a_solution_of_wrong_types_is_a_bad_value(solution: str) -> None:
    interpreter, _ = loaded(returning(solution=solution))
    reply = interpreter.answer(Solution(2, 0))
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
    assert "<cut>" in text


def test_a_huge_text_is_refused_by_its_bytes_too() -> None:
    assert values.text("好" * 1000, "observation", 1000) == "好" * 1000
    with pytest.raises(values.BadValue, match="bytes"):
        values.text("好" * 300_000, "observation", sys.maxsize)
