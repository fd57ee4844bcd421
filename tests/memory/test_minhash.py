from __future__ import annotations

import numpy as np
import pytest

from synthgym.errors import ConfigError
from synthgym.memory.minhash import (
    BANDS,
    LENGTH,
    MAX_BUCKET,
    Candidate,
    LshIndex,
    signature,
    signatures,
)


def random_set(rng: np.random.Generator, size: int) -> np.ndarray:
    return np.unique(rng.integers(0, 1 << 63, size, dtype=np.uint64))


def overlapping(rng: np.random.Generator, size: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of `size` whose Jaccard overlap is `share`."""
    common = round(2 * size * share / (1 + share))
    pool = random_set(rng, 2 * size - common)
    mixed = rng.permutation(pool)
    one, other = mixed[:size], np.concatenate([mixed[:common], mixed[size:]])
    return np.sort(one), np.sort(other)


def test_equal_places_are_as_many_as_the_sets_overlap() -> None:
    rng = np.random.default_rng(0)
    for share in (0.1, 0.5, 0.9):
        equal = []
        for _ in range(40):
            one, other = overlapping(rng, 200, share)
            equal.append(np.mean(signature(one) == signature(other)))
        assert np.mean(equal) == pytest.approx(share, abs=0.03)


def test_signatures_do_not_depend_on_what_stands_beside_them() -> None:
    rng = np.random.default_rng(1)
    sets = [random_set(rng, size) for size in (0, 1, 300, 0, 9000, 40, 9000, 0)]
    offsets = np.cumsum([0, *map(len, sets)])
    together = signatures(np.concatenate(sets), offsets)
    assert together.dtype == np.uint32
    assert together.shape == (len(sets), LENGTH)
    for row, alone in zip(together, sets, strict=True):
        assert row.tolist() == signature(alone).tolist()


def test_the_spec_has_not_drifted() -> None:
    assert signature(np.arange(5, dtype=np.uint64))[:3].tolist() == [379428882, 83305279, 357452852]


def test_a_set_is_found_by_what_it_shares_and_the_nearest_comes_first() -> None:
    rng = np.random.default_rng(2)
    one, other = overlapping(rng, 200, 0.75)
    index = LshIndex()
    for _ in range(50):
        index.add(signature(random_set(rng, 200)))
    near, same = index.add(signature(other)), index.add(signature(one))
    found = index.query(signature(one), 10)
    assert found[0] == Candidate(same, BANDS)
    assert found[1].row == near
    assert 0 < found[1].bands < BANDS
    assert index.query(signature(one), 1) == found[:1]
    assert index.query(signature(one), 0) == []


def test_bands_find_sets_as_often_as_the_theory_says() -> None:
    rng = np.random.default_rng(3)
    for share, low, high in ((0.7, 0.99, 1.0), (0.5, 0.75, 0.97), (0.2, 0.0, 0.15)):
        hits = 0
        for _ in range(100):
            one, other = overlapping(rng, 150, share)
            index = LshIndex()
            index.add(signature(one))
            hits += bool(index.query(signature(other), 1))
        assert low <= hits / 100 <= high, share


@pytest.mark.parametrize("count", [1, 100, 2047, 2048, 5000])
def test_bulk_and_one_by_one_give_the_same_index(count: int) -> None:
    rng = np.random.default_rng(4)
    rows = rng.integers(0, 4, (count, LENGTH), dtype=np.uint32)  # many equal bands
    bulk, single = LshIndex(), LshIndex()
    bulk.extend(rows)
    for row in rows:
        single.add(row)
    again = LshIndex.from_keys(bulk.keys())
    assert len(bulk) == len(single) == len(again) == count
    assert bulk.keys().tolist() == single.keys().tolist()
    for row in rows[:: max(1, count // 20)]:
        expected = bulk.query(row, count)
        assert expected == single.query(row, count) == again.query(row, count)


def test_the_query_is_what_comparing_every_band_gives() -> None:
    rng = np.random.default_rng(5)
    rows = rng.integers(0, 3, (3000, LENGTH), dtype=np.uint32)
    index = LshIndex()
    index.extend(rows)
    bands = rows.reshape(-1, BANDS, LENGTH // BANDS)
    for row in (0, 17, 2999):
        equal = (bands == bands[row]).all(axis=2).sum(axis=1)
        order = sorted(np.flatnonzero(equal), key=lambda i: (-equal[i], i))
        expected = [(int(i), int(equal[i])) for i in order]
        assert index.query(rows[row], 3000) == expected


def test_a_pool_of_one_family_does_not_make_a_query_name_everything() -> None:
    index = LshIndex()
    row = signature(np.arange(50, dtype=np.uint64))
    index.extend(np.repeat(row[None, :], 5000, axis=0))
    found = index.query(row, 10_000)
    assert MAX_BUCKET <= len(found) <= MAX_BUCKET + 2048
    assert all(candidate.bands == BANDS for candidate in found)


def test_a_copy_grows_alone() -> None:
    rng = np.random.default_rng(6)
    index = LshIndex()
    index.extend(rng.integers(0, 1 << 32, (2100, LENGTH), dtype=np.uint32))
    before = index.keys().tolist()
    other = index.copy()
    row = signature(np.arange(9, dtype=np.uint64))
    other.extend(np.repeat(row[None, :], 2100, axis=0))
    index.add(row)
    assert len(index) == 2101
    assert index.keys()[:2100].tolist() == before
    assert other.keys()[:2100].tolist() == before
    assert len(other) == 4200


def test_a_row_costs_256_bytes() -> None:
    index = LshIndex()
    index.extend(np.zeros((100_000, LENGTH), np.uint32))
    assert index.nbytes / 100_000 <= 256 * 1.02


@pytest.mark.parametrize("bad", [np.zeros((2, 5), np.uint32), np.zeros((2, LENGTH), np.int64)])
def test_other_signatures_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="128 places"):
        LshIndex().extend(bad)
    with pytest.raises(ConfigError, match="32 bands"):
        LshIndex.from_keys(bad)
