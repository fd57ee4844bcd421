"""`ToolEnv`: environments whose actions are tool calls, answered one user instruction after another.

The text of this file is put in front of every source that uses `ToolEnv`, and runs under the same rules as the source.
It is part of what such an environment is: its version is in `contract.TOOLS_BASE`, and a change of behaviour needs a
new one. It imports nothing of this package. What it keeps for itself has names with two underscores, which no
attribute of a subclass can have by accident.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


class ToolError(Exception):
    """What a tool raises to tell the agent what was wrong; anything else is a fault of the tool."""


class ToolEnv:
    """Base of environments with tools. A subclass writes `setup`, `solution`, `hint` and its `tool_` methods.

    Each method `tool_<name>` with type hints and a docstring becomes an OpenAI function schema (`tool_schemas`).
    An action is JSON: `{"calls": [{"name": ..., "arguments": {...}}, ...]}` or `{"answer": ...}`. Every
    instruction that is done pays the same share of the reward; the last one ends the episode.
    """

    max_turns = 20
    answers_allowed = 3
    """Wrong answers after which the episode is lost."""
    calls_allowed = 10
    """Calls that one turn has room for: turns bound what can be tried."""
    tool_schemas = "[]"
    """JSON of the schemas. Filled in when the source is loaded, from the text of the `tool_` methods."""

    # --- for the subclass ---

    def setup(self, seed: int) -> str:
        """Draw the instance, call `instruct` for each instruction, and return the situation as text."""
        raise NotImplementedError("setup")

    def instruct(
        self, text: str, criterion: Callable[[], Any] | None = None, answer: Any = None
    ) -> None:
        """Add an instruction of the user. It is done when `criterion()` is true after a call, or by that answer."""
        if (criterion is None) == (answer is None):
            raise ValueError("instruct() takes a criterion or an answer, one of them")
        if not (isinstance(text, str) and text.strip()):
            raise ValueError("instruct() takes what the user says, as text")
        if criterion is not None and not callable(criterion):
            raise ValueError("a criterion is a function without parameters: lambda: ...")
        if isinstance(answer, list | tuple | dict | set) or self.__plain(answer) == "":
            raise ValueError("an answer is a text or a number, and not empty")
        self.__instructions.append((text, criterion, answer))

    def call(self, name: str, /, **arguments: Any) -> str:
        """The action that makes one call, for `solution()`."""
        return self.__canonical({"calls": [{"name": name, "arguments": arguments}]})

    def answer(self, text: Any) -> str:
        """The action that answers, for `solution()`."""
        return self.__canonical({"answer": str(text)})

    # --- the contract ---

    def reset(self, seed: int) -> tuple[str, dict[str, Any]]:
        """Set up, and give the first instruction. The info says of each criterion whether it is met already."""
        self.__instructions: list[tuple[str, Callable[[], Any] | None, Any]] = []
        self.__done = 0
        self.__wrong_answers = 0
        self.__paid = 0.0
        self.__over = False
        self.__notes: dict[str, list[str]] = {}
        self.__schemas = {
            item["function"]["name"]: item["function"] for item in json.loads(self.tool_schemas)
        }
        situation = self.setup(seed)
        if not isinstance(situation, str):
            raise TypeError("setup() must return the situation as text")
        if not self.__instructions:
            raise ValueError("setup() must call instruct() at least once")
        criteria = [self.__state(number) for number in range(len(self.__instructions))]
        text = f"{situation}\n\nTools:\n{self.__listing()}{self.__instruction()}"
        return text.lstrip(), {"criteria": criteria}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Carry out the calls, or take the answer, and go on to the next instruction when this one is done."""
        self.__notes = {}
        if self.__over:
            return "The episode is over.", 0.0, True, False, {"done": self.__done}
        request = self.__request(action)
        calls, answer = request.get("calls"), request.get("answer")
        if len(request) == 1 and isinstance(calls, list) and calls:
            return self.__reply(self.__carry_out(calls))
        if len(request) == 1 and isinstance(answer, str | int | float):
            return self.__reply(self.__take(str(answer)))
        return self.__reply(
            'That is neither a tool call nor an answer. Call a tool as {"name": ..., "arguments": {...}}, '
            f'or answer as {{"answer": ...}}. Tools: {self.__names()}.'
        )

    # --- inside ---

    def _tool_methods(self) -> dict[str, Callable[..., Any]]:
        """The methods by the names of the tools. Filled in together with `tool_schemas`."""
        return {}

    def __request(self, action: str) -> dict[str, Any]:
        """What an action asks for; empty when it is no JSON object, or one that no reply can be."""
        try:
            request = json.loads(action, parse_float=self.__number, parse_constant=self.__no_number)
        except (ValueError, RecursionError):
            return {}
        many = action.count("[") + action.count("{") > 40
        if not isinstance(request, dict) or (many and self.__is_deep(request)):
            return {}
        return {"calls": [request]} if set(request) == {"name", "arguments"} else request

    def __number(self, text: str) -> int | float:
        """JSON has one kind of numbers: 5.0 is 5. One that is too large for a float is none."""
        value = float(text)
        if abs(value) < 1e15:
            return int(value) if value == int(value) else value
        return value if value - value == 0 else self.__no_number(text)

    def __no_number(self, text: str) -> float:
        raise ValueError(f"{text} is no number")

    def __is_deep(self, value: Any) -> bool:
        """Whether it is nested more deeply than 40 levels; a call that a reply can make is not."""
        level = [value]
        for _ in range(40):
            parts = [part for part in level if isinstance(part, dict | list)]
            if not parts:
                return False
            values = (part.values() if isinstance(part, dict) else part for part in parts)
            level = [item for each in values for item in each]
        return any(isinstance(part, dict | list) for part in level)

    def __carry_out(self, calls: list[Any]) -> str:
        outputs = []
        for number, call in enumerate(calls, 1):
            front = f"[{number}] " if len(calls) > 1 else ""
            if number > self.calls_allowed:
                outputs.append(f"{front}Error: one turn has room for {self.calls_allowed} calls.")
                break
            outputs.append(f"{front}{self.__run(call)}{self.__go_on()}")
            if self.__over:
                break
        return "\n".join(outputs)

    def __take(self, given: str) -> str:
        _text, criterion, expected = self.__instructions[self.__done]
        if criterion is not None:
            return "That instruction asks for a change, not for an answer: use the tools."
        if self.__same(given, str(expected)):
            return f"That is right.{self.__go_on(1)}"
        self.__wrong_answers += 1
        left = self.answers_allowed - self.__wrong_answers
        if left > 0:
            return f"That is wrong. Answers left: {left}."
        self.__over = True
        return "That is wrong, and it was the last answer allowed."

    def __reply(self, text: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        total = len(self.__instructions)
        reward = (1.0 if self.__done == total else self.__done / total) - self.__paid
        self.__paid += reward
        return text, reward, self.__over, False, {"done": self.__done, **self.__notes}

    def __go_on(self, done: int = 0) -> str:
        """Pass over what is done, and say what comes next; nothing when that is what came last."""
        before = self.__done
        self.__done += done
        while self.__done < len(self.__instructions) and self.__state(self.__done) == "met":
            self.__done += 1
        if self.__done == len(self.__instructions):
            self.__over = True
            return "\n\nThe user has no further wishes."
        return "" if self.__done == before else self.__instruction()

    def __instruction(self) -> str:
        return f"\n\nUser: {self.__instructions[self.__done][0]}"

    def __state(self, number: int) -> str:
        """Whether a criterion is met now, or that it raises, which is noted and does not count as met."""
        criterion = self.__instructions[number][1]
        if criterion is None:
            return "answer"
        try:
            return "met" if criterion() else "unmet"
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            state = f"raised {type(error).__name__}"
            self.__note("criterion_errors", f"{number + 1}: {state}")
            return state

    def __run(self, call: Any) -> str:
        """What one call gives. What the agent did wrong is text; so is what the tool did wrong, but that is noted."""
        if not (isinstance(call, dict) and set(call) == {"name", "arguments"}):
            return 'Error: a call is {"name": ..., "arguments": {...}}.'
        name, arguments = call["name"], call["arguments"]
        schema = self.__schemas.get(name) if isinstance(name, str) else None
        if schema is None:
            return f"Error: there is no tool {str(name)[:60]!r}. There are: {self.__names()}."
        problem = self.__problem(schema["parameters"], arguments)
        if problem:
            return f"Error: {name}: {problem}"
        known = schema["parameters"]["properties"]
        try:
            result = self._tool_methods()[name](
                **{key: self.__read(known[key], value) for key, value in arguments.items()}
            )
            text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        except ToolError as error:
            return f"Error: {error}"
        except Exception as error:
            if isinstance(error, MemoryError):
                raise
            self.__note("tool_errors", f"{name}: {type(error).__name__}")
            return f"Error: {name} failed: {type(error).__name__}."
        return text if text.strip() else "(no output)"

    def __note(self, key: str, text: str) -> None:
        """For the validator."""
        self.__notes.setdefault(key, []).append(text)

    def __problem(self, parameters: dict[str, Any], arguments: Any) -> str:
        """What is wrong with the arguments of a call; empty when nothing is."""
        if not isinstance(arguments, dict):
            return "arguments must be an object."
        known = parameters["properties"]
        for name in arguments:
            if name not in known:
                return f"unknown argument {name[:60]!r}; it takes {', '.join(known) or 'none'}."
        for name in parameters["required"]:
            if name not in arguments:
                return f"argument {name!r} is missing."
        for name, value in arguments.items():
            if not self.__fits(known[name], self.__read(known[name], value)):
                return f"argument {name!r} takes {self.__kind(known[name])}."
        return ""

    def __read(self, schema: dict[str, Any], value: Any) -> Any:
        """The value that is meant: `<parameter=id>2073</parameter>` cannot say whether it is a number or a text."""
        if isinstance(value, int) and not self.__fits(schema, value):
            return str(value) if not isinstance(value, bool) else value
        return value

    def __fits(self, schema: dict[str, Any], value: Any) -> bool:
        """Whether a value is what a schema asks for."""
        if "anyOf" in schema:
            return any(self.__fits(option, value) for option in schema["anyOf"])
        number = (
            isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63
        )
        is_kind = {
            "string": isinstance(value, str),
            "integer": number and isinstance(value, int),
            "number": number,
            "boolean": isinstance(value, bool),
            "array": isinstance(value, list),
            "object": isinstance(value, dict),
            "null": value is None,
        }
        if not is_kind.get(schema.get("type", ""), True):
            return False
        if "enum" in schema and value not in schema["enum"]:
            return False
        if isinstance(value, list):
            return all(self.__fits(schema.get("items", {}), item) for item in value)
        if isinstance(value, dict):
            inner = schema.get("additionalProperties", {})
            return all(self.__fits(inner, item) for item in value.values())
        return True

    def __kind(self, schema: dict[str, Any]) -> str:
        """A type as a reader would name it."""
        if "enum" in schema:
            return "|".join(map(str, schema["enum"]))
        if "anyOf" in schema:
            return " or ".join(self.__kind(option) for option in schema["anyOf"])
        if "items" in schema:
            return f"array of {self.__kind(schema['items'])}"
        if "additionalProperties" in schema:
            return f"object of {self.__kind(schema['additionalProperties'])}"
        return str(schema.get("type", "any"))

    def __names(self) -> str:
        return ", ".join(self.__schemas) or "none"

    def __listing(self) -> str:
        """The tools as text, for agents that get no schemas."""
        lines = []
        for name, schema in self.__schemas.items():
            parameters = schema["parameters"]
            parts = [
                f"{key}{'' if key in parameters['required'] else '?'}: {self.__kind(value)}"
                for key, value in parameters["properties"].items()
            ]
            lines.append(f"- {name}({', '.join(parts)}): {schema['description']}")
            lines += [
                f"    {key}: {value['description']}"
                for key, value in parameters["properties"].items()
                if "description" in value
            ]
        return "\n".join(lines)

    def __same(self, given: str, expected: str) -> bool:
        """Equal text but for case, white space, `$` and thousands separators; numbers to within 0.01."""
        one, other = self.__plain(given), self.__plain(expected)
        if one == other:
            return True
        try:
            return abs(float(one) - float(other)) <= 0.01
        except ValueError:
            return False

    def __plain(self, text: Any) -> str:
        return " ".join(str(text).replace("$", "").replace(",", "").split()).casefold()

    def __canonical(self, action: dict[str, Any]) -> str:
        return json.dumps(
            action, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
