"""What a warm start takes beside a recipe."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec

from spade_loop.errors import ConfigError

LORA_RATE: Final = 2e-4
"""Learning rate of an adapter: ten times that of all weights, as TRL's guide to LoRA advises."""
FULL_RATE: Final = 2e-5
"""Learning rate of all weights: the default of TRL's `SFTConfig`."""
Roles = Literal["both", "agent", "designer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmStart:
    """Which rows are made, and how they are trained on. `ConfigError` names the option that is wrong."""

    roles: Roles = "both"
    seeds: int = 16
    """Episodes of each environment, each on a seed of its own; those that are held out are among them."""
    held_out: float = 0.125
    """Share of the seeds, and of the environments that a designer is shown, that is never trained on."""
    hinted: float = 0.5
    """Share of the episodes whose first observation holds the hint: half, as a run plays them."""
    epochs: float = 3.0
    """Passes over the rows; SFTConfig's default."""
    batch: int = 16
    """Rows of one optimiser step."""
    learning_rate: float | None = None
    """Of AdamW, falling to 0 linearly; None is `LORA_RATE` with an adapter and `FULL_RATE` without."""
    seed: int = 0
    """Of seeds, hints, documents and the order of training."""

    def __post_init__(self) -> None:
        """Refuse what cannot be done."""
        _check("seeds", self.seeds >= 2, "at least 2, one of them held out", self.seeds)
        _check(
            "held-out", 0.0 < self.held_out < 1.0, "between 0 and 1, both excluded", self.held_out
        )
        _check("hinted", 0.0 <= self.hinted <= 1.0, "in [0, 1]", self.hinted)
        _check("epochs", 0.0 < self.epochs < math.inf, "above 0", self.epochs)
        _check("batch", self.batch >= 1, "at least 1", self.batch)
        _check("seed", 0 <= self.seed < 2**32, f"in 0..{2**32 - 1}", self.seed)
        rate = self.learning_rate
        _check("learning-rate", rate is None or 0.0 < rate < math.inf, "above 0", rate)

    def rate(self, lora_rank: int) -> float:
        """The learning rate for a policy with an adapter of that rank; 0 trains all weights."""
        if self.learning_rate is not None:
            return self.learning_rate
        return LORA_RATE if lora_rank > 0 else FULL_RATE

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain


def _check(option: str, ok: bool, expected: str, got: object) -> None:
    if not ok:
        raise ConfigError(f"--{option} must be {expected}, got {got!r}")
