"""Pieces of a text that can be copied."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from itertools import accumulate, islice
from typing import Final, NamedTuple

from synthgym.agents.filling import tokens_of
from synthgym.agents.text import (
    LINES,
    MARKS,
    SENTENCE_END,
    TEXTS,
    lower_of,
    quoted_in,
    sentences_of,
)

_ANSWERS: Final = (
    *("answer", "word", "code", "secret", "solution", "combination", "number", "key", "name"),
    *("correct", "right", "expected"),
)
"""What words end with that announce an answer: `word`, `password`, `watchword`."""
_POINTING: Final = frozenset(("it", "that"))
_TELLING: Final = re.compile(
    r"\b(?:is|was|were|are|be|been|expected|needed|instead of|have said)\b:?|[:=](?=\s)"
)
_ALWAYS_TELLING: Final = frozenset(("expected", "needed", "instead of", "have said"))
KINDS: Final = {
    "told, the clause": 8,
    "told, its first word": 8,
    "told, its last word": 8,
    "quoted": 3,
    "after a colon": 2,
    "a number": 2,
    "a listed name": 2,
    "the last sentence": 1,
    "a line": 1,
    "all of it": 1,
}
"""What an agent copies, and how often, where a text has it. Told is what stands after `the answer is`."""
_WEIGHTS: Final = tuple(KINDS.values())


class Pieces(NamedTuple):
    """Pieces of one text, by kind, in the order of `KINDS`."""

    kinds: tuple[tuple[str, ...], ...]
    cumulative: tuple[int, ...]
    """The weight of each kind of which there is a piece, added up; of all kinds when there are none at all."""

    def draw_kind(self, rng: random.Random) -> int:
        """Which kind to copy, by weight."""
        return rng.choices(range(len(KINDS)), cum_weights=self.cumulative)[0]


@lru_cache(maxsize=TEXTS)
def pieces_of(text: str) -> Pieces:
    """What can be copied from a text."""
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    parts = [part for part in sentences_of(text) if part.strip()]
    told: list[str] = []
    quoted: list[str] = []
    tails: list[str] = []
    for part in parts:
        clauses = _clauses(part)
        told += clauses.told
        quoted += clauses.quoted
        tails += clauses.tails
    tokens = tokens_of(text)
    kinds = (
        told,
        [clause.split()[0].strip(MARKS) for clause in told],
        [clause.split()[-1] for clause in told],
        quoted[:40],
        tails[:40],
        tokens.numbers,
        tokens.names or tokens.pairs,
        [part.strip(MARKS) for part in parts[-1:]],
        lines[:60],
        [text.strip()],
    )
    found = tuple([tuple(filter(None, kind)) for kind in kinds])
    weights = [weight if kind else 0 for kind, weight in zip(found, _WEIGHTS, strict=True)]
    return Pieces(found, tuple(accumulate(weights if any(weights) else _WEIGHTS)))


class _Clauses(NamedTuple):
    """What can be copied from one sentence."""

    quoted: tuple[str, ...]
    told: tuple[str, ...]
    tails: tuple[str, ...]
    """What stands after a colon."""


@lru_cache(maxsize=LINES)
def _clauses(sentence: str) -> _Clauses:
    lower = lower_of(sentence)
    told, tails = [], []
    for match in islice(_TELLING.finditer(lower), 40):
        clause = SENTENCE_END.split(sentence[match.end() : match.end() + 80], maxsplit=1)[0]
        clause = clause.strip(MARKS + "()")
        before = lower[max(0, match.start() - 50) : match.start()].split()[-4:]
        if not clause.split():
            continue
        if match[0] == ":":
            tails.append(clause)
            before = before[-1:]
        if match[0] in _ALWAYS_TELLING or any(map(_announces, before)):
            told.append(clause)
    return _Clauses(tuple(quoted_in(sentence)), tuple(told[:10]), tuple(tails[:20]))


def _announces(word: str) -> bool:
    return word in _POINTING or word.endswith(_ANSWERS)
