"""Which held environments a designer is shown: good ones that differ, and what it came too near to.

The policy `mmr` ranks by a lower bound of the regret, and picks by maximal marginal relevance
(Carbonell and Goldstein 1998): half for the rank, half against being like one that was picked. The
policy `spade` is the memory of the SPADE code: the last 200 that were measured, the regret itself,
a uniform draw, no vectors.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError
from synthgym.memory.index import VectorIndex
from synthgym.memory.records import BOUND_Z, LEARNABLE
from synthgym.memory.table import RecordTable

Policy = Literal["mmr", "spade"]
LAMBDA: Final = 0.5
"""Weight of the rank against that of being different."""
SPADE_CAPACITY: Final = 200
SPADE_CODE_CHARS: Final = 2000
"""What the SPADE prompts show of an exemplar's source: whoever shows it cuts it."""
Doubles = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


def check_policy(policy: str) -> None:
    """`ConfigError` when there is no such policy."""
    if policy not in get_args(Policy):
        raise ConfigError(f"unknown policy {policy!r}; choose from {', '.join(get_args(Policy))}")


def draw_exemplars(
    table: RecordTable,
    index: VectorIndex,
    rows: Rows,
    k: int,
    rng: np.random.Generator,
    policy: str = "mmr",
) -> list[int]:
    """Up to `k` of these rows that are worth imitating: measured, with a win rate in [0.15, 0.85].

    The max(3k, 10) of highest regret stand for election. `mmr` answers the best first, `spade` in
    the order of the draw.
    """
    check_policy(policy)
    if policy == "spade":
        measured = table.rows[~np.isnan(table.metric("win_rate")[table.rows])]
        rows = np.intersect1d(rows, measured[-SPADE_CAPACITY:])
    regret = table.metric("regret")
    rates = table.metric("win_rate")[rows]
    usable = rows[(rates >= LEARNABLE[0]) & (rates <= LEARNABLE[1]) & ~np.isnan(regret[rows])]
    bounds = _bounds(table, usable) if policy == "mmr" else regret[usable]
    order = _best(table, usable, bounds, max(3 * k, 10))
    if k < 1 or len(order) == 0:
        return []
    pool, bounds = usable[order], bounds[order]
    if policy == "spade":
        drawn = rng.choice(len(pool), size=min(k, len(pool)), replace=False)
        return [int(pool[i]) for i in drawn]
    vectors = index.vectors([table.text(int(row)) for row in pool]).astype(np.float64)
    return [int(pool[i]) for i in sorted(_diverse(bounds, vectors, k, rng))]


def draw_warnings(
    table: RecordTable, rows: Rows, k: int, rng: np.random.Generator, verdicts: tuple[float, float]
) -> list[int]:
    """Up to `k` of these rows with a win rate below the first or above the second of `verdicts`."""
    rates = table.metric("win_rate")[rows]
    bad = rows[(rates < verdicts[0]) | (rates > verdicts[1])].tolist()
    if not bad or k < 1:
        return []
    bad.sort(key=table.digest)
    return [bad[int(i)] for i in rng.choice(len(bad), size=min(k, len(bad)), replace=False)]


def _bounds(table: RecordTable, rows: Rows) -> Doubles:
    return table.metric("regret")[rows] - BOUND_Z * np.nan_to_num(table.metric("regret_se")[rows])


def _best(table: RecordTable, rows: Rows, values: Doubles, count: int) -> list[int]:
    """Places of the `count` largest values, largest first; equal ones by digest."""
    if len(values) > count:  # digests are spelt out for those alone that may be among the best
        least = np.partition(values, -count)[-count]
        places = np.flatnonzero(values >= least).tolist()
    else:
        places = list(range(len(values)))
    places.sort(key=lambda i: (-values[i], table.digest(int(rows[i]))))
    return places[:count]


def _diverse(ranked: Doubles, vectors: Doubles, k: int, rng: np.random.Generator) -> list[int]:
    """Places of up to `k` by maximal marginal relevance; the first one at random."""
    spread = float(ranked.max() - ranked.min())
    relevance = (ranked - ranked.min()) / spread if spread > 0 else np.ones(len(ranked))
    likeness = np.round(vectors @ vectors.T, 4)
    chosen = [int(rng.integers(len(ranked)))]
    while len(chosen) < min(k, len(ranked)):
        nearest = likeness[:, chosen].max(axis=1)
        gain = np.round(LAMBDA * relevance - (1 - LAMBDA) * nearest, 6)
        gain[chosen] = -np.inf
        chosen.append(int(np.argmax(gain)))
    return chosen
