"""The diversity of a snapshot, and of several at equal size, as frozen data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from synthgym.diversity.collecting import Collection, Member, Unmeasured
from synthgym.diversity.families import size_histogram
from synthgym.diversity.figures import FIGURES, KNOWN_SKILLS, Figure, Groups, Measure
from synthgym.diversity.neighbours import nearest_pairs
from synthgym.diversity.resampling import Estimate, Rows, size_matched
from synthgym.errors import ConfigError

DEFAULT_SAMPLE: Final = 2000
"""Environments in a subset, where the snapshots have as many."""
NEAREST: Final = 10
"""Pairs that a report names."""
_LARGEST: Final = 10
"""Families that a report names."""
_NAMED: Final = 3
"""Members of a family that a report names."""
_PAIRWISE_ROWS: Final = 10_000
"""In a larger pool not every pair is compared: seconds would become hours."""
_DIGITS: Final = 6


@dataclass(frozen=True, slots=True)
class Measured:
    """One figure of one snapshot."""

    figure: Figure
    matched: Estimate | None
    """At the common size; None where that is too small, or nothing is known."""
    whole: float | None
    """Of all members; None also where it would mean to compare too many pairs."""


@dataclass(frozen=True, slots=True)
class Family:
    """One family of a snapshot."""

    size: int
    members: tuple[Member, ...]
    """The first few."""


@dataclass(frozen=True, slots=True)
class NearPair:
    """Two environments with similar texts."""

    first: Member
    second: Member
    similarity: float
    """Cosine of the rules texts."""
    containment: float
    """Share of the rare code of one that is in the other."""
    related: bool
    """Whether both are of one family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """Everything that was measured of one snapshot."""

    name: str
    digest: str
    embedder: str
    total: int
    """Environments of the snapshot."""
    measured: int
    """Those that are in the figures."""
    size: int
    """Environments in a subset."""
    figures: tuple[Measured, ...]
    histogram: Mapping[int, int]
    """How many families have how many members."""
    largest: tuple[Family, ...]
    """Families with more than one member, the largest first."""
    nearest: tuple[NearPair, ...]
    nearest_of: int
    """Among how many environments the nearest pairs were looked for."""
    unskilled: int
    """Measured environments that name no known skill."""
    untraced: int | None
    """Measured environments without a trace; None when traces were not asked for."""
    unmeasured: tuple[Unmeasured, ...]

    def figure(self, key: str) -> Measured:
        """That of a key; `KeyError` when there is none, as for traces that were not asked for."""
        return {item.figure.key: item for item in self.figures}[key]

    def to_json(self) -> dict[str, Any]:
        """JSON object of all of it, numbers rounded to six digits after the point."""
        return {
            "name": self.name,
            "digest": self.digest,
            "environments": self.total,
            "measured": self.measured,
            "size": self.size,
            "figures": {item.figure.key: _figure(item, self.embedder) for item in self.figures},
            "families": {
                "histogram": {str(size): count for size, count in self.histogram.items()},
                "largest": [
                    {"size": family.size, "members": [_member(m) for m in family.members]}
                    for family in self.largest
                ],
            },
            "nearest": [
                {
                    "first": _member(pair.first),
                    "second": _member(pair.second),
                    "similarity": _rounded(pair.similarity),
                    "containment": _rounded(pair.containment),
                    "same_family": pair.related,
                }
                for pair in self.nearest
            ],
            "nearest_of": self.nearest_of,
            "unskilled": self.unskilled,
            "untraced": self.untraced,
            "unmeasured": [
                {
                    "id": item.env_id,
                    "digest": item.digest,
                    "kind": item.kind,
                    "call": item.call,
                    "detail": item.detail,
                }
                for item in self.unmeasured
            ],
        }


def compare(
    collections: Sequence[Collection], *, sample: int = DEFAULT_SAMPLE, seed: int = 0
) -> list[Diversity]:
    """Measure several collections on subsets of one size: `sample`, or the smallest collection.

    Collections without a member do not count for the size. Each draws from a generator of its own
    with that seed, so at one size its figures do not depend on its company. `ConfigError` for a
    sample below 1, for no collection, and for collections of different embedders.
    """
    embedders = sorted({collection.embedder for collection in collections})
    if len(embedders) != 1:
        raise ConfigError(
            f"expected collections of one embedder, got {', '.join(embedders) or 'no collection'}: "
            "figures of different embedders cannot be compared"
        )
    counts = [len(c.members) for c in collections if c.members]
    size = min([sample, *counts])
    return [measure(c, np.random.default_rng(seed), sample=size) for c in collections]


def measure(
    collection: Collection, rng: np.random.Generator, *, sample: int = DEFAULT_SAMPLE
) -> Diversity:
    """Measure one collection, on subsets of at most `sample` members.

    The same collection and generator state give the same figures. Without a member there is no
    figure. `ConfigError` for a sample below 1.
    """
    if sample < 1:
        raise ConfigError(f"sample must be at least 1, got {sample}")
    members = collection.members
    groups = Groups.of(collection)
    looked_at = _looked_at(len(members), rng)
    return Diversity(
        name=collection.name,
        digest=collection.digest,
        embedder=collection.embedder,
        total=collection.total,
        measured=len(members),
        size=min(sample, len(members)),
        figures=_figures(collection, groups, sample, rng) if members else (),
        histogram=size_histogram(groups.families),
        largest=_largest(collection, groups),
        nearest=_nearest(collection, groups, looked_at),
        nearest_of=len(looked_at),
        unskilled=sum(not set(KNOWN_SKILLS) & {*member.skills} for member in members),
        untraced=sum(m.trace is None for m in members) if collection.traced else None,
        unmeasured=collection.unmeasured,
    )


def _figures(
    collection: Collection, groups: Groups, sample: int, rng: np.random.Generator
) -> tuple[Measured, ...]:
    part = Measure(collection, groups)
    n = len(collection.members)
    effective = [figure.key for figure in FIGURES if figure.is_effective]
    matched = size_matched(n, sample, part, rng, effective=effective)
    rows = np.arange(n)
    whole = part(rows) if n <= _PAIRWISE_ROWS else part.cheap(rows)
    return tuple(
        Measured(figure, _bounded(matched[figure.key], figure), whole[figure.key])
        for figure in FIGURES
        if figure.key in whole
    )


def _bounded(estimate: Estimate | None, figure: Figure) -> Estimate | None:
    """With an interval that holds no impossible values."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return estimate
    low, high = max(estimate.low, figure.least), min(estimate.high, figure.most)
    return Estimate(estimate.value, low, high)


def _looked_at(n: int, rng: np.random.Generator) -> Rows:
    """The rows among which the nearest pairs are looked for."""
    if n <= _PAIRWISE_ROWS:
        return np.arange(n)
    return np.sort(rng.choice(n, _PAIRWISE_ROWS, replace=False))


def _nearest(collection: Collection, groups: Groups, rows: Rows) -> tuple[NearPair, ...]:
    found = []
    for pair in nearest_pairs(collection.vectors[rows], NEAREST):
        first, second = int(rows[pair.first]), int(rows[pair.second])
        found.append(
            NearPair(
                collection.members[first],
                collection.members[second],
                pair.similarity,
                collection.structures.containment(first, second),
                bool(groups.families[first] == groups.families[second]),
            )
        )
    return tuple(found)


def _largest(collection: Collection, groups: Groups) -> tuple[Family, ...]:
    labels, counts = np.unique(groups.families, return_counts=True)
    order = np.lexsort((labels, -counts))[:_LARGEST]
    return tuple(
        Family(
            int(counts[place]),
            tuple(
                collection.members[row]
                for row in np.flatnonzero(groups.families == labels[place])[:_NAMED]
            ),
        )
        for place in order
        if counts[place] > 1
    )


def _figure(item: Measured, embedder: str) -> dict[str, Any]:
    matched = item.matched or Estimate(math.nan)
    found = {
        "value": _rounded(matched.value),
        "low": _rounded(matched.low),
        "high": _rounded(matched.high),
        "whole": _rounded(item.whole),
    }
    return found | ({"embedder": embedder} if item.figure.embedded else {})


def _rounded(value: float | None) -> float | None:
    """To digits that do not depend on the machine."""
    if value is None or math.isnan(value):
        return None
    return round(value, _DIGITS)


def _member(member: Member) -> dict[str, str]:
    return {"id": member.env_id, "digest": member.digest, "title": member.title}
