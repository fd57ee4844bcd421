"""Sources with tools, and the ways in which tests run them."""

from __future__ import annotations

import ast
import functools
import json
from typing import Any

from synthgym.contract import TOOLS_BASE
from synthgym.sandbox import Pool, Session
from synthgym.sandbox.compile import compile_source
from synthgym.sandbox.composing import compose
from synthgym.sandbox.program import Program
from synthgym.sandbox.runtime import Runtime
from synthgym.spec import EnvRecord, Limits

ECHO = '''"""An echo for every type that a tool can take."""

from typing import Any, Literal, Optional

from synthgym.contract import ToolEnv, ToolError


class EchoEnv(ToolEnv):
    max_turns = 100

    def setup(self, seed):
        self.said = []
        self.instruct("Say the word.", lambda: "the word" in self.said)
        self.instruct("Say it twice more.", lambda: self.said.count("the word") == 3)
        return "Whatever you say comes back."

    def tool_text(self, value: str) -> str:
        """Echo a text."""
        self.said.append(value)
        return self.echo(value)

    def tool_whole(self, value: int) -> str:
        """Echo a whole number."""
        return self.echo(value)

    def tool_number(self, value: float) -> str:
        """Echo a number."""
        return self.echo(value)

    def tool_flag(self, value: bool) -> str:
        """Echo a flag."""
        return self.echo(value)

    def tool_items(self, value: list) -> str:
        """Echo a list."""
        return self.echo(value)

    def tool_wholes(self, value: list[int]) -> str:
        """Echo a list of whole numbers."""
        return self.echo(value)

    def tool_grid(self, value: list[list[str]]) -> str:
        """Echo a list of lists of texts."""
        return self.echo(value)

    def tool_table(self, value: dict) -> str:
        """Echo an object."""
        return self.echo(value)

    def tool_prices(self, value: dict[str, float]) -> str:
        """Echo an object of numbers."""
        return self.echo(value)

    def tool_colour(self, value: Literal["red", "green", "7"]) -> str:
        """Echo a colour."""
        return self.echo(value)

    def tool_level(self, value: Literal[1, 2]) -> str:
        """Echo a level."""
        return self.echo(value)

    def tool_maybe(self, value: Optional[int] = None) -> str:
        """Echo a whole number or nothing."""
        return self.echo(value)

    def tool_unless(self, value: int = None) -> str:
        """Echo a whole number or nothing, spelled as of old."""
        return self.echo(value)

    def tool_either(self, value: bool | str) -> str:
        """Echo a flag or a text."""
        return self.echo(value)

    def tool_anything(self, value: Any) -> str:
        """Echo anything."""
        return self.echo(value)

    def tool_pair(self, left: str, *, right: int = 5) -> str:
        """Echo two things."""
        return self.echo([left, right])

    def tool_nothing(self) -> str:
        """Echo silence."""
        return ""

    def tool_gives(self, kind: str) -> Any:
        """Return a value of a kind."""
        values = {
            "none": None,
            "dict": {"b": 1, "a": [True, None, 1.5]},
            "text": "plain \\u00fc",
            "number": 7,
            "space": " \\n",
            "set": {1},
            "keys": {(1, 2): 3},
        }
        values["cycle"] = [values]
        values["cycle"][0] = values["cycle"]
        return values[kind]

    def tool_fails(self, kind: str) -> str:
        """Fail."""
        if kind == "tool":
            raise ToolError("you asked for it")
        if kind == "silent":
            raise ToolError
        if kind == "deep":
            return self.tool_fails("deep")
        return {}[kind]

    def echo(self, value):
        return f"{type(value).__name__} {value!r}"

    def hint(self, level=2):
        return "Say what is asked for."

    def solution(self):
        return [self.call("text", value="the word") for _ in range(3)]
'''

STEPS = '''"""Instructions of every kind, one after another."""


class StepsEnv(ToolEnv):
    max_turns = 40

    def setup(self, seed):
        self.seed, self.door, self.lamp, self.left = seed, "shut", "off", {"seal": 1}
        self.instruct("Open the door.", lambda: self.door == "open")
        self.instruct("Light the lamp.", lambda: self.lamp == "on")
        self.instruct("What is a quarter of 4,938?", answer="$1,234.50")
        self.instruct("Break the seal.", lambda: "seal" not in self.left)
        self.instruct("Which colour has it?", answer="Deep  Red")
        self.instruct("How many doors?", answer=1)
        return f"Room {seed}."

    def tool_set(self, what: str, state: str) -> str:
        """Set a thing to a state."""
        if what not in ("door", "lamp"):
            raise ToolError(f"there is no {what}")
        if what == "door":
            self.door = state
        else:
            self.lamp = state
        return f"The {what} is {state}."

    def tool_break_seal(self) -> None:
        """Break the seal."""
        self.left.clear()

    def hint(self, level=2):
        return "Do as you are told."

    def solution(self):
        return [
            self.call("set", what="door", state="open"),
            self.call("set", what="lamp", state="on"),
            self.answer(1234.5),
            self.call("break_seal"),
            self.answer("deep red"),
            self.answer(1),
        ]
'''

LOCKER = '''"""Locker room. Take the key, then open the locker whose number is the sum of the two on the note."""

import random


class LockerEnv(ToolEnv):
    max_turns = 10

    def setup(self, seed):
        rng = random.Random(seed)
        self.left, self.right = rng.randint(11, 49), rng.randint(11, 49)
        self.has_key = self.is_open = False
        self.instruct("Take the key with you.", lambda: self.has_key)
        self.instruct("Open the locker that the note means.", lambda: self.is_open)
        return "A locker room. On the bench lie a key and a note; lockers are numbered 20 to 99."

    def tool_read_note(self) -> str:
        """Read the note."""
        return f"It says {self.left} and {self.right}."

    def tool_take_key(self) -> str:
        """Take the key from the bench."""
        self.has_key = True
        return "You have the key."

    def tool_open_locker(self, number: int) -> str:
        """Open a locker by its number."""
        if not self.has_key:
            raise ToolError("you have no key")
        self.is_open = number == self.left + self.right
        return "The locker opens." if self.is_open else "It does not open."

    def hint(self, level=2):
        return "Take the key first, and add before you open."

    def solution(self):
        return [
            self.call("read_note"),
            self.call("take_key"),
            self.call("open_locker", number=self.left + self.right),
        ]
'''

MINIMAL = '''
class TinyEnv(ToolEnv):
    """Tiny."""
    def setup(self, seed):
        self.count = 0
        {setup}
        return "tiny"

    def tool_add(self, amount: int = 1) -> str:
        """Add."""
        self.count += amount
        return str(self.count)

    def hint(self, level=2):
        return "Add."

    def solution(self):
        return [self.call("add"), self.call("add")]
'''
"""With what `setup` does left open."""


JSON = {
    "null": "null",
    "true": "true",
    "0": "0",
    "2": "2",
    "-1": "-1",
    "5.0": "5.0",
    "1e2": "1e2",
    "2.5": "2.5",
    "9" * 18: "9" * 18,
    "9" * 19: "9" * 19,
    "9" * 400: "9" * 400,
    '""': '""',
    '"red"': '"red"',
    '"7"': '"7"',
    "7": "7",
    "[]": "[]",
    "[1]": "[1]",
    "[2.0]": "[2.0]",
    "[true]": "[true]",
    '["a"]': '["a"]',
    "[[]]": "[[]]",
    '[["a"], []]': '[["a"], []]',
    "{}": "{}",
    '{"a": 1}': '{"a": 1}',
    '{"a": 1.5}': '{"a": 1.5}',
    '{"a": "1"}': '{"a": "1"}',
}
NUMBERS = ["0", "2", "-1", "5.0", "1e2", "9" * 18, "7"]
LISTS = ["[]", "[1]", "[2.0]", "[true]", '["a"]', "[[]]", '[["a"], []]']
OBJECTS = ["{}", '{"a": 1}', '{"a": 1.5}', '{"a": "1"}']
TEXTS = ['""', '"red"', '"7"']
AS_TEXTS = ["0", "2", "-1", "5.0", "1e2", "9" * 18, "9" * 19, "9" * 400, "7"]
"""Whole numbers, which stand for a text where a text is asked for."""
TAKEN = {
    "text": [*TEXTS, *AS_TEXTS],
    "whole": NUMBERS,
    "number": [*NUMBERS, "2.5"],
    "flag": ["true"],
    "items": LISTS,
    "wholes": ["[]", "[1]", "[2.0]"],
    "grid": ["[]", "[[]]", '[["a"], []]'],
    "table": OBJECTS,
    "prices": ["{}", '{"a": 1}', '{"a": 1.5}'],
    "colour": ['"red"', '"7"', "7"],
    "level": ["2"],
    "maybe": ["null", *NUMBERS],
    "unless": ["null", *NUMBERS],
    "either": ["true", *TEXTS, *AS_TEXTS],
    "anything": list(JSON),
}
MALFORMED = [
    "",
    " ",
    "open the door",
    "null",
    "true",
    "5",
    '"add"',
    "[]",
    "{}",
    '{"calls": []}',
    '{"calls": {}}',
    '{"calls": null}',
    '{"calls": "add"}',
    '{"answer": null}',
    '{"answer": []}',
    '{"answer": {"a": 1}}',
    '{"calls": [{"name": "add", "arguments": {}}], "answer": "1"}',
    '{"calls": [{"name": "add", "arguments": {}}], "id": 1}',
    '{"tool_calls": [{"name": "add", "arguments": {}}]}',
    '[{"name": "add", "arguments": {}}]',
    '{"name": "add"}',
    '{"calls": [{"name": "add", "arguments": {}}]',
    '{"calls": [{"name": "add", "arguments": {"amount": NaN}}]}',
    '{"calls": [{"name": "add", "arguments": {"amount": -Infinity}}]}',
    '{"calls": [{"name": "add", "arguments": {"amount": 1e999}}]}',
    '{"answer": NaN}',
    '{"answer": 1e999}',
    '{"answer": %s}' % ("9" * 4300 + "9"),
    "[" * 4096,
    '{"calls":' + "[" * 2000 + "]" * 2000 + "}",
    '{"answer": "' + "x" * 5000,
    "\x00",
    "\ud800",
    '{"calls": [{"name": "add", "arguments": {}}]}\x00',
]


@functools.cache
def _composed(source: str) -> type:
    namespace: dict[str, Any] = {"__name__": "source"}
    tree = compose(ast.parse(source), TOOLS_BASE)
    exec(compile(tree, "<source>", "exec", dont_inherit=True), namespace)
    found = [
        value
        for name, value in namespace.items()
        if isinstance(value, type) and name.endswith("Env") and name != "ToolEnv"
    ]
    return found[-1]


def plain(source: str) -> Any:
    """An instance of the class in `source`, composed but neither checked nor confined."""
    return _composed(source)()


def started(source: str, seed: int = 0) -> Any:
    env = plain(source)
    env.reset(seed)
    return env


def said(env: Any, action: str) -> str:
    return str(env.step(action)[0])


def program(source: str) -> Program:
    """The program that a worker makes of `source`, in this process."""
    compiled = compile_source(source, base=TOOLS_BASE)
    assert compiled.violations == (), compiled.violations
    assert compiled.code is not None
    return Program(Runtime(), compiled.code, {}, TOOLS_BASE)


def record(source: str, max_turns: int = 100) -> EnvRecord:
    return EnvRecord(
        source=source, entry="", max_turns=max_turns, base=TOOLS_BASE, action_format="tools"
    )


def session(pool: Pool, source: str) -> Session:
    return pool.open(record(source), Limits())


def one_call(name: object, arguments: object) -> str:
    return json.dumps({"calls": [{"name": name, "arguments": arguments}]})
