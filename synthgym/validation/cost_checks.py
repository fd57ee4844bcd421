"""Cost: a step is over soon. Memory is checked where episodes are played again (`determinism_checks`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from synthgym.agents import scripted
from synthgym.validation.plays import Cast, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

STEP_SECONDS: Final = 0.02
"""Wall-clock time of a step, the mean over an episode. A light one takes a thousandth of that."""
_TRIES: Final = 4
"""The fastest of so many counts: what the machine was busy with is not the environment's cost."""


def check_cost(trial: Trial) -> Iterator[Finding]:
    """Play one witness again, alone, until it is fast enough or the tries are used up."""
    for play in list(trial.wins.values())[:1]:
        for _ in range(_TRIES):
            if trial.seconds_per_step <= STEP_SECONDS:
                return
            trial.play([Cast(play.seed, scripted(play.actions))])
        if trial.seconds_per_step > STEP_SECONDS:
            detail = f"more than {STEP_SECONDS * 1000:g} ms a step, each of {_TRIES} times"
            yield play.evidence(Reason.STEP_SLOW, detail)
