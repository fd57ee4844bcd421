from __future__ import annotations

import numpy as np
import pytest

from synthgym.memory import code_index
from synthgym.memory.code_index import CodeIndex
from synthgym.memory.structure import StructureIndex
from synthgym.memory.subtrees import Hashes


def pieces(seed: int) -> Hashes:
    """Forty hashes, half of them those of the seed before."""
    parts = [np.random.default_rng(s).integers(0, 2**64, 20, np.uint64) for s in (seed, seed + 1)]
    return np.unique(np.concatenate(parts))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_index, "HELD", 16)


@pytest.mark.usefixtures("small")
def test_pieces_that_were_moved_to_a_file_are_found_as_before() -> None:
    index, plain = CodeIndex(), StructureIndex()
    for seed in range(100):
        assert index.add(pieces(seed)) == plain.add(pieces(seed)) == seed
        assert index.candidates(pieces(seed // 2), 3) == plain.candidates(pieces(seed // 2), 3)
    assert index._moved >= 64
    assert index.containment(pieces(7), 8) == plain.containment(pieces(7), 8) > 0.3
    arrays, expected = index.to_arrays(), plain.to_arrays()
    assert all(np.array_equal(arrays[name], expected[name]) for name in expected)
    again = CodeIndex.restore(arrays)
    assert again.candidates(pieces(5), 4) == plain.candidates(pieces(5), 4)
    assert (len(again), again.families) == (100, plain.families)


@pytest.mark.usefixtures("small")
def test_a_copy_outlives_the_index_whose_file_it_shares() -> None:
    index = CodeIndex()
    for seed in range(50):
        index.add(pieces(seed))
    other, found = index.copy(), index.candidates(pieces(3), 3)
    for seed in range(50, 90):
        index.add(pieces(seed))
    del index
    assert len(other) == 50
    assert other.candidates(pieces(3), 3) == found
    assert other.add(pieces(90)) == 50
