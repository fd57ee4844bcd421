"""Regret, the designer's reward, baselines and role weights: pure functions, typed by axis.

Axes: E environments, S seeds, K plays of a seed. NaN marks a play that is not measurable (a fault dropped the seed).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SOLVE_RATE_GATE = 0.15
"""Unhinted solve rate from which regret counts in full: below it a design is mostly beyond the agent
(method.md 4.5 uses the same 15 points as the scale of regret)."""
FAULT_FLOOR = -0.5
"""Reward of a design whose faults reproduce: below anything that a measured design can earn on average."""
MIN_RMS = 0.1
"""A role's advantages are never scaled up by more than 10."""


@dataclass(frozen=True, slots=True)
class Regret:
    """Paired regret of one environment."""

    value: float
    """Mean over seeds of (mean hinted return - mean plain return); unfloored."""
    standard_error: float
    """Over seeds; NaN with fewer than two."""
    solve_rate: float
    """Share of plain episodes that reached the goal."""
    hinted_solve_rate: float
    seeds: int
    """Seeds that were measurable in both arms."""


def paired_regret(
    hinted_SK: Floats, plain_SK: Floats, hinted_won_SK: Floats, plain_won_SK: Floats
) -> Regret:
    """Regret over the seeds that are measurable in both arms: mean_s(mean_k hinted - mean_k plain).

    Row s of every array used the same seed, and both arms the same number of plays: the difference within a seed
    removes what the instance contributes. The standard error is that of the mean of the within-seed differences.
    """
    usable = ~(np.isnan(hinted_SK).any(axis=1) | np.isnan(plain_SK).any(axis=1))
    n = int(usable.sum())
    if n == 0:
        return Regret(float("nan"), float("nan"), float("nan"), float("nan"), 0)
    difference_S = hinted_SK[usable].mean(axis=1) - plain_SK[usable].mean(axis=1)
    error = float(difference_S.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return Regret(
        value=float(difference_S.mean()),
        standard_error=error,
        solve_rate=float(plain_won_SK[usable].mean()),
        hinted_solve_rate=float(hinted_won_SK[usable].mean()),
        seeds=n,
    )


def gated_regret(regret: Regret) -> float:
    """clip(R, -1, 1) * min(1, w / 0.15), w the plain solve rate: what nobody solves unhinted earns nothing."""
    return float(np.clip(regret.value, -1.0, 1.0) * min(1.0, regret.solve_rate / SOLVE_RATE_GATE))


def plain_regret(regret: Regret) -> float:
    """max(0, R): the reward of the paper's figure (method.md section 0)."""
    return max(0.0, regret.value)


def blend(regret: Regret) -> float:
    """0.6 * plateau(w) + 0.4 * clip(R / 0.15, 0, 1): what the reference recipes train on (method.md 4.5).

    plateau(w) is 1 for 0.4 <= w <= 0.6 and falls linearly to 0 within 0.25 on either side.
    """
    low, high, ramp = 0.4, 0.6, 0.25
    distance = max(low - regret.solve_rate, regret.solve_rate - high, 0.0)
    plateau = max(0.0, 1.0 - distance / ramp)
    return 0.6 * plateau + 0.4 * float(np.clip(regret.value / 0.15, 0.0, 1.0))


DESIGNER_REWARDS = {"gated_regret": gated_regret, "regret": plain_regret, "blend": blend}


def with_faults(reward: float, fault_share: float, floor: float = FAULT_FLOOR) -> float:
    """(1 - f) r + f * floor, f the share of plays whose fault a replay reproduced."""
    return (1.0 - fault_share) * reward + fault_share * floor


def leave_one_out(reward_N: Floats) -> Floats:
    """Advantage of each against the mean of the others; 0 for a singleton. NaN rows get 0 and count for nobody.

    The advantages of a group sum to zero up to rounding.
    """
    known = ~np.isnan(reward_N)
    n = int(known.sum())
    advantage_N = np.zeros_like(reward_N)
    if n >= 2:
        centred = reward_N[known] - reward_N[known].mean()
        advantage_N[known] = centred * n / (n - 1)
    return advantage_N


def agent_advantages(return_ESK: Floats) -> Floats:
    """Advantage of each plain episode: against its seed's mean when K >= 4, else leave-one-out in its environment.

    With few plays a seed's mean is too noisy a baseline; the environment's is steadier though it mixes instances.
    """
    advantage_ESK = np.zeros_like(return_ESK)
    _, _, plays = return_ESK.shape
    for e, return_SK in enumerate(return_ESK):
        if plays >= 4:
            known = ~np.isnan(return_SK).any(axis=1)
            centred = return_SK[known] - return_SK[known].mean(axis=1, keepdims=True)
            advantage_ESK[e, known] = centred
        else:
            advantage_ESK[e] = leave_one_out(return_SK.ravel()).reshape(return_SK.shape)
    return advantage_ESK


def designer_advantages(valid_N: Floats, reward_N: Floats, valid_weight: float) -> Floats:
    """w_v * (valid - mean over all attempts) + (r - leave-one-out mean over the measured).

    `reward_N` is NaN for an attempt that was refused or not measured; it takes part in the first term only.
    """
    validity_N: Floats = valid_weight * (valid_N - valid_N.mean())
    return validity_N + leave_one_out(reward_N)


def update_rms(previous: float | None, advantage_N: Floats, decay: float = 0.9) -> float:
    """Running root mean square of a role's advantages: sqrt(decay * old^2 + (1 - decay) * mean(A^2))."""
    if advantage_N.size == 0:
        return MIN_RMS if previous is None else previous
    square = float(np.mean(np.square(advantage_N)))
    if previous is None:
        return float(np.sqrt(square))
    return float(np.sqrt(decay * previous**2 + (1.0 - decay) * square))


def role_scale(weight: float, rows: int, role_rows: int, rms: float) -> float:
    """w_role * (N / N_role) / max(s_role, 0.1): what a role's advantages are multiplied by.

    TRL's `grpo` loss is a mean over all N rows of the batch, so N / N_role makes it a mean over the role's rows.
    """
    return weight * rows / role_rows / max(rms, MIN_RMS)


def effective_cells(counts: Sequence[int]) -> float:
    """exp(entropy) of the cells' shares: how many cells the designer really uses."""
    share = np.asarray([c for c in counts if c > 0], dtype=np.float64)
    if share.size == 0:
        return 0.0
    share /= share.sum()
    return float(np.exp(-(share * np.log(share)).sum()))


def cell_bonus(count: int, total: int, alpha: float) -> float:
    """-alpha * log(share of the cell among recent designs), with add-one smoothing: rare cells earn more."""
    return float(-alpha * np.log((count + 1) / (total + 1)))
