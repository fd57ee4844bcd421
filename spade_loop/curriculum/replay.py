"""Prioritised level replay: what still has much to teach is played again (arXiv 2010.03934 and 2110.02439).

A level is an environment. With probability `1 - p` the next one is drawn uniformly from those never played; else it is
a replay, drawn from

    P(l)   = (1 - rho) * P_S(l) + rho * P_C(l)
    P_S(l) = h(l)^(1 / beta) / sum over j of h(j)^(1 / beta),    h(l) = 1 / rank(l)
    P_C(l) = (c - C(l)) / sum over j of (c - C(j))

`rank` is 1 for the highest score, C(l) is when l was last played and c is now. Levels with equal scores share the
weights of their ranks equally, which is what breaking ties at random comes to on average.

What the papers' own code sets:

| setting | PLR (Procgen) | Robust PLR (mazes) | ACCEL (mazes) |
|---|---|---|---|
| temperature beta | 0.1 | 0.1 | 0.3 |
| staleness rho | 0.1 | 0.3 | 0.3 |
| replay probability p | share of levels seen | 0.5 | 0.8 |
| trained on | everything | replays only | replays only |
| score | L1 value loss | signed value loss against the best return | positive value loss |

Where ours differs: the clock of staleness counts iterations, not episodes, so the order of the environments of one
iteration does not matter; a choice of k levels is k draws without repeats; the buffer has no bound; and no share of
it must be full before the first replay.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from spade_loop.curriculum.choice import Held, digests, read_state, write_state
from spade_loop.curriculum.scores import SCORES
from spade_loop.errors import ConfigError
from spade_loop.rewards import Floats
from spade_loop.types import JsonRow


def score_probabilities(score_N: Floats, temperature: float) -> Floats:
    """P_S: proportional to rank^(-1 / temperature), rank 1 for the highest; ties share their weights. Sums to 1."""
    rank_N = np.arange(1, len(score_N) + 1, dtype=np.float64)
    weight_N = np.exp(-np.log(rank_N) / temperature)
    # From here on in the order of falling scores.
    order_N = np.argsort(-score_N, kind="stable")
    _, group_N, size_G = np.unique(-score_N[order_N], return_inverse=True, return_counts=True)
    shared_N = (np.bincount(group_N, weights=weight_N) / size_G)[group_N]
    probability_N = np.empty_like(shared_N)
    probability_N[order_N] = shared_N / shared_N.sum()
    return probability_N


def staleness_probabilities(last_N: Floats, now: int) -> Floats:
    """P_C: proportional to how long ago each was played; uniform when all were played now. Sums to 1."""
    age_N = now - last_N
    total = age_N.sum()
    return np.full(len(age_N), 1.0 / len(age_N)) if total == 0 else age_N / total


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """What is known of a level that was played."""

    score: float
    last: int
    """Iteration in which it was last played."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Prioritised level replay over whatever is held; the defaults are those of the first paper."""

    kind: ClassVar[str] = "replay"
    score: str = "regret"
    """`regret`, or `l1_advantage` and `positive_advantage`, which need no hints."""
    temperature: float = 0.1
    """beta, above 0: 0 would be the highest score alone, infinity uniform."""
    staleness: float = 0.1
    """rho in [0, 1]."""
    replay_probability: float | None = None
    """p in [0, 1]; None is the share of the held levels that were played."""
    robust: bool = False
    """Whether only replays are trained on (`trains_on`)."""
    levels: Mapping[str, Level] = field(default_factory=dict)
    now: int = 0
    """c: the newest iteration that was observed."""

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise ConfigError(f"score must be one of {', '.join(SCORES)}, got {self.score!r}")
        if not self.temperature > 0:
            raise ConfigError(f"temperature must be above 0, got {self.temperature:g}")
        for name in ("staleness", "replay_probability"):
            value = getattr(self, name)
            if value is not None and not 0.0 <= value <= 1.0:
                raise ConfigError(f"{name} must lie in [0, 1], got {value:g}")
        for digest, level in self.levels.items():
            if not (math.isfinite(level.score) and level.last <= self.now):
                raise ConfigError(
                    f"{digest}: expected a finite score, not of the future, got {level}"
                )

    @classmethod
    def robust_plr(cls, score: str = "regret") -> Self:
        """Robust PLR: half of the levels are replays, and only those are trained on."""
        return cls(score=score, staleness=0.3, replay_probability=0.5, robust=True)

    @classmethod
    def accel(cls, score: str = "regret") -> Self:
        """The replay of ACCEL, whose new levels are edits of old ones (`mutate`)."""
        return cls(score=score, temperature=0.3, staleness=0.3, replay_probability=0.8, robust=True)

    def probabilities(self, held: Sequence[Held]) -> dict[str, float]:
        """P of every held level that was played, by digest; they sum to 1. Empty when none was."""
        seen = [digest for digest in digests(held, 0) if digest in self.levels]
        if not seen:
            return {}
        score_N = np.asarray([self.levels[digest].score for digest in seen])
        last_N = np.asarray([float(self.levels[digest].last) for digest in seen])
        mixed_N = (1.0 - self.staleness) * score_probabilities(
            score_N, self.temperature
        ) + self.staleness * staleness_probabilities(last_N, self.now)
        return dict(zip(seen, mixed_N.tolist(), strict=True))

    def choose(self, held: Sequence[Held], k: int, rng: np.random.Generator) -> list[str]:
        """`k` distinct digests, or all when fewer are held; when unseen or seen levels run out the others fill in."""
        known = digests(held, k)
        replays = self.probabilities(held)
        unseen = [digest for digest in known if digest not in replays]
        share = self.replay_probability
        if share is None:
            share = len(replays) / max(len(known), 1)
        chosen: list[str] = []
        for _ in range(min(k, len(known))):
            if replays and (not unseen or rng.random() < share):
                chosen.append(_draw(replays, rng))
                del replays[chosen[-1]]
            else:
                chosen.append(unseen.pop(int(rng.integers(len(unseen)))))
        return chosen

    def trains_on(self, digest: str) -> bool:
        """Whether the agent learns from an environment of the last choice; to be asked before it is observed."""
        return not self.robust or digest in self.levels

    def observe(self, digest: str, score: float, iteration: int) -> Self:
        """The newest score replaces the older one. One that is not finite leaves it, or counts as 0."""
        if not math.isfinite(score):
            score = self.levels[digest].score if digest in self.levels else 0.0
        levels = {**self.levels, digest: Level(score=score, last=iteration)}
        return replace(self, levels=dict(sorted(levels.items())), now=max(self.now, iteration))

    def to_json(self) -> JsonRow:
        """Plain data."""
        return write_state(self.kind, self)

    @classmethod
    def from_json(cls, data: JsonRow) -> Self:
        """Inverse of `to_json`; `RunStateError` for anything else."""
        return read_state(cls.kind, cls, data)


def _draw(weights: Mapping[str, float], rng: np.random.Generator) -> str:
    """One key, proportionally to its weight; uniformly when all weights have vanished."""
    names = list(weights)
    weight_N = np.asarray([weights[name] for name in names])
    total = weight_N.sum()
    picked = rng.choice(len(names), p=weight_N / total) if total > 0 else rng.integers(len(names))
    return names[int(picked)]
