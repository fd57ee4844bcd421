"""Chats as token ids, for any chat template, without ever re-tokenising what a model said.

Text from an environment, a corpus or a designer may spell the template's own tokens (`<|im_end|>`). The template is
therefore rendered around placeholders, and no text that is put in their place becomes one of its tokens.

A conversation only ever grows: prompt, reply, next turn, reply, ... Nothing is rendered a second time, so what was
sampled is what is trained on, whatever a template does to earlier replies. Templates of thinking models (Qwen3) take
the thoughts out of them; here they stay. The context fills faster for it, and an agent that thinks needs a larger
`agent.context`; in return an episode is one sequence that is scored in one forward pass, not one for each turn, and
every thought is trained in the context that it was sampled in.

A template without a system role gets the system message in front of the first user message, a blank line between; one
that insists on alternating roles gets neighbours of one role as one message. A template whose turns depend on what
follows them, so that none can be appended, is refused when it is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

from jinja2 import TemplateError

from spade_loop.errors import ModelError
from spade_loop.types import Message

_MARK = "SYNTHGYMCONTENT{}PLACEHOLDER"
_MARKS = re.compile(r"SYNTHGYMCONTENT(\d+)PLACEHOLDER")
_KNOWN_TEXTS = 4096
_SHORT_CHARS = 2000
"""Rendered texts up to this length are remembered with their ids, as many as there is room for."""
_UNKNOWN = "\U0010fffd"
"""A character that no vocabulary holds."""
_TAG = re.compile(r"</?(?:think|thinking|thought|reasoning)>")
_THOUGHT_OPENED = re.compile(r"<(?:think|thinking|thought|reasoning)>\s*\Z")
_THOUGHT_EMPTY = re.compile(r"<(think|thinking|thought|reasoning)>\s*</\1>\s*\Z")


class Tokenizer(Protocol):
    """What we use of a Hugging Face tokenizer."""

    eos_token_id: int | None
    unk_token_id: int | None

    @property
    def all_special_ids(self) -> list[int]:
        """Ids of the special tokens."""

    @property
    def added_tokens_decoder(self) -> Mapping[int, Any]:
        """Tokens that are matched before anything else, by id; each with its `content` and whether it is `special`."""

    def get_chat_template(self, chat_template: str | None = None) -> str:
        """The source of the template; `ValueError` when there is none."""

    def apply_chat_template(self, conversation: Any, **kwargs: Any) -> Any:
        """Render a chat."""

    def encode(self, text: str, **kwargs: Any) -> Any:
        """Token ids of a text."""

    def decode(self, token_ids: Any, **kwargs: Any) -> Any:
        """Text of token ids."""


class ChatFormat:
    """How one tokenizer writes a chat."""

    def __init__(
        self, tokenizer: Tokenizer, *, thinking: bool | None = None, stop_ids: Collection[int] = ()
    ) -> None:
        """`ModelError` for a template that turns cannot be appended to, and where nothing would end a reply.

        `thinking` is handed to a template that can be told to think or not (`enable_thinking`); None leaves it to the
        template. `stop_ids` end a reply beside the tokenizer's and the template's own: those of a generation config.
        """
        self._tokenizer = tokenizer
        self._encoded: dict[str, tuple[int, ...]] = {}
        """Ids of the template's own pieces, which are few and come with every prompt."""
        self._template = _Template(tokenizer, thinking)
        self._control = _control_ids(tokenizer, self._template.source)
        self._turn, self._opening = self._template.turn()
        end_id = self._first_control(self._turn)
        if end_id is None:
            raise ModelError(
                "the chat template does not end an assistant turn with a stop token: nothing would end a reply. "
                "Take a model whose template writes one behind each reply"
            )
        self.end_id = end_id
        """The id with which the template ends a reply."""
        self._check_last_end()
        own = set() if tokenizer.eos_token_id is None else {tokenizer.eos_token_id}
        self.stop_ids = frozenset({end_id, *own, *stop_ids})
        """Every id that ends a reply."""
        self._control |= self.stop_ids
        self._hidden = _hidden_ids(tokenizer) | self.stop_ids
        thought = _THOUGHT_OPENED.search(self._opening)
        self._thought = "" if thought is None else thought.group()
        self._known = lru_cache(_KNOWN_TEXTS)(self._encoded_pieces)

    def prompt(self, messages: Sequence[Message]) -> tuple[int, ...]:
        """Ids of a chat, up to the point at which the assistant begins to speak.

        White space around a message is cut off. `ModelError` when the template refuses the order of roles.
        """
        chat = self._template.arrange(messages)
        rendered = self._template.render([m.role for m in chat], generate=True)
        return self._encode_rendered(rendered, [m.content for m in chat])

    def next_turn(self, text: str, *, stopped: bool, last: int | None = None) -> tuple[int, ...]:
        """Ids that follow a reply: the rest of its turn, a user message, the opening of the next reply.

        `stopped` says whether the model itself ended its turn; if the token limit cut it, the end is added here. `last`
        is the reply's last id: where it is a stop token other than the template's, the template's follows it.
        """
        rendered = self._turn + _MARK.format(0) + self._opening
        ids = self._encode_rendered(rendered, [text.strip()])
        start = ids.index(self.end_id)
        ended = stopped and last in (None, self.end_id)
        return ids[start + 1 :] if ended else ids[start:]

    def encode_text(self, text: str) -> tuple[int, ...]:
        """Ids of plain text, in which nothing is a special token or one that the template uses."""
        ids = tuple(
            self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        )
        if self._control.isdisjoint(ids):
            return ids
        if len(text) < 2:
            return tuple(i for i in ids if i not in self._control)
        # Tokens that are not special are matched all the same (Qwen's `<think>`): no half of one is.
        middle = len(text) // 2
        return self.encode_text(text[:middle]) + self.encode_text(text[middle:])

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids, without special tokens but for the tags around thoughts."""
        shown = [i for i in ids if i not in self._hidden]
        return str(self._tokenizer.decode(shown, skip_special_tokens=False))

    def reply(self, ids: Sequence[int]) -> str:
        """The text of a reply; behind the tag that opens a thought, where the template itself opened it."""
        return self._thought + self.decode(ids)

    def _check_last_end(self) -> None:
        last = self._first_control(self._template.last_end())
        if last is not None and last != self.end_id:
            one, other = (
                self._tokenizer.decode([i], skip_special_tokens=False) for i in (last, self.end_id)
            )
            raise ModelError(_varies("the end of a reply", str(one), str(other)))

    def _first_control(self, text: str) -> int | None:
        """The token that `text` begins with, if it is not plain text."""
        ids = self._tokenizer.encode(text.lstrip(), add_special_tokens=False)
        return int(ids[0]) if ids and ids[0] in self._control else None

    def _encode_rendered(self, rendered: str, contents: Sequence[str]) -> tuple[int, ...]:
        """Ids of a rendered chat, its placeholders replaced.

        As one text where that keeps contents plain, so that the ids are those of the template's own; else in pieces.
        """
        pieces = _MARKS.split(rendered)
        pieces[1::2] = [contents[int(number)] for number in pieces[1::2]]
        short = sum(map(len, pieces)) <= _SHORT_CHARS
        # Both arms, and all plays of a seed, begin alike; small environments say the same things over and over.
        return self._known(*pieces) if short else self._encoded_pieces(*pieces)

    def _encoded_pieces(self, *pieces: str) -> tuple[int, ...]:
        """Ids of pieces of the template and contents in turn."""
        literals = [self._literal(piece) for piece in pieces[::2]]
        whole = tuple(self._tokenizer.encode("".join(pieces), add_special_tokens=False))
        if self._controls(whole) == [i for ids in literals for i in self._controls(ids)]:
            return whole
        parts: list[tuple[int, ...]] = [()] * len(pieces)
        parts[::2] = literals
        parts[1::2] = [self.encode_text(text) for text in pieces[1::2]]
        return tuple(i for ids in parts for i in ids)

    def _literal(self, text: str) -> tuple[int, ...]:
        """Ids of a piece of the template."""
        if text not in self._encoded:
            self._encoded[text] = tuple(self._tokenizer.encode(text, add_special_tokens=False))
        return self._encoded[text]

    def _controls(self, ids: Sequence[int]) -> list[int]:
        return [i for i in ids if i in self._control]


class _Template:
    """A chat template, rendered around placeholders."""

    def __init__(self, tokenizer: Tokenizer, thinking: bool | None) -> None:
        self._tokenizer = tokenizer
        try:
            self.source = str(tokenizer.get_chat_template())
        except ValueError as error:
            raise ModelError(
                "the tokenizer has no chat template: both roles talk to the model as a chat. Take an instruction-tuned "
                "model, or save the tokenizer with its `chat_template` set"
            ) from error
        if thinking is not None and "enable_thinking" not in self.source:
            raise ModelError(
                f"thinking={str(thinking).lower()} was asked for, but the chat template has no `enable_thinking` to "
                "set: leave it to the template"
            )
        self._options = {} if thinking is None else {"enable_thinking": thinking}
        self._rendered: dict[tuple[tuple[str, ...], bool], str] = {}
        self._takes_system = self._takes("system", "user", "assistant", "user")
        self._takes_neighbours = self._takes("user", "user")

    def render(self, roles: Sequence[str], *, generate: bool) -> str:
        """The chat as text, a placeholder for each content; `ModelError` where the template raises.

        It depends on the roles alone, so every kind of chat is rendered once.
        """
        key = tuple(roles), generate
        if key not in self._rendered:
            self._rendered[key] = self._render(roles, generate=generate)
        return self._rendered[key]

    def _render(self, roles: Sequence[str], *, generate: bool) -> str:
        chat = [{"role": role, "content": _MARK.format(i)} for i, role in enumerate(roles)]
        try:
            text = self._tokenizer.apply_chat_template(
                chat, add_generation_prompt=generate, tokenize=False, **self._options
            )
        except (TemplateError, TypeError, ValueError, LookupError) as error:
            raise ModelError(
                f"the chat template refuses a chat of {', '.join(roles) or 'no messages'}: {error}. "
                "A chat begins with a system or a user message and ends with a user message"
            ) from error
        return str(text)

    def arrange(self, messages: Sequence[Message]) -> list[Message]:
        """The messages as the template takes them: without a system role, or without neighbours of one role."""
        chat: list[Message] = []
        folding = False
        for message in messages:
            folded = message.role == "system" and not self._takes_system
            role = "user" if folded else message.role
            content = message.content.strip()
            if chat and chat[-1].role == role and (folding or not self._takes_neighbours):
                chat[-1] = Message(role, f"{chat[-1].content}\n\n{content}".strip())
            else:
                chat.append(Message(role, content))
            folding = folded
        return chat

    def turn(self) -> tuple[str, str]:
        """(from the end of a reply to the next user message, from there to the next reply).

        `ModelError` when they are not the same for every turn: then nothing can be appended to a conversation.
        """
        first = self._pieces(("user",), generate=True)
        chat = self._pieces(("user", "assistant", "user", "assistant", "user"), generate=True)
        for what, one, other in (
            ("what comes before the first message", first[0], chat[0]),
            ("the opening of a reply", first[1], chat[5]),
            ("a user's turn", chat[1], chat[3]),
            ("what comes between a reply and the next message", chat[2], chat[4]),
        ):
            if one != other:
                raise ModelError(_varies(what, one, other))
        opening = _THOUGHT_OPENED.sub("", _THOUGHT_EMPTY.sub("", chat[5])).rstrip()
        if not chat[1].startswith(opening):
            raise ModelError(_varies("the opening of a reply", opening, chat[1]))
        return chat[2].lstrip(), chat[5]

    def last_end(self) -> str:
        """What follows the last reply of a chat."""
        return self._pieces(("user", "assistant"), generate=False)[2]

    def _takes(self, *roles: str) -> bool:
        try:
            self._pieces(roles, generate=True)
        except ModelError:
            return False
        return True

    def _pieces(self, roles: Sequence[str], *, generate: bool) -> list[str]:
        """The template's own text before, between and behind the contents."""
        pieces = _MARKS.split(self.render(roles, generate=generate))
        if pieces[1::2] != [str(i) for i in range(len(roles))]:
            raise ModelError(
                "the chat template drops or reorders messages: a turn cannot be appended to it"
            )
        return pieces[::2]


def _varies(what: str, one: str, other: str) -> str:
    return (
        f"the chat template is not prefix-preserving: {what} is not the same in a longer chat ({one!r}, then "
        f"{other!r}), so a turn cannot be appended to it. Take a template that writes a turn alike wherever it stands"
    )


def _control_ids(tokenizer: Tokenizer, source: str) -> frozenset[int]:
    """Ids that text must not turn into: special tokens, and added ones that the template writes (`<think>`)."""
    ids = set(tokenizer.all_special_ids)
    for number, token in tokenizer.added_tokens_decoder.items():
        content = str(token.content)
        if token.special or (content.strip() and content in source):
            ids.add(number)
    # Where plain text itself comes to the unknown token, it says nothing.
    if tokenizer.unk_token_id in tokenizer.encode(_UNKNOWN, add_special_tokens=False):
        ids.discard(tokenizer.unk_token_id or 0)
    return frozenset(ids)


def _hidden_ids(tokenizer: Tokenizer) -> frozenset[int]:
    """Special tokens, which nobody reads; a thought's tags are read whether they are special or not."""
    ids = set(tokenizer.all_special_ids)
    for number, token in tokenizer.added_tokens_decoder.items():
        if token.special:
            ids.add(number)
        if _TAG.fullmatch(str(token.content)):
            ids.discard(number)
    return frozenset(ids)
