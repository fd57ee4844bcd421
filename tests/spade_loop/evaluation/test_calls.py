"""Calls read out of replies: what is made of them is plain values, whatever was written."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.evaluation.suites.calls import Call, NoCallsError, offered, read_calls, spoken


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("[f()]", ["f()"]),
        ("f(a=1), g(b='x')", ["f(a=1)", "g(b='x')"]),
        ("```\n[f(a=[1, -2.5, None, True], b={'k': (1, 2)})]\n```", ["f(a=[1, -2.5, None, True], b={'k': (1, 2)})"]),
        ("[f(a=true, b=New_York)]", ["f(a='true', b='New_York')"]),
        ("[f(a=2 * 3 + 1, b='x' + 'y', c=-(1 - 3))]", ["f(a=7, b='xy', c=2)"]),
        ("[f(1, a=2)]", ["f(a=2)"]),
        ("[a.b.f(x=1)]", ["a.b.f(x=1)"]),
        ("[]", []),
    ],
)  # fmt: skip
def test_calls_are_read_as_the_benchmarks_read_them(text: str, calls: list[str]) -> None:
    assert [call.rendered() for call in read_calls(text)] == calls


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[f(a=g(x=1))]", "not Call"),
        ("[f(a=lambda: 1)]", "not Lambda"),
        ("[f(a=x[0])]", "not Subscript"),
        ("[f(a=x.y)]", "not Attribute"),
        ("[f(a=f'{1}')]", "not JoinedStr"),
        ("[f(a=[i for i in b])]", "not ListComp"),
        ("[f(a=9 ** 9 ** 9)]", "not Pow"),
        ("[f(a=10 ** 2)]", "not Pow"),
        ("[f(a='x' * 10)]", "expected a number, got str"),
        ("[f(a=99999999999999999999 * 99999999999999999999)]", "too large"),
        ("[f(a=1 / 0)]", "division by zero"),
        ("[f(a={**b})]", "keys of a dictionary"),
        ("[f(a={(1, 2): 3})]", "keys of a dictionary"),
        ("[f(**{'a': 1})]", "** is not supported"),
        ("[f(a=b'x')]", "not Constant"),
        ("[f(a=...)]", "not Constant"),
        ("[f(a=not 1)]", "not UnaryOp"),
        ("[f()()]", "must be a name"),
        (f"[f(a={'[' * 60}{']' * 60})]", "nested more than"),
    ],
)
def test_a_call_of_anything_but_literals_has_a_problem(text: str, problem: str) -> None:
    (call,) = read_calls(text)
    assert problem in call.problem
    assert call.arguments == {}


@pytest.mark.parametrize(
    "text",
    ["Done.", "[f", "f(", "[1]", "[f] + [g()]", "[f()][0]", "", "x = f()", "\0", "(" * 5000, "[f()] done", "f() g()"],
)  # fmt: skip
def test_other_texts_are_no_calls(text: str) -> None:
    if not text:
        assert read_calls(text) == ()
        return
    with pytest.raises(NoCallsError):
        read_calls(text)


def test_a_text_that_is_too_long_is_not_parsed() -> None:
    with pytest.raises(NoCallsError, match="more than"):
        read_calls(f"[f(a='{'x' * 200_000}')]")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3)
    | st.tuples(inner, inner)
    | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(
    st.lists(st.dictionaries(st.sampled_from(["a", "b", "c_1"]), values), min_size=1, max_size=3)
)
def test_what_is_rendered_is_read_again(all_arguments: list[dict[str, Any]]) -> None:
    calls = tuple(Call("f", arguments) for arguments in all_arguments)
    text = f"[{', '.join(call.rendered() for call in calls)}]"
    assert read_calls(text) == calls


@given(st.text() | st.text("fg()[]{}=,.'\"1+-*\n ", max_size=40))
def test_whatever_is_written_only_literals_are_rendered(text: str) -> None:
    try:
        calls = read_calls(text)
    except NoCallsError:
        return
    for call in calls:
        node = ast.parse(call.rendered(), mode="eval").body
        assert isinstance(node, ast.Call)
        assert not node.args
        for keyword in node.keywords:
            ast.literal_eval(keyword.value)


def test_only_offered_functions_are_called() -> None:
    (call,) = read_calls("[eval(x='1')]")
    assert offered(call, {"ls"}).problem == "name 'eval' is not defined"
    assert offered(call, {"ls"}).arguments == {}
    assert offered(call, {"eval"}) is call


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("a", "a"),
        ("<think>x</think> a", "a"),
        ("x</think>\na", "a"),
        ("<think>x", ""),
        ("a\n", "a"),
    ],
)
def test_thoughts_are_left_out(reply: str, said: str) -> None:
    assert spoken(reply) == said
