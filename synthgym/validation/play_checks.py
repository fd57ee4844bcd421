"""Checks by playing: the witness must win, agents that understand nothing must not."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Final

from synthgym.sandbox.results import EnvFault
from synthgym.validation.plays import Agent, Play, Trial, plays_against, scripted
from synthgym.validation.reasons import Finding, Reason, reason_of

RANDOM_EPISODES: Final = 50
RANDOM_WIN_SHARE: Final = 0.02
"""The random agent may win at most this share of its episodes."""
_REPEATED: Final = 5
"""Commands that the repeating agent tries."""
_QUOTED: Final = re.compile(r"""[`'"]([^`'"\n]{1,40})[`'"]""")
_LISTED: Final = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+([^\n:—(]{1,40})", re.MULTILINE)
_WORD: Final = re.compile(r"[^\W_]+(?:[-'_][^\W_]+)*")


def check_witness(trial: Trial) -> Iterator[Finding]:
    """Playing `solution()` as text wins on every seed within `max_turns`."""
    session = trial.session()
    for seed in trial.seeds:
        actions = session.solution(seed)
        if isinstance(actions, EnvFault):
            yield Finding(reason_of(actions), f"{actions.kind}: {actions.detail}", seed)
            return
        trial.witnesses[seed] = actions
    plays = trial.play([(seed, scripted(trial.witnesses[seed])) for seed in trial.seeds])
    trial.plays += plays
    trial.witness_turns = tuple(len(play.steps) for play in plays if play.success)
    yield from plays_against(plays)
    lost = [play for play in plays if not play.success and play.finding() is None]
    if lost:
        yield Finding(
            Reason.SOLUTION_DOES_NOT_WIN,
            f"lost {len(lost)} of {len(plays)} seeds; {_how_lost(trial, lost[0])}",
            lost[0].seed,
        )


def check_null_agent(trial: Trial) -> Iterator[Finding]:
    """Doing nothing does not win."""
    plays = trial.play([(seed, lambda _observation: "") for seed in trial.seeds])
    yield from plays_against(plays)
    won = [play for play in plays if play.success]
    if won:
        yield Finding(Reason.NULL_AGENT_WINS, f"won {len(won)} of {len(plays)} seeds", won[0].seed)


def check_repeating_agent(trial: Trial) -> Iterator[Finding]:
    """Repeating one command that the first observation names does not win, on any seed."""
    cast: list[tuple[int, Agent]] = [
        (seed, _repeating(command))
        for command in commands_in(trial.first_observation)
        for seed in trial.seeds
    ]
    plays = trial.play(cast)
    yield from plays_against(plays)
    won = [play for play in plays if play.success]
    if won:
        yield Finding(
            Reason.REPEATING_AGENT_WINS,
            f"repeating {won[0].actions[0]!r} wins",
            won[0].seed,
        )


def check_random_agent(trial: Trial) -> Iterator[Finding]:
    """Random words of the observation seldom win. Some episodes are kept to be played again."""
    plays = trial.play([(seed, random_agent(seed)) for seed in range(RANDOM_EPISODES)])
    trial.plays += plays[: len(trial.seeds)]
    yield from plays_against(plays)
    won = [play for play in plays if play.success]
    trial.random_wins = len(won)
    if len(won) > RANDOM_WIN_SHARE * RANDOM_EPISODES:
        yield Finding(
            Reason.RANDOM_AGENT_WINS, f"won {len(won)} of {len(plays)} episodes", won[0].seed
        )


def random_agent(seed: int) -> Agent:
    """One to three words a turn, of the words of the current observation and the digits 0 to 9."""
    rng = random.Random(seed)

    def act(observation: str) -> str:
        words = _WORD.findall(observation) + list("0123456789")
        return " ".join(rng.choice(words) for _ in range(rng.randint(1, 3)))

    return act


def commands_in(observation: str) -> tuple[str, ...]:
    """What a reader may take for commands, at most five: quoted, listed, or the first word."""
    found = [match.strip() for match in _QUOTED.findall(observation) + _LISTED.findall(observation)]
    found += _WORD.findall(observation)[:1]
    return tuple(dict.fromkeys(command for command in found if command))[:_REPEATED]


def _repeating(command: str) -> Agent:
    return lambda _observation: command


def _how_lost(trial: Trial, play: Play) -> str:
    """Why a witness did not win, for whoever repairs it."""
    given: Sequence[str] = trial.witnesses[play.seed]
    if len(given) > trial.record.max_turns:
        return f"it has {len(given)} actions, max_turns is {trial.record.max_turns}"
    last = play.steps[-1] if play.steps else None
    if last is None or isinstance(last, EnvFault):
        return "it has no actions"
    paid = sum(step.reward for step in play.steps if not isinstance(step, EnvFault))
    ended = "terminated" if last.terminated else "not terminated"
    return f"after {len(play.steps)} actions the sum of rewards is {paid:g}, {ended}"
