"""BFCL v4, multi-turn: a user's requests over several turns, answered by calls of functions that keep a state.

Items, functions and checker are those of the `bfcl-eval` package (Berkeley Function Calling Leaderboard, Patil et al.,
ICML 2025), in its prompting form: the functions stand in the system message, calls are Python. The package runs in a
process of its own (`bfcl_worker`); replies are read here (`calls`). 200 items in each of four categories.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from spade_loop.errors import ConfigError, MissingExtraError
from spade_loop.evaluation.suite import Attempt, Failure, Item, Say, spread
from spade_loop.evaluation.suites.bfcl_worker import FUNCTIONS
from spade_loop.evaluation.suites.calls import Call, NoCallsError, offered, read_calls, spoken
from spade_loop.evaluation.suites.children import (
    HERE,
    Child,
    ChildError,
    Crew,
    Limits,
    own_faults,
)
from spade_loop.speaking import Decoding
from spade_loop.types import Message
from synthgym.ids import did_you_mean

PACKAGE: Final = "bfcl-eval==2026.3.23"
"""What was tested. Its own requirements pin other numpy and faiss than ours; the categories here need none of them."""
CATEGORIES: Final = ("base", "miss_func", "miss_param", "long_context")
NO_CALL: Final = "no-call"
"""Failure: in a turn that asks for something no function was called."""
TOO_SLOW: Final = "call-time"
"""Failure: a call did not end within `CALL_SECONDS`."""
CALL_SECONDS: Final = 60.0
"""For one step, the start of the process included; an ordinary one takes milliseconds."""
_GRADING: Final = "1"
_PREFIX: Final = "multi_turn_"
_INSTALL: Final = (
    f"install it without its requirements: `pip install --no-deps '{PACKAGE}'` (of them it needs mpmath and filelock), "
    "or in an environment of its own, and name that: --suite-option python=/path/to/its/bin/python"
)
_LIMITS: Final = Limits(seconds=CALL_SECONDS, reads=True, required=False)


def suite(*, categories: tuple[str, ...] = CATEGORIES, python: str = "") -> BfclMultiTurn:
    """The suite. `python` is the interpreter that has `bfcl-eval`; empty for the one that runs this.

    `ConfigError` for an unknown category, `MissingExtraError` without the package.
    """
    for category in categories:
        if category not in CATEGORIES:
            raise ConfigError(
                f"bfcl-multi-turn has no category {category!r}{did_you_mean(category, CATEGORIES)} "
                f"(it has: {', '.join(CATEGORIES)})"
            )
    if not categories:
        raise ConfigError(f"bfcl-multi-turn needs a category: {', '.join(CATEGORIES)}")
    return BfclMultiTurn(categories, python or sys.executable)


@dataclass(slots=True)
class _Conversation:
    """One attempt under way."""

    chat: list[Message]
    functions: frozenset[str] = frozenset()
    cut: bool = False
    """Whether a reply ran into the token limit."""


@dataclass(slots=True)
class _Package:
    """What the installed package says of itself."""

    version: str
    system: str
    more: str
    steps: int
    items: list[Item] = field(default_factory=list)


class BfclMultiTurn:
    """Suite `bfcl-multi-turn`; see the module."""

    name = "bfcl-multi-turn"
    decoding = Decoding(max_tokens=4096)
    """Greedy, as the leaderboard asks for (method of the paper: temperature 0)."""
    samples = 1

    def __init__(self, categories: Sequence[str], python: str) -> None:
        self._categories = tuple(dict.fromkeys(categories))
        self._python = python
        self._crew = Crew()
        self._package = _Package(**self._asked({"do": "describe"}))

    @property
    def version(self) -> str:
        """That of the package, which holds items and checker, and that of the reading of replies here."""
        return f"{_GRADING}+bfcl-eval-{self._package.version}"

    def items(self, limit: int | None) -> Sequence[Item]:
        """All items of the categories, in the package's order; their contents stay as text until they are played."""
        if not self._package.items:
            for category in self._categories:
                loaded = self._asked({"do": "load", "category": _PREFIX + category})
                self._package.items += [
                    Item(
                        id=entry["id"],
                        category=category,
                        content=json.dumps([entry, truth["ground_truth"]]),
                    )
                    for entry, truth in zip(loaded["entries"], loaded["truth"], strict=True)
                ]
        return spread(self._package.items, limit)

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """All turns of an item, up to the package's limit of steps in each; then its checker."""
        del seed  # nothing is drawn
        entry, truth = json.loads(item.content)
        talk = _Conversation([])
        try:
            with self._child() as child:
                opened = child.ask({"do": "open", "entry": entry, "truth": truth})
                talk.functions = frozenset(opened["functions"])
                for messages in self._turns(entry):
                    talk.chat += messages
                    child.ask({"do": "turn"})
                    if not self._turn(child, talk, say):
                        detail = f"more than {self._package.steps} steps in a turn"
                        return Attempt.failed(Failure.TURNS, talk.chat, detail)
                found = child.ask({"do": "check"})
        except ChildError as error:
            kind = TOO_SLOW if error.slow else Failure.CHECKER
            return Attempt.failed(kind, talk.chat, str(error))
        return _graded(found, talk)

    def close(self) -> None:
        """End what is under way."""
        self._crew.close()

    def _turns(self, entry: Mapping[str, Any]) -> list[list[Message]]:
        """What the user says, turn by turn, the system message at the front of the first."""
        withheld = entry.get("missed_function", {})
        turns = []
        for index, messages in enumerate(entry["question"]):
            if str(index) in withheld:
                text = self._package.more.replace(FUNCTIONS, str(withheld[str(index)]))
                turns.append([Message("user", text)])
            else:
                turns.append([Message(cast("Any", m["role"]), m["content"]) for m in messages])
        system = self._package.system.replace(FUNCTIONS, json.dumps(entry["function"], indent=4))
        if turns[0] and turns[0][0].role == "system":
            system += "\n\n" + turns[0].pop(0).content
        turns[0].insert(0, Message("system", system))
        return turns

    def _turn(self, child: Child, talk: _Conversation, say: Say) -> bool:
        """Let the model call functions until it calls none. False when it would not end."""
        for _ in range(self._package.steps + 1):
            reply = say(talk.chat)
            text = spoken(reply.text)
            talk.chat.append(Message("assistant", text))
            talk.cut = talk.cut or not reply.stopped
            try:
                calls = [offered(call, talk.functions) for call in read_calls(text)]
            except NoCallsError:
                return True
            if not calls:
                return True
            talk.chat.append(Message("user", _made(child, calls)))
        return False

    def _asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """One answer of the package outside of any attempt."""
        try:
            with self._child() as child:
                return child.ask(request)
        except ChildError as error:
            raise MissingExtraError(
                f"the suite bfcl-multi-turn needs the package bfcl-eval, which {self._python} cannot use "
                f"({error}): {_INSTALL}"
            ) from error

    def _child(self) -> Child:
        with own_faults():
            return Child((str(HERE / "bfcl_worker.py"),), _LIMITS, self._crew, python=self._python)


def _made(child: Child, calls: Sequence[Call]) -> str:
    """Make the calls of one step; what they came to, in the package's form."""
    rendered = [None if call.problem else call.rendered() for call in calls]
    results = child.ask({"do": "call", "calls": rendered})["results"]
    return repr(
        [
            {
                "role": "tool",
                "name": call.rendered(),
                "content": f"Error during execution: {call.problem}" if call.problem else result,
            }
            for call, result in zip(calls, results, strict=True)
        ]
    )


def _graded(found: Mapping[str, Any], talk: _Conversation) -> Attempt:
    if found["valid"]:
        return Attempt(score=1.0, correct=True, transcript=tuple(talk.chat))
    detail = f"{found['kind']}: {found['message']}"
    if talk.cut:
        return Attempt.failed(Failure.CUT, talk.chat, detail)
    if str(found["kind"]).endswith("empty_turn_model_response"):
        return Attempt.failed(NO_CALL, talk.chat, detail)
    return Attempt(score=0.0, correct=False, transcript=tuple(talk.chat), detail=detail)
