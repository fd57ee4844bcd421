"""FAISS indexes. FAISS is imported when the first one is made: where torch is used, it was imported before.

FAISS files are never written or read: their reader is not safe on bytes from elsewhere, and
rebuilding from raw vectors takes 0.1 s for 100,000 rows.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import MissingExtraError
from synthgym.memory.numpy_index import NumpyIndex

SCANNED: Final = 1024
"""Rows that a scan of product codes hands on, to be compared by their vectors."""
TRAINED_ON: Final = 32_768
"""Vectors that the codebook is learnt from: the first ones, so that it does not depend on chance."""
_PIECE: Final = 4
"""Components that share one product code of 4 bits."""
Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]


def faiss_available() -> bool:
    """Whether FAISS is installed; nothing is imported."""
    return importlib.util.find_spec("faiss") is not None


@functools.cache
def _faiss() -> Any:
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise MissingExtraError(
            f"this index needs faiss: pip install faiss-cpu ({error})"
        ) from error


class FaissIndex:
    """Every inner product, exactly, over float32."""

    compact = False

    def __init__(self, dim: int) -> None:
        faiss = _faiss()
        self.dim = dim
        self._inner = faiss.IndexFlatIP(dim)  # the map does not keep it alive
        # Without the map FAISS renumbers the rows behind a removed one.
        self._index: Any = faiss.IndexIDMap2(self._inner)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def rows(self) -> Rows:
        """Rows held, in order: int64 [n]."""
        return np.asarray(_faiss().vector_to_array(self._index.id_map), np.int64)

    def add(self, vectors: Floats, rows: Rows) -> None:
        """Append vectors, float32 [n, dim], under rows larger than those before."""
        self._index.add_with_ids(np.ascontiguousarray(vectors, np.float32), rows)

    def remove(self, rows: Rows) -> None:
        """Forget rows; those that are not held are passed over."""
        self._index.remove_ids(rows)

    def best(self, queries: Floats, k: int) -> Rows:
        """Rows of the largest inner products, int64 [q, k], best first; -1 where there is none."""
        _, rows = self._index.search(np.ascontiguousarray(queries, np.float32), k)
        return np.asarray(rows, np.int64)

    def vectors(self, rows: Rows) -> Floats:
        """The vectors of rows that are held: float32 [n, dim]."""
        if len(rows) == 0:
            return np.zeros((0, self.dim), np.float32)
        return np.asarray(self._index.reconstruct_batch(rows), np.float32)

    def copy(self) -> FaissIndex:
        """Return an index that can be changed without changing this one."""
        other = FaissIndex(self.dim)
        if len(self):
            other.add(self.vectors(self.rows), self.rows)
        return other


class ScanIndex:
    """For many rows: product codes find the nearest thousand, their vectors in bytes put them in order.

    One of 300 nearest rows was missed among a million. FAISS cannot take rows out of such codes,
    so removed ones are passed over.
    """

    compact = True

    def __init__(self, dim: int, codebook: Floats) -> None:
        self.dim = dim
        self.codebook = codebook
        faiss = _faiss()
        self._codes: Any = faiss.IndexPQFastScan(
            dim, dim // _PIECE, _PIECE, faiss.METRIC_INNER_PRODUCT
        )
        faiss.copy_array_to_vector(codebook.ravel(), self._codes.pq.centroids)
        self._codes.is_trained = True
        self._held = NumpyIndex(dim, compact=True)

    @staticmethod
    def fits(dim: int) -> bool:
        """Whether vectors of this length can be cut into pieces."""
        return dim % _PIECE == 0

    def __len__(self) -> int:
        return len(self._held)

    @property
    def rows(self) -> Rows:
        """Rows held, in order: int64 [n]."""
        return self._held.rows

    def add(self, vectors: Floats, rows: Rows) -> None:
        """Append vectors, float32 [n, dim], under rows larger than those before."""
        self._codes.add(np.ascontiguousarray(vectors, np.float32))
        self._held.add(vectors, rows)

    def remove(self, rows: Rows) -> None:
        """Forget rows; those that are not held are passed over."""
        self._held.remove(rows)

    def best(self, queries: Floats, k: int) -> Rows:
        """At least `k` rows, int64 [q, ...], among them almost surely the nearest; -1 for none."""
        count = min(max(k, SCANNED), int(self._codes.ntotal))
        _, places = self._codes.search(np.ascontiguousarray(queries, np.float32), count)
        return self._held.rows_at(np.asarray(places, np.int64))

    def vectors(self, rows: Rows) -> Floats:
        """The vectors of rows that are held: float32 [n, dim]."""
        return self._held.vectors(rows)

    def copy(self) -> ScanIndex:
        """Return an index that can be changed without changing this one."""
        other: ScanIndex = object.__new__(ScanIndex)
        other.__dict__ |= self.__dict__
        other._codes, other._held = _faiss().clone_index(self._codes), self._held.copy()
        return other


def learn_codebook(vectors: Floats) -> Floats:
    """The codebook for vectors like these, float32 [dim / 4, 16, 4]; learnt from the first 32,768."""
    faiss = _faiss()
    dim = vectors.shape[1]
    quantizer = faiss.ProductQuantizer(dim, dim // _PIECE, _PIECE)
    quantizer.train(np.ascontiguousarray(vectors[:TRAINED_ON], np.float32))
    centroids = np.asarray(faiss.vector_to_array(quantizer.centroids), np.float32)
    return centroids.reshape(dim // _PIECE, 1 << _PIECE, _PIECE)
