"""Rows of the run's `.jsonl` files. No clock value and no path: a resumed run writes the same bytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np

from spade_loop.batch import RoleSummary
from spade_loop.design.admission import Admission
from spade_loop.hints import WrittenHint
from spade_loop.measurement import MIN_SEEDS, Measured
from spade_loop.payment import Payment
from spade_loop.types import Arm, JsonRow, Outcome, Role, Trajectory, finite
from synthgym.envs import ParseStatus


class Reported(Protocol):
    """Something that becomes a part of a row."""

    def to_json(self) -> JsonRow:
        """Plain data."""


def metrics_row(
    iteration: int,
    admissions: Sequence[Admission],
    measured: Sequence[Measured],
    summaries: Mapping[Role, RoleSummary],
    parts: Mapping[str, Reported],
) -> JsonRow:
    """The iteration in numbers: designs, rates of all arms, regret, what each role brought.

    `parts` follow under their names: payment, rehearsal, update.
    """
    outcomes = Counter(str(a.candidate.outcome) for a in admissions)
    reasons = Counter(reason for a in admissions for reason in a.candidate.reasons)
    known = [m.regret for m in measured if m.regret.seeds >= MIN_SEEDS]
    regrets = [m.regret for m in measured if m.measurable]
    return {
        "iteration": iteration,
        "skills": list(dict.fromkeys(a.candidate.skill for a in admissions)),
        "designs": {str(o): outcomes.get(str(o), 0) for o in Outcome},
        "refused_for": dict(sorted(reasons.items())),
        "designers": _by_author(admissions),
        "played": len(measured),
        "faulty": sum(m.fault_share > 0 for m in measured),
        "solve_rate": {
            "plain": _mean([r.solve_rate for r in known]),
            "hinted": _mean([r.hinted_solve_rate for r in known]),
            "placebo": _mean([float(t.success) for t in _sound(measured, Arm.PLACEBO)]),
        },
        "return": {
            str(arm): _mean([t.episode_return for t in _sound(measured, arm)]) for arm in Arm
        },
        "turns": {str(arm): sum(len(t.turns) for t in _played(measured, arm)) for arm in Arm},
        "parse_failures": {str(arm): parse_failures(_played(measured, arm)) for arm in Arm},
        "regret": {
            "mean": _mean([r.value for r in regrets]),
            "standard_error": _pooled_error([r.standard_error for r in regrets]),
        },
        "roles": {str(role): summary.to_json() for role, summary in summaries.items()},
        **{name: part.to_json() for name, part in parts.items()},
    }


def timings_row(iteration: int, seconds: Mapping[str, float]) -> JsonRow:
    """Seconds of an iteration by part: the only row that two equal runs have different."""
    parts = {name: round(value, 4) for name, value in sorted(seconds.items())}
    return {"iteration": iteration, "seconds": round(sum(parts.values()), 3), "parts": parts}


def scalars(
    admissions: Sequence[Admission],
    measured: Sequence[Measured],
    summaries: Mapping[Role, RoleSummary],
) -> dict[str, float]:
    """The numbers of a step that a tracker shows, by name; what was not measured is left out."""
    attempts = len(admissions)
    regrets = [m.regret for m in measured if m.measurable]
    found: dict[str, float | None] = {
        "designs": float(attempts) if attempts else None,
        "admitted": _mean([float(a.candidate.outcome is Outcome.ADMITTED) for a in admissions]),
        "solve_rate/plain": _mean([float(t.success) for t in _sound(measured, Arm.PLAIN)]),
        "solve_rate/hinted": _mean([float(t.success) for t in _sound(measured, Arm.HINTED)]),
        "solve_rate/placebo": _mean([float(t.success) for t in _sound(measured, Arm.PLACEBO)]),
        "return/plain": _mean([t.episode_return for t in _sound(measured, Arm.PLAIN)]),
        "regret": _mean([r.value for r in regrets]),
        "regret_se": _pooled_error([r.standard_error for r in regrets]),
    }
    for role, summary in summaries.items():
        found[f"{role}/trained_tokens"] = float(summary.trained_tokens)
        found[f"{role}/abs_advantage"] = summary.abs_advantage
        found[f"{role}/live_rows"] = float(summary.live_rows)
    return {name: value for name, value in found.items() if value is not None}


def _played(measured: Sequence[Measured], arm: Arm) -> list[Trajectory]:
    """Every episode of an arm."""
    return [t for m in measured for t in (*m.plain, *m.hinted, *m.placebo) if t.arm is arm]


def _sound(measured: Sequence[Measured], arm: Arm) -> list[Trajectory]:
    """The episodes of an arm that no fault ended."""
    return [t for t in _played(measured, arm) if t.fault is None]


def _by_author(admissions: Sequence[Admission]) -> JsonRow:
    """Attempts, and those admitted, of each designer."""
    attempts = Counter(a.candidate.author for a in admissions)
    admitted = Counter(
        a.candidate.author for a in admissions if a.candidate.outcome is Outcome.ADMITTED
    )
    return {
        author: {"attempts": count, "admitted": admitted[author]}
        for author, count in sorted(attempts.items())
    }


def parse_failures(trajectories: Iterable[Trajectory]) -> dict[str, int]:
    """Turns whose reply held no usable action, by parse status."""
    statuses = Counter(turn.status for t in trajectories for turn in t.turns)
    del statuses[ParseStatus.OK]
    return dict(sorted(statuses.items()))


def design_rows(
    iteration: int, admissions: Sequence[Admission], measured: Sequence[Measured]
) -> list[JsonRow]:
    """One row an attempt: what was asked, what came, what became of it, what was measured."""
    by_digest = {m.spec.digest: m for m in measured}
    rows = []
    for index, admission in enumerate(admissions):
        c = admission.candidate
        played = None if c.spec is None else by_digest.get(c.spec.digest)
        rows.append(
            {
                "iteration": iteration,
                "index": index,
                "skill": c.skill,
                "document": c.document_id,
                "designer": c.author,
                "slot": c.slot,
                "draw": c.draw,
                "attempt": c.attempt,
                "outcome": str(c.outcome),
                "reasons": list(c.reasons),
                "detail": c.detail,
                "cell": c.cell,
                "env_id": None if c.spec is None else c.spec.env_id,
                "digest": None if c.spec is None else c.spec.digest,
                "reply": c.reply,
                "tokens": len(c.completion.ids),
                "trained_tokens": sum(c.completion.mask),
                "measured": None if played is None else regret_row(played),
            }
        )
    return rows


def hint_rows(iteration: int, hints: Sequence[WrittenHint]) -> list[JsonRow]:
    """One row a call in which the model wrote a hint."""
    return [
        {
            "iteration": iteration,
            "digest": h.digest,
            "text": h.text,
            "refused": h.refused,
            "tokens": len(h.completion.ids),
        }
        for h in hints
    ]


def payment_rows(iteration: int, payment: Payment) -> list[JsonRow]:
    """One row a design that a step paid for: what it was worth over its window."""
    rows = []
    for p in payment.paid:
        window = p.window
        rows.append(
            {
                "iteration": iteration,
                "designed": p.iteration,
                "index": p.attempt.index,
                "digest": p.attempt.digest or None,
                "reward": finite(p.reward),
                "total": p.total,
                "advantage": p.advantage,
                "regret": None if window is None else finite(window.regret.value),
                "standard_error": None if window is None else finite(window.regret.standard_error),
                "matched_regret": None if window is None else finite(window.matched.value),
                "solve_rate": None if window is None else finite(window.regret.solve_rate),
                "effective": p.effective,
                "dropped": p.dropped,
            }
        )
    return rows


def regret_row(measured: Measured) -> JsonRow:
    """An environment's paired measurement."""
    r = measured.regret
    return {
        "regret": finite(r.value),
        "standard_error": finite(r.standard_error),
        "solve_rate": finite(r.solve_rate),
        "hinted_solve_rate": finite(r.hinted_solve_rate),
        "seeds": r.seeds,
        "fault_share": measured.fault_share,
    }


def episode_rows(iteration: int, measured: Sequence[Measured]) -> list[JsonRow]:
    """One row an episode, transcripts included."""
    return [
        _episode_row(iteration, m, t) for m in measured for t in (*m.plain, *m.hinted, *m.placebo)
    ]


def _episode_row(iteration: int, measured: Measured, t: Trajectory) -> JsonRow:
    return {
        "iteration": iteration,
        "env_id": measured.spec.env_id,
        "digest": t.digest,
        "seed": t.seed,
        "play": t.play,
        "arm": str(t.arm),
        "return": t.episode_return,
        "success": t.success,
        "stop": str(t.stop),
        "fault": None if t.fault is None else t.fault.to_json(),
        "tokens": len(t.completion.ids),
        "trained_tokens": sum(t.completion.mask),
        "turns": [
            {
                "observation": turn.observation,
                "reply": turn.reply,
                "action": turn.action,
                "status": turn.status,
                "reward": turn.reward,
            }
            for turn in t.turns
        ],
    }


def _mean(values: Sequence[float]) -> float | None:
    known = [v for v in values if math.isfinite(v)]
    return float(np.mean(known)) if known else None


def _pooled_error(errors: Sequence[float]) -> float | None:
    """Standard error of the mean regret over independent environments: sqrt(sum SE^2) / n."""
    known = [e for e in errors if math.isfinite(e)]
    return float(np.sqrt(np.square(known).sum()) / len(known)) if known else None
