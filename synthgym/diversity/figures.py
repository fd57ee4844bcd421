"""The figures of diversity: what each is called, what it says, and its value for a part of a pool."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from synthgym.contract import SKILLS, TOOL_SKILLS
from synthgym.diversity.collecting import Collection
from synthgym.diversity.families import (
    families_per_hundred,
    joined,
    labels_of,
    largest_share,
    new_families_per_hundred,
    redundant_share,
    skill_coverage,
)
from synthgym.diversity.neighbours import K, nearest_of_other_groups, neighbour_distances
from synthgym.diversity.resampling import Rows
from synthgym.diversity.vendi import hill_number, spectrum

REVIEW_TEXT: Final = 0.80
"""Cosine of rules texts from which two environments should be looked at."""
KNOWN_SKILLS: Final = (*SKILLS, *TOOL_SKILLS)
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Figure:
    """What is known of a figure without looking at a pool."""

    key: str
    title: str
    meaning: str
    embedded: bool = False
    """Whether it depends on the embedder."""
    least: float = 0.0
    most: float = math.inf
    """It lies between these, whatever the pool."""

    @property
    def is_effective(self) -> bool:
        """Whether it is an effective number: a number of equally frequent kinds."""
        return self.least == 1.0

    def shown(self, value: float | None) -> str:
        """A value of it as text: shares in percent, `-` for none."""
        if value is None:
            return "-"
        if self.most == 1.0 and self.key != "skill_evenness":
            return f"{100 * value:.1f} %"
        return f"{value:.1f}" if self.most == 100.0 or value >= 100.0 else f"{value:.3g}"


_VENDI: Final = "this many wholly different texts have the same spread, to the embedder"
_DISTANCE: Final = "1 - cosine of rules texts"
FIGURES: Final = (
    Figure("vendi_1", "Vendi score", _VENDI, True, 1.0),
    Figure(
        "near_copies",
        "near copies",
        "would go if one of each were kept: equal structure, or the rare code of one is in another",
        most=1.0,
    ),
    Figure("vendi_1_families", "Vendi score, one a family", _VENDI, True, 1.0),
    Figure("vendi_2", "Vendi score, order 2", "rare texts count less", True, 1.0),
    Figure("vendi_inf", "Vendi score, order inf", "1 / the share of the main theme", True, 1.0),
    Figure("nn_1", "distance to the nearest", _DISTANCE, True, most=2.0),
    Figure("knn_5", "distance to the 5 nearest", _DISTANCE, True, most=2.0),
    Figure(
        "review",
        "in the review band",
        "have similar text or shared code with one of another family",
        True,
        most=1.0,
    ),
    Figure("copies", "copies", "would go: equal structure and equal data", most=1.0),
    Figure("same_structure", "same structure", "would go: equal structure", most=1.0),
    Figure("largest_family", "in the largest family", "of all environments", most=1.0),
    Figure("families_per_100", "families per 100", "among a hundred of these", most=100.0),
    Figure(
        "new_families_per_100",
        "new families per 100 more",
        "to be expected, if these are proposals as they came",
        most=100.0,
    ),
    Figure("rare_code", "own pieces of code", "different rare subtrees, an environment"),
    Figure(
        "skill_evenness",
        f"evenness over {len(KNOWN_SKILLS)} skills",
        "1 when all are equally frequent",
        most=1.0,
    ),
    Figure("skills", "effective skills", "equally frequent ones that come to this", least=1.0),
    Figure("traces", "different traces", "ways in which witnesses are paid, of all", most=1.0),
    Figure("effective_traces", "effective traces", "equally frequent ones", least=1.0),
    Figure("largest_trace", "in the largest trace", "are paid in the most frequent way", most=1.0),
)
"""In the order in which they are shown."""
_PAIRWISE: Final = ("knn_5", "nn_1", "review")
"""Figures for which every pair is compared."""


@dataclass(frozen=True, slots=True)
class Groups:
    """Which members of a collection are the same, in several senses: a label a row in each."""

    copies: Labels
    """Equal structure and data: what the novelty memory calls a copy."""
    structures: Labels
    """Equal structure."""
    near: Labels
    """Equal structure, or rare code contained in the other."""
    families: Labels
    """The same, or of one blueprint family."""

    @classmethod
    def of(cls, collection: Collection) -> Groups:
        """The groups of a whole collection; those of a part of it are the labels of its rows."""
        members = collection.members
        structures = labels_of([m.ast_hash for m in members])
        near = joined(structures, collection.structures.near_copies())
        blueprints = labels_of([m.family or m.digest for m in members])
        return cls(
            copies=labels_of([(m.ast_hash, m.data_hash) for m in members]),
            structures=structures,
            near=near,
            families=joined(near, enumerate(blueprints.tolist())),
        )


class Measure:
    """The figures of any part of a collection, by row numbers."""

    def __init__(self, collection: Collection, groups: Groups | None = None) -> None:
        self._collection = collection
        self._groups = groups or Groups.of(collection)
        self._rare = collection.structures.rare_pieces()

    def __call__(self, rows: Rows) -> dict[str, float | None]:
        """Every figure by its key, but for those of traces when there are none.

        None where the part is too small for a figure.
        """
        rare = self._collection.structures.rare_per_source(self._rare, rows)
        return self.cheap(rows) | self._neighbours(rows) | {"rare_code": rare}

    def cheap(self, rows: Rows) -> dict[str, float | None]:
        """The same, with None for the figures whose cost or memory does not suit a million rows."""
        figures = self._vendi(rows) | self._families(rows) | self._skills(rows)
        figures |= dict.fromkeys((*_PAIRWISE, "rare_code"))
        if self._collection.traced:
            figures |= self._traces(rows)
        return figures

    def _vendi(self, rows: Rows) -> dict[str, float | None]:
        vectors = self._collection.vectors
        eigenvalues = spectrum(_part(vectors, rows))
        first = np.unique(self._groups.families[rows], return_index=True)[1]
        one_each = spectrum(_part(vectors, rows[np.sort(first)]))
        return {
            "vendi_1": hill_number(eigenvalues, 1.0),
            "vendi_2": hill_number(eigenvalues, 2.0),
            "vendi_inf": hill_number(eigenvalues, math.inf),
            "vendi_1_families": hill_number(one_each, 1.0),
        }

    def _neighbours(self, rows: Rows) -> dict[str, float | None]:
        if len(rows) < 2:
            return dict.fromkeys(_PAIRWISE)
        vectors = _part(self._collection.vectors, rows)
        distances = neighbour_distances(vectors, min(K, len(rows) - 1))
        families = self._groups.families[rows]
        similar = nearest_of_other_groups(vectors, families) >= REVIEW_TEXT
        similar |= self._collection.structures.to_review(self._groups.families, rows)
        return {
            "knn_5": float(distances.mean()) if len(rows) > K else None,
            "nn_1": float(distances[:, 0].mean()),
            "review": float(similar.mean()),
        }

    def _families(self, rows: Rows) -> dict[str, float | None]:
        groups = self._groups
        families = groups.families[rows]
        return {
            "copies": redundant_share(groups.copies[rows]),
            "same_structure": redundant_share(groups.structures[rows]),
            "near_copies": redundant_share(groups.near[rows]),
            "largest_family": largest_share(families),
            "families_per_100": families_per_hundred(families),
            "new_families_per_100": new_families_per_hundred(families),
        }

    def _skills(self, rows: Rows) -> dict[str, float | None]:
        members = self._collection.members
        coverage = skill_coverage([members[row].skills for row in rows], KNOWN_SKILLS)
        if coverage is None:
            return {"skill_evenness": None, "skills": None}
        return {"skill_evenness": coverage.evenness, "skills": coverage.effective}

    def _traces(self, rows: Rows) -> dict[str, float | None]:
        members = self._collection.members
        traces = [trace for row in rows if (trace := members[row].trace) is not None]
        if not traces:
            return {"traces": None, "effective_traces": None, "largest_trace": None}
        counts = list(Counter(traces).values())
        return {
            "traces": len(counts) / len(traces),
            "effective_traces": hill_number(counts, 1.0),
            "largest_trace": max(counts) / len(traces),
        }


def _part(vectors: npt.NDArray[np.float32], rows: Rows) -> npt.NDArray[np.float32]:
    """All of them without a copy, which may lie in a file."""
    return vectors if len(rows) == len(vectors) else vectors[rows]
