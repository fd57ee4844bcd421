"""What a measurement is asked for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from spade_loop.errors import ConfigError
from spade_loop.gap.zones import ZoneRules
from spade_loop.rewards import StoppingRule
from spade_loop.speaking import Decoding
from spade_loop.types import Arm, JsonRow
from synthgym.contract import DEFAULT_HINT_LEVEL, HINT_LEVELS, MAX_TURNS

FIRST_LOOK: Final = 16
"""Pairs at the first look; each further look has twice as many."""
DECODING: Final = Decoding(max_tokens=512, temperature=0.7)


@dataclass(frozen=True, slots=True)
class Condition:
    """In which way an environment is played."""

    name: str
    """`plain`, `hinted`, `placebo`, or `level-1` and the like for another level than that of `hinted`."""
    arm: Arm
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GapSettings:
    """How environments are played and judged. `ConfigError` for what cannot be."""

    decoding: Decoding = DECODING
    half_width: float = 0.2
    """Half-width of the regret's interval at which an environment is known well enough."""
    max_episodes: int = 64
    """Pairs of a plain and a hinted episode that an environment gets at most."""
    seed: int = 0
    hint_level: int = DEFAULT_HINT_LEVEL
    levels: tuple[int, ...] = ()
    """Hint levels that are played, for their rates; that of `hint_level` is played in any case."""
    placebo: bool = False
    max_turns: int = MAX_TURNS
    """Turns of an episode at most; an environment may end it sooner."""
    zones: ZoneRules = field(default_factory=ZoneRules)

    def __post_init__(self) -> None:
        if not 0.0 < self.half_width <= 1.0:
            raise ConfigError(f"half_width must lie in (0, 1], got {self.half_width:g}")
        if self.max_episodes < 2:
            raise ConfigError(
                f"max_episodes must be at least 2, got {self.max_episodes}: one pair has no error to be told"
            )
        if self.seed < 0:
            raise ConfigError(f"seed must be at least 0, got {self.seed}")
        if self.max_turns < 1:
            raise ConfigError(f"max_turns must be at least 1, got {self.max_turns}")
        for level in (self.hint_level, *self.levels):
            if level not in HINT_LEVELS:
                raise ConfigError(f"a hint level is one of {HINT_LEVELS}, got {level}")

    @property
    def rule(self) -> StoppingRule:
        """When one may look, and when to stop: after 16, 32, 64 ... pairs, and after the last one allowed."""
        looks, pairs = [], FIRST_LOOK
        while pairs < self.max_episodes:
            looks.append(pairs)
            pairs *= 2
        return StoppingRule(looks=(*looks, self.max_episodes), target=self.half_width)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Everything that each seed is played in, the two arms first."""
        arms = [
            Condition("plain", Arm.PLAIN, self.hint_level),
            Condition("hinted", Arm.HINTED, self.hint_level),
        ]
        if self.placebo:
            arms.append(Condition("placebo", Arm.PLACEBO, self.hint_level))
        others = sorted({*self.levels} - {self.hint_level})
        return (*arms, *(Condition(f"level-{n}", Arm.HINTED, n) for n in others))

    def to_json(self) -> JsonRow:
        """What the episodes and their intervals depend on; where zones begin can be changed afterwards."""
        return {
            "decoding": {
                "max_tokens": self.decoding.max_tokens,
                "temperature": self.decoding.temperature,
                "top_p": self.decoding.top_p,
                "top_k": self.decoding.top_k,
            },
            "half_width": self.half_width,
            "max_episodes": self.max_episodes,
            "seed": self.seed,
            "hint_level": self.hint_level,
            "levels": sorted({*self.levels}),
            "placebo": self.placebo,
            "max_turns": self.max_turns,
        }
