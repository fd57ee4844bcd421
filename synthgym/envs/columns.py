"""The account of many episodes at once, as columns: what `episode` keeps for one, for all of them.

The rules are those of `episode`, one numpy expression each. A test plays both side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from synthgym.contract import REWARD_TOLERANCE
from synthgym.envs.episode import Info, reward_problem
from synthgym.sandbox import Batch
from synthgym.sandbox.protocol import TERMINATED, TRUNCATED
from synthgym.sandbox.results import EnvFault, FaultKind

Rows = NDArray[np.intp]
"""Positions of sub-environments."""


class Outcome(NamedTuple):
    """What a step of some sub-environments came to, by row of the step."""

    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    env_infos: Mapping[int, Mapping[str, Any]]
    """What environments reported, by position, where it is not empty."""


class EpisodeColumns:
    """Where each of several episodes stands. One element a sub-environment."""

    def __init__(self, max_turns: NDArray[np.int64], floors: NDArray[np.float64]) -> None:
        count = len(max_turns)
        self.max_turns = max_turns
        self.floors = floors
        """Least running sums of rewards that the records declare."""
        self.seeds = np.zeros(count, dtype=np.int64)
        self.turns = np.zeros(count, dtype=np.int64)
        self.paid = np.zeros(count, dtype=np.float64)
        """Running sums of rewards."""
        self.started = np.zeros(count, dtype=np.bool_)
        self.done = np.zeros(count, dtype=np.bool_)
        self.success = np.zeros(count, dtype=np.bool_)
        self.observations = [""] * count
        """The last ones seen; a fault repeats them."""
        self.faults: dict[int, EnvFault] = {}

    def begin(
        self, rows: Rows, seeds: Sequence[int], batch: Batch
    ) -> Mapping[int, Mapping[str, Any]]:
        """Start episodes from resets; a fault starts one that its next step will truncate.

        Returns what environments reported, by position.
        """
        self.seeds[rows] = seeds
        self.turns[rows] = 0
        self.paid[rows] = 0.0
        self.started[rows] = True
        self.done[rows] = False
        self.success[rows] = False
        for position, observation in zip(rows.tolist(), batch.observations, strict=True):
            self.observations[position] = observation
            self.faults.pop(position, None)
        for row, fault in batch.faults.items():
            self.faults[int(rows[row])] = fault
        return {int(rows[row]): info for row, info in batch.infos.items()}

    def advance(self, rows: Rows, batch: Batch) -> Outcome:
        """Play one turn of the episodes in `rows` with what the sandbox gave for them."""
        rewards = np.array(batch.rewards, dtype=np.float64)
        flags = np.frombuffer(bytes(batch.flags), dtype=np.uint8)
        terminated = (flags & TERMINATED) != 0
        truncated = (flags & TRUNCATED) != 0
        total = self.paid[rows] + rewards
        broken = (
            (total < self.floors[rows] - REWARD_TOLERANCE)
            | (total > 1.0 + REWARD_TOLERANCE)
            | ((total >= 1.0 - REWARD_TOLERANCE) & ~terminated)
        )
        faults = dict(batch.faults)
        if broken.any():
            for row in np.flatnonzero(broken).tolist():
                problem = reward_problem(
                    float(self.paid[rows[row]]),
                    float(rewards[row]),
                    bool(terminated[row]),
                    float(self.floors[rows[row]]),
                )
                if row not in faults and problem is not None:
                    faults[row] = EnvFault(FaultKind.BAD_VALUE, "step", problem.value)
        if faults:
            failed = list(faults)
            rewards[failed] = 0.0
            terminated[failed] = False
            truncated[failed] = True
            total[failed] = self.paid[rows[failed]]
        self.turns[rows] += 1
        truncated = ~terminated & (truncated | (self.turns[rows] >= self.max_turns[rows]))
        self.paid[rows] = total
        self.done[rows] = terminated | truncated
        self.success[rows] = terminated & (total >= 1.0 - REWARD_TOLERANCE)
        for row, (position, observation) in enumerate(
            zip(rows.tolist(), batch.observations, strict=True)
        ):
            if row not in faults:
                self.observations[position] = observation
            else:
                self.faults[position] = faults[row]
        infos = {int(rows[row]): info for row, info in batch.infos.items() if row not in faults}
        return Outcome(rewards, terminated, truncated, infos)

    def give_up(self, positions: Iterable[int]) -> None:
        """Play one turn of episodes whose reset had failed: they end."""
        for position in positions:
            self.turns[position] += 1
            self.done[position] = True

    def pack(self, chosen: NDArray[np.bool_], env_infos: Mapping[int, Mapping[str, Any]]) -> Info:
        """Infos of the sub-environments `chosen`, in Gymnasium's form.

        An array a key, and a mask `_key` that says who has it. An environment's own info has keys
        and types of its own: it stays a dict, never an array.
        """
        count = len(chosen)
        own = np.full(count, None, dtype=object)
        for position in np.flatnonzero(chosen).tolist():
            own[position] = dict(env_infos.get(position, ()))
        packed: Info = {
            "seed": np.where(chosen, self.seeds, 0),
            "_seed": chosen.copy(),
            "turn": np.where(chosen, self.turns, 0),
            "_turn": chosen.copy(),
            "success": chosen & self.success,
            "_success": chosen.copy(),
            "env": own,
            "_env": chosen.copy(),
        }
        failed = [position for position in self.faults if chosen[position]]
        if failed:
            faults = np.full(count, None, dtype=object)
            mask = np.zeros(count, dtype=np.bool_)
            for position in failed:
                faults[position] = self.faults[position].to_json()
                mask[position] = True
            packed["fault"], packed["_fault"] = faults, mask
        return packed
