from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import ConfigError, SnapshotError
from synthgym.memory.structure import RARE_ALWAYS, SKETCH, Overlap, StructureIndex

Hashes = np.ndarray


def hashes(rng: np.random.Generator, size: int) -> Hashes:
    return np.unique(rng.integers(0, 1 << 64, size, dtype=np.uint64, endpoint=False))


def union(*parts: Hashes) -> Hashes:
    return np.unique(np.concatenate(parts))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_nothing_is_near_in_an_empty_index(rng: np.random.Generator) -> None:
    index = StructureIndex()
    assert index.candidates(hashes(rng, 50), 5) == []
    assert len(index) == index.families == 0


def test_one_environment_is_enough_to_compare_with(rng: np.random.Generator) -> None:
    index = StructureIndex()
    held = hashes(rng, 100)
    assert index.add(held) == 0
    assert index.candidates(held, 5) == [Overlap(0, 1.0)]
    assert index.candidates(hashes(rng, 100), 5) == []
    assert index.containment(hashes(rng, 100), 0) == 0.0


def test_code_that_was_added_to_a_copy_does_not_hide_it(rng: np.random.Generator) -> None:
    index = StructureIndex()
    held = hashes(rng, 100)
    index.add(held)
    assert index.containment(union(held, hashes(rng, 60)), 0) == 1.0
    half = union(held[::2], hashes(rng, 50))
    assert index.containment(half, 0) == pytest.approx(0.5, abs=0.02)


def test_containment_does_not_ask_who_was_first(rng: np.random.Generator) -> None:
    one, other = hashes(rng, 120), hashes(rng, 80)
    mixed = union(one[:60], other[:50])
    first, second = StructureIndex(), StructureIndex()
    for index in (first, second):
        index.add(hashes(rng, 10))
    row, mirror = first.add(one), second.add(mixed)
    assert first.containment(mixed, row) == pytest.approx(second.containment(one, mirror), abs=0.06)


def test_what_everybody_has_is_no_sign_of_a_copy(rng: np.random.Generator) -> None:
    common = hashes(rng, 60)
    index = StructureIndex()
    for _ in range(100):
        index.add(union(common, hashes(rng, 60)))
    assert index.families == 100
    assert index.containment(union(common, hashes(rng, 60)), 3) == 0.0


def test_rare_pieces_weigh_more_than_frequent_ones(rng: np.random.Generator) -> None:
    frequent = hashes(rng, 40)
    index = StructureIndex()
    for number in range(100):
        index.add(union(hashes(rng, 80), *([frequent] if number < 4 else [])))
    own = hashes(rng, 40)
    row = index.add(union(own, frequent))
    shares_rare = index.containment(union(own, hashes(rng, 40)), row)
    shares_frequent = index.containment(union(frequent, hashes(rng, 40)), row)
    assert 0.0 < shares_frequent < 0.45
    assert shares_rare > 0.55


def test_in_a_small_pool_every_piece_is_rare(rng: np.random.Generator) -> None:
    common = hashes(rng, 50)
    index = StructureIndex()
    for _ in range(RARE_ALWAYS):
        index.add(union(common, hashes(rng, 50)))
    assert index.containment(common, 0) > 0.9
    index.add(union(common, hashes(rng, 50)))
    assert index.containment(common, 0) == 0.0


def test_many_copies_of_one_environment_do_not_make_its_code_common(
    rng: np.random.Generator,
) -> None:
    index = StructureIndex()
    held = hashes(rng, 100)
    for _ in range(50):
        index.add(union(held, hashes(rng, 5)))
    assert index.families == 1
    assert index.containment(held, 20) == pytest.approx(1.0)


def test_a_source_with_few_pieces_proves_little(rng: np.random.Generator) -> None:
    index = StructureIndex()
    few = hashes(rng, 4)
    row = index.add(few)
    assert index.containment(few, row) == pytest.approx(0.4, abs=0.01)
    assert index.containment(np.zeros(0, np.uint64), row) == 0.0


def test_large_sources_are_compared_over_the_range_that_both_sketches_cover(
    rng: np.random.Generator,
) -> None:
    index = StructureIndex()
    large = hashes(rng, 10 * SKETCH)
    row = index.add(large)
    small = np.sort(rng.permutation(large)[:200])
    assert index.containment(small, row) == 1.0
    assert index.containment(union(small, hashes(rng, 200)), row) == pytest.approx(0.5, abs=0.2)
    half = union(large[::2], hashes(rng, 5 * SKETCH))
    assert index.containment(half, row) == pytest.approx(0.5, abs=0.1)


def test_candidates_come_with_their_containment_nearest_first(rng: np.random.Generator) -> None:
    index = StructureIndex()
    held = hashes(rng, 200)
    for share in (0.7, 0.9, 0.8, 0.9):
        count = round(200 * share)
        index.add(union(held[:count], hashes(rng, 200 - count)))
    for _ in range(40):
        index.add(hashes(rng, 200))
    found = index.candidates(held, 10)
    assert [overlap.row for overlap in found] == [1, 3, 2, 0]
    assert found == [Overlap(row, index.containment(held, row)) for row, _ in found]
    assert index.candidates(held, 2) == found[:2]


def filled(rng: np.random.Generator, count: int) -> StructureIndex:
    index = StructureIndex()
    base = hashes(rng, 60)
    for number in range(count):
        own = hashes(rng, int(rng.integers(0, 80)))
        index.add(union(own, base) if number % 3 else own)
    return index


def test_arrays_bring_everything_back(rng: np.random.Generator, tmp_path: Path) -> None:
    index = filled(rng, 60)
    for name, array in index.to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array, allow_pickle=False)
    mapped = {
        path.stem: np.load(path, mmap_mode="r", allow_pickle=False)
        for path in tmp_path.glob("*.npy")
    }
    again = StructureIndex.from_arrays(mapped)
    assert len(again) == len(index)
    assert again.families == index.families
    for _ in range(10):  # it goes on as it would have
        more = hashes(rng, 70)
        assert index.candidates(more, 9) == again.candidates(more, 9)
        assert index.add(more) == again.add(more)
        assert [index.containment(more, r) for r in range(60)] == [
            again.containment(more, r) for r in range(60)
        ]
    one, other = index.to_arrays(), again.to_arrays()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_an_empty_index_can_be_kept() -> None:
    assert len(StructureIndex.from_arrays(StructureIndex().to_arrays())) == 0


def test_chunks_make_no_difference(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = [hashes(rng, int(rng.integers(0, 60))) for _ in range(40)]
    whole = StructureIndex()
    for one in sets:
        whole.add(one)
    monkeypatch.setattr("synthgym.memory.structure._CHUNK_ROWS", 7)
    parts = StructureIndex()
    for one in sets:
        parts.add(one)
    first, second = whole.to_arrays(), parts.to_arrays()
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)
    again = StructureIndex.from_arrays(second)
    for row, one in enumerate(sets):
        assert whole.containment(one, row) == parts.containment(one, row)
        assert whole.containment(one, row) == again.containment(one, row)


def test_a_copy_grows_alone(rng: np.random.Generator) -> None:
    index = filled(rng, 30)
    other = index.copy()
    more = hashes(rng, 70)
    other.add(more)
    assert len(index) == 30
    assert index.candidates(more, 3) == []
    assert other.candidates(more, 3)[0] == Overlap(30, 1.0)


@pytest.mark.parametrize("row", [-1, 1])
def test_an_unknown_row_is_refused(rng: np.random.Generator, row: int) -> None:
    index = StructureIndex()
    index.add(hashes(rng, 20))
    with pytest.raises(ConfigError, match="row must be"):
        index.containment(hashes(rng, 20), row)


@pytest.mark.parametrize(
    "bad",
    [
        np.array([3, 2], np.uint64),
        np.array([2, 2], np.uint64),
        np.array([1, 2], np.int64),
        np.array([[1, 2]], np.uint64),
    ],
    ids=["unsorted", "repeated", "signed", "matrix"],
)
def test_what_is_no_set_of_hashes_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(ConfigError, match="sorted unique uint64"):
        StructureIndex().add(bad)


@given(st.data())
def test_broken_arrays_are_a_snapshot_error(data: st.DataObject) -> None:
    arrays = filled(np.random.default_rng(1), 6).to_arrays()
    name = data.draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    broken = data.draw(
        st.sampled_from(
            [None, array[:-1], array.astype(np.float64), array[None], np.concatenate([array] * 2)]
        )
    )
    arrays.pop(name)
    if broken is not None:
        arrays[name] = broken
    with pytest.raises(SnapshotError, match="structure index"):
        StructureIndex.from_arrays(arrays)


def test_offsets_that_go_back_are_a_snapshot_error() -> None:
    arrays = filled(np.random.default_rng(1), 6).to_arrays()
    arrays["offsets"] = arrays["offsets"][::-1].copy()
    arrays["offsets"][0], arrays["offsets"][-1] = 0, len(arrays["hashes"])
    with pytest.raises(SnapshotError, match="structure index"):
        StructureIndex.from_arrays(arrays)
