"""Determinism: the same seeds and actions give the same again, wherever and in whatever order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from synthgym.agents import scripted
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

_REPLAYS: Final = 12
"""Episodes of the witness, and as many of other agents, that are played again in a fresh worker."""
_SOLUTIONS: Final = 2
"""Witnesses that are asked for again there."""
MEMORY_SHARE: Final = 4
"""The fresh worker has that part of the memory quota."""


def check_determinism(trial: Trial) -> Iterator[Finding]:
    """Play again what was won, and what others did, in another worker with another hash seed.

    The order is turned round, so that what one episode leaves behind for the next would show, and
    the episodes of a batch are interleaved in another way. The fresh worker has a quarter of the
    memory: two dozen episodes at once must leave room for as many more as a trainer plays.
    """
    kept = trial.kept[:: max(1, len(trial.kept) // _REPLAYS)]  # some of every agent
    plays = [*list(trial.wins.values())[:_REPLAYS], *kept[:_REPLAYS]]
    chosen = [play for play in plays if play.fault is None]
    backwards = chosen[::-1]
    limits = replace(trial.limits, memory_mb=max(1, trial.limits.memory_mb // MEMORY_SHARE))
    with Trial(trial.record, trial.pool.twin(), trial.seeds, limits) as fresh:
        again = fresh.play([Cast(play.seed, scripted(play.actions)) for play in backwards])
        found = fresh.against()
        heavy = [finding for finding in found if finding.reason is Reason.MEMORY]
        if heavy:  # a worker that was lost is no witness for anything else
            yield replace(heavy[0], reason=Reason.MEMORY_HEAVY)
            return
        yield from (replace(item, detail=f"in a second worker: {item.detail}") for item in found)
        yield from _compare(backwards, again)
        asked = trial.seeds[:_SOLUTIONS]
        for seed, solution in zip(asked, fresh.session().solutions(asked), strict=True):
            if solution != trial.witnesses.get(seed):
                yield Finding(Reason.NOT_DETERMINISTIC, "solution() differs", seed)


def _compare(before: Sequence[Play], after: Sequence[Play]) -> Iterator[Finding]:
    for one, other in zip(before, after, strict=False):  # a costly fault ends a trial early
        if other.fault is not None:
            continue  # it is a finding of its own
        if one.reset != other.reset:
            yield one.evidence(Reason.NOT_DETERMINISTIC, "reset() differs", 0)
            return
        if one.steps != other.steps:
            turn = next(
                (i for i, (a, b) in enumerate(zip(one.steps, other.steps, strict=False)) if a != b),
                min(len(one.steps), len(other.steps)),
            )
            detail = f"step() differs at turn {turn + 1}"
            yield one.evidence(Reason.NOT_DETERMINISTIC, detail, turn + 1)
            return
