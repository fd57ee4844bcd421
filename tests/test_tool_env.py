"""`ToolEnv`: instructions, answers and rewards, and whatever text comes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_sources import ECHO, MALFORMED, MINIMAL, STEPS, TAKEN, one_call, plain, said, started

from synthgym.contract import ToolEnv, ToolError
from synthgym.envs.tool_calls import MAX_ARGUMENT_NESTING, encode_action, encode_answer

SEEDS = (0, 1, 2**63 - 1)


def tiny(setup: str) -> Any:
    return plain(MINIMAL.replace("{setup}", setup))


# --- several calls ---


def test_several_calls_are_carried_out_in_order_and_numbered() -> None:
    env = started(STEPS)
    calls = [
        {"name": "set", "arguments": {"what": "cat", "state": "in"}},
        {"name": "set", "arguments": {"what": "door", "state": "open"}},
        {"name": "set", "arguments": {"what": "lamp", "state": "dim"}},
    ]
    observation, reward, terminated, _, info = env.step(encode_action(calls))
    assert observation == (
        "[1] Error: there is no cat\n"
        "[2] The door is open.\n\nUser: Light the lamp.\n"
        "[3] The lamp is dim."
    )
    assert (reward, terminated, info) == (1 / 6, False, {"done": 1})


def test_a_turn_has_room_for_ten_calls() -> None:
    env = started(MINIMAL.replace("{setup}", 'self.instruct("Count.", lambda: self.count == 25)'))
    action = encode_action([{"name": "add", "arguments": {}}] * 25)
    observation = said(env, action)
    assert env.count == 10
    assert observation.splitlines()[-2:] == [
        "[10] 10",
        "[11] Error: one turn has room for 10 calls.",
    ]
    env.step(action)
    env.calls_allowed = 5
    assert env.step(action)[2] is True


def test_calls_behind_the_last_instruction_are_not_carried_out() -> None:
    env = started(MINIMAL.replace("{setup}", 'self.instruct("Count.", lambda: self.count == 2)'))
    observation, reward, terminated, *_ = env.step(
        encode_action([{"name": "add", "arguments": {}}] * 3)
    )
    assert (env.count, reward, terminated) == (2, 1.0, True)
    assert observation == "[1] 1\n[2] 2\n\nThe user has no further wishes."


# --- instructions and answers ---


def test_instructions_come_one_after_another_and_pay_the_same() -> None:
    env = plain(STEPS)
    observation, info = env.reset(5)
    assert observation.startswith("Room 5.\n\nTools:\n")
    assert observation.endswith("\n\nUser: Open the door.")
    assert info == {"criteria": ["unmet", "unmet", "answer", "unmet", "answer", "answer"]}
    steps = [env.step(action) for action in env.solution()]
    assert [step[1] for step in steps] == pytest.approx([1 / 6] * 6)
    assert sum(step[1] for step in steps) == 1.0
    assert [step[2] for step in steps] == [False] * 5 + [True]
    assert [step[4] for step in steps] == [{"done": number} for number in range(1, 7)]
    assert [step[0].rpartition("\n")[2] for step in steps] == [
        "User: Light the lamp.",
        "User: What is a quarter of 4,938?",
        "User: Break the seal.",
        "User: Which colour has it?",
        "User: How many doors?",
        "The user has no further wishes.",
    ]


def test_what_is_done_before_it_is_asked_for_is_passed_over() -> None:
    env = started(STEPS)
    env.step(env.call("set", what="lamp", state="on"))
    env.step(env.call("break_seal"))
    observation, reward, *_ = env.step(env.call("set", what="door", state="open"))
    assert observation.endswith("User: What is a quarter of 4,938?")
    assert reward == pytest.approx(2 / 6)
    # Also when it was an answer that came before.
    observation, reward, *_ = env.step(env.answer(1234.5))
    assert observation == "That is right.\n\nUser: Which colour has it?"
    assert reward == pytest.approx(2 / 6)


def asked(answer: object) -> Any:
    env = tiny(f'self.instruct("What?", answer={answer!r})')
    env.answers_allowed = 1000
    env.reset(0)
    return env


@pytest.mark.parametrize(
    ("expected", "right", "wrong"),
    [
        (7, ["7", "7.0", " 7 ", "$7", "7.009", "07", "7e0", "0,7"], ["8", "7.02", "-7", "7 7", "seven", ""]),
        (1234.5, ["1234.5", "1,234.50", "$1,234.5", "1234.509", "$ 1,234.5"], ["1234.6", "1.234,5", "nan"]),
        ("Deep Red", ["deep red", "  DEEP\tRED\n"], ["deepred", "deep  reds", "red", ""]),
        ("0042", ["0042", "42"], ["0043", "24"]),
        ("T-17", ["t-17", "T-17"], ["T17", "T-18", "17"]),
        ("1e400", ["1e400"], ["1e401", "infinite"]),
        ("nan", ["nan", "NaN"], ["0"]),
        (True, ["true", "True"], ["1", "false"]),
        (0, ["0", "0.0", "-0"], ["1", "false"]),
        ("\u0130stanbul", ["\u0130STANBUL"], ["Izmir"]),
    ],
)  # fmt: skip
def test_an_answer_is_right_when_it_says_the_same(
    expected: object, right: list[str], wrong: list[str]
) -> None:
    for text in wrong:
        observation, reward, terminated, *_ = asked(expected).step(encode_answer(text))
        assert observation.startswith("That is wrong."), text
        assert (reward, terminated) == (0.0, False)
    for text in right:
        observation, reward, terminated, *_ = asked(expected).step(encode_answer(text))
        assert observation.startswith("That is right."), text
        assert (reward, terminated) == (1.0, True)


@pytest.mark.parametrize("given", ["7", "7.0", '"7"', "7.00"])
def test_an_answer_may_be_a_number(given: str) -> None:
    assert asked(7).step(f'{{"answer": {given}}}')[2] is True


def test_wrong_answers_run_out_and_the_episode_is_lost() -> None:
    env = tiny('self.instruct("What?", answer=3)')
    env.reset(0)
    assert said(env, encode_answer("1")) == "That is wrong. Answers left: 2."
    assert said(env, env.call("add")) == "1"
    assert said(env, encode_answer("1")) == "That is wrong. Answers left: 1."
    assert env.step(encode_answer("1")) == (
        "That is wrong, and it was the last answer allowed.", 0.0, True, False, {"done": 0},
    )  # fmt: skip
    for action in (encode_answer("3"), env.call("add"), ""):
        assert env.step(action) == ("The episode is over.", 0.0, True, False, {"done": 0})
    assert env.count == 1


def test_an_answer_where_none_is_asked_for_costs_nothing() -> None:
    env = started(STEPS)
    for _ in range(10):
        observation, reward, terminated, *_ = env.step(encode_answer("open"))
        assert observation.startswith("That instruction asks for a change")
        assert (reward, terminated) == (0.0, False)
    assert sum(env.step(action)[1] for action in env.solution()) == 1.0


def test_after_the_win_nothing_more_is_done() -> None:
    env = started(STEPS)
    for action in env.solution():
        env.step(action)
    for action in (env.call("set", what="door", state="shut"), env.answer(1), ""):
        assert env.step(action) == ("The episode is over.", 0.0, True, False, {"done": 6})
    assert env.door == "open"


def test_every_reset_starts_afresh() -> None:
    env = started(STEPS)
    env.step(env.call("set", what="door", state="open"))
    env.step(encode_answer("wrong"))
    assert sum(env.step(action)[1] for action in (env.reset(1), env.solution())[1]) == 1.0


@pytest.mark.parametrize(
    ("setup", "said"),
    [
        ("pass", "at least once"),
        ('self.instruct("A.")', "a criterion or an answer"),
        ('self.instruct("A.", lambda: False, 3)', "a criterion or an answer"),
        ('self.instruct("A.", lambda: False, answer="")', "a criterion or an answer"),
        ('self.instruct("A.", self.count > 0)', "lambda: ..."),
        ('self.instruct("", lambda: False)', "as text"),
        ("self.instruct(3, lambda: False)", "as text"),
        ('self.instruct("A.", answer="")', "not empty"),
        ('self.instruct("A.", answer=" $ ")', "not empty"),
        ('self.instruct("A.", answer=[1, 2])', "a text or a number"),
        ('self.instruct("A.", answer={})', "a text or a number"),
    ],
)
def test_instructions_that_cannot_be_are_refused_with_a_reason(setup: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        tiny(setup).reset(0)


def test_the_situation_must_be_text() -> None:
    source = MINIMAL.replace("{setup}", 'self.instruct("A.", lambda: False)')
    with pytest.raises(TypeError, match="as text"):
        plain(source.replace('return "tiny"', "return None")).reset(0)
    assert (
        plain(source.replace('return "tiny"', 'return ""')).reset(0)[0].startswith("Tools:\n- add")
    )


@pytest.mark.parametrize(
    ("criterion", "state"),
    [
        ("lambda: self.count == 0", "met"),
        ("lambda: [0]", "met"),
        ("lambda: []", "unmet"),
        ("lambda: None", "unmet"),
        ("lambda: {}[self.count]", "raised KeyError"),
        ("lambda: 1 / self.count", "raised ZeroDivisionError"),
        ("lambda count: False", "raised TypeError"),
    ],
)
def test_reset_tells_how_each_criterion_stands(criterion: str, state: str) -> None:
    env = tiny(
        f'self.instruct("A.", lambda: self.count > 99)\n        self.instruct("B.", {criterion})'
    )
    assert env.reset(0)[1] == {"criteria": ["unmet", state]}


def test_a_criterion_that_raises_is_noted_and_not_met() -> None:
    env = tiny('self.instruct("A.", lambda: {2: True}[self.count])')
    env.reset(0)
    observation, reward, terminated, _, info = env.step(env.call("add"))
    assert (observation, reward, terminated) == ("1", 0.0, False)
    assert info == {"done": 0, "criterion_errors": ["1: raised KeyError"]}
    assert env.step(env.call("add")) == (
        "2\n\nThe user has no further wishes.", 1.0, True, False, {"done": 1},
    )  # fmt: skip


def test_names_of_a_subclass_do_not_get_in_the_way() -> None:
    names = [
        "_done",
        "_paid",
        "_over",
        "_instructions",
        "_schemas",
        "_state",
        "_reply",
        "_run",
        "_calls",
        "_answer",
        "_notes",
    ]
    setup = "\n        ".join([f"self.{name} = 3" for name in names])
    env = tiny(setup + '\n        self.instruct("A.", lambda: self.count == 2)')
    env.reset(0)
    assert [env.step(action)[1] for action in env.solution()] == [0.0, 1.0]


def test_a_tool_may_have_parameters_called_like_those_of_call() -> None:
    env = tiny('self.instruct("A.", lambda: False)')
    assert json.loads(env.call("add", name="x", self=1)) == {
        "calls": [{"name": "add", "arguments": {"name": "x", "self": 1}}]
    }


def test_the_helpers_write_actions_as_parsing_writes_them() -> None:
    env = plain(STEPS)
    arguments = {"b": [1, 2.5, None, True], "a": {"ü": "\n"}}
    assert env.call("set", **arguments) == encode_action([{"name": "set", "arguments": arguments}])
    assert env.answer("ü") == encode_answer("ü")
    assert env.answer(5) == encode_answer("5")
    with pytest.raises(ValueError, match="JSON compliant"):
        env.call("set", a=float("nan"))


def test_the_base_can_be_imported_by_an_author() -> None:
    assert issubclass(ToolError, Exception)
    assert ToolEnv.max_turns == 20
    env = ToolEnv()
    with pytest.raises(NotImplementedError):
        env.reset(0)


# --- malformed actions ---


@pytest.mark.parametrize("action", MALFORMED)
def test_an_action_that_is_none_is_told_how_to_write_one(action: str) -> None:
    env = tiny('self.instruct("A.", lambda: self.count > 0)')
    env.reset(0)
    observation, reward, terminated, _, info = env.step(action)
    assert observation == (
        'That is neither a tool call nor an answer. Call a tool as {"name": ..., "arguments": {...}}, '
        'or answer as {"answer": ...}. Tools: add.'
    )
    assert (reward, terminated, info, env.count) == (0.0, False, {"done": 0}, 0)


def test_a_call_may_be_written_as_the_message_says() -> None:
    env = tiny('self.instruct("A.", lambda: self.count > 1)')
    env.reset(0)
    assert said(env, '{"name": "add", "arguments": {}}') == "1"


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def test_json_is_nested_as_deeply_as_a_reply_may_be_and_no_deeper() -> None:
    env = started(ECHO)
    deepest = encode_action(
        [{"name": "anything", "arguments": {"value": nested(MAX_ARGUMENT_NESTING - 1)}}]
    )
    assert said(env, deepest).startswith("dict {'a':")
    for levels in (60, 400, 900):
        assert said(env, one_call("anything", {"value": nested(levels)})).startswith(
            "That is neither"
        )
        assert said(env, one_call(nested(levels), {})).startswith("That is neither")
    wide = one_call("anything", {"value": [[], {}] * 100})
    assert said(env, wide).startswith("list [[], {}")


# --- any action ---


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
tools = st.sampled_from([*TAKEN, "pair", "nothing", "gives", "fails", "nope", ""])
calls = st.fixed_dictionaries(
    {
        "name": tools | json_values,
        "arguments": st.dictionaries(
            st.sampled_from(["value", "left", "kind", "x"]), json_values, max_size=2
        )
        | json_values,
    }
)
requests = st.one_of(
    json_values,
    st.fixed_dictionaries({"calls": st.lists(calls | json_values, max_size=4)}),
    st.fixed_dictionaries({"answer": json_values}),
)


def check_step(step: Any) -> None:
    observation, reward, terminated, truncated, info = step
    assert observation.strip()
    assert (reward, terminated, truncated, info["done"]) == (0.0, False, False, 0)
    json.dumps(info)


@given(
    st.text(max_size=200)
    | st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape"))
)
def test_no_text_raises_and_none_is_paid(action: str) -> None:
    check_step(started(ECHO).step(action))


@given(requests)
def test_no_json_raises_and_none_is_paid(request: Any) -> None:
    check_step(started(ECHO).step(json.dumps(request)))


@given(st.lists(st.sampled_from(range(8)), max_size=14), st.sampled_from(SEEDS))
def test_rewards_lie_within_the_contract_whatever_the_order(numbers: list[int], seed: int) -> None:
    env = plain(STEPS)
    env.reset(seed)
    actions = [*env.solution(), env.answer("wrong"), env.call("set", what="door", state="shut")]
    paid, over = 0.0, False
    for number in numbers:
        _, reward, terminated, truncated, info = env.step(actions[number])
        paid += reward
        assert reward >= 0.0
        assert not (over and reward)
        assert truncated is False
        assert paid == pytest.approx(info["done"] / 6)
        over = over or terminated
        assert (paid >= 1.0) == (info["done"] == 6)
        assert terminated or info["done"] < 6
