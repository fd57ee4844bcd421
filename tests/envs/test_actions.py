from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.envs.actions import ParseStatus, parse_action


@pytest.mark.parametrize(
    ("reply", "action"),
    [
        (r"I open it. \boxed{open gate}", "open gate"),
        (r"\boxed{first} or rather \boxed{second}", "second"),
        (r"<think>maybe \boxed{left}</think>\boxed{right}", "right"),
        (r"<think>a</think><think>\boxed{b}</think> \boxed{c}", "c"),
        (r"the prompt opened it \boxed{left}</think> \boxed{right}", "right"),
        (r"\boxed{go} <think>then \boxed{stay}", "go"),
        (r"\boxed{set {a, {b}}}", "set {a, {b}}"),
        (r"\boxed{  spaced out  }", "spaced out"),
        (r"\boxed{\text{open gate}}", "open gate"),
        (r"\boxed{say \text{hello} to {all}}", "say hello to {all}"),
        (r"\boxed{\text{a \text{b}}}", "a b"),
        (r"{ stray \boxed{go} } }", "go"),
        (r"\boxed{done} and \boxed{never closed", "done"),
        (r"\boxed{outer \boxed{inner}}", "inner"),
        (r"\boxed{a<think>hidden</think>b}", "ab"),
        ("\\boxed{two\nlines}", "two\nlines"),
    ],
)
def test_the_last_balanced_box_outside_of_thinking_is_the_action(reply: str, action: str) -> None:
    parsed = parse_action(reply)
    assert (parsed.action, parsed.status) == (action, ParseStatus.OK)
    assert parsed.span is not None
    start, end = parsed.span
    assert reply[start:end].startswith("\\boxed{")
    assert reply[start:end].endswith("}")


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("", ParseStatus.NO_BOX),
        ("open gate", ParseStatus.NO_BOX),
        (r"<think>\boxed{open gate}</think>", ParseStatus.NO_BOX),
        (r"<think>\boxed{open gate}", ParseStatus.NO_BOX),
        (r"\boxed{open gate} all of this was thinking</think>", ParseStatus.NO_BOX),
        (r"\boxed open gate", ParseStatus.NO_BOX),
        (r"\boxed{open gate", ParseStatus.UNBALANCED),
        (r"\boxed{a {b}", ParseStatus.UNBALANCED),
        (r"\boxed{}", ParseStatus.EMPTY),
        (r"\boxed{ }", ParseStatus.EMPTY),
        (r"\boxed{\text{}}", ParseStatus.EMPTY),
        (r"\boxed{go} \boxed{}", ParseStatus.EMPTY),
    ],
)
def test_a_reply_without_an_action_says_why(reply: str, status: ParseStatus) -> None:
    parsed = parse_action(reply)
    assert (parsed.action, parsed.status) == ("", status)
    assert (parsed.span is None) == (status is not ParseStatus.EMPTY)


plain = st.text(alphabet="abc {}<>/\\nt\n", max_size=40)
brackets = st.recursive(
    st.text(alphabet="ab 1", max_size=5),
    lambda inner: st.tuples(inner, inner, inner).map(lambda p: f"{p[0]}{{{p[1]}}}{p[2]}"),
    max_leaves=8,
)


@given(
    st.lists(
        st.sampled_from(["\\boxed{", "\\text{", "{", "}", "<think>", "</think>", "go", " "]),
        max_size=30,
    )
)
def test_any_reply_parses_to_an_action_that_its_span_holds(tokens: list[str]) -> None:
    reply = "".join(tokens)
    parsed = parse_action(reply)
    assert (parsed.action != "") == (parsed.status is ParseStatus.OK)
    if parsed.span is not None:
        start, end = parsed.span
        boxed = reply[start:end]
        assert boxed.startswith("\\boxed{")
        assert boxed.endswith("}")
        assert set(parsed.action) <= set(boxed)


@given(plain, brackets, st.sampled_from(["", " so be it.", "\n"]))
def test_a_box_at_the_end_is_taken_whatever_was_thought(
    thought: str, action: str, rest: str
) -> None:
    thought = thought.replace("</think>", "")
    parsed = parse_action(f"<think>{thought}</think>\\boxed{{{action}}}{rest}")
    assert parsed.action == action.strip()


def test_a_hundred_thousand_open_boxes_are_read_in_one_pass() -> None:
    assert parse_action("\\boxed{" * 100_000).status is ParseStatus.UNBALANCED
