"""Chats as token ids, for any chat template, without ever re-tokenising what a model said.

Text from an environment, a corpus or a designer may spell the template's own tokens (`<|im_end|>`). The template is
therefore rendered around placeholders, and only the template's part is tokenised with special tokens enabled.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from spade_loop.errors import ModelError
from spade_loop.types import Message

_SENTINEL = "SYNTHGYMCONTENT{}PLACEHOLDER"
_SENTINEL_PATTERN = re.compile(r"SYNTHGYMCONTENT(\d+)PLACEHOLDER")


class Tokenizer(Protocol):
    """What we use of a Hugging Face tokenizer."""

    eos_token_id: int | None

    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any:
        """Render a chat."""

    def encode(self, text: str, **kwargs: Any) -> Any:
        """Token ids of a text."""

    def decode(self, token_ids: Any, **kwargs: Any) -> Any:
        """Text of token ids."""


class ChatFormat:
    """How one tokenizer writes a chat."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if tokenizer.eos_token_id is None:
            raise ModelError(
                "the tokenizer has no end-of-sequence token, by which a turn would end"
            )
        self._tokenizer = tokenizer
        self.stop_ids = frozenset({tokenizer.eos_token_id}) | _turn_end_ids(tokenizer)
        before, after = self._around_reply()
        self._reply_end = after
        self._opening = before

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids of a chat, up to the point at which the assistant begins to speak."""
        return self._encode_rendered(
            self._render(messages, generate=True), [m.content for m in messages]
        )

    def next_turn(self, text: str, *, stopped: bool) -> tuple[int, ...]:
        """Ids that follow a reply: the rest of its turn, a user message, the opening of the next reply.

        `stopped` says whether the model itself ended its turn; if the token limit cut it, the end is added here.
        """
        rendered = self._reply_end + self._opening
        ids = self._encode_rendered(rendered, [text])
        if stopped and ids and ids[0] in self.stop_ids:
            return ids[1:]
        return ids

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Ids of plain text, in which nothing is a special token."""
        return tuple(
            self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        )

    def decode(self, ids: Sequence[int]) -> str:
        """The text of a reply, without special tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def _render(self, messages: Sequence[Message], *, generate: bool) -> str:
        chat = [{"role": m.role, "content": _SENTINEL.format(i)} for i, m in enumerate(messages)]
        text = self._tokenizer.apply_chat_template(
            chat, add_generation_prompt=generate, tokenize=False
        )
        return str(text)

    def _around_reply(self) -> tuple[str, str]:
        """(from the end of a reply's turn through the next user message to the next reply, the reply's end)."""
        chat = [Message("user", ""), Message("assistant", ""), Message("user", "")]
        text = self._render(chat, generate=True)
        pieces = _SENTINEL_PATTERN.split(text)
        if pieces[1::2] != ["0", "1", "2"]:
            raise ModelError(
                "the chat template drops or reorders messages: a turn cannot be appended to it"
            )
        between, opening = pieces[4], pieces[6]
        end, found, rest = self._split_turn_end(between)
        if not found:
            raise ModelError("the chat template does not end an assistant turn with a stop token")
        return rest + _SENTINEL.format(0) + opening, end

    def _split_turn_end(self, text: str) -> tuple[str, bool, str]:
        for stop in sorted(self.stop_ids):
            token = str(self._tokenizer.decode([stop], skip_special_tokens=False))
            if token and text.startswith(token):
                return token, True, text[len(token) :]
        return "", False, text

    def _encode_rendered(self, rendered: str, contents: Sequence[str]) -> tuple[int, ...]:
        ids: list[int] = []
        for position, piece in enumerate(_SENTINEL_PATTERN.split(rendered)):
            if position % 2 == 0:
                ids += self._tokenizer.encode(piece, add_special_tokens=False)
            else:
                ids += self.encode_text(contents[int(piece)].strip())
        return tuple(ids)


def _turn_end_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """The token with which the template ends an assistant's turn, when it is one special token (`<|im_end|>`)."""
    chat = [
        {"role": "user", "content": _SENTINEL.format(0)},
        {"role": "assistant", "content": _SENTINEL.format(1)},
    ]
    text = str(tokenizer.apply_chat_template(chat, add_generation_prompt=False, tokenize=False))
    ending = _SENTINEL_PATTERN.split(text)[-1].lstrip()
    ids = tokenizer.encode(ending, add_special_tokens=False)
    first = str(tokenizer.decode([ids[0]], skip_special_tokens=True)) if ids else "x"
    return frozenset({ids[0]}) if first == "" else frozenset()
