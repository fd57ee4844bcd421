"""Ease: neither one action wins, nor an agent that understands nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from synthgym.agents import (
    Agent,
    copying,
    fill,
    null,
    offered,
    random_words,
    repeating,
    scraping,
    scripted,
)
from synthgym.spec import canonical_json
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

LUCK: Final = 0.2
"""Share of its episodes that an agent without understanding may win.

A win then says five to one that there was understanding, and understanding has four fifths of the scale
to show on: what a hint or training can gain is bounded by what luck leaves.
"""
FIXED_SHARE: Final = 0.5
"""Share of the seeds on which one and the same choice among the commands on offer may win.

More than `LUCK`: of twelve such choices the luckiest counts.
"""
_SEEDS: Final = 3
"""Seeds on which choices and the agent that does nothing are tried."""
_ONCE: Final = 6
_REPEATED: Final = 4
"""Commands on offer that are sent once, and that are repeated."""
_AT_ONCE: Final = "once"
"""In the report: commands on offer that are sent once."""
_TOOLS: Final = "tools"
"""The format of actions of which text is no part, but for answers."""
_MAX_ANSWER: Final = 1000
"""Characters of an answer; more would only have the whole action cut, and no longer read."""


class _Look(NamedTuple):
    """How many episodes are played before the wins are looked at, and what then happens."""

    episodes: int
    """From the first one on."""
    passes: int
    """With at most so many wins no more is played."""
    refused: int
    """With so many wins no more is played either."""


@dataclass(frozen=True, slots=True)
class _Player:
    """An agent that chooses at random, and how it is judged. The last look decides."""

    name: str
    """In the report."""
    what: str
    reason: Reason
    agent: Callable[[int], Agent]
    looks: tuple[_Look, ...]


RANDOM_WORDS: Final = _Player(
    "random",
    "random words",
    Reason.RANDOM_AGENT_WINS,
    random_words,
    (_Look(16, 0, 2), _Look(50, 1, 2)),
)
"""At most one of 50: in a text of a hundred words luck is rare."""
SCRAPING: Final = _Player(
    "scraping",
    "random commands on offer",
    Reason.SCRAPING_AGENT_WINS,
    scraping,
    (_Look(8, 0, 6), _Look(20, 3, 10), _Look(40, 12, 13)),
)
"""Refused when its wins show, with 95 % confidence over all looks, that it wins more than `LUCK`.

Of environments in which it wins exactly `LUCK` 4 of 100 are refused; at 0.15 it is 4 of 1000, at 0.4 86 of
100, at 0.5 99 of 100. Where it does not win, eight episodes are played.
"""
COPYING: Final = _Player(
    "copying",
    "copied text",
    Reason.COPYING_AGENT_WINS,
    copying,
    (_Look(6, 0, 5), _Look(20, 4, 5)),
)
"""More than `LUCK` of 20. Most of its episodes are spent on ways of copying that do not fit, so that
even where the answer is always told it wins seldom more than half."""


def check_one_action(trial: Trial) -> Iterator[Finding]:
    """A win takes more than one action, whatever the action."""
    short = next((play for play in trial.wins.values() if len(play.steps) == 1), None)
    if short is not None:
        yield short.evidence(Reason.ONE_ACTION_WIN, "the solution wins with one action")
        return
    choices = _Choices(trial, _ONCE, 1)
    last = [Cast(seed, scripted(trial.wins[seed].actions[-1:])) for seed in trial.few]
    plays = trial.play([*choices.cast(), *last])
    if len(plays) < len(choices.cast()) + len(last):
        return  # the trial has noted what broke
    best = choices.best(plays[: -len(last)])
    trial.tally[_AT_ONCE] = len(best.won), best.played
    if best.wins_too_often:
        yield best.evidence(Reason.ONE_ACTION_WIN, "at once")
    elif all(play.success for play in plays[-len(last) :]):
        detail = f"on {len(last)} of {len(last)} seeds"
        yield plays[-len(last)].evidence(Reason.ANSWERABLE_AT_ONCE, detail)


def check_unthinking_agents(trial: Trial) -> Iterator[Finding]:
    """Agents that understand nothing do not win; the first one that does ends the search.

    Where one action wins, they do as well, and it would say nothing new. The first episodes of all of
    them are played together: a step of many episodes costs little more than a step of one.
    """
    if _one_action_wins(trial):
        return
    choices = _Choices(trial, _REPEATED, trial.horizon)
    players = [RANDOM_WORDS, COPYING] if _has_tools(trial) else [RANDOM_WORDS, SCRAPING, COPYING]
    rounds = [_idle(trial), choices.cast()]
    rounds += [_cast(trial, player, 0, player.looks[0].episodes) for player in players]
    plays = iter(trial.play([part for cast in rounds for part in cast]))
    played = [list(islice(plays, len(cast))) for cast in rounds]
    trial.idle += played[0]
    for each, count in zip(played, (3, 2, 6, 6, 3), strict=False):
        trial.kept += each[:count]
    if len(played[-1]) < len(rounds[-1]):
        return  # the trial has noted what broke
    yield from _judged(trial, choices, players, played)


def _judged(
    trial: Trial,
    choices: _Choices,
    players: Sequence[_Player],
    played: Sequence[list[Play]],
) -> Iterator[Finding]:
    """What the first agent comes to that wins too often, the simplest first."""
    null_plays, repeated, *others = played
    won = [play for play in null_plays if play.success]
    trial.tally["null"] = len(won), len(null_plays)
    if won:
        detail = f"it won on {len(won)} of {len(null_plays)} seeds"
        yield won[0].evidence(Reason.NULL_AGENT_WINS, detail)
        return
    best = choices.best(repeated)
    trial.tally["repeating"] = len(best.won), best.played
    if best.wins_too_often:
        yield best.evidence(Reason.REPEATING_AGENT_WINS, "again and again")
        return
    for player, plays in zip(players, others, strict=True):
        finding = _luck(trial, player, plays)
        if finding is not None:
            yield finding
            return


def _one_action_wins(trial: Trial) -> bool:
    """Whether `check_one_action` has refused it."""
    short = any(len(play.steps) == 1 for play in trial.wins.values())
    return short or _too_often(*trial.tally.get(_AT_ONCE, (0, 0)))


# --- agents that do the same every turn ---


def _idle(trial: Trial) -> list[Cast]:
    """Doing nothing on a few seeds, on the last one with all turns there are."""
    *seeds, last = trial.few[:_SEEDS]
    return [*(Cast(seed, null(), trial.horizon) for seed in seeds), Cast(last, null())]


Choose = Callable[[tuple[str, ...]], str | None]
"""From the commands on offer to the one that is taken; None when it is not there."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What came of one and the same choice on several seeds."""

    won: tuple[Play, ...]
    played: int

    @property
    def wins_too_often(self) -> bool:
        """Whether it is more than luck."""
        return _too_often(len(self.won), self.played)

    def evidence(self, reason: Reason, how: str) -> Finding:
        """The first win."""
        play = self.won[0]
        detail = (
            f"sending {play.actions[0]!r}, which is on offer, {how} wins; "
            f"the same choice wins on {len(self.won)} of {self.played} seeds"
        )
        return play.evidence(reason, detail)


class _Choices:
    """Taking the same choice among the commands on offer on every seed, and repeating it.

    The same is either the same words or the same place in what is on offer. What wins on two of a few
    seeds is tried on all of them.
    """

    def __init__(self, trial: Trial, count: int, horizon: int) -> None:
        self._trial = trial
        self._count = count
        self._horizon = horizon
        seeds = () if _has_tools(trial) else trial.seeds
        self._offers = {seed: offered(trial.first[seed].observation) for seed in seeds}
        self._pairs = [
            (seed, command) for seed in seeds[:_SEEDS] for command in self._offers[seed][:count]
        ]

    def cast(self) -> list[Cast]:
        """What is to be played before the best choice is known."""
        return [self._part(seed, command) for seed, command in self._pairs]

    def best(self, plays: Sequence[Play]) -> _Choice:
        """The choice that wins most, from the plays of `cast`."""
        known = dict(zip(self._pairs, plays, strict=True))
        won = [play for play in plays if play.success]
        if len(won) < 2:
            return _Choice(tuple(won), len(plays))
        wins = Counter[Choose]()
        words = dict.fromkeys(command for _seed, command in self._pairs)
        for choose in [*map(_same_words, words), *map(_same_place, range(self._count))]:
            chosen = {(seed, choose(commands)) for seed, commands in self._offers.items()}
            wins[choose] = sum(known[pair].success for pair in self._pairs if pair in chosen)
        choose, most = wins.most_common(1)[0]
        if most < 2:
            return _Choice(tuple(won), len(plays))
        everywhere = {seed: choose(commands) for seed, commands in self._offers.items()}
        more = [
            self._part(seed, command)
            for seed, command in everywhere.items()
            if command is not None and (seed, command) not in known
        ]
        again = [known[pair] for pair in everywhere.items() if pair in known]
        won = [play for play in (*again, *self._trial.play(more)) if play.success]
        return _Choice(tuple(won), len(everywhere))

    def _part(self, seed: int, command: str) -> Cast:
        """That command again and again, its blanks filled once."""
        action = fill(command, random.Random(0), [self._trial.first[seed].observation])
        return Cast(seed, repeating(action), self._horizon)


def _same_words(text: str) -> Choose:
    return lambda commands: text if text in commands else None


def _same_place(place: int) -> Choose:
    return lambda commands: commands[place] if place < len(commands) else None


def _too_often(won: int, played: int) -> bool:
    return won > max(1, FIXED_SHARE * played)


# --- agents that choose at random ---


def _cast(trial: Trial, player: _Player, start: int, stop: int) -> list[Cast]:
    """Its episodes of these numbers; the seeds come again with other luck when there are few of them."""
    horizon = trial.horizon
    return [
        Cast(
            trial.seeds[number % len(trial.seeds)],
            _speaking(trial, player.agent(number)),
            horizon,
        )
        for number in range(start, stop)
    ]


def _luck(trial: Trial, player: _Player, plays: list[Play]) -> Finding | None:
    """Play on until the wins decide."""
    for look in player.looks:
        more = _cast(trial, player, len(plays), look.episodes)
        plays += trial.play(more) if more else []
        won = [play for play in plays if play.success]
        trial.tally[player.name] = len(won), len(plays)
        if len(won) >= look.refused:
            detail = f"{player.what} won {len(won)} of {len(plays)} episodes"
            return won[0].evidence(player.reason, detail)
        if len(won) <= look.passes or len(plays) < look.episodes:
            break
    return None


def _speaking(trial: Trial, agent: Agent) -> Agent:
    """`agent`, what it says put into the form of an answer where actions are tool calls."""
    if not _has_tools(trial):
        return agent

    def act(observation: str) -> str | None:
        said = agent(observation)
        answer = {"answer": said[:_MAX_ANSWER] if said else ""}
        return canonical_json(answer).decode()

    return act


def _has_tools(trial: Trial) -> bool:
    return trial.record.action_format == _TOOLS
