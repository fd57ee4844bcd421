"""What a memory holds: records, one vector for each rules text, the pieces of each structure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from synthgym.memory.code_index import CodeIndex
from synthgym.memory.describe import Description
from synthgym.memory.index import VectorIndex, check_vectors
from synthgym.memory.records import MemoryRecord
from synthgym.memory.table import RecordTable

Floats = npt.NDArray[np.float32]


class Near(NamedTuple):
    """A held environment with a similar text."""

    row: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Holdings:
    """Table and indexes, which are changed together."""

    table: RecordTable
    index: VectorIndex
    """Its rows are the numbers of the texts of `table`."""
    code: CodeIndex
    """Its numbers are those of the structures of `table`."""

    @classmethod
    def empty(cls, dim: int) -> Holdings:
        """Return one without records, for vectors of this length."""
        return cls(RecordTable(), VectorIndex(dim), CodeIndex())

    def has_text(self, text: str) -> bool:
        """Whether the vector of this rules text is held."""
        return self.table.text_number(text) is not None

    def put(self, record: MemoryRecord, vector: Floats | None) -> None:
        """Add a record or replace the one of its digest.

        `vector` is that of its rules text, None when it is held. `ConfigError` when it is not a
        unit vector, or the pieces are not sorted; then nothing has changed.
        """
        description = record.description
        if vector is not None:
            check_vectors(vector[None, :], self.index.dim)
        code = self.table.code_number(description.ast_hash)
        if code is None:
            known = len(description.pieces) > 0
            code = self.code.add(description.pieces) if known else -1
        # Only now, when nothing is refused any more: numbers of texts and rows must not part.
        if vector is not None:
            self.index.add(vector)
        orphan = self.table.put(record, code)
        if orphan is not None:
            self.index.remove([orphan])

    def remove(self, row: int) -> None:
        """Forget a record."""
        orphan = self.table.remove(row)
        if orphan is not None:
            self.index.remove([orphan])

    def nearest(self, vector: Floats, k: int) -> list[Near]:
        """Find the `k` records of the nearest texts, nearest first, equal ones in order of arrival."""
        if k < 1:
            return []
        hits = self.index.search(vector, k)
        found = [
            Near(row, hit.similarity)
            for hit in hits
            for row in self.table.rows_of_text(hit.row)[:k]
        ]
        return sorted(found, key=lambda near: (-near.cosine, near.row))[:k]

    def sharing_code(self, description: Description, k: int) -> Iterator[tuple[int, float]]:
        """Rows and containments of the `k` structures that share most code, each with one row."""
        if len(description.pieces) == 0:
            return
        for overlap in self.code.candidates(description.pieces, k):
            rows = self.table.rows_of_code(overlap.row)
            if rows:
                yield rows[0], overlap.containment

    def cosine(self, vector: Floats, row: int) -> float:
        """Cosine of a unit vector with that of a row's text, rounded to 1e-4."""
        return self.index.cosine(vector, self.table.text(row))

    def containment(self, description: Description, row: int) -> float:
        """How much code is shared with a row; 0 where the pieces of one are not known."""
        number = int(self.table.code_of.values[row])
        if number < 0 or len(description.pieces) == 0:
            return 0.0
        return self.code.containment(description.pieces, number)

    def copy(self) -> Holdings:
        """Return holdings that can be changed without changing these."""
        return Holdings(self.table.copy(), self.index.copy(), self.code.copy())
