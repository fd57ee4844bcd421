"""What the model is taught before a run: the rows of its warm start, and those that a run rehearses.

The agent learns four things, each from instances of its own:

spare      what an operation does to a state, on operations of no ladder
low        levels 0 and 1 of every ladder, a third of them hinted
hinted     a rung above them whose operation does anything at all, and the hint says what: nothing but copying helps
unknown    the same without the hint: what is not known is a guess, one in five

The last kind is not rehearsed: it would teach a run to forget what it has learned. The designer learns to name the
ladder that it is asked for and a level that is geometric, P(level >= k) = exp(-k / 0.9), whatever else it is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
from ladder import LEVELS, Cell, family, ladders, shift
from words import STATES, answer, operation, spare_operations, state

from spade_loop.demonstrations import Demonstration
from spade_loop.hints import LABEL
from spade_loop.prompts import Prompt, load_prompt
from spade_loop.types import Arm, Message, Role

KNOWN: Final = 2
"""Levels that the warm start teaches."""
MEAN_LEVEL: Final = 0.9
SHOWN: Final = 0.75
"""Share of designer prompts with an exemplar, and share with a warning."""
MIX: Final = {"spare": 0.25, "low": 0.3, "hinted": 0.25, "unknown": 0.1, "design": 0.1}


@cache
def _prompt(name: str) -> Prompt:
    return load_prompt(name)


@dataclass(frozen=True, slots=True)
class Story:
    """An episode of three operations: the states it goes through, and what the hint says."""

    operations: tuple[str, ...]
    states: tuple[int, ...]
    hint: str = ""

    def row(self, kind: str) -> Demonstration:
        """The episode as the product shows it."""
        first, *later = (
            f"State {state(at)}. Next: {name}. Which state follows, 0 to {STATES - 1}?"
            for at, name in zip(self.states, self.operations, strict=False)
        )
        shown = first + (f"\n\n{LABEL}{self.hint}" if self.hint else "")
        replies = [Message("assistant", answer(at)) for at in self.states[1:]]
        turns: list[Message] = [replies[0]]
        for observation, reply in zip(later, replies[1:], strict=True):
            turns += [Message("user", observation), reply]
        return Demonstration(
            id=kind,
            role=Role.AGENT,
            arm=Arm.HINTED if self.hint else Arm.PLAIN,
            prompt=_prompt("agent").render(observation=shown),
            completion=tuple(turns),
        )


def lessons(count: int, rng: np.random.Generator) -> list[Demonstration]:
    """Rows of all kinds in the shares of `MIX`."""
    kinds = rng.choice(list(MIX), size=count, p=list(MIX.values()))
    return [lesson(str(kind), rng) for kind in kinds]


def lesson(kind: str, rng: np.random.Generator) -> Demonstration:
    """One row of a kind."""
    if kind == "design":
        return design(rng)
    if kind == "spare":
        effects = spare_operations(family())
        names = [str(n) for n in rng.choice(list(effects), size=3)]
        return told(names, [effects[n] for n in names], rng).row(kind)
    ladder = ladders()[rng.integers(len(ladders()))]
    if kind == "low":
        return low(Cell(ladder, int(rng.integers(KNOWN))), rng).row(kind)
    return high(ladder, rng, hinted=kind == "hinted").row(kind)


def told(
    names: Sequence[str], moves: Sequence[int], rng: np.random.Generator, hint: int = -1
) -> Story:
    """A story from a random state; `hint` is the place of the operation whose result is told."""
    at = [int(rng.integers(STATES))]
    for move in moves:
        at.append((at[-1] + move) % STATES)
    said = f"{names[hint]} gives {state(at[hint + 1])}." if hint >= 0 else ""
    return Story(tuple(names), tuple(at), said)


def low(cell: Cell, rng: np.random.Generator) -> Story:
    """An episode of level 0 or 1, by the rules of the family."""
    levels = [cell.level, 0, 0]
    while True:
        rng.shuffle(levels)
        names = [operation(cell.first + level) for level in levels]
        new = int(rng.choice([i for i in range(3) if levels[i] == cell.level]))
        story = told(names, [shift()(n) for n in names], rng, new if rng.random() < 1 / 3 else -1)
        if story.states[-1] != story.states[new + 1]:
            return story


def high(ladder: str, rng: np.random.Generator, *, hinted: bool) -> Story:
    """A rung above what is known, with an operation that does anything, beside two that are known."""
    first = Cell(ladder, 0).first
    names = [operation(first + int(rng.integers(KNOWN))) for _ in range(2)]
    moves = [shift()(n) for n in names]
    new = int(rng.integers(2))  # never the last one: see the family
    names.insert(new, operation(first + int(rng.integers(KNOWN, LEVELS))))
    moves.insert(new, int(rng.integers(STATES)))
    return told(names, moves, rng, new if hinted else -1)


def design(rng: np.random.Generator) -> Demonstration:
    """A blueprint of the ladder that is asked for."""
    ladder = ladders()[rng.integers(len(ladders()))]
    level = min(int(rng.exponential(MEAN_LEVEL)), LEVELS - 1)
    prompt = _prompt("designer_blueprint").render(
        skill=ladder,
        document="",
        exemplars=f"- {_shown(ladder, rng)}" if rng.random() < SHOWN else "none",
        warnings=(
            f"- {rng.choice(['too easy', 'too hard'])}: {_shown(ladder, rng)}"
            if rng.random() < SHOWN
            else ""
        ),
    )
    reply = Message("assistant", Cell(ladder, level).blueprint.to_json())
    return Demonstration(id="design", role=Role.DESIGNER, prompt=prompt, completion=(reply,))


def _shown(ladder: str, rng: np.random.Generator) -> str:
    return f"ladder {ladder}, level L{rng.integers(LEVELS):02d}"
