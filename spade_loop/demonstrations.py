"""Demonstrations: chats with replies that are worth imitating, as rows of a file and as token ids.

A row is one JSON object on a line. `prompt` is what stands before the first reply, `completion` goes on from there:
replies of the assistant, and what the user said between them. The replies of the completion are trained on, nothing
else; those in the prompt are examples that every episode shows.

    {"role": "agent", "prompt": [{"role": "user", "content": "..."}], "completion": [{"role": "assistant", ...}, ...]}

`spade-loop warmstart` writes such rows, and trains on them; `rehearsal.rows` has every update of a run train on them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from spade_loop.chat import ChatFormat
from spade_loop.config import Config
from spade_loop.errors import ConfigError, ModelError
from spade_loop.types import Arm, Completion, JsonRow, Message, Role
from synthgym.ids import did_you_mean
from synthgym.spec import sha256_digest

TRAIN: Final = "train"
HELD_OUT: Final = "held-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One row."""

    id: str = ""
    """What a person may call it."""
    role: Role
    split: Literal["train", "held-out"] = TRAIN
    """Held-out rows are never trained on."""
    environment: str = ""
    digest: str = ""
    """Of the environment that is played, or designed."""
    seed: int | None = None
    """Of the episode."""
    arm: Arm | None = None
    """Whether the first observation holds the hint."""
    prompt: tuple[Message, ...]
    """Ends with a user message."""
    completion: tuple[Message, ...]
    """Assistant and user in turns; begins and ends with the assistant."""

    def __post_init__(self) -> None:
        """Refuse chats in which nobody speaks, or twice in a row; `ValueError` says what was expected."""
        if not self.prompt or self.prompt[-1].role != "user":
            raise ValueError(
                "`prompt` must end with a user message, to which the completion replies"
            )
        roles = [m.role for m in self.completion]
        if roles != ["assistant", "user"] * (len(roles) // 2) + ["assistant"]:
            raise ValueError(
                "`completion` must have assistant and user in turns, and begin and end with the assistant, got "
                f"{', '.join(roles) or 'no message'}"
            )
        if not all(m.content.strip() for m in self.completion if m.role == "assistant"):
            raise ValueError("`completion` has a reply without text: there is nothing to imitate")

    def to_json(self) -> JsonRow:
        """The row, in the order of the fields."""
        row: JsonRow = msgspec.to_builtins(self)
        return row


_NAMES: Final = tuple(f.name for f in fields(Demonstration))


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """The rows of a file."""

    rows: tuple[Demonstration, ...]
    digest: str
    """`sha256:<hex>` of the file."""


def read_demonstrations(path: Path) -> Demonstrations:
    """Read a file of rows. `ConfigError` names file and line of whatever is wrong: no row is skipped."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path}: cannot read demonstrations ({error}): expected the rows.jsonl that `spade-loop warmstart` writes"
        ) from error
    # Split at line feeds alone: a text may hold every other character that Python splits lines at.
    lines = [(n, line) for n, line in enumerate(text.split("\n"), start=1) if line.strip()]
    if not lines:
        raise ConfigError(f"{path} holds no demonstration: expected a JSON object on every line")
    return Demonstrations(
        tuple(_row(line, f"{path}, line {number}") for number, line in lines), sha256_digest(data)
    )


def _row(line: str, where: str) -> Demonstration:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{where}: expected a JSON object, got {line[:60]!r}: {error}") from error
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected a JSON object, got {line[:60]!r}")
    for key in data:
        if key not in _NAMES:
            raise ConfigError(
                f"{where}: unknown key {key!r}{did_you_mean(key, _NAMES)} (a row has: {', '.join(_NAMES)})"
            )
    for key in ("prompt", "completion"):
        _check_messages(data.get(key, ()), f"{where}: {key}")
    try:
        return msgspec.convert(data, Demonstration)
    except (ValueError, TypeError) as error:  # msgspec.ValidationError is a ValueError
        raise ConfigError(f"{where}: {error}") from error


def _check_messages(messages: Any, where: str) -> None:
    """Refuse keys that would be dropped; everything else is told by the conversion."""
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        unknown = sorted(set(message) - {"role", "content"}) if isinstance(message, dict) else []
        if unknown:
            raise ConfigError(
                f"{where}[{number}]: unknown key {unknown[0]!r}: a message has role and content, and tool calls are "
                "written into the content, as the agent writes them"
            )


# --- as token ids ---


@dataclass(frozen=True, slots=True)
class Encoded:
    """A demonstration as one model writes it. Log-probabilities are 0: nothing was sampled."""

    demonstration: Demonstration
    prompt_ids: tuple[int, ...]
    completion: Completion
    """Mask 1 on the replies and the token that ends each, 0 on what the user says and on the template."""
    turns: int
    """Replies that are left of it."""

    @property
    def whole(self) -> bool:
        """Whether no reply was cut off."""
        return self.turns == (len(self.demonstration.completion) + 1) // 2


@dataclass(frozen=True, slots=True)
class Room:
    """How much of a demonstration a run would get to see; None knows no limit."""

    turns: int | None = None
    reply: int | None = None
    """Tokens of a reply, its end included."""
    total: int | None = None
    """Tokens of the whole, prompt included."""

    @classmethod
    def of(cls, config: Config, role: Role) -> Room:
        """What a recipe gives to a role."""
        if role is Role.DESIGNER:
            return cls(turns=1 + config.designer.repairs, reply=config.designer.max_tokens)
        agent = config.agent
        return cls(turns=agent.max_turns, reply=agent.turn_tokens, total=agent.context)


def encode(chat: ChatFormat, demonstration: Demonstration, room: Room) -> Encoded | None:
    """A demonstration as ids, up to the first reply for which there is no `room`; None when that is the first one.

    These are the ids that a run would hold, had the model said this: every piece is encoded as an episode encodes it.
    A turn fits when a reply of the greatest length would, as in an episode. `ModelError` for a template that opens a
    thought in each reply: a demonstration has none.
    """
    if chat.reply(()):
        raise ModelError(
            "the chat template opens a thought in each reply, and demonstrations have none: set policy.thinking=off"
        )
    prompt = chat.prompt(demonstration.prompt)
    ids: list[int] = []
    mask: list[int] = []
    turns = 0
    for between, reply in _turns(chat, demonstration.completion):
        start = len(prompt) + len(ids) + len(between)
        if (
            (room.turns is not None and turns >= room.turns)
            or (room.reply is not None and len(reply) > room.reply)
            or (room.total is not None and start + (room.reply or len(reply)) > room.total)
        ):
            break
        ids += [*between, *reply]
        mask += [0] * len(between) + [1] * len(reply)
        turns += 1
    if not turns:
        return None
    completion = Completion(tuple(ids), (0.0,) * len(ids), tuple(mask))
    return Encoded(demonstration, tuple(prompt), completion, turns)


def _turns(
    chat: ChatFormat, completion: Sequence[Message]
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(what stands between the last reply and this one, this reply with its end) of each reply."""
    between: tuple[int, ...] = ()
    for message in completion:
        if message.role == "assistant":
            yield between, (*chat.encode_text(message.content.strip()), chat.end_id)
        else:
            between = chat.next_turn(message.content, stopped=True, last=chat.end_id)
