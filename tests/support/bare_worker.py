"""The interpreter of a worker without a process around it, and sources to ask it about."""

from __future__ import annotations

from typing import Any

from synthgym.sandbox.protocol import (
    Compile,
    Compiled,
    Failed,
    Load,
    LoadDone,
    Op,
    Reply,
    Resets,
    Rows,
    Steps,
)
from synthgym.sandbox.runtime import Runtime
from synthgym.sandbox.worker import Interpreter

RUNTIME = Runtime()
PROGRAM = 1

DICE = '''
"""Guess a number."""
import random

class DiceEnv:
    """Rolls."""
    max_turns = 5

    def reset(self, seed: int):
        self._rolled = [random.randint(1, 100)]
        return f"first {self._rolled[0]}", {}

    def step(self, action: str):
        self._rolled.append(random.randint(1, 100))
        return f"{action} {self._rolled}", 0.25, False, False, {"turn": len(self._rolled)}

    def hint(self, level: int = 2):
        return f"level {level} of {self._rolled[0]}"

    def solution(self):
        return [str(roll) for roll in self._rolled]
'''


def returning(
    step: str = '"x", 0.0, False, False, {}', reset: str = '"x", {}', **extra: str
) -> str:
    """Source of a class whose methods return the expressions given."""
    methods = "\n".join(
        f"    def {name}(self):\n        return {body}" for name, body in extra.items()
    )
    return f"""
import math
from decimal import Decimal
from fractions import Fraction

class PlainEnv:
    max_turns = 5

    def reset(self, seed):
        return {reset}

    def step(self, action):
        return {step}
{methods}
"""


class BareWorker:
    """An interpreter and its progress counter."""

    def __init__(self) -> None:
        self.progress = memoryview(bytearray(8)).cast("Q")
        self.interpreter = Interpreter(RUNTIME, self.progress)

    @property
    def begun(self) -> int:
        """How many rows it says it has begun."""
        return self.progress[0]

    def ask(self, op: Op) -> Reply:
        """The one reply to `op`."""
        (reply,) = self.interpreter.answers(op)
        return reply

    def rows(self, op: Op) -> list[Rows]:
        """The replies to a batch."""
        replies = list(self.interpreter.answers(op))
        assert all(isinstance(reply, Rows) for reply in replies), replies
        return replies  # type: ignore[return-value]  # just tested

    def compile(self, source: str) -> Compiled:
        reply = self.ask(Compile(1, source))
        assert isinstance(reply, Compiled), reply
        return reply

    def load(self, source: str, program: int = PROGRAM, **settings: Any) -> LoadDone | Failed:
        """The reply to a source that is compiled here and loaded."""
        self.compile(source)
        fields = {"code": b"", "entry": "", "kwargs": b"{}", "observation_chars": 1000} | settings
        reply = self.ask(Load(2, program, **fields))
        assert isinstance(reply, LoadDone | Failed), reply
        return reply

    def reset(self, instance: int, seed: int, program: int = PROGRAM) -> Rows:
        """One row."""
        (rows,) = self.rows(Resets(3, program, [instance], [seed]))
        return rows

    def step(self, instance: int, action: str, program: int = PROGRAM) -> Rows:
        """One row."""
        (rows,) = self.rows(Steps(4, program, [instance], [action]))
        return rows


def loaded(source: str, **settings: Any) -> BareWorker:
    """A worker that has loaded `source`."""
    worker = BareWorker()
    reply = worker.load(source, **settings)
    assert isinstance(reply, LoadDone), reply
    return worker


def stepped(step: str, before: str = "pass") -> Rows:
    """The row of a step that runs the statement `before` and returns the expression `step`."""
    head = "step(self, action):"
    worker = loaded(returning(step=step).replace(head, f"{head}\n        {before}"))
    assert not worker.reset(1, 0).failures
    return worker.step(1, "go")


def failure(rows: Rows) -> tuple[str, str]:
    """(kind, detail) of the one row, which has failed and says nothing else."""
    assert (rows.observations, rows.rewards, rows.flags, rows.infos) == ([""], [0.0], b"\0", {})
    return rows.failures[0]
