"""Structure of a pool: which sources hold each other's code, and how much code there is only here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from synthgym.memory.structure import RARE_ALWAYS, RARE_SHARE, StructureIndex
from synthgym.memory.subtrees import Hashes, subtrees

NEAR: Final = 0.85
"""Containment of rare code from which two sources are near copies."""
REVIEW: Final = 0.60
"""Containment from which somebody should look at both."""
_CANDIDATES: Final = 64
"""Structures that each one is compared with."""
Rows = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int64]


class Structures:
    """Sources by row, each with its structure, and how much code structures share.

    Containment is that of the novelty memory (`synthgym.memory.structure`), in the state in which
    all sources are known. It depends a little on the order in which they were added.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._kinds: list[int] = []
        """The number of the structure of each row."""
        self._pieces: list[Hashes] = []
        """The pieces of each structure."""
        self._index = StructureIndex()
        self._links: dict[tuple[int, int], float] | None = None

    def __len__(self) -> int:
        return len(self._kinds)

    def add(self, tree: ast.Module, ast_hash: str) -> None:
        """Append a source. Sources with the same `ast_hash` have the same structure."""
        number = self._numbers.setdefault(ast_hash, len(self._pieces))
        if number == len(self._pieces):
            self._pieces.append(subtrees(tree))
            self._index.add(self._pieces[-1])
        self._kinds.append(number)
        self._links = None

    def containment(self, first: int, second: int) -> float:
        """Share of the rare code of one row that is in the other: 1 for equal structures. 0 to 1."""
        one, other = self._kinds[first], self._kinds[second]
        return 1.0 if one == other else self._index.containment(self._pieces[one], other)

    def near_copies(self) -> Iterator[tuple[int, int]]:
        """Pairs of rows with different structures that are near copies, the first row of each."""
        first = {kind: row for row, kind in reversed(list(enumerate(self._kinds)))}
        for (one, other), containment in self._shared().items():
            if containment >= NEAR:
                yield first[one], first[other]

    def to_review(self, labels: Labels, rows: Rows) -> npt.NDArray[np.bool_]:
        """Whether each of `rows` shares code with one of them that has another label: bool [rows]."""
        kinds = [(self._kinds[row], int(labels[row])) for row in rows]
        own: dict[int, set[int]] = {}
        for kind, label in kinds:
            own.setdefault(kind, set()).add(label)
        others: dict[int, set[int]] = {kind: set() for kind in own}
        for one, other in self._shared():
            if one in own and other in own:
                others[one] |= own[other]
                others[other] |= own[one]
        return np.array([bool(others[kind] - {label}) for kind, label in kinds], np.bool_)

    def rare_pieces(self) -> list[Hashes]:
        """Of each structure the pieces that few structures have, as the novelty memory counts few."""
        every = np.concatenate([np.zeros(0, np.uint64), *self._pieces])
        names, counts = np.unique(every, return_counts=True)
        is_rare = counts <= max(RARE_ALWAYS, RARE_SHARE * len(self._pieces))
        return [own[is_rare[np.searchsorted(names, own)]] for own in self._pieces]

    def rare_per_source(self, rare: list[Hashes], rows: Rows) -> float:
        """How many different pieces of `rare_pieces()` the rows have, divided by their number."""
        kinds = {self._kinds[row] for row in rows}
        return len(np.unique(np.concatenate([rare[kind] for kind in kinds]))) / len(rows)

    def _shared(self) -> dict[tuple[int, int], float]:
        """Pairs of structures to be reviewed, the smaller number first, and their containment."""
        if self._links is None:
            found: dict[tuple[int, int], float] = {}
            for kind, pieces in enumerate(self._pieces):
                for overlap in self._index.candidates(pieces, _CANDIDATES):
                    if overlap.row != kind and overlap.containment >= REVIEW:
                        pair = min(kind, overlap.row), max(kind, overlap.row)
                        found[pair] = max(overlap.containment, found.get(pair, 0.0))
            self._links = dict(sorted(found.items()))
        return self._links
