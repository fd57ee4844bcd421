"""The agents. Each one that chooses takes a seed, and the same seed chooses the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import cycle, islice
from typing import Final, TypeVar

from synthgym.agents.filling import blanks, fill
from synthgym.agents.offers import offers_of
from synthgym.agents.pieces import pieces_of
from synthgym.agents.text import LINES, within, words_of

Agent = Callable[[str], str | None]
"""From the last observation to the next action; None when it has nothing more to say."""

_T = TypeVar("_T")
_TEXTS: Final = 8
"""Observations that tokens are taken from: the first and the newest."""
_MAX_PIECE: Final = 40
"""Characters of a piece that is put into a command."""


class Script:
    """An agent that does not look: what it does is known before.

    It may be called turn by turn, or be asked with `first` for all that it will do.
    """

    __slots__ = ("_actions", "_again", "_rest")

    def __init__(self, actions: Sequence[str], *, again: bool = False) -> None:
        self._actions = actions
        self._again = again
        self._rest = cycle(actions) if again else iter(actions)

    def __call__(self, observation: str) -> str | None:
        """The next action, whatever was observed."""
        del observation
        return next(self._rest, None)

    def first(self, turns: int) -> Sequence[str]:
        """What it does on the first `turns` turns; less where it has nothing more to say."""
        return list(islice(cycle(self._actions), turns)) if self._again else self._actions[:turns]


def scripted(actions: Sequence[str]) -> Script:
    """Plays these actions, whatever it sees."""
    return Script(actions)


def repeating(action: str) -> Script:
    """Sends this action every turn."""
    return Script((action,), again=True)


def null() -> Script:
    """Sends the empty action every turn: it does nothing."""
    return repeating("")


def random_words(seed: int) -> Agent:
    """One to three words a turn, of the words of the current observation and the digits 0 to 9."""
    choose = _chooser(_stream("random words", seed))

    def act(observation: str) -> str:
        words = words_of(within(observation))
        return " ".join([choose(words) for _ in range(choose((1, 2, 3)))])

    return act


def scraping(seed: int) -> Agent:
    """Picks at random among the commands that are on offer; blanks get tokens that observations have shown.

    When an observation offers nothing, what was offered before counts.
    """
    rng = _stream("scraping", seed)
    choose = _chooser(rng)
    notes = _Notes()

    def act(observation: str) -> str:
        notes.read(observation)
        command = choose(notes.commands) if notes.commands else ""
        return fill(command, rng, notes.texts)

    return act


def copying(seed: int) -> Agent:
    """Sends back pieces of what it has just read, bare or put into a command on offer.

    It prefers what stands after words such as "the answer is". In every second episode it keeps to one
    kind of piece, bare or framed, as long as there is one: where copying wins, one way of it wins.
    """
    rng = _stream("copying", seed)
    choose = _chooser(rng)
    notes = _Notes()
    loyal, bare = rng.random() < 0.5, rng.random() < 0.5
    favourite = pieces_of("").draw_kind(rng)

    def act(observation: str) -> str:
        notes.read(observation)
        pieces = pieces_of(within(observation))
        kind = favourite if loyal and pieces.kinds[favourite] else pieces.draw_kind(rng)
        piece = choose(pieces.kinds[kind] or ("",))
        frames = _frames(notes.commands)
        if not frames or len(piece) > _MAX_PIECE or (bare if loyal else rng.random() < 0.5):
            return piece
        return _framed(choose(frames), piece, rng, notes.texts)

    return act


class _Notes:
    """What an agent remembers of an episode: the commands on offer, and the texts that tokens come from."""

    def __init__(self) -> None:
        self.commands: tuple[str, ...] = ()
        self.texts: list[str] = []
        self._listed: tuple[str, ...] = ()

    def read(self, observation: str) -> None:
        """Take in the newest observation."""
        text = within(observation)
        if text not in self.texts:
            self.texts.append(text)
            del self.texts[1 : 1 - _TEXTS]
        offers = offers_of(text)
        if offers.listed:
            self._listed = self.commands = offers.commands
        elif offers.commands:  # what is only quoted may be no command
            self.commands = tuple(dict.fromkeys((*self._listed, *offers.commands)))


def _stream(name: str, seed: int) -> random.Random:
    """A stream of its own: an environment seeded with the same number must not draw the same."""
    return random.Random(f"{name} {seed}")


def _chooser(rng: random.Random) -> Callable[[Sequence[_T]], _T]:
    """`rng.choice` for what is not empty: the same draws in a third of the time."""
    bits = rng.getrandbits

    def choose(items: Sequence[_T]) -> _T:
        size = len(items)
        width = size.bit_length()
        drawn = bits(width)
        while drawn >= size:
            drawn = bits(width)
        return items[drawn]

    return choose


@lru_cache(maxsize=LINES)
def _frames(commands: tuple[str, ...]) -> tuple[str, ...]:
    """The commands that a piece can be put into."""
    return tuple([command for command in commands if " " in command or blanks(command)])


def _framed(command: str, piece: str, rng: random.Random, texts: Sequence[str]) -> str:
    """`piece` in one blank of the command, the other blanks filled at random; or behind its first word."""
    places = blanks(command)
    if not places:
        return f"{command.partition(' ')[0]} {piece}"
    chosen = rng.choice(places)
    before = fill(command[: chosen.start()], rng, texts)
    return before + piece + fill(command[chosen.end() :], rng, texts)
