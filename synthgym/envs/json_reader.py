"""JSON out of the middle of a text: strict, in linear time, and the same in every interpreter."""

from __future__ import annotations

import json
import math
import re
from enum import Enum, auto
from typing import Any, Final, NamedTuple

MAX_NESTING: Final = 64
"""Brackets in brackets. The depth at which Python's own decoder gives up depends on who calls it."""
MAX_DIGITS: Final = 1000
"""Characters of a number: reading a longer one takes time that grows with its square."""
_STRUCTURE: Final = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


class Outcome(Enum):
    """What reading came to."""

    VALUE = auto()
    """A value."""
    REFUSED = auto()
    """A complete value, with duplicate keys, NaN, or a number out of range."""
    BROKEN = auto()
    """No JSON."""


class Reading(NamedTuple):
    """What stood at one place of a text."""

    outcome: Outcome
    value: Any
    """None unless the outcome is a value."""
    end: int
    """Where the value ends, or where reading stopped."""


class JsonReader:
    """Reads values one at a time, each from a place that the caller knows."""

    def __init__(self) -> None:
        self.broken = 0
        """How often there was no JSON. Each time costs a look at all of the text before: Python counts its lines."""
        self._refused = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_int=self._int,
            parse_float=self._float,
            parse_constant=self._constant,
        )

    def read(self, text: str, start: int = 0) -> Reading:
        """The value that begins at `start`; what follows it is not looked at."""
        self._refused = False
        try:
            value, end = self._decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            value, end, outcome = None, _reached(text, error), Outcome.BROKEN
            self.broken += 1
        except RecursionError:
            return Reading(Outcome.BROKEN, None, len(text))
        else:
            outcome = Outcome.REFUSED if self._refused else Outcome.VALUE
        if _too_deep(text, start, end):
            return Reading(Outcome.BROKEN, None, len(text))
        return Reading(outcome, value if outcome is Outcome.VALUE else None, end)

    def read_whole(self, text: str) -> Reading:
        """The value that `text` holds between white space; broken when something else is there too."""
        start = len(text) - len(text.lstrip())
        reading = self.read(text, start)
        if reading.outcome is not Outcome.BROKEN and text[reading.end :].strip():
            return Reading(Outcome.BROKEN, None, reading.end)
        return reading

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        self._refused = self._refused or len(found) < len(pairs)
        return found

    def _int(self, text: str) -> int:
        if len(text) > MAX_DIGITS:
            self._refused = True
            return 0
        return int(text)

    def _float(self, text: str) -> float:
        number = float(text) if len(text) <= MAX_DIGITS else math.inf
        self._refused = self._refused or not math.isfinite(number)
        return number

    def _constant(self, _text: str) -> None:
        self._refused = True


def _reached(text: str, error: json.JSONDecodeError) -> int:
    """How far the decoder has read, in every version of Python."""
    if error.msg.startswith("Unterminated"):  # names the beginning of the string
        return len(text)
    if error.msg.startswith(
        "Illegal trailing comma"
    ):  # Python 3.13 names the comma, others what follows
        return len(text) - len(text[error.pos + 1 :].lstrip())
    return error.pos


def _too_deep(text: str, start: int, end: int) -> bool:
    if text.count("[", start, end) + text.count("{", start, end) <= MAX_NESTING:
        return False
    depth = 0
    for token in _STRUCTURE.finditer(text, start, end):
        mark = token.group()
        depth += (mark in "[{") - (mark in "]}")
        if depth > MAX_NESTING:
            return True
    return False
