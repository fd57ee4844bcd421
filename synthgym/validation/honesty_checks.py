"""Honesty of rewards: going in a circle, or doing the same again, is not paid again and again."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from synthgym.agents import fill, offered, scripted
from synthgym.contract import REWARD_TOLERANCE
from synthgym.sandbox.results import StepResult
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

MAX_STEPS: Final = 200
"""Steps of the search for cycles that are paid; more only where the first reward comes late."""
_SEEDS: Final = 2
_SPOTS: Final = 3
"""Rewarded actions of one witness after which cycles are tried."""
_PARTNERS: Final = 7
"""Other actions that one of them is alternated with."""
_ROUNDS: Final = (3, 2)
"""Times that a cycle must be paid again; the second where turns are scarce."""
_MAX_TRIED: Final = 6
"""Paid cycles that are looked into."""

_UNDOING: Final = ("undo", "back", "reset", "return", "cancel", "clear", "wait")
_OPPOSITES: Final = (
    ("open", "close"),
    ("load", "unload"),
    ("take", "drop"),
    ("pick", "put"),
    ("get", "drop"),
    ("add", "remove"),
    ("on", "off"),
    ("lock", "unlock"),
    ("push", "pull"),
    ("enter", "leave"),
    ("raise", "lower"),
    ("lift", "lower"),
    ("dock", "undock"),
    ("pin", "unpin"),
    ("connect", "disconnect"),
    ("attach", "detach"),
    ("mount", "unmount"),
    ("set", "clear"),
    ("start", "stop"),
    ("buy", "sell"),
    ("deposit", "withdraw"),
    ("place", "remove"),
    ("plant", "dig"),
    ("fill", "empty"),
    ("up", "down"),
    ("left", "right"),
    ("north", "south"),
    ("east", "west"),
    ("forward", "back"),
    ("in", "out"),
    ("wear", "remove"),
    ("equip", "unequip"),
    ("select", "deselect"),
    ("mark", "unmark"),
)
"""Verbs and directions, and what undoes them."""
_VERB: Final = re.compile(r"[^\W\d_]+")
_QUOTED: Final = re.compile(r"[\"']([^\"'\n]{1,80})[\"']")
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)?")


@dataclass(frozen=True, slots=True, eq=False)
class Spot:
    """Just after a rewarded action of a winning play that is not its last."""

    win: Play
    turn: int
    """Actions up to and with the rewarded one."""

    @property
    def before(self) -> tuple[str, ...]:
        """What leads there."""
        return self.win.actions[: self.turn]

    @property
    def action(self) -> str:
        """The rewarded one."""
        return self.win.actions[self.turn - 1]

    @property
    def rest(self) -> tuple[str, ...]:
        """What the witness does from there on."""
        return self.win.actions[self.turn :]


def check_exploits(trial: Trial) -> Iterator[Finding]:
    """Look for cycles that are paid after a reward of the witness, and prove that they bring nothing."""
    spots = [spot for win in _partly_paid(trial) for spot in _spots(win)]
    if not spots:
        return
    candidates = dict.fromkeys(_paid_cycles(trial, spots))
    trials = [_Proof(spot, cycle, trial.record.max_turns) for spot, cycle in candidates]
    proofs = sorted(islice((one for one in trials if one.fits), _MAX_TRIED), key=_Proof.length)
    plays = trial.play([Cast(one.spot.win.seed, scripted(one.actions)) for one in proofs])
    for proof, play in zip(proofs, plays, strict=False):
        if proof.holds(play):
            yield play.evidence(Reason.REWARD_FARMED, proof.told(play), proof.circled)
            return


def _partly_paid(trial: Trial) -> Iterator[Play]:
    """Winning plays that show partial rewards, of a few seeds."""
    plays = (play for play in trial.wins.values() if any(pay > 0 for pay in play.rewards[:-1]))
    return islice(plays, _SEEDS)


def _spots(win: Play) -> list[Spot]:
    """After the first reward of each verb, then of other actions, as long as there is room."""
    rewarded = [turn for turn, pay in enumerate(win.rewards[:-1], 1) if pay > REWARD_TOLERANCE]
    by_verb: dict[str, int] = {}
    by_action: dict[str, int] = {}
    for turn in rewarded:
        action = win.actions[turn - 1]
        by_verb.setdefault(action.split(" ", 1)[0], turn)
        by_action.setdefault(action, turn)
    chosen = dict.fromkeys((*by_verb.values(), *by_action.values()))
    return [Spot(win, turn) for turn in sorted(islice(chosen, _SPOTS))]


# --- the search ---


def _paid_cycles(trial: Trial, spots: Sequence[Spot]) -> Iterator[tuple[Spot, tuple[str, ...]]]:
    """Try likely cycles at each spot; what is paid is a candidate.

    Many short plays cost little more time than a few long ones, and are not disturbed by what was tried
    before; so there are as many as the steps allow.
    """
    share = MAX_STEPS // len(spots)
    parts: list[tuple[Spot, list[tuple[str, ...]]]] = []
    steps = 0
    for spot in spots:
        cycles = _cycles(trial, spot)
        spare = share - sum(map(len, cycles))
        count = max(1, min(len(cycles), spare // spot.turn))
        steps += count * spot.turn + sum(map(len, cycles))
        if parts and steps > MAX_STEPS:
            break
        parts += [(spot, cycles[first::count]) for first in range(count)]
    parts.sort(key=lambda part: part[0].turn + sum(map(len, part[1])))
    scripts = [(*spot.before, *chain.from_iterable(cycles)) for spot, cycles in parts]
    casts = [
        Cast(spot.win.seed, scripted(script))
        for (spot, _), script in zip(parts, scripts, strict=True)
    ]
    plays = trial.play(casts)
    trial.kept += plays[-2:]
    for (spot, _), play in zip(parts, plays, strict=False):
        for cycle in _paid(play, spot):
            yield spot, cycle


def _cycles(trial: Trial, spot: Spot) -> list[tuple[str, ...]]:
    """The rewarded action again, then in turn with others that may undo it."""
    action = spot.action
    again = spot.before[-3:]
    cycles: dict[tuple[str, ...], None] = {(action,): None, (action, action): None}
    for partner in islice(_partners(trial, spot), _PARTNERS):
        cycles[partner, action] = None
    cycles[again] = None
    return list(cycles)


def _partners(trial: Trial, spot: Spot) -> Iterator[str]:
    """What may undo the rewarded action, the likeliest first."""
    seen = {spot.action, spot.win.actions[-1]}  # the last one decides the episode
    for partner in _candidates(trial, spot):
        if partner and partner not in seen:
            seen.add(partner)
            yield partner


def _candidates(trial: Trial, spot: Spot) -> Iterator[str]:
    win = spot.win
    known = _command_words(trial)
    undoing = [word for word in _UNDOING if word in known]
    yield from islice(_inverses(spot.action, known), 4)
    yield from spot.before[-2:-1]
    yield from undoing[:2]
    seen = win.observations[spot.turn]
    rng = random.Random(f"{win.seed} {spot.turn}")
    commands = [
        fill(command, rng, [seen]) for command in offered(seen) or offered(win.observations[0])
    ]
    yield from sorted(commands, key=lambda command: _likeness(command, spot.action))[:4]
    yield from undoing[2:]
    yield from win.actions[spot.turn : spot.turn + 1]
    yield from win.actions


def _command_words(trial: Trial) -> set[str]:
    """Words that may be part of a command: those between quotation marks in the source, and of the rules."""
    docstring = "" if trial.loaded is None else trial.loaded.docstring
    quoted = _QUOTED.findall(trial.record.source)
    return set(_VERB.findall(" ".join((docstring, *quoted)).lower()))


def _likeness(command: str, action: str) -> int:
    """Lower for commands about the same thing with another verb."""
    words, others = command.split(), action.split()
    return 2 * (words[:1] == others[:1]) - len(set(words) & set(others[1:]))


def _inverses(action: str, known: set[str]) -> Iterator[str]:
    """The action with one word turned into its opposite, whole and alone, if the source has the word."""
    for found in islice(_VERB.finditer(action), 8):
        for one, other in _OPPOSITES:
            word = found[0].lower()
            if word not in (one, other):
                continue
            opposite = other if word == one else one
            if opposite in known:
                yield action[: found.start()] + opposite + action[found.end() :]
                yield opposite


def _paid(play: Play, spot: Spot) -> Iterator[tuple[str, ...]]:
    """The pieces of one to three actions that end with a reward and are paid on the whole.

    What the rest of the witness is paid for is progress, unless it is the rewarded action again.
    """
    rewards = play.rewards
    progress = {
        action
        for action, pay in zip(spot.rest, spot.win.rewards[spot.turn :], strict=True)
        if pay > 0
    }
    for turn in range(spot.turn, len(rewards)):
        action = play.actions[turn]
        if rewards[turn] <= REWARD_TOLERANCE or (action != spot.action and action in progress):
            continue
        for length in (1, 2, 3):
            first = turn - length + 1
            if first >= spot.turn and sum(rewards[first : turn + 1]) > REWARD_TOLERANCE:
                yield _root(play, first, turn + 1)


def _root(play: Play, first: int, end: int) -> tuple[str, ...]:
    """These actions; one of them when they are all the same and all paid."""
    cycle, pays = play.actions[first:end], play.rewards[first:end]
    return cycle[:1] if len(set(cycle)) == 1 and min(pays) > REWARD_TOLERANCE else cycle


# --- the proof ---


class _Proof:
    """The cycle inserted several times before the rest of the witness: it is paid and brings nothing.

    It is farmed when each round is paid and the rest goes on as if nothing had happened: the same
    partial rewards, and the win with the very last action. Progress that does not show would win
    earlier, or would have been paid already. Where the turns are too few for the whole rest, what is
    left of it must show the same as before, each round the same as the one before it, and more must
    have been paid than the witness is paid for all its progress.
    """

    def __init__(self, spot: Spot, cycle: tuple[str, ...], max_turns: int) -> None:
        self.spot = spot
        self.cycle = cycle
        room = max_turns - spot.turn
        fitting = (n for n in _ROUNDS if n * len(cycle) + len(spot.rest) <= room)
        self.rounds = next(fitting, _ROUNDS[-1])
        self.circled = spot.turn + self.rounds * len(cycle)
        self.fits = self.circled <= max_turns
        self.actions = (*spot.before, *cycle * self.rounds, *spot.rest)

    def length(self) -> int:
        """Of the play, in turns."""
        return len(self.actions)

    def told(self, play: Play) -> str:
        """What was found, for whoever repairs it."""
        names = ", ".join(repr(action) for action in self.cycle)
        whole = len(play.steps) == len(self.actions)
        then = "the rest of the witness wins as before" if whole else "nothing else changes"
        paid = f"pays {self._pays(play)[0]:g} again, {self.rounds} times"
        return f"{names} after turn {self.spot.turn} {paid}, and {then}"

    def holds(self, play: Play) -> bool:
        """Whether `play` shows that the cycle is farmed."""
        if len(play.results) < self.circled or play.problem is not None:
            return False
        if min(self._pays(play)) <= REWARD_TOLERANCE or not self._goes_on(play):
            return False
        if len(play.steps) == len(self.actions):
            return play.success
        return self._brings_nothing(play)

    def _pays(self, play: Play) -> list[float]:
        """What each round was paid."""
        length = len(self.cycle)
        starts = range(self.spot.turn, self.circled, length)
        return [sum(play.rewards[at : at + length]) for at in starts]

    def _goes_on(self, play: Play) -> bool:
        """Whether the rest of the witness is paid as it was, and is not ended before its time."""
        before = self.spot.win.rewards[self.spot.turn :]
        after = play.rewards[self.circled :]
        last = play.steps[-1]
        if not isinstance(last, StepResult) or (last.terminated and len(after) < len(before)):
            return False
        partial = zip(before[:-1], after, strict=False)
        return all(abs(one - other) <= REWARD_TOLERANCE for one, other in partial)

    def _brings_nothing(self, play: Play) -> bool:
        """Whether it pays more than progress does, and shows nothing new, numbers aside."""
        if sum(play.rewards) <= sum(self.spot.win.rewards[:-1]) + REWARD_TOLERANCE:
            return False
        seen = [_NUMBER.sub("#", text) for text in play.observations]
        usual = [_NUMBER.sub("#", text) for text in self.spot.win.observations]
        length, start = len(self.cycle), self.spot.turn
        rounds = {
            tuple(seen[at + 1 : at + 1 + length]) for at in range(start, self.circled, length)
        }
        rest = seen[self.circled + 1 :]
        return len(rounds) == 1 and rest == usual[start + 1 : start + 1 + len(rest)]
