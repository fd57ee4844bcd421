"""The gate for tools: schemas, criteria, calls at random, and what tools and criteria raise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_sources import ECHO, LOCKER, plain

from synthgym.contract import SPADE_TOOLS_BASE, TOOLS_BASE
from synthgym.envs import TOOL_FORMATS, parse_action
from synthgym.envs.tool_calls import encode_action
from synthgym.sandbox import Pool
from synthgym.validation import Reason, Report, Severity, Verdict, validate
from synthgym.validation.tool_checks import (
    FIRST_EPISODES,
    RANDOM_EPISODES,
    random_calls,
    schema_problem,
)

DATA = Path(__file__).parents[1] / "data"

SHOUT = '''
    def tool_shout(self, text: {type}) -> str:
        """Shout."""
        {body}
        return "The room echoes."

    def hint('''


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=20) as pool:
        yield pool


def changed(old: str, new: str, source: str = LOCKER) -> str:
    assert source.count(old) == 1, old
    return source.replace(old, new)


def shouting(body: str, kind: str = "str") -> str:
    return changed("\n    def hint(", SHOUT.replace("{type}", kind).replace("{body}", body))


def told(report: Report) -> list[str]:
    return [str(finding) for finding in report.findings]


def test_a_good_environment_passes_and_the_report_tells_of_the_calls(pool: Pool) -> None:
    report = validate(LOCKER, pool=pool)
    assert report.findings == (), told(report)
    assert report.ok
    assert report.record is not None
    assert (report.record.base, report.record.action_format) == (TOOLS_BASE, "tools")
    assert report.wins["calling"] == (0, FIRST_EPISODES)
    assert report.gates["tools"] is Verdict.PASSED


def test_an_environment_without_tools_is_none_of_its_business(pool: Pool) -> None:
    report = validate((DATA / "good_envs" / "locker.py").read_text(), pool=pool)
    assert report.ok
    assert "calling" not in report.wins


def test_the_same_source_gives_the_same_report(pool: Pool) -> None:
    source = shouting("int(text)")
    with Pool(max_workers=1, hash_seed=77) as other:
        reports = [validate(source, pool=each).to_json() for each in (pool, other, pool)]
    assert reports[0] == reports[1] == reports[2]


# --- what tools raise ---


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        ("int(text)", "str", "ValueError"),
        ("text[0]", "str", "IndexError"),
        ("assert len(text) < 150", "str", "AssertionError"),
        ("int(text) if text.isdigit() else 0", "str", "ValueError"),
        ("text.format()", "str", "IndexError"),
        ("10 // text", "int", "ZeroDivisionError"),
        ("[0] * 5 [text] if False else [1, 2, 3][text]", "int", "IndexError"),
        ("10 / text", "float", "ZeroDivisionError"),
        ("text[0]", "list[int]", "IndexError"),
        ("text.upper()", "Optional[str]", "AttributeError"),
        ("text['key']", "dict[str, int]", "KeyError"),
        ("return {1}", "bool", "TypeError"),
        ("self.tool_shout(text)", "str", "RecursionError"),
    ],
)
def test_a_tool_that_raises_on_what_its_schema_allows_is_found(
    body: str, kind: str, error: str, pool: Pool
) -> None:
    report = validate(shouting(body, kind), pool=pool)
    assert report.reasons == {Reason.TOOL_RAISED}, told(report)
    (finding,) = report.findings
    assert f"shout: {error}" in finding.detail
    assert len(finding.actions) == 1
    assert "shout" in finding.actions[0]
    assert finding.seen == f"Error: shout failed: {error}."
    assert report.gates["tools"] is Verdict.FAILED


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ('raise ToolError("not now")', "str"),
        ("text.upper(), text[:1], int(text) if text.isdecimal() and text.isascii() else 0", "str"),
        ("return text / 3", "float"),
        ("return {key: value for key, value in text.items()}", "dict[str, int]"),
        ("return [text, None]", "int | None"),
        ("return ''", "bool"),
    ],
)
def test_a_tool_that_takes_what_its_schema_allows_passes(body: str, kind: str, pool: Pool) -> None:
    report = validate(shouting(body, kind), pool=pool)
    assert report.findings == (), told(report)


def test_an_info_of_ones_own_says_what_it_says(pool: Pool) -> None:
    own = """    def step(self, action):
        *step, info = super().step(action)
        return (*step, info | {"tool_errors": ["shown"]})

    def hint("""
    report = validate(changed("    def hint(", own), pool=pool)
    assert report.reasons == {Reason.TOOL_RAISED}, told(report)


def test_a_tool_that_raises_for_the_witness_alone_is_found(pool: Pool) -> None:
    source = changed('return "The locker opens." if', 'return {}["x"] if')
    report = validate(source, pool=pool)
    assert report.reasons == {Reason.TOOL_RAISED}, told(report)
    assert report.findings[0].detail == "turn 3: ['open_locker: KeyError']"


# --- criteria ---


@pytest.mark.parametrize(
    ("criterion", "reason"),
    [
        ("lambda: True", Reason.CRITERION_MET_AT_RESET),
        ("lambda: not self.is_open", Reason.CRITERION_MET_AT_RESET),
        ("lambda: self.left > 12", Reason.CRITERION_MET_AT_RESET),
        ("lambda: self.__dict__['found']", Reason.CRITERION_RAISED),
("lambda: {True: 1}[self.has_key]", Reason.CRITERION_RAISED),
    ],
)  # fmt: skip
def test_a_criterion_is_open_at_reset_and_can_be_told(
    criterion: str, reason: Reason, pool: Pool
) -> None:
    source = changed("lambda: self.has_key)", f"{criterion})")
    source = changed(
        "        self.has_key = True\n", "        self.has_key = self.found = True\n", source
    )
    report = validate(source, pool=pool)
    assert report.reasons == {reason}, told(report)
    assert report.findings[0].detail.startswith("instruction 1: ")
    assert report.findings[0].seen.startswith("A locker room.")


def test_a_criterion_that_raises_on_the_way_is_found(pool: Pool) -> None:
    source = changed(
        "lambda: self.is_open)", "lambda: [False, True][self.is_open + 5 * self.is_lost])"
    )
    source = changed(
        "self.has_key = self.is_open = False",
        "self.has_key = self.is_open = self.is_lost = False",
        source,
    )
    source = changed(
        '            raise ToolError("you have no key")\n',
        "            self.is_lost = True\n",
        source,
    )
    report = validate(source, pool=pool)
    assert report.reasons == {Reason.CRITERION_RAISED}, told(report)
    assert "2: raised IndexError" in report.findings[0].detail
    assert any("open_locker" in action for action in report.findings[0].actions)


@pytest.mark.parametrize("info", ["{}", "{'criteria': 3}"])
def test_a_reset_of_ones_own_must_tell_how_the_criteria_stand(info: str, pool: Pool) -> None:
    own = f"    def reset(self, seed):\n        return super().reset(seed)[0], {info}\n\n    def hint("
    report = validate(changed("    def hint(", own), pool=pool)
    assert report.reasons == {Reason.CRITERION_RAISED}, told(report)


@pytest.mark.parametrize(
    ("old", "new", "open_number"),
    [
        ('            self.call("take_key"),\n', "", 1),
        ("number=self.left + self.right", "number=1", 2),
        ("lambda: self.is_open)", "lambda: self.is_open and not self.has_key)", 2),
    ],
)
def test_a_witness_that_leaves_an_instruction_open_is_told_which(
    old: str, new: str, open_number: int, pool: Pool
) -> None:
    report = validate(changed(old, new), pool=pool)
    assert report.reasons == {Reason.CRITERION_UNREACHED}, told(report)
    assert report.findings[0].detail.startswith(f"instruction {open_number} stays open")


def test_a_witness_that_answers_wrongly_does_not_win(pool: Pool) -> None:
    source = changed("lambda: self.is_open)", "answer=self.left + self.right)")
    source = changed(
        'self.call("open_locker", number=self.left + self.right)', "self.answer(7)", source
    )
    assert validate(source, pool=pool).reasons == {Reason.SOLUTION_DOES_NOT_WIN}


# --- luck ---


def test_calls_at_random_may_not_win(pool: Pool) -> None:
    source = changed(
        "self.is_open = number == self.left + self.right",
        "self.is_open = number in (self.left, self.right, 0, 1, 2, 5, 10)",
    )
    source = changed("number=self.left + self.right", "number=self.left", source)
    report = validate(source, pool=pool)
    assert report.reasons == {Reason.RANDOM_AGENT_WINS}, told(report)
    won, played = report.wins["calling"]
    assert played == RANDOM_EPISODES
    assert report.findings[0].detail == f"calls at random won {won} of {played} episodes"


# --- schemas ---


def tool(parameters: object, name: object = "take", description: object = "Take it.") -> Any:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def of(schema: object) -> Any:
    return tool({"type": "object", "properties": {"x": schema}, "required": ["x"]})


@pytest.mark.parametrize(
    "good",
    [
        tool({}),
        tool({"type": "object", "properties": {}}),
        of({}),
        of({"type": "string", "description": "A text.", "minLength": 3}),
        of({"type": "integer", "enum": [1, 2]}),
        of({"anyOf": [{"type": "null"}, {"type": "array", "items": {"type": "object"}}]}),
        of({"type": "object", "additionalProperties": False}),
        of({"type": "object", "additionalProperties": {"type": "number"}}),
        of({"type": "object", "properties": {"y": {"type": "boolean"}}, "required": ["y"]}),
    ],
)
def test_what_openai_takes_is_a_schema(good: Any) -> None:
    assert schema_problem(good) == ""


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({}, "of type 'function'"),
        ({"type": "function"}, "of type 'function'"),
        (tool({})["function"], "of type 'function'"),
        (tool({}, name=""), "has the name ''"),
        (tool({}, name="größe"), "has the name 'größe'"),
        (tool({}, name=3), "has the name '3'"),
        (tool({}, name="x" * 65), "has the name"),
        (tool({}, description=""), "no description"),
        (tool({}, description=None), "no description"),
        (tool([]), "not an object"),
        (tool({"type": "string"}), "not an object"),
        (tool({"properties": []}), "no object"),
        (tool({"required": "x"}), "no list"),
        (tool({"required": ["y"], "properties": {"x": {}}}), "'y' is required and not described"),
        (tool({"required": [["y"]], "properties": {"x": {}}}), "is required and not described"),
        *(
            (of(schema), "none of JSON's")
            for schema in (
                None, "string", {"type": "str"}, {"type": ["string"]}, {"type": 3}, {"anyOf": []},
                {"anyOf": [{"type": "text"}]}, {"anyOf": {}}, {"enum": []}, {"enum": "ab"},
                {"type": "array", "items": "string"}, {"type": "array", "items": [{}]},
                {"type": "object", "additionalProperties": "number"},
                {"type": "object", "properties": []},
                {"type": "object", "properties": {"y": {"type": "list"}}},
            )
        ),
    ],
)  # fmt: skip
def test_what_openai_does_not_take_is_none(bad: Any, said: str) -> None:
    assert said in schema_problem(bad)


@pytest.mark.parametrize(
    "schema", ['{"type": "text"}', '{"type": "object", "properties": {"x": 3}}']
)
def test_a_schema_that_a_source_of_the_pools_fills_in_is_checked(schema: str, pool: Pool) -> None:
    source = (DATA / "spade" / "game_00001_000_data_retrieval.py").read_text()
    assert validate(source, pool=pool, dialect="spade").ok
    broken = source.replace(
        '"parameters": {"type": "object"', f'"parameters": {schema}, "x": {{"type": "object"'
    )
    assert broken != source
    report = validate(broken, pool=pool, dialect="spade")
    refused = {item.reason for item in report.findings if item.severity is Severity.REFUSED}
    assert refused == {Reason.TOOL_SCHEMA}, told(report)
    assert report.record is not None
    assert report.record.base == SPADE_TOOLS_BASE


# --- the agent ---

TOOLS = json.loads(plain(ECHO).tool_schemas)


def replies(seed: int, observations: list[str]) -> list[str]:
    agent = random_calls(seed, TOOLS)
    found = [agent(observation) for observation in observations]
    assert None not in found
    return [action for action in found if action is not None]


def test_the_agent_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    seen = ['Orders: A-17, "Ada Berg" and 2073.'] * 30
    assert replies(3, seen) == replies(3, seen) != replies(4, seen)


def test_the_agent_uses_what_it_has_seen() -> None:
    actions = replies(0, ['Orders: A-17, "Ada Berg" and 2073.'] + ["Nothing."] * 400)
    everything = "\n".join(actions)
    for word in ('"A-17"', '"Ada Berg"', ":2073", '{"answer":', '"value":null', '"value":[]'):
        assert word in everything, word
    assert {json.loads(action)["calls"][0]["name"] for action in actions if "calls" in action} == {
        item["function"]["name"] for item in TOOLS
    }


def test_the_agent_remembers_the_newest_words_of_a_long_world() -> None:
    agent = random_calls(0, TOOLS)
    for number in range(200):
        agent(" ".join(f"w{number}x{each}" for each in range(500)))
    answers = [agent("") for _ in range(300)]
    words = {
        json.loads(text)["answer"] for text in answers if text is not None and "answer" in text
    }
    assert words
    assert all(word.startswith("w199x") for word in words)


@given(st.integers(0, 1000), st.lists(st.text(max_size=60), min_size=1, max_size=12))
def test_whatever_it_sees_its_calls_keep_to_the_schemas(seed: int, observations: list[str]) -> None:
    env = plain(ECHO)
    env.reset(0)
    for action in replies(seed, observations):
        request = json.loads(action)
        if "calls" in request:
            assert action == encode_action(request["calls"])
            said = env.step(action)[0]
            assert not said.startswith("Error: ") or "failed" in said or "asked for it" in said
        else:
            assert parse_action(action, TOOL_FORMATS).action == action


def test_without_tools_it_answers() -> None:
    assert json.loads(random_calls(0, [])("one two") or "")["answer"] in ("one", "two")
