"""Sampling in several processes: the leader decides what is said, every rank lets its share of the rows speak.

A conversation has a random stream of its own, so what it says does not depend on how many ranks there are. Every
command is answered with a value or a `Failure`; a rank that fails waits for the leader, who ends the others and raises.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import Any, Protocol, runtime_checkable

from spade_loop.chat import ChatFormat
from spade_loop.completers import Dialogue, JsonSchema, Sampler
from spade_loop.errors import WorldError
from spade_loop.types import Completion
from spade_loop.world import Failure, World, refuse_failures


@runtime_checkable
class Collective(Protocol):
    """A sampler whose ranks have to speak all at once, those with nothing to say included."""

    def keep_company(self) -> None:
        """Take part in a call of the other ranks."""


@dataclass(frozen=True, slots=True)
class _Open:
    dialogue: int
    prompts: Sequence[Sequence[int]]
    streams: Sequence[Sequence[int]]
    initial: bool


@dataclass(frozen=True, slots=True)
class _Generate:
    dialogue: int
    rows: tuple[int, ...]
    max_tokens: int
    schema: JsonSchema | None


@dataclass(frozen=True, slots=True)
class _Feed:
    dialogue: int
    chunks: dict[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class _Drop:
    dialogue: int
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _End:
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class _Order:
    """What the leader sends: a command, and the dialogues that nobody holds any more."""

    command: _Open | _Generate | _Feed | _Drop | _End
    closed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one dialogue that are this rank's: `start` and those that follow it."""

    rows: range
    dialogue: Dialogue

    def own(self, rows: Sequence[int]) -> list[int]:
        """Those of `rows` that are ours, as the local dialogue numbers them."""
        return [row - self.rows.start for row in rows if row in self.rows]


class _Share:
    """A rank's part of every dialogue. A rank without a row in a dialogue has no part in it."""

    def __init__(self, local: Sampler, world: World) -> None:
        self._local = local
        self._world = world
        self._parts: dict[int, _Part] = {}

    def run(self, order: _Order) -> dict[int, Completion]:
        """Execute a command on our rows; completions by row, where there are any."""
        for number in order.closed:
            self._parts.pop(number, None)
        command = order.command
        if isinstance(command, _Open):
            self._open(command)
            return {}
        if isinstance(command, _End):
            self._parts.clear()
            return {}
        part = self._parts.get(command.dialogue)
        if isinstance(command, _Generate):
            return self._generate(part, command)
        if part is not None:
            _change(part, command)
        return {}

    def _open(self, command: _Open) -> None:
        rows = block(len(command.prompts), self._world.rank, self._world.size)
        if rows:
            dialogue = self._local.open(
                command.prompts[rows.start : rows.stop],
                streams=command.streams[rows.start : rows.stop],
                initial=command.initial,
            )
            self._parts[command.dialogue] = _Part(rows, dialogue)

    def _generate(self, part: _Part | None, command: _Generate) -> dict[int, Completion]:
        own = [] if part is None else part.own(command.rows)
        if part is None or not own:
            if isinstance(self._local, Collective):
                self._local.keep_company()
            return {}
        replies = part.dialogue.generate(own, command.max_tokens, command.schema)
        return {row + part.rows.start: completion for row, completion in replies.items()}


def _change(part: _Part, command: _Feed | _Drop) -> None:
    """Feed or drop what is ours of it."""
    if isinstance(command, _Drop):
        own = part.own(command.rows)
        if own:
            part.dialogue.drop(own)
        return
    own = part.own(tuple(command.chunks))
    if own:
        part.dialogue.feed({row: command.chunks[row + part.rows.start] for row in own})


class LeadingSampler:
    """The sampler of the leader. As a context it ends the followers, with what was raised if something was."""

    def __init__(self, local: Sampler, world: World) -> None:
        self._local = local
        self._world = world
        self._share = _Share(local, world)
        self._numbers = count()
        self._closed: list[int] = []
        self._asking = False

    def __enter__(self) -> LeadingSampler:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # In the midst of a command the others wait for something else: they learn of the end when we are gone.
        if not self._asking:
            failure = None if error is None else Failure.of(error)
            self._world.broadcast(_Order(_End(failure), ()))

    @property
    def chat(self) -> ChatFormat:
        """How the model writes a chat."""
        return self._local.chat

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> LeadingDialogue:
        """Conversations, in one block of about equal size for each rank."""
        if len(streams) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts need as many streams, got {len(streams)}")
        number = next(self._numbers)
        self.ask(_Open(number, list(prompts), list(streams), initial))
        dialogue = LeadingDialogue(self, number)
        # What nobody holds any more is forgotten everywhere, with the next command.
        weakref.finalize(dialogue, self._closed.append, number)
        return dialogue

    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        """Log-probabilities of one completion: nothing to share out, the leader's model gives them."""
        return self._local.score(prompt_ids, completion)

    def ask(self, command: _Open | _Generate | _Feed | _Drop) -> dict[int, Completion]:
        """Have every rank execute a command; what they answer, together. `WorldError` names a rank that failed."""
        order = _Order(command, tuple(self._closed))
        del self._closed[: len(order.closed)]
        self._asking = True
        self._world.broadcast(order)
        try:
            own = self._share.run(order)
        except Exception as error:
            self._world.gather(Failure.of(error))
            self._asking = False
            raise
        answers = self._world.gather(own)
        self._asking = False
        refuse_failures(answers)
        return {row: completion for answer in answers for row, completion in answer.items()}


class LeadingDialogue:
    """Conversations whose rows lie on several ranks."""

    def __init__(self, sampler: LeadingSampler, number: int) -> None:
        self._sampler = sampler
        self._number = number

    def generate(
        self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
    ) -> dict[int, Completion]:
        """Let the model speak in `rows`, on all ranks at once; completions in the order of `rows`."""
        rows = tuple(rows)
        replies = self._sampler.ask(_Generate(self._number, rows, max_tokens, schema))
        return {row: replies[row] for row in rows}

    def feed(self, chunks: Mapping[int, Sequence[int]]) -> None:
        """Append ids where the rows are."""
        self._sampler.ask(_Feed(self._number, dict(chunks)))

    def drop(self, rows: Sequence[int]) -> None:
        """Forget rows where they are."""
        self._sampler.ask(_Drop(self._number, tuple(rows)))


@contextmanager
def leading(local: Sampler, world: World) -> Iterator[Sampler]:
    """What the leader samples with: `local` itself in a run of one process."""
    if world.size == 1:
        yield local
        return
    with LeadingSampler(local, world) as sampler:
        yield sampler


def follow(local: Sampler, world: World) -> None:
    """Execute the leader's commands until it ends them.

    Raises what `local` raised, once the leader knows of it, or `WorldError` when the leader ended with an error.
    """
    share = _Share(local, world)
    while True:
        order: _Order = world.broadcast(None)
        if isinstance(order.command, _End):
            if order.command.failure is not None:
                raise WorldError(f"rank 0 failed: {order.command.failure.text}")
            return
        try:
            answer: Any = share.run(order)
        except Exception as error:
            world.gather(Failure.of(error))
            with suppress(WorldError):
                world.broadcast(None)  # by this the leader has read it, and ends
            raise
        world.gather(answer)


def block(count: int, rank: int, size: int) -> range:
    """The contiguous block of `count` rows that is `rank`'s; sizes differ by one at most."""
    return range(rank * count // size, (rank + 1) * count // size)
