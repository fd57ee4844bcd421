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

    A SEARCH part that does not occur as it is may differ in spaces at the ends of lines and in how far all of its lines
    are indented; the REPLACE part is then indented as the lines that it replaces. `ReplyError` unless each SEARCH part
    fits exactly one place of the text as edited so far, or when nothing changes.
    """
    source = parent = parent.replace("\r\n", "\n")
    for number, edit in enumerate(edits, start=1):
        if not edit.search.strip():
            raise ReplyError(f"edit {number}: the SEARCH part is empty")
        count = source.count(edit.search)
        if count == 1:
            source = source.replace(edit.search, edit.replace)
            continue
        places = _places(source, edit.search) if count == 0 else []
        if len(places) != 1:
            times = count or len(places)
            found = f"occurs {times} times, must occur once" if times else _MISSING
            raise ReplyError(
                f"edit {number}: the SEARCH part {found}: {edit.search.strip()[:80]!r}"
            )
        source = _put(source, places[0], edit.replace)
    if source == parent:
        raise ReplyError("the edits change nothing")
    return source


_MISSING = "does not occur in the parent"


@dataclass(frozen=True, slots=True)
class _Place:
    """Lines of a source that a SEARCH part fits, spaces aside."""

    first: int
    end: int
    added: str
    """What the source's lines have in front of those of the SEARCH part."""
    removed: str
    """What the lines of the SEARCH part have in front of the source's."""


def _places(source: str, search: str) -> list[_Place]:
    """Where `search` fits when spaces at line ends and the indentation of the whole do not count."""
    wanted = search.strip("\n").split("\n")
    wanted = wanted[_leading_blanks(wanted) : len(wanted) - _leading_blanks(wanted[::-1])]
    lines = source.split("\n")
    places = []
    for first in range(len(lines) - len(wanted) + 1):
        end = first + len(wanted)
        shift = _shift(lines[first:end], wanted)
        if shift is not None:
            places.append(_Place(first, end, *shift))
    return places


def _leading_blanks(lines: list[str]) -> int:
    return next((i for i, line in enumerate(lines) if line.strip()), len(lines))


def _shift(lines: list[str], wanted: list[str]) -> tuple[str, str] | None:
    """What to add to and to remove from the front of all `wanted` to get `lines`; None when they differ otherwise."""
    shifts = set()
    for line, other in zip(lines, wanted, strict=True):
        if line.strip() != other.strip():
            return None
        if not line.strip():
            continue
        indent, given = line[: -len(line.lstrip())], other[: -len(other.lstrip())]
        if indent.endswith(given):
            shifts.add((indent.removesuffix(given), ""))
        elif given.endswith(indent):
            shifts.add(("", given.removesuffix(indent)))
        else:
            return None  # tabs against spaces
    return shifts.pop() if len(shifts) == 1 else None


def _put(source: str, place: _Place, replace: str) -> str:
    """`source` with the lines of a place replaced, the new ones indented alike."""
    lines = source.split("\n")
    new = [
        place.added + line.removeprefix(place.removed) if line.strip() else line
        for line in replace.removesuffix("\n").split("\n")
    ]
    lines[place.first : place.end] = new if replace else []
    return "\n".join(lines)
