from __future__ import annotations

import json
import re
import time
import timeit
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.envs.actions import (
    GAME_FORMATS,
    TOOL_FORMATS,
    ActionFormat,
    Parsed,
    ParseStatus,
    parse_action,
)
from synthgym.errors import ConfigError

GOLDEN = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data" / "actions" / "golden.jsonl")
    .read_text("utf-8")
    .splitlines()
]


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


# --- golden table ---


@pytest.mark.parametrize("case", GOLDEN, ids=range(len(GOLDEN)))
def test_a_reply_of_the_golden_table_comes_to_what_a_person_reads(case: dict[str, Any]) -> None:
    reply = case["reply"]
    parsed = parse_action(reply, case["formats"])
    span = None if parsed.span is None else reply[slice(*parsed.span)]
    assert (parsed.action, parsed.status, span) == (case["action"], case["status"], case["span"])


def test_the_golden_table_is_large_and_has_every_status_and_format() -> None:
    assert len(GOLDEN) >= 200
    assert len({(case["reply"], str(case["formats"])) for case in GOLDEN}) == len(GOLDEN)
    assert {case["status"] for case in GOLDEN} == set(ParseStatus)
    found = Counter(parse_action(case["reply"], case["formats"]).format for case in GOLDEN)
    assert min(found[each] for each in ActionFormat) >= 10


# --- formats ---


def test_formats_may_be_given_by_name() -> None:
    boxed = r"\boxed{go}"
    assert parse_action(boxed) == parse_action(boxed, "game") == parse_action(boxed, GAME_FORMATS)
    assert parse_action(boxed, "tools") == parse_action(boxed, TOOL_FORMATS)
    assert parse_action(boxed, ["boxed", "raw"]) == parse_action(boxed, "boxed")
    for each in ActionFormat:
        assert (
            parse_action("go", each) == parse_action("go", str(each)) == parse_action("go", [each])
        )


@pytest.mark.parametrize(
    ("formats", "said"),
    [
        ("boxd", "did you mean 'boxed'"),
        ("tool_s", "did you mean 'tools'"),
        (["boxed", "answr"], "did you mean 'answer'"),
        ("", "boxed, answer, fenced, tool, raw, game, tools"),
        ([], "at least one"),
        ([None], "got None"),
        (["game"], "fenced, tool, raw, got 'game'"),
    ],
)
def test_an_unknown_format_is_refused(formats: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        parse_action("go", formats)


def test_the_format_that_was_found_is_named() -> None:
    boxed, tool = ActionFormat.BOXED, ActionFormat.TOOL
    assert parse_action(r"\boxed{a}").format is boxed
    assert parse_action("a", ["boxed", "raw"]).format is ActionFormat.RAW
    assert parse_action(r"\boxed{", [tool, boxed]).format is tool
    assert parse_action("a", [tool, boxed]) == Parsed("", ParseStatus.NO_ACTION, None, None)


# --- any text ---

tokens = st.sampled_from(
    [
        *(
            "\\boxed{",
            "\\fbox {",
            "\\text{",
            "\\{",
            "{",
            "}",
            "$",
            "\\(",
            "\\)",
            "\\",
            " ",
            "\n",
            "go",
        ),
        *(
            "<think>",
            "</think>",
            "<thinking>",
            "</THOUGHT>",
            "<answer>",
            "</answer>",
            "```",
            "````",
            "`",
        ),
        *(
            "<tool_call>",
            "</tool_call>",
            "<function=f>",
            "</function>",
            "<parameter=x>",
            "</parameter>",
        ),
        *(
            '{"name": "f", "arguments": {}}',
            '{"name":',
            '"arguments":',
            '{"x": 1}',
            "[",
            "]",
            ",",
            '"',
            "NaN",
        ),
        *("<|im_end|>", "</s>", "\ud800", "\x00", "\u2028", "世"),
    ]
)
replies = st.lists(tokens, max_size=25).map("".join) | st.text(max_size=40)
OPENINGS = {
    ActionFormat.BOXED: ("\\boxed", "\\fbox"),
    ActionFormat.ANSWER: ("<answer>",),
    ActionFormat.FENCED: ("```",),
    ActionFormat.TOOL: ("<", "{", "[", "\\"),
}


@given(replies, st.lists(st.sampled_from(ActionFormat), min_size=1, max_size=3))
def test_any_text_parses_to_an_action_whose_form_the_span_holds(
    reply: str, formats: list[ActionFormat]
) -> None:
    parsed = parse_action(reply, formats)
    assert (parsed.action != "") == (parsed.status is ParseStatus.OK)
    assert parsed.format in {None, *formats}
    nothing = parsed.status in (ParseStatus.NO_BOX, ParseStatus.NO_ACTION)
    assert (parsed.format is None) == nothing
    if parsed.span is None:
        assert parsed.status is not ParseStatus.OK
        return
    start, end = parsed.span
    assert 0 <= start < end <= len(reply)
    assert parsed.format is not None
    assert reply.startswith(OPENINGS.get(parsed.format, ""), start)
    if parsed.format is not ActionFormat.TOOL:
        assert set(parsed.action) <= set(reply[start:end])
    elif parsed.status is ParseStatus.OK:
        action = json.loads(parsed.action)
        assert parsed.action == json.dumps(
            action, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        )
        assert action.keys() in ({"calls"}, {"answer"})
        # What the span holds says the same on its own.
        assert parse_action(reply[start:end], TOOL_FORMATS).action == parsed.action


@given(st.text(alphabet="ab {}<>\\`\n", max_size=20), replies, st.sampled_from(ActionFormat))
def test_thinking_in_front_never_changes_the_action(
    thought: str, reply: str, wanted: ActionFormat
) -> None:
    alone = parse_action(reply, wanted)
    for opening, closing in (("<think>", "</think>"), ("<REASONING>\n", "\n</reasoning>\n\n")):
        front = f"{opening}{thought}{closing}"
        behind = parse_action(front + reply, wanted)
        assert (behind.action, behind.status) == (alone.action, alone.status)
        if alone.span is not None:
            assert behind.span == (alone.span[0] + len(front), alone.span[1] + len(front))


commands = st.text(alphabet="ab 1.,-_<>!世é", min_size=1, max_size=12).map(str.strip).filter(bool)


@given(
    commands,
    st.sampled_from(["", "I choose ", "{ ", "```\n"]),
    st.sampled_from(["", " .", "<|im_end|>\n"]),
)
def test_wrapping_an_action_gives_it_back(command: str, before: str, after: str) -> None:
    for form in (r"\boxed{%s}", r"\fbox{%s}", r"\boxed {\text{%s}}", r"$\boxed{$%s$}$"):
        once = parse_action(before + form % command + after).action
        assert once == command
        assert parse_action(form % once).action == once
    assert parse_action(f"{before}<answer>{command}</answer>{after}", "answer").action == command
    if after != " .":
        assert parse_action(f"```\n{command}\n```{after}", "fenced").action == command
        assert parse_action(f"\n{command}{after}", "raw").action == command


# --- time ---

UNITS = [
    *(
        "{",
        "}",
        "[",
        "\\boxed{",
        "\\text{",
        "\\boxed{x}",
        "\\(",
        "\\_",
        "$",
        "\\",
        " ",
        "\n",
        '"',
        '{"',
        '{"\\"',
    ),
    *("<think>", "</think>", "<answer>", "</answer>", "```", "```\n", "```a", "<|im_end|>"),
    *("<tool_call>", "<tool_call>{", "<function=", "<function=a>", "<parameter=x>", "</parameter>"),
    *(
        '{"a":',
        '{"a":[',
        '{"a":x',
        '{"a":1}',
        '{"name":',
        '{"name":x',
        '[{"a":',
        "[{",
        "{ ",
        "{'name':",
    ),
    *(
        '{"name":"a","arguments":{}}',
        '<tool_call>{"name":"a","arguments":{}}</tool_call>',
        "<function=a></function>",
    ),
    '{"a":x' * 200 + "<function=a></function>",
]


@pytest.mark.parametrize("unit", UNITS)
def test_time_grows_with_length_and_not_with_its_square(unit: str) -> None:
    def seconds(length: int, frame: tuple[str, str]) -> float:
        reply = frame[0] + unit * (length // len(unit)) + frame[1]
        runs = timeit.repeat(
            lambda: [parse_action(reply, each) for each in ActionFormat],
            number=1,
            repeat=2,
            timer=time.process_time,
        )
        return min(runs)

    for frame in (("", ""), ("\\boxed{", "}"), ('<tool_call>{"name":"f","arguments":{"x":"', "")):
        small, large = seconds(8_000, frame), seconds(128_000, frame)
        # Sixteen times the length: squares would be 256 times the time, and the rest is for the machine.
        assert large < 80 * max(small, 0.0005), frame
