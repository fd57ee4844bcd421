r"""From a model's reply to the bare command: the last balanced `\boxed{...}` after thinking."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

_THINK: Final = re.compile(r"</?think>")
_BRACES: Final = re.compile(r"\\boxed\{|\\text\{|[{}]")
_BOX: Final = "\\boxed{"
_TEXT: Final = "\\text{"


class ParseStatus(StrEnum):
    """What a reply came to."""

    OK = "ok"
    """There is an action."""
    NO_BOX = "no-box"
    r"""No `\boxed{` outside of thinking."""
    UNBALANCED = "unbalanced"
    r"""A `\boxed{`, but none whose brace closes."""
    EMPTY = "empty"
    """The last balanced box holds nothing but white space."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """An action taken out of a reply."""

    action: str
    """The bare command, without surrounding white space; empty unless the status is ok."""
    status: ParseStatus
    span: tuple[int, int] | None
    r"""Where the whole `\boxed{...}` stands in the reply; None when no box is balanced."""


@dataclass(frozen=True, slots=True)
class _Brace:
    """One matched pair of braces and what opens it."""

    opener: str
    start: int
    end: int


def parse_action(reply: str) -> Parsed:
    r"""Take the action out of `reply`: the last balanced `\boxed{...}` outside of thinking.

    Thinking is `<think>...</think>`; one that never closes runs to the end, and one that was opened
    by the prompt (a lone `</think>`) reaches back to the beginning. Of nested boxes the inner one
    is the last. `\text{...}` inside the box is unwrapped. Braces nest and every brace counts; there
    is no other cleverness.
    """
    kept = _outside_thinking(reply)
    visible = "".join(reply[start:end] for start, end in kept)
    pairs = _match_braces(visible)
    boxes = [pair for pair in pairs if pair.opener == _BOX]
    if not boxes:
        status = ParseStatus.UNBALANCED if _BOX in visible else ParseStatus.NO_BOX
        return Parsed("", status, None)
    box = max(boxes, key=lambda pair: pair.start)
    span = (_origin(kept, box.start), _origin(kept, box.end - 1) + 1)
    action = _unwrap_text(visible, box, pairs).strip()
    return Parsed(action, ParseStatus.OK if action else ParseStatus.EMPTY, span)


def _outside_thinking(reply: str) -> list[tuple[int, int]]:
    """The stretches of `reply` that are not thinking, in order."""
    kept: list[tuple[int, int]] = []
    position, thinking = 0, False
    for tag in _THINK.finditer(reply):
        if tag.group() == "<think>":
            if not thinking:
                kept.append((position, tag.start()))
            thinking = True
            continue
        if not thinking:
            kept.clear()  # the prompt opened it: all that came before was thinking
        position, thinking = tag.end(), False
    if not thinking:
        kept.append((position, len(reply)))
    return kept


def _match_braces(text: str) -> list[_Brace]:
    """Every matched pair, in the order in which they close; one pass, whatever the text."""
    open_braces: list[tuple[str, int]] = []
    pairs: list[_Brace] = []
    for token in _BRACES.finditer(text):
        if token.group() != "}":
            open_braces.append((token.group(), token.start()))
        elif open_braces:
            opener, start = open_braces.pop()
            pairs.append(_Brace(opener, start, token.end()))
    return pairs


def _unwrap_text(text: str, box: _Brace, pairs: list[_Brace]) -> str:
    r"""The content of `box` with each `\text{...}` replaced by what it holds."""
    first, last = box.start + len(_BOX), box.end - 1
    dropped: list[tuple[int, int]] = []
    for pair in pairs:
        if pair.opener == _TEXT and first <= pair.start and pair.end <= last:
            dropped += [(pair.start, pair.start + len(_TEXT)), (pair.end - 1, pair.end)]
    pieces: list[str] = []
    for start, end in sorted(dropped):
        pieces.append(text[first:start])
        first = end
    pieces.append(text[first:last])
    return "".join(pieces)


def _origin(kept: list[tuple[int, int]], position: int) -> int:
    """Where a character of the visible text stands in the reply."""
    for start, end in kept:
        if position < end - start:
            return start + position
        position -= end - start
    raise AssertionError("position lies beyond the visible text")
