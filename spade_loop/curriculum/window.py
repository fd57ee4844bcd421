"""Difficulties that follow the agent: the sliding window of RLVE (arXiv 2511.07317), and the learning-progress rule.

A level is one environment at one difficulty. Each environment has a window [low, high], at first [0, 0]. Its next
difficulty is uniform in it. Attempts and successes are counted at `high` alone; once there are `tau_num` attempts,

    if successes / attempts >= tau_acc and high < hardest:  high += 1, low = max(low, high - width + 1)

and both counters start again, whatever came of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from spade_loop.curriculum.choice import Held, digests, read_state, write_state
from spade_loop.errors import ConfigError
from spade_loop.types import JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """Where an environment of the contract stands: of which ladder, how high."""

    environment: str
    difficulty: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The difficulties of one environment that are played now, and what was counted at the highest."""

    low: int = 0
    high: int = 0
    attempts: int = 0
    successes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SlidingWindow:
    """RLVE's controller. Its score is the share of episodes that reached the goal."""

    kind: ClassVar[str] = "sliding-window"
    score: ClassVar[str] = "solve_rate"
    rungs: Mapping[str, Rung]
    """Environment and difficulty of each digest; what is held beside them is never chosen."""
    plays: int
    """Episodes that one observation stands for."""
    tau_num: int = 8
    """Attempts at `high` before it is judged; 128 in the recipes of the SPADE reference."""
    tau_acc: float = 0.9
    width: int = 4
    hardest: int = 20
    windows: Mapping[str, Window] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.plays, self.tau_num, self.width) < 1 or self.hardest < 0:
            raise ConfigError(
                "expected plays, tau_num and width of at least 1 and hardest of at least 0, got "
                f"{self.plays}, {self.tau_num}, {self.width} and {self.hardest}"
            )
        if not 0.0 <= self.tau_acc <= 1.0:
            raise ConfigError(f"tau_acc must lie in [0, 1], got {self.tau_acc:g}")
        for name, w in self.windows.items():
            bounds = 0 <= w.low <= w.high <= self.hardest and w.high - w.low < self.width
            if not (bounds and 0 <= w.successes <= w.attempts < self.tau_num):
                raise ConfigError(f"the window of {name} breaks the rules of this curriculum: {w}")

    def window(self, environment: str) -> Window:
        """The window of an environment; [0, 0] before its first episode."""
        return self.windows.get(environment, Window())

    def choose(self, held: Sequence[Held], k: int, rng: np.random.Generator) -> list[str]:
        """At most `k` rungs within their windows: every environment once before any comes twice."""
        open_rungs: dict[str, list[str]] = {}
        for digest in digests(held, k):
            rung = self.rungs.get(digest)
            if rung is not None:
                window = self.window(rung.environment)
                if window.low <= rung.difficulty <= window.high:
                    open_rungs.setdefault(rung.environment, []).append(digest)
        chosen: list[str] = []
        while open_rungs and len(chosen) < k:
            names = sorted(open_rungs)
            for i in rng.permutation(len(names))[: k - len(chosen)]:
                options = open_rungs[names[i]]
                chosen.append(options.pop(int(rng.integers(len(options)))))
            open_rungs = {name: options for name, options in open_rungs.items() if options}
        return chosen

    def observe(self, digest: str, score: float, iteration: int) -> Self:  # noqa: ARG002
        """Count `plays` attempts, a share `score` of them successful. What has no rung counts nowhere.

        `ConfigError` for a share outside of [0, 1].
        """
        rung = self.rungs.get(digest)
        if rung is None:
            return self
        window = self.window(rung.environment)
        if math.isnan(score) or rung.difficulty != window.high:
            return self
        if not 0.0 <= score <= 1.0:
            raise ConfigError(f"{digest}: a share of successes lies in [0, 1], got {score:g}")
        counted = replace(
            window,
            attempts=window.attempts + self.plays,
            successes=window.successes + round(score * self.plays),
        )
        windows = {**self.windows, rung.environment: self._judged(counted)}
        return replace(self, windows=dict(sorted(windows.items())))

    def _judged(self, window: Window) -> Window:
        """The window after a check, when it is due."""
        if window.attempts < self.tau_num:
            return window
        mastered = window.successes / window.attempts >= self.tau_acc
        if not mastered or window.high >= self.hardest:
            return Window(low=window.low, high=window.high)
        high = window.high + 1
        return Window(low=max(window.low, high - self.width + 1), high=high)

    def to_json(self) -> JsonRow:
        """Plain data."""
        return write_state(self.kind, self)

    @classmethod
    def from_json(cls, data: JsonRow) -> Self:
        """Inverse of `to_json`; `RunStateError` for anything else."""
        return read_state(cls.kind, cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Averages:
    """Two moving averages of one score."""

    fast: float
    slow: float

    @property
    def progress(self) -> float:
        """|fast - slow|: how much the score has moved of late."""
        return abs(self.fast - self.slow)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningProgress:
    """Half of a choice is what the agent gets better or worse at, the other half is drawn from the rest.

    mu <- (1 - gamma) * mu + gamma * score, with two gammas; the first score starts both. What was never played has no
    progress. Ties are broken at random, or the first names of the alphabet would be half of every early choice.
    """

    kind: ClassVar[str] = "learning-progress"
    score: ClassVar[str] = "solve_rate"
    gamma_fast: float = 0.35
    gamma_slow: float = 0.15
    averages: Mapping[str, Averages] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma_slow <= self.gamma_fast <= 1.0:
            raise ConfigError(
                "expected 0 < gamma_slow <= gamma_fast <= 1, got "
                f"{self.gamma_slow:g} and {self.gamma_fast:g}"
            )
        for digest, a in self.averages.items():
            if not (math.isfinite(a.fast) and math.isfinite(a.slow)):
                raise ConfigError(f"{digest}: expected finite averages, got {a}")

    def progress(self, digest: str) -> float:
        """|mu_fast - mu_slow|, 0 before the second score."""
        known = self.averages.get(digest)
        return 0.0 if known is None else known.progress

    def choose(self, held: Sequence[Held], k: int, rng: np.random.Generator) -> list[str]:
        """max(1, k // 2) with the most progress, then others at random: `k` in all, or all that are held."""
        known = digests(held, k)
        shuffled = [known[i] for i in rng.permutation(len(known))]
        if k == 0 or k >= len(known):
            return shuffled[:k]
        best = sorted(shuffled, key=self.progress, reverse=True)[: max(1, k // 2)]
        rest = [digest for digest in shuffled if digest not in best]
        return [*best, *rest[: k - len(best)]]

    def observe(self, digest: str, score: float, iteration: int) -> Self:  # noqa: ARG002
        """Both averages move towards the score; one that is not finite moves nothing."""
        if not math.isfinite(score):
            return self
        old = self.averages.get(digest, Averages(fast=score, slow=score))
        new = Averages(
            fast=(1.0 - self.gamma_fast) * old.fast + self.gamma_fast * score,
            slow=(1.0 - self.gamma_slow) * old.slow + self.gamma_slow * score,
        )
        return replace(self, averages=dict(sorted({**self.averages, digest: new}.items())))

    def to_json(self) -> JsonRow:
        """Plain data."""
        return write_state(self.kind, self)

    @classmethod
    def from_json(cls, data: JsonRow) -> Self:
        """Inverse of `to_json`; `RunStateError` for anything else."""
        return read_state(cls.kind, cls, data)
