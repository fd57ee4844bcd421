"""The blanks of a command, and what fills them."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import Final, NamedTuple

from synthgym.agents.text import LINES, TEXTS, WORD, sentences_of, words_of

_BLANK: Final = re.compile(
    r"<([^<>\n]{1,40}+)>|\{([^{}\n]{1,40}+)\}|\[([A-Za-z][^\[\]\n]{0,40}+)\]"
)
_CAPITALS: Final = re.compile(r"(?<=\s)(?:[A-Z]{2,12}+|[NXYZKMIJ])(?!\w)")
_CHOICE: Final = re.compile(r"\s?[|/]\s?|,\s?|\sor\s")
_NUMERIC: Final = re.compile(
    r"num|digit|count|amount|index|int|row|col|line|\bn\b|\d", re.IGNORECASE
)
_NUMBER: Final = re.compile(r"(?<!\d)\d{1,9}+(?!\d)")
_TO: Final = frozenset((" to ", "-", " - ", "\u2013", " \u2013 ", "..", " through "))
_ITEM: Final = r"[^\W\d_][\w'-]{0,30}+"
_LIST: Final = re.compile(
    rf"(?<![\w'-]){_ITEM}(?:, (?:and |or )?{_ITEM})++(?:,? (?:and|or) {_ITEM})?"
)


@lru_cache(maxsize=LINES)
def blanks(command: str) -> Sequence[re.Match[str]]:
    """The blanks of a command: `<box>`, `[number]`, `{x}`, or capitals among small letters (`open N`)."""
    found = [blank for blank in _BLANK.finditer(command) if not _is_literal(blank, command)]
    if not found and not command.isupper():
        found = list(_CAPITALS.finditer(command))
    return tuple(found)


def _is_literal(blank: re.Match[str], command: str) -> bool:
    """`[look]` is a command; `[number]` and `go [direction]` have blanks."""
    return blank[0] == command and command[0] == "[" and not _NUMERIC.search(command)


def fill(command: str, rng: random.Random, texts: Sequence[str]) -> str:
    """`command` with each blank filled at random by what `texts` have shown; by nothing when they show nothing."""
    places = blanks(command)
    if not places:
        return command
    parts, end = [], 0
    for blank in places:
        parts += [command[end : blank.start()], _filling(blank, rng, texts)]
        end = blank.end()
    return "".join([*parts, command[end:]])


def _filling(blank: re.Match[str], rng: random.Random, texts: Sequence[str]) -> str:
    inside = blank[blank.lastindex or 0]
    for low, high in _tokens_in(inside).ranges:
        return str(rng.randint(low, high))
    choices = _CHOICE.split(inside)
    if len(choices) > 1:
        return rng.choice(choices)
    known = [tokens_of(text) for text in texts]
    names = dict.fromkeys(name for tokens in known for name in tokens.names)
    names = names or dict.fromkeys(name for tokens in known for name in tokens.pairs)
    numbers = dict.fromkeys(number for tokens in known for number in tokens.numbers)
    if numbers and (not names or _NUMERIC.search(inside) or rng.random() < 0.5):
        ranges = [pair for tokens in known for pair in tokens.ranges]
        if ranges and rng.random() < 0.5:
            return str(rng.randint(*rng.choice(ranges)))
        return rng.choice(list(numbers))
    if names:
        return rng.choice(list(names))
    return rng.choice(words_of(texts[-1])) if texts else ""


class _Tokens(NamedTuple):
    """What can fill a blank."""

    names: tuple[str, ...]
    """What is listed: `red, blue and green`."""
    pairs: tuple[str, ...]
    """What is listed by twos; prose has commas too, so it counts when there is no longer list."""
    numbers: tuple[str, ...]
    ranges: tuple[tuple[int, int], ...]
    """`20 to 99`, `1-8`, `between 1 and 6`."""


@lru_cache(maxsize=TEXTS)
def tokens_of(text: str) -> _Tokens:
    """What can fill a blank, of one text."""
    names: list[str] = []
    pairs: list[str] = []
    numbers: list[str] = []
    ranges: list[tuple[int, int]] = []
    for part in sentences_of(text):
        tokens = _tokens_in(part)
        names += tokens.names
        pairs += tokens.pairs
        numbers += tokens.numbers
        ranges += tokens.ranges
    return _Tokens(
        tuple(dict.fromkeys(names)),
        tuple(dict.fromkeys(pairs)),
        tuple(dict.fromkeys(numbers))[:200],
        tuple(ranges[:20]),
    )


@lru_cache(maxsize=LINES)
def _tokens_in(sentence: str) -> _Tokens:
    lists = [
        [name for name in WORD.findall(match[0]) if name not in ("and", "or")]
        for match in islice(_LIST.finditer(sentence) if ", " in sentence else (), 40)
    ]
    names = dict.fromkeys(name for names in lists if len(names) > 2 for name in names[:20])
    pairs = dict.fromkeys(name for names in lists if len(names) == 2 for name in names)
    numbers = list(islice(_NUMBER.finditer(sentence), 200))
    ranges = [
        (int(one[0]), int(other[0]))
        for one, other in pairwise(numbers)
        if int(one[0]) <= int(other[0]) and _is_range(sentence, one, other)
    ]
    figures = tuple(number[0] for number in numbers)
    return _Tokens(tuple(names), tuple(pairs), figures, tuple(ranges[:20]))


def _is_range(line: str, one: re.Match[str], other: re.Match[str]) -> bool:
    gap = line[one.end() : other.start()]
    return gap in _TO or (
        gap == " and " and line.endswith(("between ", "Between "), 0, one.start())
    )
