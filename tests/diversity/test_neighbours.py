from __future__ import annotations

import numpy as np
import pytest

from synthgym.diversity import neighbours
from synthgym.diversity.neighbours import (
    Pair,
    mean_neighbour_distance,
    nearest_of_other_groups,
    nearest_pairs,
    neighbour_distances,
)
from synthgym.errors import ConfigError

# At 0, 60 and 180 degrees: cosines 0.5, -1 and -0.5.
THREE = np.array([[1.0, 0.0], [0.5, 0.75**0.5], [-1.0, 0.0]])


def rows_of(n: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((n, 6))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_distances_are_one_minus_the_cosine_nearest_first() -> None:
    expected = np.array([[0.5, 2.0], [0.5, 1.5], [1.5, 2.0]])
    assert neighbour_distances(THREE, 2) == pytest.approx(expected)
    assert mean_neighbour_distance(THREE, 1) == pytest.approx(2.5 / 3)
    assert mean_neighbour_distance(THREE, 2) == pytest.approx(8.0 / 6)


def test_a_copy_is_at_no_distance_and_the_row_itself_does_not_count() -> None:
    doubled = np.concatenate([THREE, THREE])
    assert mean_neighbour_distance(doubled, 1) == pytest.approx(0.0)
    assert mean_neighbour_distance(doubled, 2) == pytest.approx(0.5 * 2.5 / 3)


@pytest.mark.parametrize("k", [0, 3])
def test_there_must_be_that_many_others(k: int) -> None:
    with pytest.raises(ConfigError, match="below the 3 rows"):
        neighbour_distances(THREE, k)


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, labels = rows_of(50), np.arange(50) % 7
    whole = (
        neighbour_distances(rows, 5),
        nearest_of_other_groups(rows, labels),
        nearest_pairs(rows, 20),
    )
    monkeypatch.setattr(neighbours, "_BLOCK", 8)
    assert neighbour_distances(rows, 5) == pytest.approx(whole[0])
    assert nearest_of_other_groups(rows, labels) == pytest.approx(whole[1])
    assert nearest_pairs(rows, 20) == whole[2]


def test_the_nearest_pairs_are_those_of_a_full_comparison() -> None:
    rows = rows_of(40)
    every = [
        Pair(first, second, float(np.round(rows[first] @ rows[second], 6)))
        for first in range(40)
        for second in range(first + 1, 40)
    ]
    every.sort(key=lambda pair: (-pair.similarity, pair.first, pair.second))
    found = nearest_pairs(rows, 25)
    assert [pair[:2] for pair in found] == [pair[:2] for pair in every[:25]]
    assert [pair.similarity for pair in found] == pytest.approx([p.similarity for p in every[:25]])


@pytest.mark.parametrize("block", [2, 512])
def test_equally_near_pairs_come_by_row(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_BLOCK", block)
    copies = np.repeat([[0.6, 0.8]], 5, axis=0)
    assert [pair[:2] for pair in nearest_pairs(copies, 5)] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (0, 4),
        (1, 2),
    ]


def test_there_are_no_more_pairs_than_there_are() -> None:
    assert [pair[:2] for pair in nearest_pairs(THREE, 99)] == [(0, 1), (1, 2), (0, 2)]
    assert nearest_pairs(THREE[:1], 99) == ()
    assert nearest_pairs(THREE[:0], 99) == ()


def test_a_row_is_compared_with_rows_of_another_label_alone() -> None:
    found = nearest_of_other_groups(THREE, np.array([0, 0, 1]))
    assert found == pytest.approx([-1.0, -0.5, -0.5])
    assert nearest_of_other_groups(THREE, np.array([4, 4, 4])).tolist() == [-np.inf] * 3
