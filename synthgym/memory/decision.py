"""The decision on a candidate: which held environments it is compared with, and what follows.

The numbers are judged by the pure functions of `rules`. Here are the candidates for them, the
quotas, and what happens between "new" and "not new": a judge, if there is one, and it must say that
the candidate is new. A judge that fails, or answers anything else, refuses it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError
from synthgym.memory.behaviour import Trace, behaviour_equal
from synthgym.memory.describe import Description
from synthgym.memory.holdings import Holdings, Near
from synthgym.memory.records import MemoryRecord, NoveltyReason, parameter_distance
from synthgym.memory.rules import (
    REVIEW_CONTAINMENT,
    REVIEW_COSINE,
    Likeness,
    Relation,
    Strictness,
    relation,
)

NEAREST: Final = 5
"""Neighbours by text, and as many by code, that a candidate is compared with."""
_DISTANCE_SLACK: Final = 1e-9
"""0.3 and 0.2 are 0.1 apart, whatever binary fractions make of it."""

logger = logging.getLogger(__name__)
Floats = npt.NDArray[np.float32]


class Verdict(StrEnum):
    """What a judge says of a candidate and a held environment."""

    NEW = "new"
    DUPLICATE = "duplicate"
    UNKNOWN = "unknown"
    """It cannot tell; this refuses the candidate."""


class Judge(Protocol):
    """Somebody who compares two environments that rules cannot tell apart: a model, a person."""

    def judge(self, candidate: Description, held: MemoryRecord) -> Verdict:
        """Say whether the candidate is new beside `held`. Whatever it raises refuses."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class NoveltySettings:
    """What a memory decides by. The fields are the keywords of `NoveltyMemory`."""

    strictness: Strictness = Strictness.REFACTOR
    family_quota: int = 32
    window: int = 8
    min_parameter_distance: float = 0.1
    review_cosine: float = REVIEW_COSINE
    review_quota: int | None = None

    def __post_init__(self) -> None:
        if self.family_quota < 1 or self.window < 1:
            raise ConfigError(
                "family_quota and window must be at least 1, "
                f"got {self.family_quota} and {self.window}"
            )
        if not 0.0 <= self.min_parameter_distance <= 1.0:
            raise ConfigError(
                f"min_parameter_distance must be 0..1, got {self.min_parameter_distance}: "
                "it is a mean over parameters scaled to [0, 1]"
            )
        if not -1.0 <= self.review_cosine <= 1.0:
            raise ConfigError(f"review_cosine must be -1..1, got {self.review_cosine}")
        if self.review_quota is not None and self.review_quota < 1:
            raise ConfigError(f"review_quota must be at least 1 or None, got {self.review_quota}")


def as_strictness(name: str) -> Strictness:
    """The strictness of this name; `ConfigError` when there is none."""
    try:
        return Strictness(name)
    except ValueError:
        raise ConfigError(
            f"strictness must be one of {', '.join(Strictness)}, got {name!r}"
        ) from None


class Candidate(NamedTuple):
    """What is to be decided on."""

    description: Description
    vector: Floats
    """Of its rules text."""
    nearest: Sequence[Near]
    """The held environments with the nearest texts."""
    iteration: int


class Relative(NamedTuple):
    """A held environment that a candidate is related to."""

    row: int
    likeness: Likeness
    relation: Relation


class Outcome(NamedTuple):
    """What was decided, and which rows are near enough for somebody to look."""

    reason: NoveltyReason
    detail: str = ""
    review: tuple[int, ...] = ()


_REFUSALS: Final = {
    Relation.COPY: NoveltyReason.COPY,
    Relation.REFACTORED_COPY: NoveltyReason.REFACTORED_COPY,
    Relation.RESKIN: NoveltyReason.RESKIN,
    Relation.SIBLING: NoveltyReason.SIBLING,
}


def decide_program(
    held: Holdings,
    settings: NoveltySettings,
    judge: Judge | None,
    candidate: Candidate,
) -> Outcome:
    """Decide on a free program, by structure, shared code, behaviour and, at last, a judge."""
    description = candidate.description
    same = held.table.rows_of_structure(description.ast_hash)
    for row in same:
        if held.table.data_hash(row) == description.data_hash:
            name = held.table.name(row)
            return Outcome(NoveltyReason.COPY, f"same structure and data as {name}")
    relatives = list(_relatives(held, settings, candidate, same))
    refused = [one for one in relatives if one.relation.rejects]
    if refused:
        # The first of the strongest: relatives come by code first, most shared code first.
        worst = max(refused, key=lambda one: _RANK.index(one.relation))
        return Outcome(_REFUSALS[worst.relation], _told(held, worst))
    since = candidate.iteration - settings.window
    recent = [row for row in same if held.table.iteration(row) > since]
    if len(recent) >= settings.family_quota:
        return _full(settings, len(recent), "programs with this structure")
    near = [one for one in relatives if one.relation is Relation.NEEDS_REVIEW]
    return _reviewed(held, settings, judge, description, near, since)


def decide_blueprint(held: Holdings, settings: NoveltySettings, candidate: Candidate) -> Outcome:
    """Decide on a blueprint, by the parameters of those of its family that came lately."""
    table, description = held.table, candidate.description
    family = description.family
    recent = table.rows_of_family(family, candidate.iteration - settings.window)
    for row in recent:
        distance = parameter_distance(description.parameters, table.parameters(row))
        if distance == 0.0 or distance < settings.min_parameter_distance - _DISTANCE_SLACK:
            detail = (
                f"parameters {distance:.3f} from {table.name(row)}; "
                f"at least {settings.min_parameter_distance:.3f} is new"
            )
            return Outcome(NoveltyReason.SAME_PARAMETERS, detail)
    if len(recent) >= settings.family_quota:
        return _full(settings, len(recent), f"blueprints of family {family!r}")
    return Outcome(NoveltyReason.NEW)


_RANK: Final = tuple(Relation)


def _relatives(
    held: Holdings,
    settings: NoveltySettings,
    candidate: Candidate,
    same: list[int],
) -> Iterator[Relative]:
    """The rows with the same structure (the last few), the most code and the nearest texts."""
    description, vector, nearest, _ = candidate
    cosines = {near.row: near.cosine for near in nearest}
    shares = dict(held.sharing_code(description, NEAREST))
    for row in dict.fromkeys([*same[-NEAREST:], *shares, *cosines]):
        likeness = Likeness(
            ast_equal=row in same,
            data_equal=False,
            containment=shares.get(row) or held.containment(description, row),
            cosine=cosines.get(row) or held.cosine(vector, row),
            behaviour_equal=_behave_alike(description.behaviour, held, row),
        )
        yield Relative(row, likeness, _relation(likeness, settings))


def _relation(likeness: Likeness, settings: NoveltySettings) -> Relation:
    """What `rules` says, but for where the review band begins: that depends on the pool."""
    found = relation(likeness, settings.strictness)
    if found in (Relation.NEW, Relation.NEEDS_REVIEW):
        shares_code = likeness.containment >= REVIEW_CONTAINMENT
        near = shares_code or likeness.cosine >= settings.review_cosine
        return Relation.NEEDS_REVIEW if near else Relation.NEW
    return found


def _behave_alike(mine: Trace | None, held: Holdings, row: int) -> bool | None:
    if mine is None:
        return None
    theirs = held.table.behaviour(row)
    return None if theirs is None else behaviour_equal(mine, theirs)


def _reviewed(
    held: Holdings,
    settings: NoveltySettings,
    judge: Judge | None,
    description: Description,
    near: list[Relative],
    since: int,
) -> Outcome:
    review = tuple(one.row for one in near)
    if judge is not None:
        for one in near:
            verdict = _verdict(judge, description, held.table.record(one.row))
            if verdict is not Verdict.NEW:
                detail = f"the judge says {verdict}: {_told(held, one)}"
                return Outcome(NoveltyReason.JUDGED, detail, review)
    elif settings.review_quota is not None:
        recent = sum(held.table.iteration(row) > since for row in review)
        if recent >= settings.review_quota:
            detail = f"near to {recent} of the last {settings.window} iterations, without a judge"
            return Outcome(NoveltyReason.REVIEW_FULL, detail, review)
    return Outcome(NoveltyReason.NEW, f"near: {_told(held, near[0])}" if near else "", review)


def _verdict(judge: Judge, candidate: Description, held: MemoryRecord) -> Verdict:
    try:
        answer = judge.judge(candidate, held)
    except Exception:
        logger.warning("novelty: the judge failed on %s", held.digest, exc_info=True)
        return Verdict.UNKNOWN
    return answer if isinstance(answer, Verdict) else Verdict.UNKNOWN


def _full(settings: NoveltySettings, count: int, what: str) -> Outcome:
    detail = f"{count} {what} in the last {settings.window} iterations"
    return Outcome(NoveltyReason.FAMILY_FULL, detail)


def _told(held: Holdings, relative: Relative) -> str:
    """Which environment it is, and by which numbers."""
    likeness = relative.likeness
    parts = [f"{likeness.containment:.2f} of the rare code", f"texts {likeness.cosine:.2f} alike"]
    if likeness.behaviour_equal:
        parts.append("equal behaviour")
    return f"{held.table.name(relative.row)} ({', '.join(parts)})"
