"""Checks that run a source: loading, reset, hints, and whether it does the same again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from synthgym.contract import HINT_LEVELS
from synthgym.sandbox.results import EnvFault, ResetResult
from synthgym.validation.plays import COSTLY, Play, Trial, plays_against, scripted
from synthgym.validation.reasons import Finding, Reason, reason_of

Check = Callable[[Trial], Iterator[Finding]]

_REPLAYS: Final = 64
"""Episodes that are played again in a fresh worker."""


def check_load(trial: Trial) -> Iterator[Finding]:
    """The source runs, and holds what the static checks saw."""
    loaded = trial.session().load()
    if isinstance(loaded, EnvFault):
        yield Finding(reason_of(loaded), f"{loaded.kind}: {loaded.detail}")
        return
    if loaded.max_turns != trial.record.max_turns:
        yield Finding(
            Reason.MAX_TURNS, f"read as {trial.record.max_turns}, but it is {loaded.max_turns}"
        )
    if not loaded.has_hint:
        yield Finding(Reason.MISSING_HINT)
    if not loaded.has_solution:
        yield Finding(Reason.MISSING_SOLUTION)
    trial.loaded = loaded


def check_reset(trial: Trial) -> Iterator[Finding]:
    """`reset` gives text on every seed."""
    resets = trial.play([(seed, scripted(())) for seed in trial.seeds])
    yield from plays_against(resets)
    for play in resets:
        if isinstance(play.reset, ResetResult) and not play.reset.observation.strip():
            yield Finding(Reason.RESET_EMPTY, seed=play.seed)
            break
    if resets and isinstance(resets[0].reset, ResetResult):
        trial.first_observation = resets[0].reset.observation


def check_hints(trial: Trial) -> Iterator[Finding]:
    """Each level of the hint is text, on every seed."""
    seen: set[Reason] = set()
    for seed in trial.seeds:
        for level in HINT_LEVELS:
            hint = trial.session().hint(seed, level)
            if isinstance(hint, EnvFault):
                finding = Finding(
                    reason_of(hint), f"level {level}: {hint.kind}: {hint.detail}", seed
                )
            elif not hint.strip():
                finding = Finding(Reason.HINT_EMPTY, f"level {level}", seed)
            else:
                continue
            if finding.reason not in seen:
                seen.add(finding.reason)
                yield finding
            if isinstance(hint, EnvFault) and hint.kind in COSTLY:
                return


def check_instances(trial: Trial) -> Iterator[Finding]:
    """The seeds give more than one instance, told apart by first observation and witness."""
    if len(trial.seeds) < 2 or len(trial.witnesses) < len(trial.seeds):
        return
    first = {play.seed: play.reset for play in trial.plays}
    instances = {
        (reset.observation, trial.witnesses[seed])
        for seed, reset in first.items()
        if isinstance(reset, ResetResult) and seed in trial.witnesses
    }
    if len(instances) == 1:
        yield Finding(
            Reason.SAME_INSTANCE,
            f"{len(trial.seeds)} seeds gave one first observation and one solution",
        )


def check_determinism(trial: Trial) -> Iterator[Finding]:
    """The same seeds and actions give the same again, in another worker with another hash seed.

    The order is turned round, so that what one episode leaves behind for the next would show.
    """
    chosen = [play for play in trial.plays if play.fault is None][:_REPLAYS]
    if not chosen:
        return
    backwards = chosen[::-1]
    twin = trial.pool.twin()
    with Trial(trial.record, twin, trial.seeds, trial.limits) as fresh:
        again = fresh.play([(play.seed, scripted(play.actions)) for play in backwards])
        yield from _compare(backwards, again)
        for seed in sorted(trial.witnesses)[:2]:
            if fresh.session().solution(seed) != trial.witnesses[seed]:
                yield Finding(Reason.NOT_DETERMINISTIC, "solution() differs", seed)


def _compare(before: Sequence[Play], after: Sequence[Play]) -> Iterator[Finding]:
    for one, other in zip(before, after, strict=False):  # a costly fault ends a trial early
        if one.reset != other.reset:
            yield Finding(Reason.NOT_DETERMINISTIC, "reset() differs", one.seed)
            return
        if one.steps != other.steps:
            turn = next(
                (i for i, (a, b) in enumerate(zip(one.steps, other.steps, strict=False)) if a != b),
                min(len(one.steps), len(other.steps)),
            )
            yield Finding(Reason.NOT_DETERMINISTIC, f"step() differs at turn {turn + 1}", one.seed)
            return
