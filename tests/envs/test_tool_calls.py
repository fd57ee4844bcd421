"""Tool calls in replies, and the canonical JSON that they come to."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.contract import MAX_ACTION_CHARS
from synthgym.envs.actions import (
    TOOL_FORMATS,
    ActionFormat,
    Parsed,
    ParseStatus,
    encode_action,
    encode_answer,
    parse_action,
)
from synthgym.envs.json_reader import MAX_DIGITS, MAX_NESTING
from synthgym.envs.tool_calls import MAX_ARGUMENT_NESTING, MAX_OBJECTS
from synthgym.errors import ConfigError

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
markup = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
        "\\boxed{",
        "{",
        "}",
        "```",
        '"',
        "\\",
    ]
)
nasty = st.lists(markup | st.text(max_size=4), max_size=6).map("".join)
calls = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.text(min_size=1, max_size=12).filter(str.strip),
            "arguments": st.dictionaries(st.text(max_size=6), json_values | nasty, max_size=4),
        }
    ),
    min_size=1,
    max_size=3,
)


def canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@given(calls)
def test_parsing_an_encoded_action_gives_it_back(made: list[dict[str, Any]]) -> None:
    action = encode_action(calls=made)
    assert action == canonical({"calls": made})
    assert parse_action(action, TOOL_FORMATS) == Parsed(
        action, ParseStatus.OK, (0, len(action)), ActionFormat.TOOL
    )
    fenced = parse_action(f"<think>a</think>\n{action}\n<|im_end|>", TOOL_FORMATS)
    assert (fenced.action, fenced.status) == (action, ParseStatus.OK)


@given(nasty.filter(str.strip))
def test_parsing_an_encoded_answer_gives_it_back(text: str) -> None:
    action = encode_answer(text)
    assert action == canonical({"answer": text})
    assert parse_action(action, TOOL_FORMATS).action == action


def without_tags(value: object) -> bool:
    return not re.search(r"</?(think|thinking|thought|reasoning)>", canonical(value), re.IGNORECASE)


@given(calls.filter(without_tags))
def test_every_way_to_write_calls_comes_to_the_same_action(made: list[dict[str, Any]]) -> None:
    action = encode_action(calls=made)
    dumped = [json.dumps(call) for call in made]
    as_text = [json.dumps(c | {"arguments": json.dumps(c["arguments"])}) for c in made]
    openai = [
        {"id": f"call_{i}", "type": "function", "function": json.loads(text)}
        for i, text in enumerate(as_text)
    ]
    for reply in (
        "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in dumped),
        "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in as_text),
        json.dumps({"calls": made}, indent=2),
        json.dumps({"role": "assistant", "content": None, "tool_calls": openai}),
        json.dumps(openai, indent=1),
    ):
        parsed = parse_action(reply, TOOL_FORMATS)
        assert (parsed.action, parsed.status) == (action, ParseStatus.OK), reply
        fenced = parse_action(f"So:\n```json\n{reply}\n```", TOOL_FORMATS)
        assert (fenced.action, fenced.status) == (action, ParseStatus.OK), reply


names = st.from_regex(r"[a-z_]{1,8}", fullmatch=True)


@given(names, st.dictionaries(names, json_values, max_size=4).filter(lambda d: "<" not in str(d)))
def test_parameters_that_are_json_come_to_the_same_values(
    name: str, arguments: dict[str, Any]
) -> None:
    parameters = "".join(
        f"<parameter={key}>\n{json.dumps(value)}\n</parameter>\n"
        for key, value in arguments.items()
    )
    reply = f"<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>"
    assert parse_action(reply, TOOL_FORMATS).action == encode_action(
        [{"name": name, "arguments": arguments}]
    )


@given(st.lists(st.sampled_from(["good", "bad"]), min_size=1, max_size=5), st.booleans())
def test_one_bad_call_spoils_all_of_them(kinds: list[str], tagged: bool) -> None:
    texts = {"good": '{"name": "a", "arguments": {}}', "bad": '{"name": "a", "arguments": []}'}
    wrap = "<tool_call>{}</tool_call>" if tagged else "{}"
    parsed = parse_action(" ".join(wrap.format(texts[kind]) for kind in kinds), TOOL_FORMATS)
    if "bad" in kinds:
        assert (parsed.action, parsed.status) == ("", ParseStatus.MALFORMED_CALL)
    else:
        assert len(json.loads(parsed.action)["calls"]) == len(kinds)


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_calls_are_bounded_whatever_the_interpreter_bounds() -> None:
    deep = MAX_ARGUMENT_NESTING
    assert encode_action([{"name": "f", "arguments": nested(deep)}])
    for arguments in (nested(deep + 1), nested(MAX_NESTING + 1), nested(5000)):
        with pytest.raises(ConfigError):
            encode_action([{"name": "f", "arguments": arguments}])
    for levels in (deep + 1, MAX_NESTING + 1, 5000, 200_000):
        text = '{"a":' * levels + "1" + "}" * levels
        reply = f'<tool_call>{{"name": "f", "arguments": {text}}}</tool_call>'
        assert parse_action(reply, TOOL_FORMATS).status is ParseStatus.MALFORMED_CALL
    for digits, status in (
        (MAX_DIGITS, ParseStatus.OK),
        (MAX_DIGITS + 1, ParseStatus.MALFORMED_CALL),
    ):
        reply = f'{{"name": "f", "arguments": {{"n": {"1" * digits}}}}}'
        assert parse_action(reply, TOOL_FORMATS).status is status
    data = '{"x": 1} ' * MAX_OBJECTS
    assert parse_action(data + "<answer>1</answer>", TOOL_FORMATS).status is ParseStatus.OK
    assert parse_action(data + '{"x": 1}', TOOL_FORMATS).status is ParseStatus.MALFORMED_CALL


def test_an_action_that_would_be_cut_is_refused() -> None:
    room = MAX_ACTION_CHARS - len(encode_action([{"name": "f", "arguments": {"t": ""}}]))
    for length, status in ((room, ParseStatus.OK), (room + 1, ParseStatus.TOO_LONG)):
        text = json.dumps({"name": "f", "arguments": {"t": "x" * length}})
        assert parse_action(text, TOOL_FORMATS).status is status
    with pytest.raises(ConfigError, match="at most 4096"):
        encode_action([{"name": "f", "arguments": {"t": "x" * (room + 1)}}])


@pytest.mark.parametrize(
    "bad",
    [
        [],
        [{}],
        [{"name": "f"}],
        [{"name": "", "arguments": {}}],
        [{"name": "f", "arguments": []}],
        [{"name": "f", "arguments": "{}"}],
        [{"name": "f", "arguments": {}, "id": "call_1"}],
        [{"name": "f", "arguments": {"x": float("nan")}}],
        [{"name": "f", "arguments": {"x": {1, 2}}}],
        [{"name": "f", "arguments": {1: "a", "1": "b"}}],
        [{"name": "f", "arguments": {"x": 10**5000}}],
        [7],
    ],
)
def test_calls_that_no_reply_could_make_are_not_encoded(bad: Any) -> None:
    with pytest.raises(ConfigError, match="expected calls"):
        encode_action(calls=bad)
