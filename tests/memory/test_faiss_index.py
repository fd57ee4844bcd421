from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from synthgym.errors import ConfigError
from synthgym.memory.faiss_index import FaissIndex, Floats


def unit(rng: np.random.Generator, n: int, dim: int = 16) -> Floats:
    rows = rng.normal(size=(n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_search_agrees_with_the_full_product() -> None:
    rng = np.random.default_rng(0)
    rows, queries = unit(rng, 200), unit(rng, 20)
    index = FaissIndex.from_vectors(rows)
    for query in queries:
        scores = rows @ query
        expected = sorted(range(200), key=lambda i: (-round(float(scores[i]), 4), i))[:5]
        hits = index.search(query, 5)
        assert [hit.row for hit in hits] == expected
        assert [hit.similarity for hit in hits] == [
            pytest.approx(scores[i], abs=1e-4) for i in expected
        ]


def test_rows_are_numbered_in_order_and_equal_ones_come_by_row() -> None:
    row = unit(np.random.default_rng(1), 1)[0]
    index = FaissIndex(16)
    assert [index.add(row) for _ in range(3)] == [0, 1, 2]
    assert [hit.row for hit in index.search(row, 9)] == [0, 1, 2]
    assert np.array_equal(index.vectors(), np.stack([row] * 3))


def test_an_empty_index_finds_nothing() -> None:
    index = FaissIndex(16)
    assert index.search(np.zeros(16, np.float32), 3) == ()
    assert index.vectors().shape == (0, 16)


@pytest.mark.parametrize(
    "bad", [np.full(16, np.nan), np.zeros(16), np.ones(16), np.ones(4) / 2], ids=range(4)
)
def test_a_vector_that_is_not_a_unit_vector_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="expected"):
        FaissIndex(16).add(bad.astype(np.float32))


def test_importing_the_memory_does_not_import_faiss() -> None:
    code = "import sys, synthgym.memory; print('faiss' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
