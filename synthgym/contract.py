"""The contract that generated code must meet (version 1): names, limits, skills.

One Python file, standard library only. The module docstring tells a reader the rules. One class, its name ending in
`Env`:

    max_turns: int                            class attribute, 2..100
    reset(self, seed: int) -> (str, dict)     a non-empty observation: situation, goal, what can be done
    step(self, action: str) -> (str, float, bool, bool, dict)
    hint(self, level: int = 2) -> str         makes this instance clearly easier, never names the answer
                                              (or a class attribute `hint: str`)
    solution(self) -> list[str]               a witness: actions that win from the state just after this reset

After every step the running sum of rewards lies in [0, 1]; it is 1 exactly when the goal is reached, and then
`terminated` is True. All randomness comes from `seed`.
"""

from __future__ import annotations

from typing import Final

CONTRACT_VERSION: Final = 1
BASE: Final = "synthgym.env/1"
"""Name of this contract in a record; a record with another base is read by another dialect."""

MAX_SOURCE_BYTES: Final = 64 * 1024
MIN_TURNS: Final = 2
MAX_TURNS: Final = 100
REWARD_TOLERANCE: Final = 1e-6
"""Slack on the running sum of rewards: a sum of at least 1 - 1e-6 on a terminated episode is a success."""

MAX_ACTION_CHARS: Final = 4096
"""Longer actions are cut before they reach the environment."""

HINT_LEVELS: Final = (1, 2, 3)
"""1 nudge, 2 strategy (the default, the one that regret uses), 3 near-answer (calibration only)."""
DEFAULT_HINT_LEVEL: Final = 2

SKILLS: Final = (
    "mathematical-reasoning",
    "logical-deduction",
    "spatial-reasoning",
    "pattern-recognition",
    "optimisation",
    "causal-inference",
)
"""The six skills that the SPADE recipes use (arXiv 2608.19197)."""
