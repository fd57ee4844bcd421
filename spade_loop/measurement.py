"""From trajectories to numbers: paired returns of an environment, its regret, and whom a fault is charged to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from spade_loop.config import RewardConfig
from spade_loop.rewards import DESIGNER_REWARDS, Floats, Regret, paired_regret, with_faults
from spade_loop.types import Arm, StopReason, Trajectory
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
    return_SK: Floats
    """Plain returns."""
    regret: Regret
    fault_share: float
    """Share of all plays whose fault a replay in a fresh worker reproduced."""

    @property
    def quarantined(self) -> bool:
        """Whether the environment is too faulty to be played again."""
        return self.fault_share > QUARANTINE_SHARE

    @property
    def measurable(self) -> bool:
        """Whether there are enough seeds for a regret."""
        return self.regret.seeds >= MIN_SEEDS

    def designer_reward(self, config: RewardConfig) -> float:
        """What the designer of this environment is paid, before any bonus; NaN when nothing was measurable."""
        if not self.measurable:
            return config.fault_floor if self.quarantined else float("nan")
        base = DESIGNER_REWARDS[config.designer](self.regret)
        return with_faults(base, self.fault_share, config.fault_floor)


def measure(
    spec: SynthEnvSpec,
    plain: Sequence[Trajectory],
    hinted: Sequence[Trajectory],
    reproduces: Reproduces,
) -> Measured:
    """Pair the two arms of one environment. A fault in either arm drops its seed in both."""
    seeds = tuple(dict.fromkeys(t.seed for t in plain))
    broken = {t.seed for t in (*plain, *hinted) if _unmeasurable(t)}
    arrays = [
        _table(arm, seeds, broken, of=of) for arm in (plain, hinted) for of in (_return_of, _won)
    ]
    plain_return, plain_won, hinted_return, hinted_won = arrays
    plays = [*plain, *hinted]
    faulty = [t for t in plays if t.stop is StopReason.FAULT]
    # Plays of one seed that did the same are one replay: a fault in reset would be waited for once a play.
    distinct = {_replay_key(t): t for t in faulty}
    again = {key: reproduces(spec, t) for key, t in distinct.items()}
    reproduced = sum(again[_replay_key(t)] for t in faulty)
    return Measured(
        spec=spec,
        seeds=seeds,
        plain=tuple(plain),
        hinted=tuple(hinted),
        return_SK=plain_return,
        regret=paired_regret(hinted_return, plain_return, hinted_won, plain_won),
        fault_share=reproduced / len(plays),
    )


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
    arm: Sequence[Trajectory],
    seeds: Sequence[int],
    broken: set[int],
    of: Callable[[Trajectory], float],
) -> Floats:
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
