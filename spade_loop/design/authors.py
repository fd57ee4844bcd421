"""Who designs: the policy, the model that it was before training, and the recipe's other designers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from spade_loop.completers import Sampler, Writer
from spade_loop.config import Config
from spade_loop.curriculum import blueprint_of, mutate, random_blueprint
from spade_loop.design.assignments import Assignment
from spade_loop.design.conversations import (
    Conversation,
    DrawnConversation,
    PolicyConversation,
    Stream,
    WriterConversation,
)
from spade_loop.design.dialects import Dialect
from spade_loop.families import Family, load_families
from spade_loop.types import INITIAL, POLICY


class Authors:
    """Opens conversations with each author of a recipe."""

    def __init__(self, config: Config, dialect: Dialect, writers: Mapping[str, Writer]) -> None:
        self._config = config
        self._dialect = dialect
        self._writers = dict(writers)
        self._others = {other.name: other for other in config.designers}
        self._families: tuple[Family, ...] = ()
        if any(other.kind in ("random", "mutation") for other in config.designers):
            self._families = load_families(config.designer.families or None)

    def open(
        self,
        author: str,
        sampler: Sampler,
        assignments: Sequence[Assignment],
        streams: Sequence[Stream],
    ) -> Conversation:
        """A conversation with a row for each assignment."""
        if author in (POLICY, INITIAL):
            return PolicyConversation(
                sampler,
                [self._dialect.messages(a) for a in assignments],
                streams=[[*stream, int(author == INITIAL)] for stream in streams],
                max_tokens=self._config.designer.max_tokens,
                initial=author == INITIAL,
            )
        other = self._others[author]
        if other.kind in ("random", "mutation"):
            return DrawnConversation(_drawing(other.kind, assignments, self._families), streams)
        return WriterConversation(
            self._writers[author],
            [self._dialect.messages(a) for a in assignments],
            streams=streams,
            max_tokens=other.max_tokens,
            temperature=other.temperature,
        )


def _drawing(
    kind: str, assignments: Sequence[Assignment], families: Sequence[Family]
) -> Callable[[int, np.random.Generator], str]:
    """A blueprint at random, or the assignment's parent with one parameter changed."""

    def draw(row: int, rng: np.random.Generator) -> str:
        assignment = assignments[row]
        offered = [f for f in families if f.skill == assignment.skill] or list(families)
        parent = assignment.parent
        if kind == "mutation" and parent is not None:
            origin = parent.spec.provenance
            held = blueprint_of(origin.family, origin.parameters, offered)
            if held is not None:
                return mutate(held, offered, rng).to_json()
        return random_blueprint(offered, rng).to_json()

    return draw
