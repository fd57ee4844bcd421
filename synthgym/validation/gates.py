"""The gates in the order in which they are tried, and what each of them may find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from synthgym.validation.cost_checks import check_cost
from synthgym.validation.determinism_checks import check_determinism
from synthgym.validation.easy_checks import check_one_action, check_unthinking_agents
from synthgym.validation.honesty_checks import check_exploits
from synthgym.validation.interaction_checks import check_interaction
from synthgym.validation.leak_checks import check_hint_texts, check_leaks
from synthgym.validation.plays import Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding
from synthgym.validation.robustness_checks import check_robustness
from synthgym.validation.run_checks import check_hints, check_load, check_reset
from synthgym.validation.seed_checks import check_seeds
from synthgym.validation.tool_checks import check_criteria, check_tools
from synthgym.validation.witness_checks import check_witness


@dataclass(frozen=True, slots=True)
class Gate:
    """A check of a candidate that can be run."""

    name: str
    check: Callable[[Trial], Iterator[Finding]]
    """What it finds. What its plays say against the environment, whoever plays, comes on top."""


STATIC_GATE: Final = "static"
"""What is read off the text, before anything runs: `static_checks`."""

GATES: Final = (
    Gate("load", check_load),
    Gate("reset", check_reset),
    Gate("criteria", check_criteria),
    Gate("witness", check_witness),
    Gate("cost", check_cost),
    Gate("hints", check_hints),
    Gate("seeds", check_seeds),
    Gate("tools", check_tools),
    Gate("robustness", check_robustness),
    Gate("one-action", check_one_action),
    Gate("unthinking-agents", check_unthinking_agents),
    Gate("interaction", check_interaction),
    Gate("exploits", check_exploits),
    Gate("leaks", check_leaks),
    Gate("hint-texts", check_hint_texts),
    Gate("determinism", check_determinism),
)
"""In order: what follows `witness` relies on its winning plays, the last four on what was played before them."""

FATAL: Final = frozenset(
    {
        Reason.LOAD_RAISED,
        Reason.LOAD_TIMEOUT,
        Reason.POLICY,
        Reason.MAX_TURNS,
        Reason.RESET_RAISED,
        Reason.RESET_TYPE,
        Reason.RESET_EMPTY,
        Reason.RESET_TIMEOUT,
        Reason.STEP_RAISED,
        Reason.STEP_TYPE,
        Reason.STEP_TIMEOUT,
        Reason.STEP_SLOW,
        Reason.SOLUTION_RAISED,
        Reason.SOLUTION_TYPE,
        Reason.SOLUTION_TIMEOUT,
        Reason.SOLUTION_DOES_NOT_WIN,
        Reason.CRITERION_RAISED,
        Reason.CRITERION_UNREACHED,
        Reason.HINT_TIMEOUT,
        Reason.REWARD_NOT_FINITE,
        Reason.REWARD_OUT_OF_RANGE,
        Reason.FULL_REWARD_WITHOUT_END,
        Reason.MEMORY,
        Reason.CRASH,
        Reason.UNDECIDED,
    }
)
"""After one of these nothing more is tried: what follows relies on episodes that can be won and do
not break, would fail in the same way, or take too long."""
