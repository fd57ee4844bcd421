"""From an observation to the commands that one could try next: those it offers, their blanks filled."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, product
from math import prod
from typing import Final, NamedTuple

from synthgym.agents import blanks, offered
from synthgym.agents.filling import tokens_of
from synthgym.agents.text import within, words_of

MAX_COMMANDS: Final = 128
"""Commands that are tried from one state, shared out evenly among those on offer and their fillings."""
_MAX_RANGE: Final = 100
"""Numbers that a range such as `1 to 8` may stand for."""

_CHOICE: Final = re.compile(r" ?[|/,] ?| or ")
_TURN: Final = re.compile(
    r"\bturns?\b[^\d\n.;]{0,16}\d+|\b\d+[^\w\n.;]{1,3}turns?\b", re.IGNORECASE
)


class Offer(NamedTuple):
    """What can be tried from a state."""

    commands: tuple[str, ...]
    complete: bool
    """Whether that is everything; False when more could be tried, or none was recognised."""


def offer(observation: str, first: str) -> Offer:
    """What can be tried after `observation`, in an episode that began with `first`.

    Both are read for commands and for what to fill into their blanks.
    """
    templates = list(dict.fromkeys(chain(offered(observation), offered(first))))
    words = fillers([within(observation), within(first)])
    room = MAX_COMMANDS // max(1, len(templates))
    filled = [fillings(template, words, room) for template in templates]
    found = dict.fromkeys(command for part in filled for command in part.commands)
    return Offer(tuple(found), bool(found) and all(part.complete for part in filled))


def fillings(template: str, words: Sequence[str], room: int) -> Offer:
    """`template` with its blanks filled: `<in|out>` by its choices, `<bar>` by `words`; at most `room`.

    Of `words` every blank gets the same number, the first ones.
    """
    places = blanks(template)
    choices = [_choices(place) for place in places]
    each = room // prod(len(choice) for choice in choices if choice)
    free = sum(not choice for choice in choices)
    share = min(1, len(words))
    while free and share < len(words) and (share + 1) ** free <= each:
        share += 1
    options = [choice or words[:share] for choice in choices]
    every = product(*options)
    found = [_filled(template, places, chosen) for chosen in islice(every, room)]
    complete = next(every, None) is None and (not free or share == len(words))
    return Offer(tuple(found), complete)


def _filled(template: str, places: Sequence[re.Match[str]], chosen: Sequence[str]) -> str:
    parts, end = [], 0
    for place, word in zip(places, chosen, strict=True):
        parts += [template[end : place.start()], word]
        end = place.end()
    return "".join([*parts, template[end:]])


def fillers(texts: Sequence[str]) -> list[str]:
    """The words that a blank may stand for: members of lists, ranges, numbers.

    Without any of these it is what commas set apart in prose, and without that every word.
    """
    read = [without_turns(text) for text in texts]
    known = [tokens_of(text) for text in read]
    found = [name for tokens in known for name in tokens.names]
    found += [number for tokens in known for number in _numbers(tokens.ranges)]
    found += [number for tokens in known for number in tokens.numbers]
    found = found or [name for tokens in known for name in tokens.pairs]
    return list(dict.fromkeys(found or (word for text in read for word in words_of(text))))


def without_turns(observation: str) -> str:
    """`observation` without counters of turns: they tell when, not where."""
    return _TURN.sub("turn", observation)


def _choices(place: re.Match[str]) -> list[str]:
    """The words that a blank itself names; empty when it names what kind of word it wants."""
    inside = place[place.lastindex or 0]
    numbers = list(_numbers(tokens_of(inside).ranges))
    choices = numbers or [choice for choice in _CHOICE.split(inside) if choice]
    return choices if len(choices) > 1 else []


def _numbers(ranges: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Every number of each range, unless it is too long to be tried."""
    for low, high in ranges:
        if high - low < _MAX_RANGE:
            yield from map(str, range(low, high + 1))
