"""The commands that a text offers, for a reader who understands nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple

from synthgym.agents.text import (
    LINES,
    MARKS,
    QUOTED,
    SENTENCE_END,
    TEXTS,
    lower_of,
    quoted_in,
    within,
)

MAX_OFFERED: Final = 12
"""Commands that are taken from one observation."""
_MAX_COMMAND: Final = 60
_MAX_SEGMENT: Final = 400
"""Characters after `Commands:` that may hold the list."""

_NOUNS: Final = frozenset(
    (
        *("command", "option", "action", "move", "choice", "verb"),
        *("commands", "options", "actions", "moves", "choices", "verbs"),
    )
)
_VERBS: Final = frozenset(
    (
        *("reply", "answer", "respond", "say", "type", "enter", "send", "write"),
        *("choose", "pick", "select", "use", "try"),
    )
)
_ONE_OF: Final = frozenset(("following", "these", "one of", "any of"))
_YOU_CAN: Final = frozenset((("you", "can"), ("you", "may")))
_INTRODUCTION: Final = re.compile(
    r":(?=\s|$)"
    r"|\b(?:(?:one|any|either) of|either)\b(?!(?: [a-z]{1,12}){0,3} ?:\s)"
    r"|\b(?:are|include)\b(?= )"
)
_INTRODUCING: Final = (":", "one of", "any of", "either", "are ", "include ")
"""What `_INTRODUCTION` needs one of; many lines have none."""
_SAY: Final = re.compile(r"\b(?:[Ss]ay|[Tt]ype|[Rr]eply|[Aa]nswer|[Ee]nter|[Ss]end)(?: with)? ")
_COUNTER: Final = re.compile(r"\s*\d+\s*(?:of|/|left|so far|[.;,]?\s*$)")
"""What follows `Moves:` when it is not a list."""
_LABEL: Final = r"(?:[-*\u2022]|\(?\d{1,2}[.):]|\(?[A-Za-z][.)])"
_BULLET: Final = re.compile(rf"[ \t]{{0,20}}+({_LABEL})[ \t]+(\S[^\n]{{0,200}}+)")
_INLINE_LABEL: Final = re.compile(r"(?:^|[\s,;])\(?(\d{1,2}|[A-Za-z])[.):]\s")
_BY_LABEL: Final = re.compile(r"\b(?:[Nn]umber|[Ll]etter|[Ll]abel|[Dd]igit)\b")
_ASIDE: Final = re.compile(r" ?\([^()]{0,160}+\)")
_EXPLAINED: Final = re.compile(r"(?::| -| \u2013| \u2014| =)\s.*+", re.DOTALL)
_OUTSIDE: Final = r"(?![^<>\[\]{}]{0,40}[>\]}])"
"""Not within a blank."""
_OR: Final = re.compile(rf"\s(?:or|and)\s{_OUTSIDE}")
_SEPARATORS: Final = tuple(re.compile(f"{mark}{_OUTSIDE}") for mark in (";", ",", r"\s/\s", r"\|"))
_LEADING_OR: Final = re.compile(r"\A\s*+(?:or|and|either)\s")


class Offers(NamedTuple):
    """The commands of one text."""

    commands: tuple[str, ...]
    listed: bool
    """Whether the text says that they are commands."""


class _Item(NamedTuple):
    """A command in a list, and the number or letter before it."""

    text: str
    label: str = ""


class _Line(NamedTuple):
    """The commands of one line."""

    listed: tuple[_Item, ...]
    """What follows words that announce commands."""
    opens: bool
    """Whether the line ends with such words: then the lines below it hold the list."""
    others: tuple[_Item, ...]
    """What may be commands: it is quoted, or an item with a bullet or label, or `Say ... or ...`."""


def offered(observation: str) -> tuple[str, ...]:
    """What a reader takes for commands, in order and without repeats, at most `MAX_OFFERED`.

    What is listed after words such as `Commands:` or `Reply with one of:` counts alone. Without such a
    list it is what is quoted, what stands in lists with bullets or labels, and what `Say ... or ...` names.
    Blanks such as `<box>` stay as they are.
    """
    return offers_of(within(observation)).commands


@lru_cache(maxsize=TEXTS)
def offers_of(text: str) -> Offers:
    """The commands of a text, as `offered` finds them."""
    lines = text.split("\n")
    read = [_read(line) for line in lines]
    listed: list[_Item] = []
    for number, line in enumerate(read):
        listed += line.listed
        if line.opens:
            listed += _block(lines[number + 1 :])
    items = listed
    if not listed:
        items = []
        for line in read:
            items += line.others
    labels = any(item.label for item in items) and bool(_BY_LABEL.search(text))
    return Offers(_commands(items, labels=labels), bool(listed))


def _commands(items: Iterable[_Item], *, labels: bool) -> tuple[str, ...]:
    """Without repeats. A letter is an answer too; a number is one when the text speaks of numbers."""
    found: dict[str, None] = {}
    for text, label in items:
        if label and (labels or label.isalpha()):
            found[label] = None
        if text and len(text) <= _MAX_COMMAND:
            found[text] = None
        if len(found) >= MAX_OFFERED:
            break
    return tuple(found)[:MAX_OFFERED]


def _block(lines: Sequence[str]) -> list[_Item]:
    """One command a line, until a line is empty; or one line that lists them."""
    start = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    below = lines[start : start + MAX_OFFERED]
    end = next((at for at, line in enumerate(below) if not line.strip()), len(below))
    if end == 1:
        return list(_segment(below[0]))
    return [_labelled(line) or _Item(_tidy(line)) for line in below[:end]]


@lru_cache(maxsize=LINES)
def _read(line: str) -> _Line:
    listed: list[_Item] = []
    opens = False
    for end in islice(_introductions(line), 8):
        rest = line[end : end + _MAX_SEGMENT]
        if not rest.strip():
            opens = True
        elif not _COUNTER.match(rest):
            listed += _segment(rest)
    bullet = _labelled(line)
    quoted = [_Item(text) for text in quoted_in(line)]
    return _Line(tuple(listed), opens, tuple(([bullet] if bullet else quoted) or _said(line)))


def _introductions(line: str) -> Iterator[int]:
    """Where words end that announce commands."""
    lower = lower_of(line)
    if not any(mark in lower for mark in _INTRODUCING):
        return
    for match in islice(_INTRODUCTION.finditer(lower), 40):
        before = lower[max(0, match.start() - 50) : match.start()].split()[-4:]
        if match[0] == ":":
            found = bool(
                _NOUNS.intersection(before)
                or _VERBS.intersection(before[-3:])
                or _ONE_OF.intersection((*before, " ".join(before[-2:])))
                or not _YOU_CAN.isdisjoint(pairwise(before))
            )
        elif match[0] in ("are", "include"):
            found = not _NOUNS.isdisjoint(before[-1:])
        else:
            found = not _VERBS.isdisjoint(before[-3:])
        if found:
            yield match.end()


def _segment(rest: str) -> Iterator[_Item]:
    """The items of a list in one sentence: what is quoted in it, or else what separators set apart."""
    rest = rest.lstrip()
    if _INLINE_LABEL.match(rest[:4]):
        parts = _INLINE_LABEL.split(rest)
        for label, item in zip(parts[1::2], parts[2::2], strict=True):
            yield _Item(_tidy(SENTENCE_END.split(item, maxsplit=1)[0]), label)
        return
    sentence = SENTENCE_END.split(_ASIDE.sub("", rest).lstrip(), maxsplit=1)[0]
    quoted = [_Item(text) for text in quoted_in(sentence)]
    if quoted:
        yield from quoted
        return
    splits = (separator.split(sentence) for separator in _SEPARATORS)
    *items, last = next((items for items in splits if len(items) > 1), [sentence])
    for item in (*items, *_OR.split(_LEADING_OR.sub("", last))):
        yield _Item(_tidy(item))


def _labelled(line: str) -> _Item | None:
    """The item of a line that has a bullet, a number or a letter before it."""
    match = _BULLET.match(line)
    if match is None:
        return None
    label = match[1].strip("().:")
    return _Item(_tidy(match[2]), label if label.isalnum() else "")


def _said(line: str) -> list[_Item]:
    """What follows `Say` and the like, when it is this or that: `left` and `right` of `Say left or right`."""
    found = []
    for match in islice(_SAY.finditer(line), 8):
        rest = line[match.end() : match.end() + _MAX_SEGMENT]
        sentence = SENTENCE_END.split(rest, maxsplit=1)[0]
        if " or " in sentence:
            items = re.split(r",? or |, ", sentence)
            found += [_Item(_tidy(item)) for item in items if len(item.split()) <= 3]
    return found


def _tidy(item: str) -> str:
    """A listed item without what explains it and without marks around it."""
    item = _LEADING_OR.sub("", _ASIDE.sub("", item))
    quoted = QUOTED.match(item.strip())
    if quoted:
        return quoted[quoted.lastindex or 0].strip()
    return _EXPLAINED.sub("", item).strip(MARKS)
