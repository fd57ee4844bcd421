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

from collections.abc import Mapping
from typing import Final

from synthgym.preludes import TOOL_ENV, TOOL_USE_BASE
from synthgym.preludes.tool_env import ToolEnv, ToolError

__all__ = [
    "ACTION_FORMATS",
    "BASE",
    "BASES",
    "CONTRACT_VERSION",
    "DEFAULT_HINT_LEVEL",
    "HINT_LEVELS",
    "MAX_ACTION_CHARS",
    "MAX_DIALECT_BYTES",
    "MAX_SOURCE_BYTES",
    "MAX_TURNS",
    "MIN_TURNS",
    "PRELUDES",
    "REWARD_TOLERANCE",
    "SKILLS",
    "SPADE_BASE",
    "SPADE_TOOLS_BASE",
    "TOOLS_BASE",
    "TOOL_SKILLS",
    "ToolEnv",
    "ToolError",
    "max_source_bytes",
]

CONTRACT_VERSION: Final = 1
BASE: Final = "synthgym.env/1"
"""Name of this contract in a record; a record with another base is read by another dialect."""
TOOLS_BASE: Final = "synthgym.tools/1"
"""The contract with `ToolEnv` in front of the source; `reset` and `step` are those of `ToolEnv`."""
SPADE_BASE: Final = "spade.game/1"
"""Games of the SPADE pools: `__init__(max_turns=...)`, boxed actions, `solution() -> str`, other rewards."""
SPADE_TOOLS_BASE: Final = "spade.tools/1"
"""Tool-use environments of the SPADE pools: subclasses of `ToolUseBaseEnv`."""
BASES: Final = (BASE, TOOLS_BASE, SPADE_BASE, SPADE_TOOLS_BASE)
PRELUDES: Final[Mapping[str, str]] = {TOOLS_BASE: TOOL_ENV, SPADE_TOOLS_BASE: TOOL_USE_BASE}
"""What is put in front of the sources of a base, by the names of `synthgym.preludes`."""
ACTION_FORMATS: Final[Mapping[str, str]] = {
    BASE: "raw",
    TOOLS_BASE: "tools",
    SPADE_BASE: "raw",
    SPADE_TOOLS_BASE: "tools",
}
"""What an action is: a bare command, or the canonical JSON of tool calls or of an answer."""

MAX_SOURCE_BYTES: Final = 64 * 1024
MAX_DIALECT_BYTES: Final = 256 * 1024
"""For the dialects, which are read as they come."""
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

TOOL_SKILLS: Final = (
    "api-orchestration",
    "data-retrieval",
    "state-modification",
    "error-recovery",
    "tool-selection",
    "multi-step-workflows",
)
"""The six that they use for environments with tools."""


def max_source_bytes(base: str) -> int:
    """How many bytes a source of that base may have."""
    return MAX_DIALECT_BYTES if base in (SPADE_BASE, SPADE_TOOLS_BASE) else MAX_SOURCE_BYTES
