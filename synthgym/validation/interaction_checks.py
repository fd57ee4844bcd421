"""Interaction: what is done shows in what is observed, and decides what follows."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, cycle, islice
from typing import Final, NamedTuple

from synthgym.agents import fill, offered, scripted
from synthgym.sandbox.results import EnvFault, StepResult
from synthgym.validation.plays import Cast, Play, Trial, Undecided
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

_FILLERS: Final = ("qzxvkj", "", "vwxq zzkj xqv", "?!?")
"""Texts that do nothing; the first that episodes survive is used."""
_LONGEST: Final = 16
"""Turns on which ways differ before the same is asked at the end of all of them."""
_SLIPS: Final = 8
"""Turns at which something wrong is done after a right beginning: mistakes may only count together."""
_PROBES: Final = 5
"""Actions that are asked then, before the last one of the witness."""
_ENOUGH: Final = 3
"""Comparisons without any difference that prove that there is none."""
_TOOLS: Final = "tools"
"""The format of actions that are tool calls: where all tools only look things up, nothing needs state."""
_WORD: Final = re.compile(r"\w+")
_NUMBER: Final = re.compile(r"\d+")


def check_interaction(trial: Trial) -> Iterator[Finding]:
    """Observations tell what was done, and what was done decides what follows.

    One play settles it nearly always: that of the witness whose actions but for the last are
    replaced by text that does nothing. Only if it shows too little, more ways are gone.
    """
    yield from _check_nonsense_wins(trial)
    seeds = [seed for seed in trial.few if seed in trial.wins]
    plays = {seed: [trial.wins[seed]] for seed in seeds}
    filler = _filler(trial)
    for seed in seeds[:1]:
        *way, last = trial.wins[seed].actions
        idle = way[:1] if filler is None else [filler]
        plays[seed] += trial.play([Cast(seed, scripted([*idle * len(way), last]))])
        trial.kept += plays[seed][1:]
    asked = (
        trial.record.action_format == _TOOLS
        or any(len(trial.wins[seed].actions) < 2 for seed in seeds)
    )  # nothing need be kept for an answer to a question; one action that wins is a reason of its own
    for seed in seeds:
        if _telling(plays.values()).differ and (asked or _keeping(plays.values()).differ):
            return
        plays[seed] += trial.play([Cast(seed, scripted(way)) for way in _ways(trial, seed, filler)])
        if any(play.fault is not None for play in plays[seed]):
            return  # the trial has noted it; the ways that were cut short prove nothing
    found = list(_check_telling(list(plays.values())))
    yield from found
    if not found and not asked:
        yield from _check_keeping(list(plays.values()))


def _check_telling(plays: Sequence[Sequence[Play]]) -> Iterator[Finding]:
    """Observations differ between plays of a seed in which different things were done."""
    telling = _telling(plays)
    if not telling.differ and telling.alike >= _ENOUGH:
        detail = f"{telling.alike} times the same was seen at the same turn after different actions"
        yield plays[0][1].evidence(Reason.IGNORES_ACTIONS, detail)
    elif not telling.differ and not telling.apart:
        raise Undecided(
            "no two episodes went on after different actions, so nothing tells whether it matters "
            "what is done; let a wrong command cost a turn, not the episode"
        )


def _check_keeping(plays: Sequence[Sequence[Play]]) -> Iterator[Finding]:
    """What came before decides, somewhere, what comes of an action."""
    keeping = _keeping(plays)
    if not keeping.differ and keeping.alike < _ENOUGH:
        keeping = _keeping_at_any_turn(plays)
        if not keeping.differ and not keeping.alike:
            raise Undecided(
                "no action could be tried after different ones, so nothing tells whether the way "
                "matters; let a wrong command cost a turn, not the episode"
            )
    if not keeping.differ:
        detail = f"{keeping.alike} times an action had the same outcome after different ways"
        yield plays[0][1].evidence(Reason.NO_STATE, detail)


def _check_nonsense_wins(trial: Trial) -> Iterator[Finding]:
    """Nonsense wins, and the agents that understand nothing have not come upon it."""
    won = [play for play in trial.idle if play.success]
    found = any(trial.tally.get(name, (0, 0))[0] > 1 for name in ("null", "random"))
    if len(won) > 1 and not found:
        yield won[0].evidence(Reason.NONSENSE_PAID, f"nonsense wins {len(won)} times")


def _filler(trial: Trial) -> str | None:
    """A text that neither ended nor broke any episode of nonsense, if there is one."""
    live: set[str] = set()
    over: set[str] = set()
    for play in trial.idle:
        for action, step in zip(play.actions, play.steps, strict=True):
            (over if _ended(step) else live).add(action)
    return next((text for text in _FILLERS if text in live - over), None)


def _ways(trial: Trial, seed: int, filler: str | None) -> list[tuple[str, ...]]:
    """Different ways: of equal length with the same actions at the end, and off the witness at each turn."""
    *way, last = trial.wins[seed].actions
    rng = random.Random(seed)
    seen = trial.first[seed].observation
    offers = [fill(command, rng, [seen]) for command in offered(seen)]
    others = [play.actions[-1] for play in trial.wins.values() if play.actions[-1] != last][:1]
    idle = [] if filler is None else [filler]
    room = trial.record.max_turns - 1
    length = min(room, max(len(way), room // 2), _LONGEST)
    probes = list(dict.fromkeys([*way[:3], *offers[:2], *way[3:]]))
    probes = [probe for probe in probes if probe != last][: min(_PROBES, room - length)]
    twice = [action for action in way for _ in range(2)]
    parts: list[Sequence[str]] = [
        idle,
        way,
        twice,
        way[::-1],
        way[:1],
        way[1:],
        offers,
        others,
    ]
    full = [(*islice(cycle(part), length), *probes, last) for part in parts if part]
    turns = range(1, len(way) + 1)[:_SLIPS]
    off = [(*way[:turn], wrong) for turn in turns for wrong in (*idle, *others)]
    return list(dict.fromkeys([*full, *off]))


# --- what plays of one seed show when they are compared ---


class _Compared(NamedTuple):
    """What came of comparing plays."""

    differ: bool = False
    """Something depends on what was done before."""
    alike: int = 0
    """Comparisons that showed no difference."""
    apart: bool = False
    """Nothing more than this: one episode went on at a turn where another one ended."""


def _telling(plays: Iterable[Sequence[Play]]) -> _Compared:
    """Whether what is seen, while both episodes go on, depends on what was done."""
    alike, apart = 0, False
    for of_seed in plays:
        for one, other in combinations(of_seed, 2):
            found = _side_by_side(one, other)
            if found.differ:
                return found
            alike += found.alike
            apart = apart or found.apart
    return _Compared(False, alike, apart)


def _side_by_side(one: Play, other: Play) -> _Compared:
    """Two plays turn by turn, from the first different action to the first end; echoes do not count."""
    alike, different = 0, False
    said: list[str] = []
    for a, b, x, y in zip(one.actions, other.actions, one.steps, other.steps, strict=False):
        different = different or a != b
        said += [a, b]
        if isinstance(x, EnvFault) or isinstance(y, EnvFault) or _ended(x) or _ended(y):
            return _Compared(False, alike, different and _ended(x) != _ended(y))
        if not different:
            continue
        if x.observation != y.observation:
            echoes = _Echoes.of(said)
            if echoes.taken_out(x.observation) != echoes.taken_out(y.observation):
                return _Compared(True)
        alike += 1
    return _Compared(False, alike)


@dataclass(frozen=True, slots=True)
class _Echoes:
    """What an observation may only repeat."""

    texts: tuple[str, ...]
    words: frozenset[str]

    @classmethod
    def of(cls, actions: Iterable[str]) -> _Echoes:
        """Of these actions: each as a whole, and its words."""
        folded = {action.strip().casefold() for action in actions} - {""}
        words = frozenset(word for text in folded for word in _WORD.findall(text))
        return cls(tuple(sorted(folded, key=lambda text: (-len(text), text))), words)

    def taken_out(self, observation: str) -> list[str]:
        """The words and marks of `observation` that are no echo."""
        rest = observation.casefold()
        for text in self.texts:
            rest = rest.replace(text, " ")
        return [word for word in re.findall(r"\w+|[^\w\s]", rest) if word not in self.words]


def _keeping(plays: Iterable[Sequence[Play]]) -> _Compared:
    """Whether the same action at the same turn comes to something else when other actions came before.

    Numbers that alone differ do not count against text that may not have been taken for an action:
    they may count actions. Between ways of actions of the witness they do.
    """
    alike = 0
    for of_seed in plays:
        own = frozenset(of_seed[0].actions)
        groups: defaultdict[tuple[int, str], dict[tuple[str, ...], StepResult]] = defaultdict(dict)
        for play in of_seed:
            for turn, (action, result) in enumerate(zip(play.actions, play.results, strict=False)):
                groups[turn, action].setdefault(play.actions[:turn], result)
        for group in groups.values():
            known = [result for before, result in group.items() if own.issuperset(before)]
            if not (_alike(known, strict=True) and _alike(list(group.values()), strict=False)):
                return _Compared(True)
            alike += len(group) - 1
    return _Compared(False, alike)


def _keeping_at_any_turn(plays: Iterable[Sequence[Play]]) -> _Compared:
    """The same wherever the action stands, with numbers left out: for episodes that soon end."""
    alike = 0
    for of_seed in plays:
        groups: defaultdict[str, dict[tuple[str, ...], StepResult]] = defaultdict(dict)
        for play in of_seed:
            for turn, (action, result) in enumerate(zip(play.actions, play.results, strict=False)):
                groups[action].setdefault(play.actions[:turn], result)
        for group in groups.values():
            if not _alike(list(group.values()), strict=False):
                return _Compared(True)
            alike += len(group) - 1
    return _Compared(False, alike)


def _alike(results: Sequence[StepResult], *, strict: bool) -> bool:
    return all(_same(results[0], other, strict=strict) for other in results[1:])


def _same(one: StepResult, other: StepResult, *, strict: bool) -> bool:
    """Whether two steps came to the same; unless `strict`, whatever the numbers in the text are."""
    if (one.reward, one.terminated, one.truncated) != (
        other.reward,
        other.terminated,
        other.truncated,
    ):
        return False
    if one.observation == other.observation:
        return True
    return not strict and _NUMBER.sub("#", one.observation) == _NUMBER.sub("#", other.observation)


def _ended(step: StepResult | EnvFault) -> bool:
    return isinstance(step, EnvFault) or step.terminated or step.truncated
