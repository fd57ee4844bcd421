"""What the novelty memory asks of a vector index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Hit:
    """One row that a search found."""

    row: int
    similarity: float
    """Cosine, rounded to 1e-4: the last digits depend on the batch and on the processor."""


class VectorIndex(Protocol):
    """Unit vectors by row number, in the order in which they were added."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def add(self, vector: Floats) -> int:
        """Append one unit vector; returns its row."""
        ...

    def search(self, vector: Floats, k: int) -> tuple[Hit, ...]:
        """Find the `k` rows nearest by cosine, exactly: nearest first, equal ones by row."""
        ...

    def vectors(self) -> Floats:
        """Every row, as float32 [n, dim]: what is saved, and what an index is rebuilt from."""
        ...
