"""Behavioural traces: what the witness of an environment is paid, step by step, on a few instances.

A trace is free of words, so it stays the same when a text is told with other words. The reverse
does not hold: many different environments pay nothing until the last step.
"""

from __future__ import annotations

from typing import Final

from synthgym.agents import scripted
from synthgym.sandbox import Pool
from synthgym.sandbox.results import EnvFault
from synthgym.spec import SynthEnvSpec
from synthgym.validation.plays import Cast, Trial

SEEDS: Final = (0, 1, 2)


def witness_trace(spec: SynthEnvSpec, pool: Pool) -> str | EnvFault:
    """Signs of the rewards that `solution()` earns with seeds 0, 1 and 2, such as `00+ 0+ 000+`.

    The fault when the environment gives no solution or breaks on the way.
    """
    with Trial(spec.record, pool, SEEDS, spec.limits) as trial:
        plans = trial.session().solutions(SEEDS)
        cast: list[Cast] = []
        for seed, plan in zip(SEEDS, plans, strict=True):
            if isinstance(plan, EnvFault):
                return plan
            cast.append(Cast(seed, scripted(plan)))
        plays = trial.play(cast, judged=False)
    for play in plays:
        if play.fault is not None:
            return play.fault
    return " ".join("".join(map(_sign, play.rewards)) for play in plays)


def _sign(reward: float) -> str:
    return "+" if reward > 0 else "-" if reward < 0 else "0"
