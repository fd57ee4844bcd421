"""Seeds: they give different instances, and enough of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from synthgym.validation.plays import Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding

MIN_SHARE: Final = 0.25
"""Of the seeds must give an instance of their own."""


def check_seeds(trial: Trial) -> Iterator[Finding]:
    """Instances are told apart by first observation and witness."""
    instances = {
        (trial.first[seed].observation, trial.witnesses[seed])
        for seed in trial.seeds
        if seed in trial.first and seed in trial.witnesses
    }
    detail = f"{len(trial.seeds)} seeds gave {len(instances)}"
    if len(instances) == 1:
        yield Finding(Reason.SAME_INSTANCE, "one first observation and one solution for all seeds")
    elif len(instances) < MIN_SHARE * len(trial.seeds):
        yield Finding(Reason.FEW_INSTANCES, f"{detail} different instances")
