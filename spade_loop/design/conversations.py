"""Talking to whoever designs: the policy, token by token, or another model, text by text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from spade_loop.completers import JsonSchema, Sampler, Writer
from spade_loop.types import NOTHING, Completion, Message

Stream = Sequence[int]
SchemaOf = Callable[[int], JsonSchema | None]
"""The schema under which a row's reply is sampled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """One reply."""

    text: str
    stopped: bool
    """False when the token limit cut it."""
    prompt_ids: tuple[int, ...] = ()
    """Everything before the reply; empty when another model than the policy spoke."""
    completion: Completion = NOTHING


class Conversation(Protocol):
    """Chats with one designer, in rows."""

    mends: bool
    """Whether it answers a question about what it said."""

    def speak(self, rows: Sequence[int], schema: SchemaOf) -> dict[int, Spoken]:
        """The next reply of each of `rows`."""

    def ask(self, texts: Mapping[int, str]) -> None:
        """Say something to each row, to which its next reply answers."""


class PolicyConversation:
    """Chats with the model in training, or with the model that it was before training."""

    mends = True

    def __init__(
        self,
        sampler: Sampler,
        chats: Sequence[Sequence[Message]],
        *,
        streams: Sequence[Stream],
        max_tokens: int,
        initial: bool,
    ) -> None:
        self._chat = sampler.chat
        self._max_tokens = max_tokens
        self._said = [list(sampler.chat.prompt(messages)) for messages in chats]
        self._ended = [(True, -1)] * len(chats)
        """How the last reply of each row ended: whether by itself, and with which token."""
        self._dialogue = sampler.open(self._said, streams=streams, initial=initial)

    def speak(self, rows: Sequence[int], schema: SchemaOf) -> dict[int, Spoken]:
        """Replies; rows that share a schema are sampled together."""
        spoken: dict[int, Spoken] = {}
        for own, members in _by_schema(rows, schema):
            for row, completion in self._dialogue.generate(members, self._max_tokens, own).items():
                spoken[row] = Spoken(
                    text=self._chat.reply(completion.ids),
                    stopped=completion.stopped,
                    prompt_ids=tuple(self._said[row]),
                    completion=completion,
                )
                self._said[row] += completion.ids
                self._ended[row] = completion.stopped, completion.ids[-1]
        return spoken

    def ask(self, texts: Mapping[int, str]) -> None:
        """Open the next turn of each row; the others are over."""
        self._dialogue.drop([row for row in range(len(self._said)) if row not in texts])
        chunks = {
            row: self._chat.next_turn(text, stopped=self._ended[row][0], last=self._ended[row][1])
            for row, text in texts.items()
        }
        for row, ids in chunks.items():
            self._said[row] += ids
        self._dialogue.feed(chunks)


class WriterConversation:
    """Chats with a model that is not trained here."""

    mends = True

    def __init__(
        self,
        writer: Writer,
        chats: Sequence[Sequence[Message]],
        *,
        streams: Sequence[Stream],
        max_tokens: int,
        temperature: float,
    ) -> None:
        self._writer = writer
        self._chats = [list(messages) for messages in chats]
        self._streams = [list(stream) for stream in streams]
        self._max_tokens, self._temperature = max_tokens, temperature

    def speak(self, rows: Sequence[int], schema: SchemaOf) -> dict[int, Spoken]:
        """Replies; rows that share a schema are asked for together."""
        spoken: dict[int, Spoken] = {}
        for own, members in _by_schema(rows, schema):
            replies = self._writer.write(
                [self._chats[row] for row in members],
                max_tokens=self._max_tokens,
                temperature=self._temperature,
                seeds=[_seed([*self._streams[row], len(self._chats[row])]) for row in members],
                schema=own,
            )
            for row, reply in zip(members, replies, strict=True):
                spoken[row] = Spoken(text=reply.text, stopped=reply.stopped)
                self._chats[row].append(Message("assistant", reply.text))
        return spoken

    def ask(self, texts: Mapping[int, str]) -> None:
        """Append a message to each chat."""
        for row, text in texts.items():
            self._chats[row].append(Message("user", text))


class DrawnConversation:
    """No model at all: replies that a function draws. They are final."""

    mends = False

    def __init__(
        self, draw: Callable[[int, np.random.Generator], str], streams: Sequence[Stream]
    ) -> None:
        self._draw = draw
        self._streams = [list(stream) for stream in streams]

    def speak(self, rows: Sequence[int], schema: SchemaOf) -> dict[int, Spoken]:
        """What the function draws for each row."""
        del schema
        return {
            row: Spoken(
                text=self._draw(row, np.random.default_rng(self._streams[row])), stopped=True
            )
            for row in rows
        }

    def ask(self, texts: Mapping[int, str]) -> None:
        """Nobody is there to answer."""
        raise TypeError(f"{len(texts)} drawn designs cannot be mended")


def _by_schema(rows: Sequence[int], schema: SchemaOf) -> list[tuple[JsonSchema | None, list[int]]]:
    """Rows that share a schema, with it, in the order of their first rows."""
    groups: dict[str, tuple[JsonSchema | None, list[int]]] = {}
    for row in rows:
        own = schema(row)
        groups.setdefault(json.dumps(own), (own, []))[1].append(row)
    return list(groups.values())


def _seed(stream: Stream) -> int:
    """A 31-bit seed, which every endpoint takes."""
    return int(np.random.SeedSequence(list(stream)).generate_state(1)[0]) >> 1
