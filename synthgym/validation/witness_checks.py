"""The witness: playing `solution()` as text wins on every seed, within `max_turns`."""

from __future__ import annotations

from collections.abc import Iterator

from synthgym.agents import scripted
from synthgym.contract import TOOLS_BASE
from synthgym.sandbox.results import EnvFault
from synthgym.validation.plays import Cast, Play, Trial
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding, reason_of
from synthgym.validation.tool_checks import criteria_of


def check_witness(trial: Trial) -> Iterator[Finding]:
    """Ask for the witness of every seed and play it; the winning plays are kept for the other checks."""
    # The first goes alone: it may kill the worker.
    for part in (trial.seeds[:1], trial.seeds[1:]):
        for seed, actions in zip(part, trial.session().solutions(part), strict=True):
            if isinstance(actions, EnvFault):
                yield Finding(reason_of(actions), f"{actions.kind}: {actions.detail}", seed)
                return
            trial.witnesses[seed] = actions
    plays = trial.play([Cast(seed, scripted(trial.witnesses[seed])) for seed in trial.seeds])
    trial.wins = {play.seed: play for play in plays if play.success}
    lost = [play for play in plays if not play.success and not any(play.findings())]
    if lost:
        detail = f"lost {len(lost)} of {len(plays)} seeds; {_how_lost(trial, lost[0])}"
        open_number = _open_instruction(trial, lost[0])
        if open_number is None:
            yield lost[0].evidence(Reason.SOLUTION_DOES_NOT_WIN, detail)
        else:
            yield lost[0].evidence(
                Reason.CRITERION_UNREACHED, f"instruction {open_number} stays open; {detail}"
            )


def _open_instruction(trial: Trial, play: Play) -> int | None:
    """Which instruction with a criterion a witness of tool calls leaves open, from 1; None for none."""
    if isinstance(play.reset, EnvFault) or trial.record.base != TOOLS_BASE:
        return None
    criteria = criteria_of(play.reset)
    done = play.results[-1].info.get("done") if play.results else 0
    ended = bool(play.results) and play.results[-1].terminated
    if ended or type(done) is not int or not 0 <= done < len(criteria):
        return None
    return None if criteria[done] == "answer" else done + 1


def _how_lost(trial: Trial, play: Play) -> str:
    """Why a witness did not win, for whoever repairs it."""
    given = trial.witnesses[play.seed]
    if len(given) > trial.record.max_turns:
        return f"it has {len(given)} actions, max_turns is {trial.record.max_turns}"
    if not play.results:
        return "it has no actions"
    ended = "terminated" if play.results[-1].terminated else "not terminated"
    return f"after {len(play.steps)} actions the sum of rewards is {sum(play.rewards):g}, {ended}"
