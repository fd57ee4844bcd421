"""Exceptions of synthgym: our failures and the user's mistakes, never an environment's.

What generated code does wrong is a value (`synthgym.EnvFault`, `synthgym.Finding`); what follows is raised.

    SynthGymError
    ├── ConfigError            (ValueError)   a setting is wrong
    ├── InvalidIdError         (ValueError)   an environment id or digest does not parse
    ├── EnvNotFoundError       (LookupError)  no such environment
    ├── SnapshotError                         a snapshot cannot be read or written
    │   ├── IntegrityError                    a snapshot's bytes are not those its manifest promises
    │   └── TrustError                        nobody whom the user trusts vouches for it, or it went back in time
    ├── SandboxError           (RuntimeError) we could not start or talk to a worker
    ├── EnvFaultError          (RuntimeError) an environment failed where Gymnasium leaves no room for a value
    ├── ResetNeeded            (gymnasium.error.ResetNeeded)
    └── MissingExtraError      (ImportError)  an optional dependency is not installed

To add one: derive it from the nearest class above and from the standard class it stands for, keep it picklable
(every argument goes to `super().__init__`), and draw it in this tree.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

import gymnasium.error


class SynthGymError(Exception):
    """Root of everything that synthgym raises on purpose."""


class ConfigError(SynthGymError, ValueError):
    """A setting has a wrong name, type or value."""


class InvalidIdError(SynthGymError, ValueError):
    """An environment id or a digest does not have the documented form."""


class EnvNotFoundError(SynthGymError, LookupError):
    """No environment has this id or digest; the message names the nearest one."""


class SnapshotError(SynthGymError):
    """A snapshot cannot be read or written."""


class IntegrityError(SnapshotError):
    """The bytes of a snapshot are not those that its manifest promises."""


class TrustError(SnapshotError):
    """A signature is missing, wrong or not of anybody trusted, or an index is older than one seen before."""


class SandboxError(SynthGymError, RuntimeError):
    """A worker could not be started or spoken to, for a reason that is not the environment's."""


class EnvFaultError(SynthGymError, RuntimeError):
    """An environment failed where Gymnasium's API leaves no room for a value."""

    def __init__(self, message: str, *, kind: str = "", call: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        """A `FaultKind`, as text."""
        self.call = call
        """The call that failed."""


class ResetNeeded(SynthGymError, gymnasium.error.ResetNeeded):
    """`reset` must come first."""


class MissingExtraError(SynthGymError, ImportError):
    """An optional dependency is not installed; the message says what to install."""


def did_you_mean(wanted: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the nearest known name, or nothing when none is near."""
    near = difflib.get_close_matches(wanted, sorted(known), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""
