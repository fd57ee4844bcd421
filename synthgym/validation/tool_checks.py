"""Tools: they have schemas, take what these promise, and instructions are open until something is done."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

from synthgym.agents import Agent, scripted
from synthgym.contract import SPADE_TOOLS_BASE, TOOLS_BASE
from synthgym.envs import TOOL_FORMATS, encode_answer, parse_action
from synthgym.sandbox.results import ResetResult
from synthgym.spec import canonical_json
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

FIRST_EPISODES: Final = 10
"""Of the agent that calls at random; without any win these are all."""
RANDOM_EPISODES: Final = 20
RANDOM_WIN_SHARE: Final = 0.05
"""The agent that calls at random may win at most this share of its episodes."""
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_WORD: Final = re.compile(r"[^\W_]+(?:[-'_./:@][^\W_]+)*")
_QUOTED: Final = re.compile(r'"([^"\n]{1,60})"')
_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_ANSWER_SHARE: Final = 0.1
"""How often the random agent answers instead of calling."""
_ODD_SEEDS: Final = 2
_CALLS_A_TURN: Final = 10
"""What a turn of `ToolEnv` has room for."""
_TEXTS: Final = ("", "\u00b2", "-1", "1e999", "x" * 200, "a,b;c", "{0}", "None")
_INTEGERS: Final = (0, 1, 2, 5, 10, -1, 10**12)
"""Values that are easily forgotten."""
_MAX_READ: Final = 20_000
"""Characters of an observation that it reads."""
_MAX_WORDS: Final = 400
"""Words that it remembers, the newest."""
TOOL_BASES: Final = frozenset({TOOLS_BASE, SPADE_TOOLS_BASE})
_NOTES: Final = {
    "tool_errors": Reason.TOOL_RAISED,
    "criterion_errors": Reason.CRITERION_RAISED,
}
"""Where the info of a step says what went wrong inside."""


def check_tools(trial: Trial) -> Iterator[Finding]:
    """For environments with tools; nothing for others."""
    if trial.record.base not in TOOL_BASES or trial.loaded is None:
        return
    tools = trial.loaded.tools
    unusable = list(_check_schemas(tools))
    yield from unusable
    yield from check_criteria(trial)
    plays = list(trial.wins.values())
    if not unusable:
        called = _call_at_random(trial, tools)
        yield from _check_luck(trial, called)
        plays += called
    yield from _check_notes(trial, plays)


def _check_schemas(tools: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    if not tools:
        yield Finding(Reason.TOOL_SCHEMA, "there are no tools after a reset")
    for tool in tools:
        problem = schema_problem(tool)
        if problem:
            yield Finding(Reason.TOOL_SCHEMA, problem)
            return


def schema_problem(tool: Mapping[str, Any]) -> str:
    """What keeps `tool` from being an OpenAI function schema; empty when nothing does."""
    function = tool.get("function")
    if tool.get("type") != "function" or not isinstance(function, dict):
        return "a tool is not an object of type 'function'"
    name, parameters = function.get("name"), function.get("parameters")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"a tool has the name {str(name)[:60]!r}"
    description = function.get("description")
    if not isinstance(description, str) or not description.strip():
        return f"{name}: it has no description"
    if not isinstance(parameters, dict) or parameters.get("type", "object") != "object":
        return f"{name}: its parameters are not an object"
    properties, required = parameters.get("properties", {}), parameters.get("required", [])
    if not isinstance(properties, dict) or not isinstance(required, list):
        return f"{name}: its properties are no object, or what is required is no list"
    for key in required:
        if not isinstance(key, str) or key not in properties:
            return f"{name}: {str(key)[:60]!r} is required and not described"
    for key, schema in properties.items():
        if not _is_schema(schema):
            return f"{name}: the type of {str(key)[:60]!r} is none of JSON's"
    return ""


def _is_schema(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    options = schema.get("anyOf")
    if options is not None:
        return isinstance(options, list) and bool(options) and all(map(_is_schema, options))
    enum = schema.get("enum")
    if enum is not None and not (isinstance(enum, list) and enum):
        return False
    if "items" in schema and not _is_schema(schema["items"]):
        return False
    extra, inner = schema.get("additionalProperties", True), schema.get("properties", {})
    if not (isinstance(extra, bool) or _is_schema(extra)):
        return False
    if not (isinstance(inner, dict) and all(map(_is_schema, inner.values()))):
        return False
    kind = schema.get("type")
    return kind is None or (isinstance(kind, str) and kind in _TYPES)


def check_criteria(trial: Trial) -> Iterator[Finding]:
    """At reset every criterion can be evaluated and is false, on every seed. It needs no more than resets."""
    if trial.record.base not in TOOL_BASES:
        return
    seen: set[Reason] = set()
    for seed, reset in trial.first.items():
        if not isinstance(reset.info.get("criteria"), list):
            detail = "the info of reset does not tell how the criteria stand"
            yield Finding(Reason.CRITERION_RAISED, detail, seed)
            return
        for number, state in enumerate(criteria_of(reset), 1):
            if state in ("unmet", "answer"):
                continue
            reason = Reason.CRITERION_MET_AT_RESET if state == "met" else Reason.CRITERION_RAISED
            if reason not in seen:
                seen.add(reason)
                yield Finding(
                    reason, f"instruction {number}: {state}", seed, seen=reset.observation
                )


def criteria_of(reset: ResetResult) -> list[object]:
    """What the info of a reset says of each criterion; the class may have put anything there."""
    found = reset.info.get("criteria")
    return found if isinstance(found, list) else []


def _call_at_random(trial: Trial, tools: Sequence[Mapping[str, Any]]) -> list[Play]:
    """Plays of random calls, and a few in which every argument takes every odd value."""
    plays: list[Play] = []
    for begin, end in ((0, FIRST_EPISODES), (FIRST_EPISODES, RANDOM_EPISODES)):
        cast = [
            Cast(trial.seeds[n % len(trial.seeds)], random_calls(n, tools), trial.horizon)
            for n in range(begin, end)
        ]
        plays += trial.play(cast)
        if not any(play.success for play in plays):
            break
    trial.kept += plays[:4]
    trial.tally["calling"] = sum(play.success for play in plays), len(plays)
    for seed in trial.few[:_ODD_SEEDS]:
        seen = trial.first[seed].observation if seed in trial.first else ""
        plays += trial.play([Cast(seed, scripted(odd_calls(seed, tools, seen)))])
    return plays


def _check_luck(trial: Trial, plays: Sequence[Play]) -> Iterator[Finding]:
    """Calls that keep to the schemas, made at random, do not win."""
    won, played = trial.tally["calling"]
    if won > RANDOM_WIN_SHARE * played:
        yield next(play for play in plays if play.success).evidence(
            Reason.RANDOM_AGENT_WINS, f"calls at random won {won} of {played} episodes"
        )


def _check_notes(trial: Trial, plays: Sequence[Play]) -> Iterator[Finding]:
    """Calls that keep to the schemas raise nothing, neither in a tool nor in a criterion."""
    for key, reason in _NOTES.items():
        for play in plays:
            turn = _noted(play, key)
            if turn:
                shown = _shortest(trial, play, turn, key)
                turn = _noted(shown, key)
                said = shown.results[turn - 1].info[key]
                yield shown.evidence(reason, f"turn {turn}: {str(said)[:200]}", turn)
                break


def _noted(play: Play, key: str) -> int:
    """The first turn whose info has something under `key`; 0 for none."""
    turns = (turn for turn, step in enumerate(play.results, 1) if step.info.get(key))
    return next(turns, 0)


def _shortest(trial: Trial, play: Play, turn: int, key: str) -> Play:
    """A play of one call that shows the same, when one of the calls of that turn does; else `play`."""
    form = parse_action(play.actions[turn - 1], TOOL_FORMATS)  # a witness may be any text
    calls = json.loads(form.action).get("calls", []) if form.action else []
    alone = [_written({"calls": [call]}) for call in calls]
    again = trial.play([Cast(play.seed, scripted([action])) for action in alone], judged=False)
    return next((other for other in again if _noted(other, key)), play)


def odd_calls(seed: int, tools: Sequence[Mapping[str, Any]], seen: str) -> list[str]:
    """Actions of several calls each: every argument of every tool in turn takes every value that is easily forgotten.

    The other arguments of a call are drawn, from words of `seen` where they are text.
    """
    rng = random.Random(f"odd calls {seed}")
    words = _QUOTED.findall(seen[:_MAX_READ]) + _WORD.findall(seen[:_MAX_READ]) or ["a"]
    by_parameter = []
    for tool in tools:
        function = tool["function"]
        properties = function.get("parameters", {}).get("properties", {})
        for name, schema in properties.items():
            others = {key: item for key, item in properties.items() if key != name}
            by_parameter.append(
                [
                    {
                        "name": function["name"],
                        "arguments": {key: _value(rng, item, words) for key, item in others.items()}
                        | {name: value},
                    }
                    for value in _odd_values(schema)
                ]
            )
    calls = [call for row in zip_longest(*by_parameter) for call in row if call is not None]
    return [
        _written({"calls": calls[start : start + _CALLS_A_TURN]})
        for start in range(0, len(calls), _CALLS_A_TURN)
    ]


def _odd_values(schema: Mapping[str, Any]) -> list[object]:
    """Values that a schema allows and that a tool may not think of."""
    if "anyOf" in schema:
        return [value for option in schema["anyOf"] for value in _odd_values(option)]
    if schema.get("enum"):
        return list(schema["enum"])
    match schema.get("type"):
        case "integer":
            return list(_INTEGERS)
        case "number":
            return [*_INTEGERS, 0.5, -2.5]
        case "boolean":
            return [True, False]
        case "array":
            return [[], *([item] for item in _odd_values(schema.get("items", {})))]
        case "object":
            return [{}] if not schema.get("properties") else []
        case "null":
            return [None]
    return list(_TEXTS)


def random_calls(seed: int, tools: Sequence[Mapping[str, Any]]) -> Agent:
    """Calls a random tool with arguments that its schema allows, made of words it has seen; or answers."""
    rng = random.Random(f"random calls {seed}")  # a stream that no environment seeded with it draws
    words: dict[str, None] = {}

    def act(observation: str) -> str:
        text = observation[:_MAX_READ]
        words.update(dict.fromkeys(_QUOTED.findall(text) + _WORD.findall(text)))
        for old in list(words)[:-_MAX_WORDS]:
            del words[old]
        seen = list(words) or ["a"]
        if not tools or rng.random() < _ANSWER_SHARE:
            return encode_answer(rng.choice(seen))
        function = rng.choice(tools)["function"]
        parameters = function.get("parameters", {})
        required = parameters.get("required", [])
        arguments = {
            key: _value(rng, schema, seen)
            for key, schema in parameters.get("properties", {}).items()
            if key in required or rng.random() < 0.5
        }
        return _written({"calls": [{"name": function["name"], "arguments": arguments}]})

    return act


def _value(rng: random.Random, schema: Mapping[str, Any], seen: Sequence[str]) -> object:
    """A value that the schema allows."""
    if "anyOf" in schema:
        return _value(rng, rng.choice(schema["anyOf"]), seen)
    if schema.get("enum"):
        return rng.choice(schema["enum"])
    match schema.get("type"):
        case "integer":
            return rng.choice([*_INTEGERS, *_numbers(seen)])
        case "number":
            return rng.choice([*_INTEGERS, 0.5, -2.5, *_numbers(seen)])
        case "boolean":
            return rng.random() < 0.5
        case "array":
            items = schema.get("items", {})
            return [_value(rng, items, seen) for _ in range(rng.randint(0, 2))]
        case "object":
            inner = schema.get("properties")
            if inner:
                return {key: _value(rng, item, seen) for key, item in inner.items()}
            extra = schema.get("additionalProperties")
            extra = extra if isinstance(extra, dict) else {}
            return {rng.choice(seen): _value(rng, extra, seen) for _ in range(rng.randint(0, 2))}
        case "null":
            return None
    return rng.choice(seen)


def _numbers(seen: Sequence[str]) -> list[int]:
    """The last numbers among the words."""
    found = [int(word) for word in seen if word.isascii() and word.isdecimal() and len(word) < 16]
    return found[-20:]


def _written(action: Mapping[str, Any]) -> str:
    """As `encode_action` writes it, without its checks, which are for what people hand in."""
    return canonical_json(action).decode()
