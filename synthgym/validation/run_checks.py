"""Checks that run a source for the first time: it loads, it resets, it has hints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from synthgym.agents import scripted
from synthgym.contract import HINT_LEVELS, SPADE_BASE, SPADE_TOOLS_BASE
from synthgym.sandbox.results import EnvFault
from synthgym.validation.plays import COSTLY, Cast, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding, reason_of

HINTLESS: Final = frozenset({SPADE_BASE, SPADE_TOOLS_BASE})
"""Dialects whose sources need not have a hint: it may be an annotation."""


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
    if not loaded.has_hint and trial.record.base not in HINTLESS:
        yield Finding(Reason.MISSING_HINT)
    if not loaded.has_solution:
        yield Finding(Reason.MISSING_SOLUTION)
    trial.loaded = loaded


def check_reset(trial: Trial) -> Iterator[Finding]:
    """`reset` gives text on every seed, and the same again when it is asked again."""
    trial.play([Cast(seed, scripted(())) for seed in trial.seeds])
    for seed, reset in trial.first.items():
        if not reset.observation.strip():
            yield Finding(Reason.RESET_EMPTY, seed=seed)
            break


def check_hints(trial: Trial) -> Iterator[Finding]:
    """Each level of the hint is text, on every seed. The SPADE pools have none."""
    if trial.loaded is None or not trial.loaded.has_hint:
        return
    seen: set[Reason] = set()
    asked = [(seed, level) for seed in trial.seeds for level in HINT_LEVELS]
    # The first goes alone: it may kill the worker.
    for part in (asked[:1], asked[1:]):
        hints = trial.session().hints(part)
        for (seed, level), hint in zip(part, hints, strict=True):
            if isinstance(hint, EnvFault):
                detail = f"level {level}: {hint.kind}: {hint.detail}"
                finding = Finding(reason_of(hint), detail, seed)
            elif not hint.strip():
                finding = Finding(Reason.HINT_EMPTY, f"level {level}", seed)
            else:
                trial.hints[seed, level] = hint
                continue
            if finding.reason not in seen:
                seen.add(finding.reason)
                yield finding
            if isinstance(hint, EnvFault) and hint.kind in COSTLY:
                return
