"""What an environment does under fixed actions, in a form that survives another story.

`trace/1`: reset with seeds 0, 1 and 2; sixteen actions each. The first come from the commands that
the first observation offers, so that a copy in other words gets its own words in the same places;
the rest are fixed texts. When an action ends the episode, the next one is played after another reset
with the same seed. Three parts are kept:

- `outcomes`: the sign of each reward, and which actions ended the episode.
- `numbers`: the numbers that each observation shows and that differ between seeds, as a sorted list.
  Numbers that are the same for every seed belong to the text, and another text has others.
- `pattern`: the words that differ between seeds, each replaced by the place at which it first came
  up. Word for word in another language, an observation has the same pattern.

Equal traces corroborate what shared code suggests. They prove nothing alone: many simple
environments do the same under actions that understand nothing. The state of the random generator
would say more, but it does not leave the sandbox.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, NamedTuple

from synthgym.agents import MAX_READ, fill, offered
from synthgym.sandbox import EnvFault, Pool, ResetResult, Session
from synthgym.spec import EnvRecord, Limits, canonical_json

TRACE_SPEC: Final = "trace/1"
SEEDS: Final = (0, 1, 2)
ACTIONS: Final = 16
FROM_OFFERS: Final = 12
"""Actions that come from offered commands, where there are any."""
FIXED: Final = (
    *("", "1", "0", "yes", "2", "a", "1 1", "look", "3", "b", "help", "2 1"),
    *("-1", "10", "1 2 3", "end"),
)
MIN_DISTINCT: Final = 4
"""Numbers, or words, that differ between seeds: with fewer, equal traces say nothing."""
MAX_CHARS: Final = 16_384
"""Characters of an observation that are read."""

_NUMBER: Final = re.compile(r"\d{1,18}(?:\.\d{1,9})?")
_WORD: Final = re.compile(r"[^\W\d_]+")


class Moment(NamedTuple):
    """What was seen after a reset (`outcome` is then empty) or after an action."""

    observation: str
    outcome: str = ""
    """The sign of the reward (`-`, `0`, `+`), and `!` when the episode ended."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What an environment did, as digests: equal texts mean equal behaviour."""

    outcomes: str
    numbers: str
    """Empty when fewer than `MIN_DISTINCT` numbers differ between seeds."""
    pattern: str
    """Empty when fewer than `MIN_DISTINCT` words differ between seeds."""

    @property
    def digest(self) -> str:
        """`trace/1:<32 hex>` over the parts."""
        return f"{TRACE_SPEC}:{_digest([self.outcomes, self.numbers, self.pattern])}"


def behaviour_equal(first: Trace, second: Trace) -> bool:
    """Whether both did the same where that means something.

    The outcomes are equal, and so are the numbers that differ between seeds; the words, when neither
    shows enough such numbers. False for traces that show neither: they are no evidence.
    """
    if first.outcomes != second.outcomes:
        return False
    if first.numbers or second.numbers:
        return first.numbers == second.numbers
    return bool(first.pattern) and first.pattern == second.pattern


def behaviour_trace(
    record: EnvRecord, pool: Pool, limits: Limits | None = None
) -> Trace | EnvFault:
    """Play `record` in the pool. A fault of a reset is returned; one of a step is an outcome.

    `SandboxError` when no worker can be started.
    """
    episodes = []
    with pool.open(record, limits) as session:
        for seed in SEEDS:
            moments = _play(session, seed)
            if isinstance(moments, EnvFault):
                return moments
            episodes.append(moments)
    return trace_of(episodes)


def actions_for(observation: str) -> tuple[str, ...]:
    """The sixteen actions for an episode that begins with `observation`."""
    text = observation[:MAX_READ]
    commands = offered(text)
    rng = random.Random(0)
    count = FROM_OFFERS if commands else 0
    chosen = [fill(commands[i % len(commands)], rng, [text]) for i in range(count)]
    return (*chosen, *FIXED)[:ACTIONS]


def trace_of(episodes: Sequence[Sequence[Moment]]) -> Trace:
    """Digest what was seen: one sequence of moments for each seed, as long as each other."""
    outcomes = [[moment.outcome for moment in episode] for episode in episodes]
    texts = [[moment.observation[:MAX_CHARS] for moment in episode] for episode in episodes]
    numbers = _differing(texts, _numbers)
    words = _differing(texts, _words)
    return Trace(
        outcomes=_digest(outcomes),
        numbers=_told([[sorted(found) for found in episode] for episode in numbers]),
        pattern=_told(words, _relabelled(words)),
    )


def _play(session: Session, seed: int) -> list[Moment] | EnvFault:
    first = session.reset(seed)
    if isinstance(first, EnvFault):
        return first
    moments = [Moment(first.observation)]
    over = False
    for action in actions_for(first.observation):
        if over:
            again: ResetResult | EnvFault = session.reset(seed)
            if isinstance(again, EnvFault):
                return again
        result = session.step(action)
        if isinstance(result, EnvFault):
            moments.append(Moment("", f"fault {result.kind}"))
            over = True
            continue
        over = result.terminated or result.truncated
        moments.append(Moment(result.observation, _sign(result.reward) + "!" * over))
    return moments


def _sign(reward: float) -> str:
    return "+" if reward > 0.0 else "-" if reward < 0.0 else "0"


def _numbers(text: str) -> list[str]:
    """The numbers of a text, without leading zeros."""
    return [number.lstrip("0") or "0" for number in _NUMBER.findall(text)]


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _differing(
    texts: Sequence[Sequence[str]], read: Callable[[str], list[str]]
) -> list[list[list[str]]]:
    """Of each text what not every seed shows at that moment, in order; as often as it is there more."""
    found: list[list[list[str]]] = [[] for _ in texts]
    for moment in zip(*texts, strict=True):
        counted = [Counter(read(text)) for text in moment]
        common = reduce(lambda one, other: one & other, counted)
        for episode, text in zip(found, moment, strict=True):
            spare = Counter(common)
            kept = []
            for item in read(text):
                if spare[item] > 0:
                    spare[item] -= 1
                else:
                    kept.append(item)
            episode.append(kept)
    return found


def _relabelled(episodes: Iterable[Iterable[Iterable[str]]]) -> list[list[list[int]]]:
    places: dict[str, int] = {}
    return [
        [[places.setdefault(word, len(places)) for word in moment] for moment in episode]
        for episode in episodes
    ]


def _told(items: Sequence[Sequence[Sequence[str]]], shown: object = None) -> str:
    """The digest of `shown` (of `items` without it); empty when the items say too little."""
    distinct = {item for episode in items for moment in episode for item in moment}
    if len(distinct) < MIN_DISTINCT:
        return ""
    return _digest(items if shown is None else shown)


def _digest(value: object) -> str:
    return hashlib.sha256(canonical_json(value)).hexdigest()[:32]
