"""From trajectories to numbers: paired returns of an environment, its regret, and whom a fault is charged to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spade_loop.rewards import CONFIDENCE, Floats, Interval, Regret, regret_interval
from spade_loop.types import Arm, StopReason, Trajectory
from spade_loop.windows import Visit, regret_of, table
from synthgym.envs import SynthEnv
from synthgym.errors import EnvFaultError
from synthgym.sandbox import FaultKind, Pool
from synthgym.spec import SynthEnvSpec

QUARANTINE_SHARE = 0.25
"""Share of plays with a reproduced fault above which an environment is not played again."""
MIN_SEEDS = 2
"""Regret of fewer seeds than this is not measured."""

Reproduces = Callable[[SynthEnvSpec, Trajectory], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One environment of an iteration, as it was played. Axes: S seeds, K plays; NaN where a fault dropped the seed."""

    spec: SynthEnvSpec
    seeds: tuple[int, ...]
    plain: tuple[Trajectory, ...]
    """S * K episodes, seed by seed."""
    hinted: tuple[Trajectory, ...]
    """As many, or none in an iteration that plays no hints."""
    placebo: tuple[Trajectory, ...]
    trained_seeds: int
    """The first so many seeds are trained on; the others were only played to measure."""
    return_SK: Floats
    """Plain returns."""
    regret: Regret
    interval: Interval | None
    """Of the regret; None where the arms were not paired, or the second one not played."""
    fault_share: float
    """Share of all plays whose fault a replay in a fresh worker reproduced."""
    visit: Visit
    """The same as plain data, for the window."""

    @property
    def quarantined(self) -> bool:
        """Whether the environment is too faulty to be played again."""
        return self.fault_share > QUARANTINE_SHARE

    @property
    def measurable(self) -> bool:
        """Whether there are enough seeds for a regret."""
        return self.regret.seeds >= MIN_SEEDS and not np.isnan(self.regret.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """The episodes of one environment in one iteration."""

    plain: tuple[Trajectory, ...]
    hinted: tuple[Trajectory, ...] = ()
    placebo: tuple[Trajectory, ...] = ()

    def __add__(self, other: Arms) -> Arms:
        return Arms(
            plain=self.plain + other.plain,
            hinted=self.hinted + other.hinted,
            placebo=self.placebo + other.placebo,
        )


def measure(  # noqa: PLR0913 -- how it was played, all by name
    spec: SynthEnvSpec,
    arms: Arms,
    reproduces: Reproduces,
    *,
    iteration: int,
    paired: bool = True,
    trained_seeds: int | None = None,
    confidence: float = CONFIDENCE,
) -> Measured:
    """Compare the arms of one environment. When they are paired, a fault in either arm drops its seed in both.

    A placebo's faults drop nothing: it is compared by its rates alone.
    """
    plays = [*arms.plain, *arms.hinted]
    broken = {t.seed for t in plays if _unmeasurable(t)}
    seeds = _seeds(arms.plain)
    tables = [
        _table(arm, broken, of=of) for arm in (arms.plain, arms.hinted) for of in (_return_of, _won)
    ]
    plain_return, plain_won, hinted_return, hinted_won = tables
    faulty = [t for t in plays if t.stop is StopReason.FAULT]
    # Plays of one seed that did the same are one replay: a fault in reset would be waited for once a play.
    distinct = {_replay_key(t): t for t in faulty}
    again = {key: reproduces(spec, t) for key, t in distinct.items()}
    reproduced = sum(again[_replay_key(t)] for t in faulty)
    return Measured(
        spec=spec,
        seeds=seeds,
        plain=arms.plain,
        hinted=arms.hinted,
        placebo=arms.placebo,
        trained_seeds=len(seeds) if trained_seeds is None else trained_seeds,
        return_SK=plain_return,
        regret=regret_of(hinted_return, plain_return, hinted_won, plain_won, paired=paired),
        interval=_interval(hinted_return, plain_return, confidence) if paired else None,
        fault_share=reproduced / len(plays),
        visit=Visit(
            iteration=iteration,
            plain=table(plain_return),
            plain_won=table(plain_won),
            hinted=table(hinted_return),
            hinted_won=table(hinted_won),
            paired=paired,
            faults=float(reproduced),
            plays=len(plays),
            hung=any(_hung(t) and again[_replay_key(t)] for t in faulty),
        ),
    )


def _interval(hinted_SK: Floats, plain_SK: Floats, confidence: float) -> Interval | None:
    """Interval of the regret; its range is that of the contract unless a dialect pays beyond it."""
    if hinted_SK.size == 0:
        return None
    values = np.concatenate([hinted_SK.ravel(), plain_SK.ravel()])
    values = values[~np.isnan(values)]
    bound = float(np.abs(values).max(initial=1.0))
    within = bool((values >= 0.0).all()) and bound <= 1.0
    return regret_interval(
        hinted_SK, plain_SK, confidence, (0.0, 1.0) if within else (-bound, bound)
    )


def _hung(trajectory: Trajectory) -> bool:
    return trajectory.fault is not None and trajectory.fault.kind == FaultKind.TIMEOUT


def _seeds(arm: Sequence[Trajectory]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(t.seed for t in arm))


def _replay_key(trajectory: Trajectory) -> tuple[int, Arm, tuple[str, ...]]:
    return trajectory.seed, trajectory.arm, trajectory.actions


def _unmeasurable(trajectory: Trajectory) -> bool:
    """A fault, or a first observation that left no room for a turn: nothing the agent did."""
    cut_short = trajectory.stop is StopReason.CONTEXT and not trajectory.turns
    return trajectory.stop is StopReason.FAULT or cut_short


def _return_of(trajectory: Trajectory) -> float:
    return trajectory.episode_return


def _won(trajectory: Trajectory) -> float:
    return float(trajectory.success)


def _table(
    arm: Sequence[Trajectory], broken: set[int], of: Callable[[Trajectory], float]
) -> Floats:
    """S by K numbers of an arm, NaN where a seed was dropped; of shape [0, 0] for an arm that was not played."""
    if not arm:
        return np.zeros((0, 0))
    seeds = _seeds(arm)
    rows = [[of(t) for t in arm if t.seed == seed] for seed in seeds]
    table_SK = np.asarray(rows, dtype=np.float64)
    table_SK[[seed in broken for seed in seeds]] = np.nan
    return table_SK


def fault_reproduces(spec: SynthEnvSpec, trajectory: Trajectory, hint_level: int) -> bool:
    """Whether the same seed, hint and actions fail again in a worker of a pool of their own.

    Only then is the fault the environment's. One of the infrastructure never is: the sandbox tells a
    machine that had no time for a worker by the CPU time that the worker got.
    """
    with Pool(max_workers=1) as pool:
        env = SynthEnv(spec, pool=pool)
        try:
            _, info = env.reset(seed=trajectory.seed)
            if trajectory.arm is Arm.HINTED:
                env.hint_at(hint_level)
            for action in trajectory.actions:
                _, _, terminated, truncated, info = env.step(action)
                if terminated or truncated:
                    break
        except EnvFaultError as error:
            return error.kind != FaultKind.LOST
        finally:
            env.close()
        return "fault" in info and info["fault"]["kind"] != FaultKind.LOST


def seen(
    windows: Mapping[str, tuple[Visit, ...]], measured: Sequence[Measured]
) -> dict[str, tuple[Visit, ...]]:
    """What was measured of each environment so far, an iteration's plays added."""
    after = dict(windows)
    for m in measured:
        after[m.spec.digest] = (*after.get(m.spec.digest, ()), m.visit)
    return after
