from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import ConfigError
from synthgym.memory import index as index_module
from synthgym.memory.index import FEW_ROWS, FLAT_ROWS, Floats, VectorIndex, choose_index
from synthgym.memory.numpy_index import NumpyIndex
from synthgym.memory.quantise import decode, encode


def unit(rng: np.random.Generator, n: int, dim: int = 16) -> Floats:
    rows = rng.normal(size=(n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "FEW_ROWS", 500)
    monkeypatch.setattr(index_module, "FLAT_ROWS", 1000)


def without_faiss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "faiss_available", lambda: False)


def test_search_agrees_with_the_full_product() -> None:
    rng = np.random.default_rng(0)
    rows, queries = unit(rng, 200), unit(rng, 20)
    index = VectorIndex(16)
    index.add_many(rows)
    for query, hits in zip(queries, index.search_many(queries, 5), strict=True):
        scores = rows.astype(np.float64) @ query.astype(np.float64)
        expected = sorted(range(200), key=lambda i: (-round(float(scores[i]), 4), i))[:5]
        assert [hit.row for hit in hits] == expected
        assert [hit.similarity for hit in hits] == [
            pytest.approx(scores[i], abs=1e-4) for i in expected
        ]
        assert index.search(query, 5) == hits


def test_rows_are_numbered_in_order_and_equal_ones_come_by_row() -> None:
    row = unit(np.random.default_rng(1), 1)[0]
    index = VectorIndex(16)
    assert [index.add(row) for _ in range(300)] == list(range(300))
    assert [hit.row for hit in index.search(row, 9)] == list(range(9))
    assert np.array_equal(index.vectors(), np.stack([row] * 300))


def test_an_empty_index_finds_nothing() -> None:
    index = VectorIndex(16)
    assert index.search(np.zeros(16, np.float32), 3) == ()
    assert index.vectors().shape == (0, 16)
    index.remove([0])
    assert len(index.copy()) == 0


@pytest.mark.parametrize(
    "bad", [np.full(16, np.nan), np.zeros(16), np.ones(16), np.ones(4) / 2], ids=range(4)
)
def test_a_vector_that_is_not_a_unit_vector_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="expected"):
        VectorIndex(16).add(bad.astype(np.float32))


def test_the_kind_follows_from_the_size_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = (0, FEW_ROWS, FEW_ROWS + 1, FLAT_ROWS, FLAT_ROWS + 1, 10**7)
    kinds = ["few"] * 2 + ["flat"] * 2 + ["scan"] * 2
    assert [choose_index(size, 384) for size in sizes] == kinds
    assert choose_index(10**7, 383) == "bytes"
    without_faiss(monkeypatch)
    assert choose_index(10**7, 384) == "bytes"


@pytest.mark.usefixtures("small_limits")
def test_an_index_grows_through_its_kinds_and_loses_nothing() -> None:
    rng = np.random.default_rng(2)
    rows = unit(rng, 3000)
    index, kinds = VectorIndex(16), []
    for start in range(0, 3000, 500):
        assert list(index.add_many(rows[start : start + 500])) == [*range(start, start + 500)]
        kinds.append(index.kind)
        if start == 500:
            index.remove([3, 700])
    assert kinds == ["few", "flat"] + ["scan"] * 4
    held = np.delete(np.arange(3000), [3, 700])
    assert np.array_equal(index.rows, held)
    assert np.allclose(index.vectors(), rows[held], atol=0.02)
    found = index.search_many(rows[held[::40]], 1)
    assert [hits[0].row for hits in found] == held[::40].tolist()


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("n", [40, 900, 2500])
def test_numpy_gives_the_same_answers(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    rng = np.random.default_rng(n)
    rows = np.repeat(unit(rng, n // 2), 2, axis=0)  # every one twice: ties go by row
    queries = np.concatenate([unit(rng, 20), rows[:20]])
    faiss = VectorIndex(16)
    faiss.add_many(rows)
    faiss.remove([2, 5])
    faiss_answers = faiss.search_many(queries, 7)
    without_faiss(monkeypatch)
    plain = VectorIndex(16)
    plain.add_many(rows)
    plain.remove([2, 5])
    assert isinstance(plain._engine, NumpyIndex)
    assert plain.search_many(queries, 7) == faiss_answers
    assert np.array_equal(plain.vectors(), faiss.vectors())


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("n", [40, 900, 2500])
def test_a_copy_and_a_restored_index_answer_alike_and_change_alone(n: int) -> None:
    rng = np.random.default_rng(n)
    index = VectorIndex(16)
    index.add_many(unit(rng, n))
    values = index.vectors()
    stored = encode(values) if index.compact else values
    others = index.copy(), VectorIndex.restore(stored, index.codebook)
    queries = unit(rng, 9)
    answers = index.search_many(queries, 4)
    for other in others:
        assert other.kind == index.kind
        assert np.array_equal(other.vectors(), values)
        assert other.search_many(queries, 4) == answers
        assert other.add(queries[0]) == n
        assert other.search(queries[0], 1)[0].row == n
        other.remove([0])
        assert len(other) == n
    assert len(index) == n
    assert index.search_many(queries, 4) == answers


@given(st.integers(0, 2**32), st.integers(1, 64))
def test_codes_come_back_as_they_were(seed: int, dim: int) -> None:
    vectors = unit(np.random.default_rng(seed), 5, dim)
    codes = encode(vectors)
    assert np.array_equal(encode(decode(codes)), codes)
    assert np.abs(decode(codes) - vectors).max() < 0.01
    assert np.allclose(np.linalg.norm(decode(codes), axis=1), 1.0, atol=1e-5)


def test_codes_of_no_unit_vector_are_refused() -> None:
    codes = encode(unit(np.random.default_rng(0), 3))
    assert len(VectorIndex.restore(codes)) == 3
    for bad in (codes // 2, np.zeros_like(codes), np.full_like(codes, -128)):
        with pytest.raises(ConfigError, match="unit vector"):
            VectorIndex.restore(bad)


def test_importing_the_memory_does_not_import_faiss() -> None:
    code = "import sys, synthgym.memory; print('faiss' in sys.modules, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
