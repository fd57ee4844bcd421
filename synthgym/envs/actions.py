r"""From a model's reply to the bare action, in whatever form the model was asked to write it.

First, chat-template tokens at the end are cut off and thinking is taken out: `<think>`, `<thinking>`, `<thought>` and
`<reasoning>` in any case, all taken for the same tag. Thinking that never closes runs to the end, and what closes
without having opened was opened by the prompt and reaches back to the beginning. A reply that is one JSON value, or is
one behind its thinking, has no other thinking: a tag inside it is a character of a string.

Then the formats are tried in the order given. The first that finds an action wins; see `ActionFormat`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final

from synthgym.envs.forms import (
    Form,
    ParseStatus,
    find_answer,
    find_box,
    find_fence,
    find_raw,
    most_informative,
)
from synthgym.envs.json_reader import JsonReader, Outcome
from synthgym.envs.tool_calls import encode_action, encode_answer, find_tool
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean

__all__ = [
    "GAME_FORMATS",
    "TOOL_FORMATS",
    "ActionFormat",
    "ParseStatus",
    "Parsed",
    "encode_action",
    "encode_answer",
    "parse_action",
]

_THINK: Final = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE | re.ASCII)
_THOUGHT: Final = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE | re.ASCII)
_END_TOKENS: Final = (
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|END_OF_TURN_TOKEN|>",
    "<end_of_turn>",
    "<eos>",
    "</s>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""With which chat templates end a turn."""


class ActionFormat(StrEnum):
    """A form of action that a reply may be asked for."""

    BOXED = "boxed"
    r"""The last balanced `\boxed{...}` or `\fbox{...}`, freed of LaTeX."""
    ANSWER = "answer"
    """The last `<answer>...</answer>`."""
    FENCED = "fenced"
    """What the last block between runs of three or more backticks holds."""
    TOOL = "tool"
    """Tool calls as JSON or tags, or a final answer; the action is canonical JSON (`encode_action`)."""
    RAW = "raw"
    """All that is not thinking."""


GAME_FORMATS: Final = (ActionFormat.BOXED,)
"""What an environment with text commands takes."""
TOOL_FORMATS: Final = (ActionFormat.TOOL,)
"""What an environment that offers tools takes."""
_NAMED: Final = {"game": GAME_FORMATS, "tools": TOOL_FORMATS}
_FINDERS: Final[dict[ActionFormat, Callable[[str], Form]]] = {
    ActionFormat.BOXED: find_box,
    ActionFormat.ANSWER: find_answer,
    ActionFormat.FENCED: find_fence,
    ActionFormat.RAW: find_raw,
}


@dataclass(frozen=True, slots=True)
class Parsed:
    """An action taken out of a reply."""

    action: str
    """The bare action, without surrounding white space; empty unless the status is ok."""
    status: ParseStatus
    span: tuple[int, int] | None
    """Where the whole form stands in the reply, from the first call to the last; None when no form is complete."""
    format: ActionFormat | None = None
    """The format in which the action, or the failure, was found; None when there was nothing of any."""


@dataclass(frozen=True, slots=True)
class _Visible:
    """A reply without thinking."""

    text: str
    kept: list[tuple[int, int]]
    """Where the pieces of `text` stand in the reply."""

    @property
    def joints(self) -> list[int]:
        """Where two pieces meet."""
        return list(accumulate(end - start for start, end in self.kept))

    def origin(self, position: int) -> int:
        """Where a character of `text` stands in the reply."""
        for start, end in self.kept:
            if position < end - start:
                return start + position
            position -= end - start
        raise AssertionError("position lies beyond the visible text")


def parse_action(reply: str, formats: Sequence[ActionFormat] | str | None = None) -> Parsed:
    r"""Take the action out of `reply`; by default that of a game, the last balanced `\boxed{...}`.

    `formats` are tried in order, and the first that finds an action wins. They may be given as one name: that of a
    format, `"game"` or `"tools"`. When none finds an action the status is that of the failure that says most: a
    malformed call, then an empty form, then one that does not end. A `ConfigError` names an unknown format; no reply
    raises anything.
    """
    wanted = _resolve(formats)
    visible = _outside_thinking(reply)
    failures: dict[ActionFormat, Form] = {}
    for each in wanted:
        form = _find(each, visible)
        if form.status is ParseStatus.OK:
            return _parsed(form, each, visible)
        failures.setdefault(each, form)
    worst = most_informative(failures.values())
    for each, form in failures.items():
        if form is worst:
            return _parsed(form, each, visible)
    only_boxes = all(each is ActionFormat.BOXED for each in wanted)
    return Parsed("", ParseStatus.NO_BOX if only_boxes else ParseStatus.NO_ACTION, None)


def _resolve(formats: Sequence[ActionFormat] | str | None) -> tuple[ActionFormat, ...]:
    if formats is None:
        return GAME_FORMATS
    if isinstance(formats, str):
        return _NAMED.get(formats) or (_format(formats, _NAMED),)
    if not formats:
        raise ConfigError(f"expected at least one format of {', '.join(ActionFormat)}, got none")
    return tuple(_format(name) for name in formats)


def _format(name: str, also: Iterable[str] = ()) -> ActionFormat:
    try:
        return ActionFormat(name)
    except ValueError:
        known = [*map(str, ActionFormat), *also]
        raise ConfigError(
            f"expected a format of {', '.join(known)}, got {name!r}{did_you_mean(str(name), known)}"
        ) from None


def _find(wanted: ActionFormat, visible: _Visible) -> Form:
    if wanted is ActionFormat.TOOL:
        return find_tool(visible.text, visible.joints)
    return _FINDERS[wanted](visible.text)


def _parsed(form: Form, found_in: ActionFormat, visible: _Visible) -> Parsed:
    span = form.span
    if span is not None:
        span = (visible.origin(span[0]), visible.origin(span[1] - 1) + 1)
    action = form.action if form.status is ParseStatus.OK else ""
    return Parsed(action, form.status, span, found_in)


def _end_of_turn(reply: str) -> int:
    """Where the reply ends, without the white space and the template's tokens behind it."""
    end = len(reply)
    while end:
        if reply[end - 1].isspace():
            end -= 1
            continue
        token = next((t for t in _END_TOKENS if reply.endswith(t, 0, end)), None)
        if token is None:
            break
        end -= len(token)
    return end


def _outside_thinking(reply: str) -> _Visible:
    """The stretches of `reply` that are not thinking, in order."""
    end = _end_of_turn(reply)
    closing = _THOUGHT.search(reply, 0, end)
    for start in (0, 0 if closing is None else closing.end()):
        if _is_json(reply[start:end]):
            return _Visible(reply[start:end], [(start, end)])
    kept: list[tuple[int, int]] = []
    position, thinking = 0, False
    for tag in _THINK.finditer(reply, 0, end):
        if not tag[1]:
            if not thinking:
                kept.append((position, tag.start()))
            thinking = True
            continue
        if not thinking:
            kept.clear()  # the prompt opened it: all that came before was thinking
        position, thinking = tag.end(), False
    if not thinking:
        kept.append((position, end))
    return _Visible("".join(reply[a:b] for a, b in kept), kept)


def _is_json(text: str) -> bool:
    if not text.lstrip().startswith(("{", "[")):
        return False
    return JsonReader().read_whole(text).outcome is not Outcome.BROKEN
