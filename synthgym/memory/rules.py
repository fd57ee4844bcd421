"""When a candidate is too like an environment that is held: pure functions over numbers.

Rules decide and embeddings only retrieve: a similar text alone never rejects. Thresholds were read
off the 399 environments of RLVE and checked on two other collections by
`benchmarks/novelty_recall.py`; docs/novelty.md has the curves that they are points of.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from synthgym.errors import ConfigError

REFACTORED_CONTAINMENT: Final = 0.72
"""Shared rare code from which a candidate is a refactored copy: 2.5 % of RLVE reach it among
themselves, most of them true siblings."""
RESKIN_CONTAINMENT: Final = 0.6
"""Shared rare code that is enough together with equal behaviour."""
SIBLING_CONTAINMENT: Final = 0.6
"""Shared rare code from which a candidate is a sibling: 5.8 % of RLVE."""
SIBLING_TEXT_CONTAINMENT: Final = 0.5
"""Shared rare code that makes a sibling of one with nearly the same text."""
SIBLING_COSINE: Final = 0.95
"""Cosine of the rules texts from which texts are nearly the same. One in forty environments of
RLVE has such a neighbour, so it decides nothing alone."""
REVIEW_CONTAINMENT: Final = 0.5
REVIEW_COSINE: Final = 0.8
"""From one of these two on, somebody (a person, a model) should look at the pair."""


class Strictness(StrEnum):
    """What is not wanted in a pool. Each level rejects what those above it reject."""

    COPY = "copy"
    """Copies with other names, small literals and comments. No false rejections are known."""
    REFACTOR = "refactor"
    """Also copies whose code was moved around or told as another story. The default."""
    SIBLING = "sibling"
    """Also environments that share most of their code and are about the same thing."""


class Relation(StrEnum):
    """What a candidate is to an environment that is held."""

    NEW = "new"
    """Not related as far as can be told."""
    NEEDS_REVIEW = "needs-review"
    """Similar text, or some shared code: accepted, but somebody should look."""
    SAME_FAMILY = "same-family"
    """Equal structure and other tables: one engine with other data, accepted up to a quota."""
    SIBLING = "sibling"
    """Most of the code is shared, or some of it and the subject."""
    RESKIN = "reskin"
    """Much of the code is shared and the behaviour is equal: another story."""
    REFACTORED_COPY = "refactored-copy"
    """The rare pieces of its code are those of the other one."""
    COPY = "copy"
    """Names, small literals and comments differ at most."""

    @property
    def rejects(self) -> bool:
        """Whether a candidate that is this to a held one may not enter."""
        return _ORDER.index(self) >= _ORDER.index(Relation.SIBLING)


_ORDER: Final = tuple(Relation)
"""From the weakest to the strongest, as they are written above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """How alike a candidate and one held environment are."""

    ast_equal: bool
    data_equal: bool
    containment: float = 0.0
    """`StructureIndex.containment`, 0 to 1."""
    cosine: float = 0.0
    """Of the rules texts, -1 to 1."""
    behaviour_equal: bool | None = None
    """None when it was not measured; then it counts for nothing, as False does."""

    def __post_init__(self) -> None:
        # Written so that NaN fails, too.
        if not (0.0 <= self.containment <= 1.0 and -1.001 <= self.cosine <= 1.001):
            raise ConfigError(
                "containment must be 0..1 and cosine -1..1, "
                f"got {self.containment} and {self.cosine}"
            )


def relation(likeness: Likeness, strictness: Strictness = Strictness.REFACTOR) -> Relation:
    """Return the strongest relation that `strictness` knows and the numbers support."""
    if likeness.ast_equal and likeness.data_equal:
        return Relation.COPY
    if strictness is not Strictness.COPY:
        found = _beyond_copies(likeness, strictness)
        if found is not None:
            return found
    if likeness.ast_equal:
        return Relation.SAME_FAMILY
    if likeness.containment >= REVIEW_CONTAINMENT or likeness.cosine >= REVIEW_COSINE:
        return Relation.NEEDS_REVIEW
    return Relation.NEW


def strongest(relations: Iterable[Relation]) -> Relation:
    """Return the strongest of what a candidate is to many; `NEW` for none."""
    return max(relations, key=_ORDER.index, default=Relation.NEW)


def _beyond_copies(likeness: Likeness, strictness: Strictness) -> Relation | None:
    """Return what the levels above `copy` add. Equal structure with other data is no refactored copy."""
    shared = likeness.containment
    if shared >= REFACTORED_CONTAINMENT and not likeness.ast_equal:
        return Relation.REFACTORED_COPY
    if likeness.behaviour_equal and (shared >= RESKIN_CONTAINMENT or likeness.ast_equal):
        return Relation.RESKIN
    if strictness is Strictness.SIBLING:
        similar = likeness.cosine >= SIBLING_COSINE and shared >= SIBLING_TEXT_CONTAINMENT
        if likeness.ast_equal or shared >= SIBLING_CONTAINMENT or similar:
            return Relation.SIBLING
    return None
