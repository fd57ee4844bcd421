"""Environments that a language model wrote, as real Gymnasium environments.

    import gymnasium, synthgym
    env = gymnasium.make("synthgym/LedgerAudit-v0")

Importing this package registers the bundled environments: it reads one JSON file and starts
nothing. Names that need more are imported when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Final

from synthgym.envs import HintWrapper, SynthEnv, SynthVectorEnv, parse_action
from synthgym.registration import register_bundled, register_snapshot
from synthgym.registry import Snapshot
from synthgym.sandbox import EnvFault, Pool
from synthgym.spec import EnvRecord, Limits, Provenance, SynthEnvSpec

if TYPE_CHECKING:
    from synthgym.memory import NoveltyMemory, describe, load_embedder
    from synthgym.registry import write_snapshot
    from synthgym.validation import Finding, Reason, Report, validate

__all__ = [
    "EnvFault",
    "EnvRecord",
    "Finding",
    "HintWrapper",
    "Limits",
    "NoveltyMemory",
    "Pool",
    "Provenance",
    "Reason",
    "Report",
    "Snapshot",
    "SynthEnv",
    "SynthEnvSpec",
    "SynthVectorEnv",
    "describe",
    "load_embedder",
    "parse_action",
    "register_snapshot",
    "validate",
    "write_snapshot",
]

_LATE: Final = {
    "Finding": "synthgym.validation",
    "NoveltyMemory": "synthgym.memory",
    "Reason": "synthgym.validation",
    "Report": "synthgym.validation",
    "describe": "synthgym.memory",
    "load_embedder": "synthgym.memory",
    "validate": "synthgym.validation",
    "write_snapshot": "synthgym.registry",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module when it is first asked for."""
    module = _LATE.get(name)
    if module is None:
        raise AttributeError(f"module 'synthgym' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LATE))


register_bundled()
