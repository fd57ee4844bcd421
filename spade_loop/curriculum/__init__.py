"""Curricula: which held environments are played, and the competitors of a trained designer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spade_loop.curriculum.choice import Curriculum, Held
from spade_loop.curriculum.mutation import blueprint_of, mutate, pick_parents, random_blueprint
from spade_loop.curriculum.plugins import CurriculumPlugin, plugin
from spade_loop.curriculum.replay import Replay
from spade_loop.curriculum.rlve import RlvePackage, rungs
from spade_loop.curriculum.scores import SCORES
from spade_loop.curriculum.uniform import Uniform
from spade_loop.curriculum.window import LearningProgress, Rung, SlidingWindow
from spade_loop.curriculum.without_replacement import WithoutReplacement
from spade_loop.errors import RunStateError
from spade_loop.types import JsonRow

__all__ = [
    "CURRICULA",
    "SCORES",
    "Curriculum",
    "CurriculumPlugin",
    "Held",
    "LearningProgress",
    "Replay",
    "RlvePackage",
    "Rung",
    "SlidingWindow",
    "Uniform",
    "WithoutReplacement",
    "blueprint_of",
    "curriculum_from_json",
    "mutate",
    "pick_parents",
    "plugin",
    "random_blueprint",
    "rungs",
]

CURRICULA: Final[Mapping[str, type[Curriculum]]] = {
    cls.kind: cls for cls in (Uniform, WithoutReplacement, Replay, SlidingWindow, LearningProgress)
}
"""Every curriculum by the name that stands in a run's state."""


def curriculum_from_json(data: JsonRow) -> Curriculum:
    """The curriculum that wrote `data`; `RunStateError` names a kind that does not exist, or what is wrong."""
    kind = data.get("kind") if isinstance(data, Mapping) else data
    found = None
    if isinstance(kind, str):
        found = CURRICULA.get(kind) or plugin(kind)
    if found is None:
        raise RunStateError(
            f"expected the state of a curriculum of kind {', '.join(CURRICULA)}; got {kind!r}"
        )
    return found.from_json(data)
