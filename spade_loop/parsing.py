"""Getting the source, the edit or the specification out of a designer's reply. Pure text, no model."""

from __future__ import annotations

import re
from dataclasses import dataclass

from spade_loop.errors import SpadeLoopError

_THINK = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_FENCE = re.compile(r"^```[ \t]*([\w+-]*)[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_EDIT = re.compile(
    r"^<{5,9} SEARCH[ \t]*\n(.*?)^={5,9}[ \t]*\n(.*?)^>{5,9} REPLACE[ \t]*$",
    re.DOTALL | re.MULTILINE,
)


class ReplyError(SpadeLoopError, ValueError):
    """A reply does not hold what was asked for; the message says what was missing."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One SEARCH/REPLACE block."""

    search: str
    replace: str


def strip_thinking(reply: str) -> str:
    """The reply without `<think>` blocks; an unclosed one reaches to the end."""
    return _THINK.sub("", reply)


def last_code_block(reply: str) -> str:
    """The last fenced Python block of a reply (any fence when none says Python). `ReplyError` without one.

    The last, not the first: a model that drafts and then corrects itself means the correction.
    """
    blocks = _FENCE.findall(strip_thinking(reply).replace("\r\n", "\n"))
    python = [body for language, body in blocks if language.lower() in ("python", "py", "python3")]
    bodies = python or [body for language, body in blocks if language == ""]
    if not bodies:
        raise ReplyError("no fenced Python block: expected ```python ... ```")
    return str(bodies[-1])


def parse_edits(reply: str) -> tuple[Edit, ...]:
    """Every SEARCH/REPLACE block of a reply, in order. `ReplyError` without one."""
    text = strip_thinking(reply).replace("\r\n", "\n")
    if not text.endswith("\n"):
        text += "\n"
    edits = tuple(Edit(search, new) for search, new in _EDIT.findall(text))
    if not edits:
        raise ReplyError(
            "no SEARCH/REPLACE block: expected <<<<<<< SEARCH ... ======= ... >>>>>>> REPLACE"
        )
    return edits


def apply_edits(parent: str, edits: tuple[Edit, ...]) -> str:
    """`parent`, its lines ended by LF, with each edit applied.

    `ReplyError` unless each SEARCH occurs exactly once in the text as edited so far, or when nothing changes.
    """
    source = parent = parent.replace("\r\n", "\n")
    for number, edit in enumerate(edits, start=1):
        if not edit.search.strip():
            raise ReplyError(f"edit {number}: the SEARCH part is empty")
        count = source.count(edit.search)
        if count != 1:
            found = (
                "does not occur in the parent"
                if count == 0
                else f"occurs {count} times, must occur once"
            )
            raise ReplyError(
                f"edit {number}: the SEARCH part {found}: {edit.search.strip()[:80]!r}"
            )
        source = source.replace(edit.search, edit.replace)
    if source == parent:
        raise ReplyError("the edits change nothing")
    return source
