"""What a call into generated code comes to: a typed value, or a fault, which is a value too."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

import msgspec


class FaultKind(StrEnum):
    """Why a call into generated code gave no usable value."""

    TIMEOUT = "timeout"
    """No reply within the deadline; the worker was killed."""
    MEMORY = "memory"
    """The memory quota was reached; the worker was killed."""
    CRASH = "crash"
    """The worker process died."""
    ERROR = "error"
    """The environment raised."""
    PROTOCOL = "protocol"
    """The worker sent bytes that are not a reply."""
    REFUSED = "refused"
    """The source was not run: syntax, policy or contract."""
    BAD_VALUE = "bad_value"
    """The environment returned something that the contract does not allow."""
    LOST = "lost"
    """The worker was ended from outside, or got no CPU time, several times in a row."""


class Origin(StrEnum):
    """Who is to blame for a fault. It is never the agent: whatever text it sends is a legal action.

    A reply that holds no action is the agent's mistake and no fault: see `ParseStatus`.
    """

    ENVIRONMENT = "environment"
    INFRASTRUCTURE = "infrastructure"


BREACHES: Final = frozenset(
    {FaultKind.TIMEOUT, FaultKind.MEMORY, FaultKind.CRASH, FaultKind.PROTOCOL}
)
"""Faults that cost a worker its life. Each is a strike against the source."""


class EnvFault(msgspec.Struct, frozen=True):
    """A failure of the environment, as a value."""

    kind: FaultKind
    call: str
    """`load`, `reset`, `step`, `hint` or `solution`."""
    detail: str = ""
    """At most 500 characters, written by untrusted code: show it, do not parse it."""

    @property
    def origin(self) -> Origin:
        """Whose fault it is; only the environment's may count against who wrote it."""
        lost = self.kind is FaultKind.LOST
        return Origin.INFRASTRUCTURE if lost else Origin.ENVIRONMENT

    def to_json(self) -> dict[str, str]:
        """What goes into `info["fault"]`. Without the detail, which need not be deterministic."""
        return {"kind": str(self.kind), "call": self.call}


class Loaded(msgspec.Struct, frozen=True):
    """The source passed the policy, ran, and holds one environment class."""

    entry: str
    max_turns: int
    docstring: str
    """Module docstring, or the class docstring when the module has none."""
    requires: tuple[str, ...]
    has_hint: bool
    has_solution: bool
    tools: tuple[Mapping[str, Any], ...] = ()
    """OpenAI function schemas; empty for an environment without tools."""


class ResetResult(msgspec.Struct, frozen=True):
    """What `reset` returned, checked by type."""

    observation: str
    info: Mapping[str, Any]


class StepResult(msgspec.Struct, frozen=True):
    """What `step` returned, checked by type; the reward is finite."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
