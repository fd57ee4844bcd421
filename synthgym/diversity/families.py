"""Families: what in a pool is the same but for names, numbers and words, and how much there is of it.

A family is a label: one number a row, equal for members of one family. The functions take labels
alone, so what makes a family is decided elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from synthgym.diversity.vendi import hill_number
from synthgym.errors import ConfigError

Labels = npt.NDArray[np.int64]


def labels_of(keys: Sequence[Hashable]) -> Labels:
    """One label for each different key: the row in which it comes first. int64 [n]."""
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(key, row) for row, key in enumerate(keys)], np.int64)


def joined(labels: Labels, links: Iterable[tuple[int, int]]) -> Labels:
    """Labels after the groups of linked rows became one, directly or through others.

    A label is the first row of its group. int64 [n].
    """
    parent = {int(label): int(label) for label in np.unique(labels)}

    def root(label: int) -> int:
        while parent[label] != label:
            parent[label] = label = parent[parent[label]]
        return label

    for one, other in links:
        first, second = root(int(labels[one])), root(int(labels[other]))
        parent[max(first, second)] = min(first, second)
    return np.array([root(int(label)) for label in labels], np.int64)


def sizes(labels: Labels) -> Labels:
    """Members of each family, the largest first. int64 [families]."""
    counts: Labels = np.unique(labels, return_counts=True)[1].astype(np.int64)
    return np.sort(counts)[::-1]


def redundant_share(labels: Labels) -> float:
    """Share of rows beyond the first of their family: (n - families) / n.

    What removing duplicates would remove: Lee et al., Deduplicating Training Data Makes Language
    Models Better, ACL 2022 (arXiv 2107.06499). `ConfigError` for no rows, as in all that follow.
    """
    return 1.0 - len(sizes(labels)) / _count(labels)


def largest_share(labels: Labels) -> float:
    """Share of rows in the largest family: the Berger-Parker index max n_f / n (Ecology 1970)."""
    count = _count(labels)
    return int(sizes(labels)[0]) / count


def size_histogram(labels: Labels) -> Mapping[int, int]:
    """How many families have how many members: {members: families}, by members."""
    return dict(sorted(Counter(sizes(labels).tolist()).items()))


def families_per_hundred(labels: Labels) -> float:
    """100 families / n. It falls as n grows: compare at equal n."""
    return 100.0 * len(sizes(labels)) / _count(labels)


def new_families_per_hundred(labels: Labels) -> float:
    """Families not seen yet to be expected in a hundred further proposals: 100 f1 / n.

    f1 is the number of families with one member: Good, The Population Frequencies of Species,
    Biometrika 1953. It is about proposals as they come; in a pool from which duplicates were
    removed every family has one member, and the figure says nothing.
    """
    return 100.0 * int((sizes(labels) == 1).sum()) / _count(labels)


class Coverage(NamedTuple):
    """How evenly a pool covers a list of skills."""

    evenness: float
    """Entropy of the shares divided by ln S, in [0, 1]: 1 when each of the S skills is equally frequent."""
    effective: float
    """exp of that entropy: the number of equally frequent skills with the same entropy, 1 to S."""


def skill_coverage(named: Sequence[Sequence[str]], known: Sequence[str]) -> Coverage | None:
    """Entropy of the skills that n rows name, over the known ones.

    A row counts 1 in all, in equal parts for the skills that it names. Rows that name no known
    skill do not count; None when no row does. H = -Σ p ln p, evenness H / ln S (Pielou 1966),
    effective number e^H (Hill 1973). `ConfigError` with fewer than two known skills.
    """
    if len(set(known)) < 2:
        raise ConfigError(f"expected at least two skills, got {len(set(known))}")
    weights = dict.fromkeys(known, 0.0)
    for names in named:
        own = [name for name in dict.fromkeys(names) if name in weights]
        for name in own:
            weights[name] += 1.0 / len(own)
    if not any(weights.values()):
        return None
    effective = hill_number(list(weights.values()), 1.0)
    return Coverage(float(np.log(effective) / np.log(len(weights))), effective)


def _count(labels: Labels) -> int:
    if len(labels) == 0:
        raise ConfigError("a share needs at least one row, got none")
    return len(labels)
