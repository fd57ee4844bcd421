"""What a suite of an evaluation is: a fixed list of items, and how one of them is played and graded.

A suite asks a model through `say` alone; it knows neither endpoints nor threads nor files. What goes wrong on the
model's side is a value: an `Attempt` with a `failure`. What a suite raises while it plays is counted as a failure too
(`Failure.CHECKER`), so one bad item never ends an evaluation. Only a model that cannot be reached does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Protocol

from spade_loop.completers import Reply
from spade_loop.errors import ConfigError
from spade_loop.speaking import Decoding
from spade_loop.types import Message

Say = Callable[[Sequence[Message]], Reply]
"""Ask the model: blocks until it has answered. Each call of one attempt draws from a stream of its own."""
GROUP: Final = "spade_loop.suites"
"""Entry-point group under which other packages offer suites: name -> factory."""
KIND: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", re.ASCII)
"""How the kind of a failure is spelled."""


class Failure(StrEnum):
    """Why an attempt came to nothing, other than by a wrong answer. A suite may use further kinds, spelled alike."""

    CUT = "cut"
    """The token limit cut the reply before there was an answer in it."""
    EMPTY = "empty"
    """The reply held nothing."""
    UNPARSED = "unparsed"
    """The reply was complete and held no answer that could be read."""
    CONTEXT = "context"
    """The conversation no longer fitted into the model's context."""
    TURNS = "turns"
    """The turns ran out."""
    CHECKER = "checker"
    """Grading raised an exception, or did not finish."""
    FAULT = "fault"
    """The environment failed. Nothing of it is charged to the model: the attempt is left out of every rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question, task or instance of a suite."""

    id: str
    """The same in every run, on every machine: results are paired by it."""
    category: str
    content: Any = field(default=None, repr=False, compare=False)
    """Whatever the suite needs to play it; never written to a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What one try at an item came to."""

    score: float
    """In [0, 1]."""
    correct: bool
    transcript: tuple[Message, ...] = ()
    """The whole conversation, as the model saw it and answered."""
    failure: str = ""
    """A kind of `Failure`, or one of the suite's own; empty for an answer that could be graded, right or wrong."""
    detail: str = ""
    """For people: what was read, what was expected, what the checker said."""

    def __post_init__(self) -> None:
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(f"the score of an attempt lies in 0..1, got {self.score!r}")
        if self.failure and not KIND.fullmatch(self.failure):
            raise ValueError(
                f"the kind of a failure is written like {Failure.UNPARSED!r}, got {self.failure!r}"
            )
        if self.failure and self.correct:
            raise ValueError(f"an attempt that failed ({self.failure}) cannot be correct")

    @property
    def counted(self) -> bool:
        """Whether it enters rates: always, but for a fault of the environment."""
        return self.failure != Failure.FAULT

    @classmethod
    def failed(cls, failure: str, transcript: Sequence[Message] = (), detail: str = "") -> Attempt:
        """An attempt that scores 0 for a reason."""
        return cls(
            score=0.0, correct=False, transcript=tuple(transcript), failure=failure, detail=detail
        )


class Suite(Protocol):
    """A benchmark: whatever has these members. It need not inherit from this class.

    A factory (usually the class itself) is called with the options of the command line by name; its annotations type
    them (`str`, `int`, `float`, `bool`, `Path`, `Literal`, `tuple[str, ...]`, each with `| None`), and a parameter
    called `seed` gets `--seed` where no option sets it. It raises `ConfigError` for options that make no sense,
    `ModelError` for data that is not there and `MissingExtraError` for a package that is not installed.
    """

    @property
    def name(self) -> str:
        """How results are labelled: the suite's name, with what makes its items others, such as `snapshot:core`."""

    @property
    def version(self) -> str:
        """Changes whenever items, prompts or grading do: results of different versions are not comparable."""

    @property
    def decoding(self) -> Decoding:
        """How the model answers where the command line does not say otherwise."""

    @property
    def samples(self) -> int:
        """Tries at each item where the command line does not say otherwise."""

    def items(self, limit: int | None) -> Sequence[Item]:
        """The fixed list, always in the same order; with a limit, at most so many, evenly from its parts (`spread`)."""

    def play(self, item: Item, say: Say, seed: int) -> Attempt:
        """Play and grade one item. Called from many threads at once; `seed` is all the chance it may use.

        It lets exceptions of `say` through: the model could not be reached, or its context is full.
        """

    def close(self) -> None:
        """Free what the suite holds: pools, files."""


def spread(
    items: Sequence[Item], limit: int | None, by: Callable[[Item], str] = lambda item: item.category
) -> tuple[Item, ...]:
    """At most `limit` items, taken in turn from each group, in the order of the list; all of them without a limit.

    Where there are more groups than the limit allows, they are taken from each category in turn. A smaller limit takes
    a part of what a larger one takes. `ConfigError` for a limit below 1.
    """
    if limit is None:
        return tuple(items)
    if limit < 1:
        raise ConfigError(f"--limit must be at least 1, got {limit}")
    of_group: Counter[str] = Counter()
    of_category: Counter[tuple[int, str]] = Counter()
    ranked = []
    for place, item in enumerate(items):
        group = by(item)
        of_group[group] += 1
        turn = of_group[group]
        of_category[turn, item.category] += 1
        ranked.append((turn, of_category[turn, item.category], place))
    return tuple(items[place] for place in sorted(place for *_, place in sorted(ranked)[:limit]))


def unread(reply: Reply, transcript: Sequence[Message], detail: str = "") -> Attempt:
    """The failure of a reply in which no answer was found: cut, empty or unparsed."""
    kind = Failure.CUT if not reply.stopped else Failure.UNPARSED
    if reply.stopped and not reply.text.strip():
        kind = Failure.EMPTY
    return Attempt.failed(kind, transcript, detail)


def answered(chat: Sequence[Message], reply: Reply) -> tuple[Message, ...]:
    """A chat with the model's reply at its end."""
    return (*chat, Message("assistant", reply.text))
