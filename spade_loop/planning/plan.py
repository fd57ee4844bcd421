"""A recipe looked at before it runs: what it plans, what that takes, and what this machine lacks."""

from __future__ import annotations

from dataclasses import dataclass

from spade_loop.batch import BatchShape, proposals
from spade_loop.config import Config
from spade_loop.errors import ConfigError, ModelError
from spade_loop.planning.budget import Budget, budget_of
from spade_loop.planning.memory import Memory, Sharding, memory_of
from spade_loop.planning.needs import Need, needs_of
from spade_loop.planning.shapes import ModelShape, shape_of
from spade_loop.types import JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a recipe would do on so many processes."""

    config: Config
    processes: int
    sharding: Sharding
    budget: Budget
    shape: ModelShape | None
    """None for a model of which nothing is known here."""
    memory: Memory | None
    """Of the largest process; None without a shape."""
    needs: tuple[Need, ...]

    @property
    def lacks(self) -> tuple[Need, ...]:
        """Needs that this machine does not meet."""
        return tuple(need for need in self.needs if not need.met)

    def to_json(self) -> JsonRow:
        """Plain data: the whole config, an iteration, the run, memory in bytes, needs."""
        rows, agent = BatchShape.of(self.config), self.config.agent
        episodes = agent.environments * agent.seeds * agent.plays
        return {
            "config": self.config.to_json(),
            "iteration": {
                "designs": self.config.designer.candidates,
                "designs_by_designer": proposals(self.config),
                "episodes_plain": episodes,
                "episodes_hinted": episodes,
                "rows": {
                    "designer": rows.designer,
                    "agent": rows.agent,
                    "rehearsal": rows.rehearsal,
                    "total": rows.total,
                },
            },
            "run": self.budget.to_json(),
            "processes": self.processes,
            "sharding": self.sharding,
            "memory": None if self.memory is None else self.memory.to_json(),
            "needs": [need.to_json() for need in self.needs],
        }


def make_plan(config: Config, *, processes: int = 1, sharding: Sharding = "none") -> Plan:
    """What `config` would do. Loads no weights, asks no network, imports no torch.

    `ConfigError` for fewer than one process. What a run would refuse is a need that is not met, not an error.
    """
    if processes < 1:
        raise ConfigError(f"--processes must be at least 1, got {processes}")
    shape = _shape(config.policy.model)
    memory = None
    if shape is not None:
        memory = memory_of(config, shape, processes=processes, sharding=sharding)
    return Plan(
        config=config,
        processes=processes,
        sharding=sharding,
        budget=budget_of(config),
        shape=shape,
        memory=memory,
        needs=tuple(needs_of(config, processes=processes, sharding=sharding)),
    )


def _shape(model: str) -> ModelShape | None:
    """A directory that cannot be read is among the needs already."""
    try:
        return shape_of(model)
    except ModelError:
        return None
