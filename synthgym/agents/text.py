"""A text as an agent reads it: bounded, and line by line.

The text is a stranger's and may be hostile: every pattern in this package is bounded, and of a long text only
the beginning and the end are read. What was read of a line is remembered: most lines of an observation
come again on the next turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

MAX_READ: Final = 4096
"""Characters of an observation that are read: of a longer one the first half and the last half."""
LINES: Final = 512
TEXTS: Final = 512
"""Lines (or sentences) and texts of which is remembered what was read."""
MARKS: Final = " \t\r\n.,:;!?`'\""
_DIGITS: Final = tuple("0123456789")

WORD: Final = re.compile(r"[^\W_]+(?:[-'_][^\W_]+)*")
SENTENCE_END: Final = re.compile(r"[.!?](?=\s|$)")
QUOTED: Final = re.compile(
    r"`([^`]{1,60}+)`"
    r'|"([^"]{1,60}+)"'
    r"|\u201c([^\u201c\u201d]{1,60}+)\u201d"
    r"|\u2018([^\u2018\u2019]{1,60}+)\u2019"
    r"|(?<!\w)'([^']{1,60}+)'(?!\w)"
    r"|\\boxed\{([^{}]{1,60}+)\}"
    r"|\b(?:like|e\.g\.|example:?|as in) (\[[^\[\]]{1,40}+\])"
)
_MARKED: Final = re.compile("[`\"\u201c\u2018'\\\\\\[]")
"""What `QUOTED` needs one of; most lines have none."""


def within(observation: str) -> str:
    """What is read of an observation."""
    if len(observation) <= MAX_READ:
        return observation
    half = MAX_READ // 2
    return f"{observation[:half]}\n{observation[-half:]}"


@lru_cache(maxsize=TEXTS)
def words_of(text: str) -> Sequence[str]:
    """Every word, and the digits."""
    found: list[str] = []
    for part in sentences_of(text):
        found += _words(part)
    return (*found, *_DIGITS)


@lru_cache(maxsize=LINES)
def _words(sentence: str) -> tuple[str, ...]:
    return tuple(WORD.findall(sentence))


def sentences_of(text: str) -> list[str]:
    """Lines, cut further after each full stop: the smaller the parts, the more of them are known already."""
    return [part for line in text.split("\n") for part in line.split(". ")]


def lower_of(line: str) -> str:
    """In small letters, if that leaves every character in its place."""
    lower = line.lower()
    return lower if len(lower) == len(line) else line


def quoted_in(line: str) -> list[str]:
    """What stands between quotation marks, in backticks or in a box."""
    if not _MARKED.search(line):
        return []
    return [match[match.lastindex or 0].strip() for match in islice(QUOTED.finditer(line), 40)]
