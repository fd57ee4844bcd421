"""What the novelty memory knows of an environment: rules, hashes, family and parameters."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from synthgym.errors import ConfigError
from synthgym.memory.behaviour import Trace
from synthgym.memory.fingerprint import ast_hash, data_hash, parse_source
from synthgym.memory.subtrees import Hashes, subtrees
from synthgym.sandbox import EnvFault

MAX_RULES_CHARS: Final = 4096
"""Longer rules are cut: a sentence encoder reads far less (MiniLM 256 tokens)."""
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")


def _nothing() -> Hashes:
    return np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Description:
    """What two environments are compared by."""

    rules_text: str
    """Docstring, then the first observation with its numbers masked: the text that is embedded."""
    ast_hash: str
    data_hash: str
    family: str = ""
    """Name of the blueprint family, empty for a free program."""
    parameters: tuple[float, ...] = ()
    """Parameters of a blueprint, each scaled to [0, 1] by its range in the family's schema."""
    behaviour: Trace | None = None
    """What it did under fixed actions; None when it was not played."""
    pieces: Hashes = field(default_factory=_nothing, compare=False, repr=False)
    """Hashes of the pieces of its code; empty on a record that the memory gives back."""

    def __post_init__(self) -> None:
        bad = [p for p in self.parameters if not (math.isfinite(p) and 0.0 <= p <= 1.0)]
        if bad:
            raise ConfigError(
                f"parameters must be scaled to [0, 1] by the family's schema, got {bad[0]}"
            )
        if self.parameters and not self.family:
            raise ConfigError("parameters belong to a blueprint family, but family is empty")


def describe(
    source: str,
    first_observation: str,
    *,
    docstring: str = "",
    family: str = "",
    parameters: Sequence[float] = (),
    behaviour: Trace | EnvFault | None = None,
) -> Description:
    """Describe a source that `check_source` accepted; nothing is executed.

    Without `docstring` the module docstring is used, or that of the environment class when the
    module has none. A `behaviour` that is a fault says nothing. `ConfigError` when the source does
    not parse or a parameter lies outside [0, 1].
    """
    tree = parse_source(source)
    return Description(
        rules_text=rules_text(docstring or _docstring(tree), first_observation),
        ast_hash=ast_hash(tree),
        data_hash=data_hash(tree),
        family=family,
        parameters=tuple(float(value) for value in parameters),
        behaviour=behaviour if isinstance(behaviour, Trace) else None,
        pieces=subtrees(tree),
    )


def rules_text(docstring: str, first_observation: str) -> str:
    """Return what is embedded: docstring, then the observation with every number as `#`; cut."""
    masked = _NUMBER.sub("#", first_observation.strip())
    return f"{inspect.cleandoc(docstring).strip()}\n\n{masked}".strip()[:MAX_RULES_CHARS]


def _docstring(tree: ast.Module) -> str:
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    environments = [node for node in classes if node.name.endswith("Env")]
    candidates: list[ast.Module | ast.ClassDef] = [tree, *environments, *classes]
    for node in candidates:
        if text := ast.get_docstring(node):
            return text
    return ""
