"""What a call into generated code comes to: a typed value, or a fault, which is a value too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


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


@dataclass(frozen=True, slots=True)
class EnvFault:
    """A failure of the environment, as a value."""

    kind: FaultKind
    call: str
    """`load`, `reset`, `step`, `hint` or `solution`."""
    detail: str = ""
    """At most 500 characters, written by untrusted code: show it, do not parse it."""

    def to_json(self) -> dict[str, str]:
        """What goes into `info["fault"]`. Without the detail, which need not be deterministic."""
        return {"kind": str(self.kind), "call": self.call}


@dataclass(frozen=True, slots=True)
class Loaded:
    """The source passed the policy, ran, and holds one environment class."""

    entry: str
    max_turns: int
    docstring: str
    """Module docstring, or the class docstring when the module has none."""
    requires: tuple[str, ...]
    has_hint: bool
    has_solution: bool


@dataclass(frozen=True, slots=True)
class ResetResult:
    """What `reset` returned, checked by type."""

    observation: str
    info: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StepResult:
    """What `step` returned, checked by type; the reward is finite."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: Mapping[str, Any]
