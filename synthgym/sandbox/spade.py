"""The dialect of the SPADE pools, spoken to as the contract: an adapter around an instance, inside the worker.

What differs there: `__init__(max_turns=...)` with the turns on the instance, actions in a box, `reset` that may return
bare text, `solution()` as prose, rewards in [-10, 10] of which only the last one of an episode counts. Tool-use
environments get calls through `execute_tool`, which does not count a turn, and an answer through `step`.

The adapter is code of ours that works on objects of a stranger: it asks for exact types and trusts no value.
"""

from __future__ import annotations

import ast
import json
import re
from typing import Any, Final

import msgspec

from synthgym.contract import MAX_ACTION_CHARS, MIN_TURNS, SPADE_TOOLS_BASE
from synthgym.sandbox import values

TURN_BUDGET: Final = 25
"""Turns that an episode has at most there, whatever the class says; all of them when it says nothing."""
REWARD_LIMIT: Final = 10.0
_MAX_STEPS: Final = 1000

_BOX: Final = re.compile(r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}")
_NUMBERED: Final = re.compile(r"^\s*(?:step\s*)?\d{1,3}[.):]\s*(.*)$", re.IGNORECASE)
_CALL: Final = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(")
_ANSWER: Final = re.compile(
    r"<answer>(.*?)</answer>|\banswer\s*[:=]\s*([^\n]*)", re.IGNORECASE | re.DOTALL
)


class SpadeGame:
    """One instance of a source of the pools, with the methods of the contract."""

    __slots__ = ("_boxed", "_env", "max_turns")

    def __init__(self, env: Any, base: str) -> None:
        self._env = env
        self._boxed = base != SPADE_TOOLS_BASE
        turns = getattr(env, "max_turns", None)
        if type(turns) is not int or turns < 1:
            turns = TURN_BUDGET
        self.max_turns = max(MIN_TURNS, min(turns, TURN_BUDGET))

    def reset(self, seed: int) -> tuple[object, object]:
        """Observation and info; bare text counts as an observation without info."""
        found = self._env.reset(seed=seed)
        if type(found) is str:
            found = (found, {})
        if (type(found) is not tuple and type(found) is not list) or len(found) != 2:
            raise values.BadValue("reset must return (observation, info) or text")
        if self._boxed or type(found[1]) is not dict:
            return found[0], found[1]
        return found[0], found[1] | {"criteria": self._env.criteria_states()}

    def step(self, action: str) -> tuple[object, float, bool, bool, object]:
        """One turn. The reward of the turn that ends the episode, cut to [-1, 1], is the only one."""
        if self._boxed:
            return self._settled(self._env.step(f"\\boxed{{{action}}}"))
        request = self._request(action)
        if "answer" in request:
            return self._settled(self._env.step(f"<answer>{request['answer']}</answer>"))
        if "calls" not in request:
            return self._settled(self._env.step(action))
        outputs: list[str] = []
        self._env.tool_errors = []
        for call in request["calls"]:
            text = self._env.execute_tool(call["name"], call["arguments"])
            outputs.append(values.text(text, "what a tool returns", values.MAX_TEXT_BYTES // 4))
        errors = self._env.tool_errors
        return "\n".join(outputs), 0.0, False, False, {"tool_errors": errors} if errors else {}

    def hint(self) -> object:
        """The pools have none; a source may have one all the same, for every level."""
        hint = getattr(self._env, "hint", None)
        if type(hint) is str:
            return hint
        if not callable(hint):
            raise values.BadValue("the class has no hint")
        return hint()

    def tools(self) -> str:
        """The schemas as JSON, as they are after a reset; `[]` for a game."""
        if self._boxed:
            return "[]"
        self._env.reset(seed=0)
        found = self._env.get_tools()
        encoded = values.json_copy(found)
        return encoded if encoded.startswith("[") else "[]"

    def solution(self) -> list[str]:
        """The witness, read out of the text that `solution()` gives."""
        found = self._env.solution()
        if type(found) is list or type(found) is tuple:
            return values.actions(found, MAX_ACTION_CHARS)
        text = values.text(found, "solution", values.MAX_TEXT_BYTES // 4)
        return boxed_steps(text) if self._boxed else tool_steps(text, self._env)

    def _settled(self, found: object) -> tuple[object, float, bool, bool, object]:
        if (type(found) is not tuple and type(found) is not list) or len(found) != 5:
            raise values.BadValue(
                "step must return (observation, reward, terminated, truncated, info)"
            )
        observation, paid, ended, cut, info = found
        reward = values.number(paid, "reward")
        if abs(reward) > REWARD_LIMIT:
            raise values.BadValue(f"reward must lie in [-10, 10], got {reward}")
        terminated = values.flag(ended, "terminated")
        truncated = values.flag(cut, "truncated")
        counted = min(1.0, max(-1.0, reward)) if terminated else 0.0
        return observation, counted, terminated, truncated, info

    @staticmethod
    def _request(action: str) -> dict[str, Any]:
        """The canonical JSON of an action; empty for anything else, which the class gets as it is."""
        try:
            request = msgspec.json.decode(action, type=dict[str, Any])
        except msgspec.DecodeError:
            return {}
        calls = request.get("calls")
        if type(calls) is list and calls and all(_is_call(call) for call in calls):
            return {"calls": calls}
        answer = request.get("answer")
        return {"answer": answer} if type(answer) is str else {}


def _is_call(call: object) -> bool:
    return (
        type(call) is dict
        and type(call.get("name")) is str
        and type(call.get("arguments")) is dict
        and len(call) == 2
    )


def boxed_steps(text: str) -> list[str]:
    """The actions of a solution as text: what is boxed; else numbered lines; else lines; else all of it."""
    boxes = _BOX.findall(text)
    if boxes:
        return [box.strip() for box in boxes[:_MAX_STEPS]]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    numbered = [match[1].strip() for match in map(_NUMBERED.match, lines) if match]
    return (numbered or lines)[:_MAX_STEPS]


def tool_steps(text: str, env: Any) -> list[str]:
    """The calls that a solution spells as `name(key=value)`, and the answer that it ends with, as canonical JSON."""
    steps: list[str] = []
    for match in _CALL.finditer(text):
        if len(steps) >= _MAX_STEPS:
            break
        name = match[1]
        if callable(getattr(env, f"tool_{name}", None)):
            arguments = _arguments(text, match.start(1))
            if arguments is not None:
                steps.append(_canonical({"calls": [{"arguments": arguments, "name": name}]}))
    answers = [first or second for first, second in _ANSWER.findall(text)]
    if answers:
        steps.append(_canonical({"answer": answers[-1].strip().strip("'\"`")}))
    elif not steps and text.strip():
        steps.append(_canonical({"answer": text.strip()}))
    return steps


def _arguments(text: str, start: int) -> dict[str, Any] | None:
    """The keyword arguments of the call at `start`, when all are literals; None when it does not parse."""
    depth, quote, position = 0, "", start
    for position in range(start, min(len(text), start + MAX_ACTION_CHARS)):
        char = text[position]
        if quote:
            quote = "" if char == quote and text[position - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                break
    try:
        node = ast.parse(text[start : position + 1], mode="eval").body
        if not isinstance(node, ast.Call) or node.args:
            return None
        return {
            str(item.arg): ast.literal_eval(item.value)
            for item in node.keywords
            if item.arg is not None
        }
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None


def _canonical(action: dict[str, Any]) -> str:
    return json.dumps(
        action, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
