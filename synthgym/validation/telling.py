"""What texts tell of a witness: reading them as words, and telling leaks from accidents.

Words and numbers meet by accident, turn counters count past many an answer, and a list of commands may
happen to be a witness. So a text counts only when it fits the witness of its own seed more often than
texts fit those of other seeds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from math import comb
from typing import Final

CHANCE: Final = 0.005
"""A leak is found when accident alone would give as many seeds less often than that."""
MIN_SEEDS: Final = 2
"""Seeds that must show a leak, whatever the odds."""
COMMON_SHARE: Final = 0.8
"""What that many of the texts say is no secret of a seed."""
_MANY: Final = 500
"""Secrets in one text beyond which only whole words count as known: texts may be written to take time."""
_OCCURRENCES: Final = 50
"""Places of one text at which a list is looked at."""

_FILLERS: Final = frozenset(
    {"and", "afterwards", "finally", "first", "last", "lastly", "next"}
    | {"now", "or", "second", "step", "then", "third"}
)
"""Words between the items of a list; not where a witness uses them itself."""
_WORD: Final = re.compile(r"[^\W_]+")
_PIECE: Final = re.compile(r"[^\W_]+|[^\w\s]|[\n_]")
_INNER: Final = re.compile(r"(?<=[^\W_])['\u2019_-](?=[^\W_])|(?<=\d)[.,:](?=\d)")
"""Marks that do not set words apart: upper-gate, 2,3,4."""
_NUMBERING: Final = re.compile(r"(?<!\S)\(?\d{1,3}[.):](?=\s)")
_LEADING_ZEROS: Final = re.compile(r"(?<= )0+(?=\S)")
_SPELLED: Final = re.compile(r"(?<!\S)\S(?: \S(?!\S)){2,}")
"""Three or more single characters: `5 6 2` for 562."""


class Text:
    """A text as its words: lower case, without leading zeros and without fillers."""

    __slots__ = ("_fillers", "_flat", "_marked", "_text", "_words")

    def __init__(self, text: str, fillers: Set[str] = frozenset()) -> None:
        self._text = text.lower()
        self._fillers = fillers
        self._flat = self._marked = ""
        self._words: frozenset[str] | None = None

    @property
    def flat(self) -> str:
        """The words with a space between them and at both ends."""
        if not self._flat:
            fillers = self._fillers
            self._flat = _spaced(
                [word for word in _WORD.findall(self._text) if word not in fillers]
            )
        return self._flat

    @property
    def marked(self) -> str:
        """The same, with one `|` where marks, line ends or fillers stood."""
        if not self._marked:
            out = [""]
            for piece in _PIECE.findall(_INNER.sub(" ", self._text)):
                if piece[0].isalnum() and piece not in self._fillers:
                    out.append(piece)
                elif out[-1] != "|":
                    out.append("|")
            self._marked = _spaced(out[1:])
        return self._marked

    @property
    def words(self) -> frozenset[str]:
        """The words, and what is spelled out in single characters as one word."""
        if self._words is None:
            spelled = (found[0].replace(" ", "") for found in _SPELLED.finditer(self.flat))
            self._words = frozenset(self.flat.split()).union(spelled)
        return self._words

    def tells(self, secret: str) -> bool:
        """Whether it names the word or the list."""
        return f" {secret} " in self.flat or secret in self.words


def _spaced(words: Sequence[str]) -> str:
    """With spaces between and around them, and without leading zeros."""
    text = f" {' '.join(words)} "
    return _LEADING_ZEROS.sub("", text) if " 0" in text else text


class Reader:
    """Reads texts for one environment; each text once."""

    def __init__(self, witnesses: Mapping[int, Sequence[str]], docstring: str = "") -> None:
        actions = {action for actions in witnesses.values() for action in actions}
        self._fillers = _FILLERS.difference(_WORD.findall("\n".join(actions).lower()))
        self._read: dict[str, Text] = {}
        self.rules = self(docstring)
        self.witnesses = {
            seed: [self(action) for action in actions] for seed, actions in witnesses.items()
        }

    def __call__(self, text: str) -> Text:
        read = self._read.get(text)
        if read is None:
            read = self._read[text] = Text(text, self._fillers)
        return read

    def readings(self, text: str) -> list[Text]:
        """The text as it is, and without the numbers of a numbered list."""
        bare = _NUMBERING.sub(" | ", text)
        return [self(text)] if bare == text else [self(text), self(bare)]


# --- secrets, and who tells them ---


@dataclass(frozen=True, slots=True)
class Secrets:
    """What a witness names: its words, and its lists of three or more."""

    words: frozenset[str]
    lists: tuple[str, ...]

    @classmethod
    def of(cls, actions: Sequence[Text]) -> Secrets:
        """Those of `actions`, the last of which is the answer."""
        split = [action.flat.split() for action in actions]
        lists = [" ".join(parts[1:]) for parts in split if len(parts) > 3]
        if split and len(split[-1]) == 3:
            lists.append(" ".join(split[-1]))
        for _verb, run in groupby(split, key=lambda parts: parts[:1]):
            arguments = [parts[1:] for parts in run]
            if len(arguments) >= 3 and all(arguments):
                lists.append(" ".join(word for part in arguments for word in part))
        words = frozenset().union(*(action.words for action in actions))
        return cls(words, tuple(dict.fromkeys(lists)))


class Known:
    """What a player can read before the first action."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts = texts

    def without(self, secrets: Set[str]) -> set[str]:
        """Those of `secrets` that are not known, nor, as far as that is plain, in another form."""
        hidden = {
            secret for secret in secrets if not any(text.tells(secret) for text in self._texts)
        }
        if len(hidden) > _MANY:
            return hidden
        return {word for word in hidden if not (word.isalpha() and self._inflects(word))}

    def _inflects(self, word: str) -> bool:
        """Whether a longer form of the word is known (`cutting` for `cut`), or one without its ending."""
        forms = [f" {word}"] if len(word) >= 3 else []
        forms += [f" {word[:-1]} ", f" {word[:-2]} "] if len(word) >= 5 else []
        return any(form in text.flat for form in forms for text in self._texts)


@dataclass(frozen=True, slots=True)
class Case:
    """What is said on one seed, what is to be kept secret there, and what is known anyway."""

    seed: int
    said: Text
    secrets: Secrets
    known: Callable[[], Known]


def told(cases: Sequence[Case]) -> dict[int, str]:
    """The secret that is told on each seed where one is; empty when it can be accident."""
    spoken = [case.said.words for case in cases]
    counts = Counter(word for words in spoken for word in words)
    common = {word for word, times in counts.items() if times >= COMMON_SHARE * len(cases)}
    asked = {word for case in cases for word in case.secrets.words} - common
    listed = {found for case in cases for found in case.secrets.lists}
    found: dict[int, str] = {}
    odds = Odds()
    for case, words in zip(cases, spoken, strict=True):
        new = {one for one in listed if f" {one} " in case.said.flat} | (words & asked)
        if new:
            new = case.known().without(new)
        for other in cases:
            hit = _first(new, other.secrets) if new else ""
            if other is case and hit:
                found[case.seed] = hit
            odds.count(own=other is case, hit=bool(hit))
    return found if odds.beaten else {}


def _first(new: Set[str], secrets: Secrets) -> str:
    """The first secret among `new`, the longest first; empty when there is none."""
    hits = [one for one in secrets.lists if one in new]
    hits += secrets.words & new
    return min(hits, key=lambda hit: (-len(hit), hit), default="")


class Odds:
    """How often something was found on its own seed, and how often on others."""

    def __init__(self) -> None:
        self.hits = self.cases = self.compared = self._chance_hits = 0

    def count(self, *, own: bool, hit: bool) -> None:
        """One more comparison, of a text with the witness of its own or of another seed."""
        if own:
            self.cases += 1
            self.hits += hit
        else:
            self.compared += 1
            self._chance_hits += hit

    @property
    def beaten(self) -> bool:
        """Whether accident would hardly give so many hits: the tail of a binomial distribution."""
        if self.hits < MIN_SEEDS:
            return False
        rate = (self._chance_hits + 0.5) / (self.compared + 1)
        tail = sum(
            comb(self.cases, k) * rate**k * (1 - rate) ** (self.cases - k)
            for k in range(self.hits, self.cases + 1)
        )
        return tail < CHANCE


# --- lists ---


def is_listed(actions: Sequence[Text], text: Text) -> bool:
    """Whether `text` lists exactly these actions, with marks or fillers between them.

    A longer list that they are a part of does not count: it is a belt, or all there is to choose from.
    """
    if "".join(action.flat for action in actions).replace("  ", " ") not in text.flat:
        return False
    items = [action.marked.strip(" |") for action in actions]
    listed = f" {' | '.join(items)} "
    at = text.marked.find(listed)
    for _ in range(_OCCURRENCES):
        if at < 0:
            return False
        before = text.marked[max(0, at - len(listed)) : at].split("|")
        after = text.marked[at + len(listed) : at + 2 * len(listed)].split("|")
        goes_on = len(after) > 1 and not after[0].strip() and after[1].strip() in items
        began = len(before) > 1 and not before[-1].strip() and before[-2].strip() in items
        if not goes_on and not began:
            return True
        at = text.marked.find(listed, at + 1)
    return False


def is_script(actions: Sequence[Text], text: Text) -> bool:
    """Whether `text` holds nearly all of the actions in order, the last one too.

    Between actions of several words there may be anything; single words must stand as a list.
    """
    if len(actions) < 2 or actions[-1].flat not in text.flat:
        return False
    items = [action.marked.strip(" |") for action in actions]
    if 2 * sum(" " in item for item in items) < len(items):
        return is_listed(actions, text)
    at, missing, found = 0, 0, -1
    for item in items:
        found = text.marked.find(f" {item} ", at)
        if found < 0:
            missing += 1
            if missing > len(items) // 10:
                return False
        else:
            at = found + len(item) + 1
    return found >= 0
