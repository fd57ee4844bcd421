"""What the episodes of an environment come to: rates, regret and zone, each with how sure it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spade_loop.gap.zones import Figures, Zone, ZoneRules, zone_of
from spade_loop.measurement import Measured
from spade_loop.rewards.quantiles import normal_quantile
from spade_loop.types import JsonRow, StopReason, Trajectory, finite
from spade_loop.windows import array
from synthgym.calibration import Interval, wilson
from synthgym.envs import ParseStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of episodes that reached the goal."""

    wins: int
    episodes: int
    """Those that were measurable."""
    interval: Interval
    """Wilson's score interval, at the confidence of the look."""

    @property
    def value(self) -> float | None:
        """Wins / episodes; None without episodes."""
        return self.wins / self.episodes if self.episodes else None

    @classmethod
    def of(cls, wins: int, episodes: int, confidence: float) -> Rate:
        """With Wilson's interval (1927; Brown, Cai and DasGupta 2001, Statistical Science 16:101-133)."""
        interval = wilson(wins, episodes, normal_quantile(confidence))
        return cls(wins=wins, episodes=episodes, interval=interval)

    def to_json(self) -> JsonRow:
        """Plain data."""
        return {
            "solve_rate": self.value,
            "wins": self.wins,
            "episodes": self.episodes,
            "interval": list(self.interval),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One environment or task."""

    name: str
    title: str
    digest: str
    zone: Zone
    pairs: int
    """Pairs that were played; a fault, or an observation that left no room for a reply, drops one."""
    measured: int
    """Pairs that were measurable."""
    confidence: float
    """Of every interval: what the spent alpha leaves to this look."""
    plain: Rate
    hinted: Rate
    others: dict[str, Rate]
    """Rates of the other conditions by name: `placebo`, `level-1` and the like."""
    regret: float | None
    regret_error: float | None
    """Standard error, over seeds."""
    regret_interval: tuple[float, float]
    method: str
    """How that interval was made (`rewards.regret.Interval.method`)."""
    returns: tuple[float | None, float | None]
    """Mean returns over the measurable pairs, plain and hinted."""
    faults: int
    """Episodes of both arms that a fault ended."""
    fault_share: float
    """Share of the episodes whose fault came again in a fresh worker."""
    turns: int
    """Replies, in all conditions."""
    unusable: dict[str, int]
    """Replies without a usable action, by how reading them went; empty ones are `empty-reply`."""
    cut: int
    """Episodes that the model's context ended."""

    def to_json(self) -> JsonRow:
        """Plain data, every number."""
        return {
            "id": self.name,
            "title": self.title,
            "digest": self.digest,
            "zone": str(self.zone),
            "pairs": self.pairs,
            "measured_pairs": self.measured,
            "confidence": self.confidence,
            "plain": self.plain.to_json(),
            "hinted": self.hinted.to_json(),
            "others": {name: rate.to_json() for name, rate in self.others.items()},
            "regret": {
                "value": self.regret,
                "standard_error": self.regret_error,
                "interval": list(self.regret_interval),
                "method": self.method,
            },
            "return": {"plain": self.returns[0], "hinted": self.returns[1]},
            "faults": {"episodes": self.faults, "reproduced_share": self.fault_share},
            "replies": {"turns": self.turns, "unusable": self.unusable},
            "ended_by_context": self.cut,
        }


def make_result(
    measured: Measured,
    others: dict[str, Sequence[Trajectory]],
    rules: ZoneRules,
    *,
    name: str,
    confidence: float,
) -> Result:
    """A result of what `measure` found. `others` are the episodes of further conditions, by name.

    Of those a fault drops an episode and not its pair, and counts into no zone.
    """
    regret, pairs = measured.regret, len(measured.seeds)
    plain = Rate.of(_wins(regret.solve_rate, regret.seeds), regret.seeds, confidence)
    hinted = Rate.of(_wins(regret.hinted_solve_rate, regret.seeds), regret.seeds, confidence)
    rates = {key: _rate(episodes, confidence) for key, episodes in others.items()}
    interval = measured.interval
    both = [*measured.plain, *measured.hinted]
    everything = [*both, *(t for episodes in others.values() for t in episodes)]
    return Result(
        name=name,
        title=measured.spec.title,
        digest=measured.spec.digest,
        zone=zone_of(_figures(measured, rates), rules),
        pairs=pairs,
        measured=regret.seeds,
        confidence=confidence,
        plain=plain,
        hinted=hinted,
        others=rates,
        regret=finite(regret.value),
        regret_error=finite(regret.standard_error),
        regret_interval=(-1.0, 1.0) if interval is None else (interval.low, interval.high),
        method="none" if interval is None else interval.method,
        returns=_returns(measured),
        faults=sum(t.stop is StopReason.FAULT for t in both),
        fault_share=measured.fault_share,
        turns=sum(len(t.turns) for t in everything),
        unusable=unusable(everything),
        cut=sum(t.stop is StopReason.CONTEXT for t in everything),
    )


def unusable(episodes: Sequence[Trajectory]) -> dict[str, int]:
    """Replies without a usable action, by how reading them went; those that held nothing are `empty-reply`."""
    kinds = Counter(
        turn.status if turn.reply.strip() else "empty-reply" for t in episodes for turn in t.turns
    )
    del kinds[ParseStatus.OK]
    return dict(sorted(kinds.items()))


def _figures(measured: Measured, others: dict[str, Rate]) -> Figures | None:
    regret, interval = measured.regret, measured.interval
    if not measured.measurable or measured.quarantined or interval is None:
        return None
    levels = [
        rate.value
        for name, rate in others.items()
        if name.startswith("level-") and rate.value is not None
    ]
    return Figures(
        plain=regret.solve_rate,
        hinted=max([regret.hinted_solve_rate, *levels]),
        regret=regret.value,
        regret_low=interval.low,
    )


def _wins(rate: float, seeds: int) -> int:
    return round(rate * seeds) if seeds else 0


def _rate(episodes: Sequence[Trajectory], confidence: float) -> Rate:
    sound = [t for t in episodes if t.stop is not StopReason.FAULT]
    sound = [t for t in sound if t.turns or t.stop is not StopReason.CONTEXT]
    return Rate.of(sum(t.success for t in sound), len(sound), confidence)


def _returns(measured: Measured) -> tuple[float | None, float | None]:
    plain_SK, hinted_SK = array(measured.visit.plain), array(measured.visit.hinted)
    usable = ~np.isnan(plain_SK).any(axis=1) & ~np.isnan(hinted_SK).any(axis=1)
    if not usable.any():
        return None, None
    return float(plain_SK[usable].mean()), float(hinted_SK[usable].mean())
