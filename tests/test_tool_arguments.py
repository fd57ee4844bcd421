"""Arguments of tool calls, and what comes of a call."""

from __future__ import annotations

import json

import pytest
from tool_sources import ECHO, JSON, STEPS, TAKEN, one_call, plain, said, started

from synthgym.envs import parse_action

KINDS = {
    "text": "string",
    "whole": "integer",
    "wholes": "array of integer",
    "grid": "array of array of string",
    "prices": "object of number",
    "colour": "red|green|7",
    "maybe": "integer or null",
    "either": "boolean or string",
}


@pytest.mark.parametrize("tool", TAKEN)
def test_a_tool_takes_the_json_of_its_types_and_no_other(tool: str) -> None:
    env = started(ECHO)
    for text in JSON:
        action = f'{{"calls":[{{"name":"{tool}","arguments":{{"value":{text}}}}}]}}'
        observation, reward, terminated, _, info = env.step(action)
        taken = not observation.startswith("Error: ")
        assert taken == (text in TAKEN[tool]), (text, observation)
        assert (reward, terminated, "tool_errors" in info) == (0.0, False, False)
        if not taken:
            assert observation.startswith(f"Error: {tool}: argument 'value' takes ")
            assert KINDS.get(tool, "") in observation


@pytest.mark.parametrize(
    ("tool", "value", "shown"),
    [
        ("whole", "5.0", "int 5"),
        ("whole", "-0.0", "int 0"),
        ("number", "5", "int 5"),
        ("number", "2.50", "float 2.5"),
        ("wholes", "[1, 2.0]", "list [1, 2]"),
        ("text", "2073", "str '2073'"),
        ("colour", "7", "str '7'"),
        ("either", "2", "str '2'"),
        ("either", "true", "bool True"),
        ("anything", "2", "int 2"),
        ("text", '"a\\u00fc\\ud83d\\ude00"', "str 'aü😀'"),
        ("table", '{"a": 1, "a": 2}', "dict {'a': 2}"),
    ],
)
def test_a_tool_is_given_what_its_type_says(tool: str, value: str, shown: str) -> None:
    action = f'{{"calls":[{{"name":"{tool}","arguments":{{"value":{value}}}}}]}}'
    assert said(started(ECHO), action) == shown


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("text", {}, "Error: text: argument 'value' is missing."),
        ("text", {"valu": "a"}, "Error: text: unknown argument 'valu'; it takes value."),
        ("text", {"value": "a", "x": 1}, "Error: text: unknown argument 'x'; it takes value."),
        ("nothing", {"value": "a"}, "Error: nothing: unknown argument 'value'; it takes none."),
        ("maybe", {}, "NoneType None"),
        ("pair", {"left": "a"}, "list ['a', 5]"),
        ("pair", {"left": "a", "right": 6}, "list ['a', 6]"),
        ("pair", {"right": 6}, "Error: pair: argument 'left' is missing."),
        ("text", [], "Error: text: arguments must be an object."),
        ("text", None, "Error: text: arguments must be an object."),
        ("text", "value", "Error: text: arguments must be an object."),
        ("self", {}, "Error: there is no tool 'self'. There are: text, whole, "),
        ("tool_text", {"value": "a"}, "Error: there is no tool 'tool_text'."),
        ("x" * 100, {}, f"Error: there is no tool {'x' * 60!r}."),
        (["text"], {}, "Error: there is no tool \"['text']\"."),
        (None, {}, "Error: there is no tool 'None'."),
        ("__init__", {}, "Error: there is no tool '__init__'."),
        ("schemas", {}, "Error: there is no tool 'schemas'."),
    ],
)
def test_a_wrong_call_is_told_what_is_wrong(name: object, arguments: object, text: str) -> None:
    env = started(ECHO)
    observation, reward, terminated, _, info = env.step(one_call(name, arguments))
    assert observation.startswith(text)
    assert (reward, terminated, info) == (0.0, False, {"done": 0})


EXTRA = {"name": "whole", "arguments": {"value": 1}, "id": 1}


@pytest.mark.parametrize("call", [{}, {"name": "text"}, [], "text", 1, None, EXTRA])
def test_what_is_no_call_is_told_so_and_the_others_are_carried_out(call: object) -> None:
    good = {"name": "whole", "arguments": {"value": 1}}
    observation = said(started(ECHO), json.dumps({"calls": [call, good]}))
    assert observation == '[1] Error: a call is {"name": ..., "arguments": {...}}.\n[2] int 1'


def test_the_listing_tells_all_tools_and_what_they_take() -> None:
    observation, info = plain(ECHO).reset(3)
    lines = observation.splitlines()
    assert lines[:3] == ["Whatever you say comes back.", "", "Tools:"]
    assert "- colour(value: red|green|7): Echo a colour." in lines
    assert "- maybe(value?: integer or null): Echo a whole number or nothing." in lines
    assert "- pair(left: string, right?: integer): Echo two things." in lines
    assert "- anything(value: any): Echo anything." in lines
    assert "- nothing(): Echo silence." in lines
    assert lines[-2:] == ["", "User: Say the word."]
    assert info == {"criteria": ["unmet", "unmet"]}


def test_the_listing_tells_what_the_docstring_says_of_a_parameter() -> None:
    env = plain(
        STEPS.replace(
            '"""Set a thing to a state."""',
            '"""Set.\n\n        Args:\n            what: A thing.\n        """',
        )
    )
    assert (
        "- set(what: string, state: string): Set.\n    what: A thing.\n- break_seal()"
        in env.reset(0)[0]
    )


# --- what tools do ---


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("none", "null"),
        ("dict", '{"b": 1, "a": [true, null, 1.5]}'),
        ("text", "plain ü"),
        ("number", "7"),
        ("space", "(no output)"),
    ],
)
def test_what_a_tool_returns_is_shown_as_text_or_json(kind: str, text: str) -> None:
    env = started(ECHO)
    observation, *_, info = env.step(one_call("gives", {"kind": kind}))
    assert (observation, info) == (text, {"done": 0})
    assert said(env, one_call("nothing", {})) == "(no output)"


@pytest.mark.parametrize(
    ("tool", "kind", "text", "error"),
    [
        ("fails", "tool", "Error: you asked for it", None),
        ("fails", "silent", "Error: ", None),
        ("fails", "other", "Error: fails failed: KeyError.", "fails: KeyError"),
        ("fails", "deep", "Error: fails failed: RecursionError.", "fails: RecursionError"),
        ("gives", "set", "Error: gives failed: TypeError.", "gives: TypeError"),
        ("gives", "keys", "Error: gives failed: TypeError.", "gives: TypeError"),
        ("gives", "cycle", "Error: gives failed: ValueError.", "gives: ValueError"),
    ],
)
def test_only_a_tool_error_is_the_agents_own_fault(
    tool: str, kind: str, text: str, error: str | None
) -> None:
    env = started(ECHO)
    observation, reward, terminated, _, info = env.step(one_call(tool, {"kind": kind}))
    assert (observation, reward, terminated) == (text, 0.0, False)
    assert info.get("tool_errors") == (None if error is None else [error])
    # It is noted for the turn in which it happened, and the episode goes on.
    assert env.step(one_call("whole", {"value": 1}))[4] == {"done": 0}


def test_memory_that_runs_out_is_not_the_tools_to_hide() -> None:
    source = ECHO.replace('raise ToolError("you asked for it")', "raise MemoryError")
    with pytest.raises(MemoryError):
        started(source).step(one_call("fails", {"kind": "tool"}))


def test_an_identifier_of_digits_may_be_written_without_quotation_marks() -> None:
    reply = "<tool_call><function=text><parameter=value>2073</parameter></function></tool_call>"
    assert said(started(ECHO), parse_action(reply, "tools").action) == "str '2073'"
