"""Everything that was measured of an environment since it was designed, iteration by iteration.

A design may be rewarded later than it was played first. Until then its visits are kept; they are plain data, a part of
the run's state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spade_loop.rewards import Floats, Regret, Window, paired_regret, unpaired_regret

Table = tuple[tuple[float | None, ...], ...]
"""S seeds by K plays; None where a fault dropped the seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What one iteration measured of one environment."""

    iteration: int
    plain: Table
    plain_won: Table
    hinted: Table = ()
    """Empty in an iteration that played no hints."""
    hinted_won: Table = ()
    paired: bool = True
    """Whether row s of both arms is one seed."""
    faults: float = 0.0
    """Plays whose fault a replay reproduced."""
    plays: int = 0
    hung: bool = False
    """Whether a reproduced fault was a step that took too long."""

    def regret(self) -> Regret:
        """Of this iteration alone."""
        return regret_of(
            array(self.hinted),
            array(self.plain),
            array(self.hinted_won),
            array(self.plain_won),
            paired=self.paired,
        )


def table(values_SK: Floats) -> Table:
    """Plain data of an array; NaN becomes None."""
    return tuple(tuple(None if np.isnan(v) else float(v) for v in row) for row in values_SK)


def array(rows: Table) -> Floats:
    """Inverse of `table`; an array of shape [0, 0] for an empty one."""
    if not rows:
        return np.zeros((0, 0))
    return np.asarray([[np.nan if v is None else v for v in row] for row in rows], dtype=np.float64)


def regret_of(
    hinted_SK: Floats,
    plain_SK: Floats,
    hinted_won_SK: Floats,
    plain_won_SK: Floats,
    *,
    paired: bool,
) -> Regret:
    """Regret of two arms; without a hinted arm only the plain solve rate is known."""
    if hinted_SK.size == 0:
        usable = ~np.isnan(plain_SK).any(axis=1)
        n = int(usable.sum())
        rate = float(plain_won_SK[usable].mean()) if n else float("nan")
        return Regret(float("nan"), float("nan"), rate, float("nan"), n)
    measure = paired_regret if paired else unpaired_regret
    return measure(hinted_SK, plain_SK, hinted_won_SK, plain_won_SK)


def window_of(visits: Sequence[Visit], skill: str) -> Window:
    """All visits of an environment as its designer's reward sees them. There must be at least one.

    `matched` is the regret of the first visit that played hints. `regret` looks at every plain play: the mean of all
    hinted returns minus the mean of all plain returns. Its standard error keeps the pairing where there is one.
    """
    hinted = [v for v in visits if v.hinted]
    matched = (hinted[0] if hinted else visits[0]).regret()
    return Window(
        regret=matched if len(visits) == 1 else _pooled(visits),
        matched=matched,
        returns=_by_offset(visits),
        hinted_mean=_mean([_seed_means(v.hinted) for v in hinted]),
        skill=skill,
    )


def _by_offset(visits: Sequence[Visit]) -> tuple[tuple[float, ...], ...]:
    """Measured plain returns by iterations since the first visit."""
    first = visits[0].iteration
    by_offset: dict[int, list[float]] = {}
    for v in visits:
        own = [float(x) for x in array(v.plain).ravel() if not np.isnan(x)]
        by_offset.setdefault(v.iteration - first, []).extend(own)
    return tuple(tuple(by_offset.get(j, ())) for j in range(max(by_offset) + 1))


def visits_since(
    windows: Mapping[str, Sequence[Visit]], iteration: int
) -> dict[str, tuple[Visit, ...]]:
    """What was measured of each environment from an iteration on; one that was not played since is left out."""
    kept = {
        digest: tuple(v for v in visits if v.iteration >= iteration)
        for digest, visits in windows.items()
    }
    return {digest: visits for digest, visits in kept.items() if visits}


def fault_share(visits: Sequence[Visit]) -> float:
    """Share of all plays whose fault a replay reproduced."""
    plays = sum(v.plays for v in visits)
    return sum(v.faults for v in visits) / plays if plays else 0.0


def _seed_means(rows: Table) -> Floats:
    """Mean return of each seed that is measurable."""
    values = array(rows)
    if values.size == 0:
        return np.zeros(0)
    return np.asarray(values[~np.isnan(values).any(axis=1)].mean(axis=1))


def _mean(parts: Sequence[Floats]) -> float:
    joined = np.concatenate(parts) if parts else np.zeros(0)
    return float(joined.mean()) if joined.size else float("nan")


def _pooled(visits: Sequence[Visit]) -> Regret:
    """Regret over a window in which some visits have both arms and some the plain arm alone.

    With n0 seeds in both arms of n seeds in all, the estimate is mean(h) - mean(r). Written as
    mean over the n0 of (h - (n0/n) r) minus (n1/n) mean over the other n1 of r, its parts are independent:
    SE^2 = var(h - (n0/n) r) / n0 + (n1/n)^2 var(r) / n1.
    """
    if any(v.hinted and not v.paired for v in visits):
        arms = [
            np.concatenate([array(t) for t in tables if t])
            for tables in (
                [v.hinted for v in visits],
                [v.plain for v in visits],
                [v.hinted_won for v in visits],
                [v.plain_won for v in visits],
            )
        ]
        return unpaired_regret(*arms)
    both, rest, wins, hinted_wins = [], [], [], []
    for v in visits:
        plain, won = array(v.plain), array(v.plain_won)
        usable = ~np.isnan(plain).any(axis=1)
        if v.hinted:
            hinted = array(v.hinted)
            usable &= ~np.isnan(hinted).any(axis=1)
            pair = np.stack([hinted[usable].mean(axis=1), plain[usable].mean(axis=1)], axis=1)
            both.append(pair)
            hinted_wins.append(array(v.hinted_won)[usable].ravel())
        else:
            rest.append(plain[usable].mean(axis=1))
        wins.append(won[usable].ravel())
    pair_N2 = np.concatenate(both) if both else np.zeros((0, 2))
    alone_N = np.concatenate(rest) if rest else np.zeros(0)
    n0, n1 = len(pair_N2), len(alone_N)
    rate = float(np.concatenate(wins).mean()) if n0 + n1 else float("nan")
    if n0 == 0:
        return Regret(float("nan"), float("nan"), rate, float("nan"), n1)
    share = n0 / (n0 + n1)
    inner_N = pair_N2[:, 0] - share * pair_N2[:, 1]
    value = float(inner_N.mean() - (1 - share) * (alone_N.mean() if n1 else 0.0))
    variance = float(inner_N.var(ddof=1)) / n0 if n0 > 1 else float("nan")
    if n1 > 1:
        variance += (1 - share) ** 2 * float(alone_N.var(ddof=1)) / n1
    elif n1 == 1:
        variance = float("nan")
    hinted_rate = float(np.concatenate(hinted_wins).mean())
    return Regret(value, float(np.sqrt(variance)), rate, hinted_rate, n0)
