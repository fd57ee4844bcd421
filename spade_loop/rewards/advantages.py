"""From rewards to advantages: baselines of both roles, their weights, and what the paper's released code does instead.

Axes: E environments, S seeds, K plays of a seed, N designs. NaN marks what is not measurable: it gets the advantage 0
and is in no baseline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spade_loop.rewards.regret import Floats

MIN_RMS = 0.1
"""A role's advantages are never scaled up by more than 10."""
PLAYS_FOR_SEED_BASELINE = 4
"""With fewer plays a seed's mean is too noisy a baseline; the environment's is steadier, though it mixes instances."""
REFERENCE_EPSILON = 1e-8
REFERENCE_MAX_MULTIPLIER = 50.0


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
    """Advantage of each plain episode: against its seed's mean when K >= 4, else leave-one-out in its environment."""
    advantage_ESK = np.zeros_like(return_ESK)
    _, _, plays = return_ESK.shape
    for e, return_SK in enumerate(return_ESK):
        if plays >= PLAYS_FOR_SEED_BASELINE:
            known = ~np.isnan(return_SK).any(axis=1)
            centred = return_SK[known] - return_SK[known].mean(axis=1, keepdims=True)
            advantage_ESK[e, known] = centred
        else:
            advantage_ESK[e] = leave_one_out(return_SK.ravel()).reshape(return_SK.shape)
    return advantage_ESK


def validity_advantages(valid_N: Floats, valid_weight: float) -> Floats:
    """w_v * (valid - mean over all attempts of the skill); valid is 1 for an admitted design, else 0."""
    advantage_N: Floats = valid_weight * (valid_N - valid_N.mean())
    return advantage_N


def designer_advantages(valid_N: Floats, reward_N: Floats, valid_weight: float) -> Floats:
    """w_v * (valid - mean over all attempts) + (r - leave-one-out mean over the measured).

    `reward_N` is NaN for an attempt that was refused or not measured; it takes part in the first term only.
    """
    advantage_N: Floats = validity_advantages(valid_N, valid_weight) + leave_one_out(reward_N)
    return advantage_N


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


# --- as the paper's released code ---


def reference_agent_advantages(return_ESK: Floats) -> Floats:
    """(return - mean) / (std + 1e-8) over all plays of an environment, seeds mixed; population std."""
    advantage_ESK = np.zeros_like(return_ESK)
    for e, return_SK in enumerate(return_ESK):
        known = ~np.isnan(return_SK)
        if known.any():
            centred = return_SK[known] - return_SK[known].mean()
            advantage_ESK[e][known] = centred / (return_SK[known].std() + REFERENCE_EPSILON)
    return advantage_ESK


def ema_advantages(
    return_ESK: Floats, baseline_E: Floats, decay: float = 0.5
) -> tuple[Floats, Floats]:
    """Return - moving average of its environment, and the averages after: b <- decay * b + (1 - decay) * mean.

    The baseline is read before it is updated. NaN in `baseline_E` is an environment without one: its returns count
    from 0, and its mean becomes the baseline. An environment that was not measured keeps its own.
    """
    if not 0.0 <= decay < 1.0:
        raise ValueError(f"decay must lie in [0, 1), got {decay}")
    baseline = np.nan_to_num(baseline_E, nan=0.0)
    advantage_ESK: Floats = np.nan_to_num(return_ESK - baseline[:, None, None], nan=0.0)
    after_E = baseline_E.astype(np.float64)
    for e, return_SK in enumerate(return_ESK):
        known = return_SK[~np.isnan(return_SK)]
        if known.size:
            old = known.mean() if np.isnan(baseline_E[e]) else baseline_E[e]
            after_E[e] = decay * old + (1.0 - decay) * known.mean()
    return advantage_ESK, after_E


def reference_multiplier(agent_rows: int, designer_rows: int, interval: int) -> float:
    """C = min(50, n_A / n_D * R): rows of the roles, and iterations between two generations of environments."""
    for name, value in (("designer_rows", designer_rows), ("interval", interval)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    return min(REFERENCE_MAX_MULTIPLIER, agent_rows / designer_rows * interval)


def reference_designer_advantages(reward_N: Floats, multiplier: float) -> Floats:
    """(r - mean over the measured of the skill) * c, not divided by a std: `reference_multiplier` gives c."""
    known = ~np.isnan(reward_N)
    advantage_N = np.zeros_like(reward_N)
    if known.any():
        advantage_N[known] = (reward_N[known] - reward_N[known].mean()) * multiplier
    return advantage_N


# --- groups ---


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatistics:
    """Plain returns by environment and by seed. Population std; NaN where nothing was measured."""

    mean_E: Floats
    std_E: Floats
    mean_ES: Floats
    std_ES: Floats
    environments: int
    """Environments with a measured play."""
    seeds: int
    """Pairs of environment and seed with a measured play."""
    flat_environments: int
    """Of `environments`, those whose measured returns are all equal: they teach the agent nothing."""
    flat_seeds: int
    """Of `seeds`, those whose measured returns are all equal."""


def group_statistics(return_ESK: Floats) -> GroupStatistics:
    """Mean and spread of every environment and of every seed, and how many of them do not vary."""
    environments, seeds, plays = return_ESK.shape
    by_environment = return_ESK.reshape(environments, seeds * plays)
    mean_E, std_E, flat_E = _rows(by_environment)
    mean_N, std_N, flat_N = _rows(return_ESK.reshape(environments * seeds, plays))
    return GroupStatistics(
        mean_E=mean_E,
        std_E=std_E,
        mean_ES=mean_N.reshape(environments, seeds),
        std_ES=std_N.reshape(environments, seeds),
        environments=int((~np.isnan(mean_E)).sum()),
        seeds=int((~np.isnan(mean_N)).sum()),
        flat_environments=int(flat_E.sum()),
        flat_seeds=int(flat_N.sum()),
    )


def _rows(value_NM: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, population std and flatness (1 or 0) of each row, over what is known of it."""
    mean_N = np.full(len(value_NM), np.nan)
    std_N = np.full(len(value_NM), np.nan)
    flat_N = np.zeros(len(value_NM))
    for i, row in enumerate(value_NM):
        known = row[~np.isnan(row)]
        if known.size:
            mean_N[i], std_N[i] = known.mean(), known.std()
            # Not std == 0: the std of equal numbers may be a rounding error.
            flat_N[i] = float(known.min() == known.max())
    return mean_N, std_N, flat_N
