"""Curricula of other packages, by the entry point that offers them."""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import entry_points
from typing import Protocol, Self

from spade_loop.config.checking import CURRICULA_GROUP
from spade_loop.curriculum.choice import Curriculum
from spade_loop.errors import ConfigError
from synthgym.spec import SynthEnvSpec


class CurriculumPlugin(Curriculum, Protocol):
    """What the entry point group `spade_loop.curricula` offers: a class whose `kind` is the entry point's name."""

    @classmethod
    def begin(cls, specs: Collection[SynthEnvSpec], seed: int) -> Self:
        """The curriculum of a run that begins, over what its registry holds; what is designed later is not among it."""


def plugin(kind: str) -> type[CurriculumPlugin] | None:
    """The class of that kind, None where no package offers one. `ConfigError` for one that does not load or fit."""
    point = next((p for p in entry_points(group=CURRICULA_GROUP) if p.name == kind), None)
    if point is None:
        return None
    who = point.value if point.dist is None else f"the package {point.dist.name}"
    try:
        found: type[CurriculumPlugin] = point.load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"the curriculum {kind!r} is offered by {who}, which fails: {error}"
        ) from error
    if getattr(found, "kind", None) != kind or not hasattr(found, "begin"):
        raise ConfigError(
            f"the curriculum {kind!r} of {who} does not fit: expected a class of kind {kind!r} with `begin`, got "
            f"{found!r}"
        )
    return found
