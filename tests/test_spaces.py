from __future__ import annotations

import copy

import numpy as np
import pytest
from gymnasium.error import CustomSpaceError
from gymnasium.spaces import Tuple
from gymnasium.vector.utils import batch_space, create_shared_memory

from synthgym.spaces import TextSpace


@pytest.mark.parametrize("text", ["", "a b\nc", "übergroß ☃", "\x00\ud800", "x" * 10])
def test_any_text_within_the_length_is_contained(text: str) -> None:
    assert text in TextSpace(10)


@pytest.mark.parametrize("value", ["x" * 11, b"x", 5, None, ["x"], np.array(["x"])])
def test_other_values_are_not_contained_and_nothing_raises(value: object) -> None:
    assert value not in TextSpace(10)


def test_a_minimum_length_excludes_the_empty_text() -> None:
    assert "" not in TextSpace(10, min_length=1)


def test_samples_are_contained_and_repeat_with_the_seed() -> None:
    space = TextSpace(30, seed=3)
    samples = [space.sample() for _ in range(20)]
    again = TextSpace(30, seed=3)
    assert all(sample in space for sample in samples)
    assert [again.sample() for _ in range(20)] == samples


def test_spaces_compare_by_their_lengths() -> None:
    assert TextSpace(5) == copy.deepcopy(TextSpace(5))
    assert TextSpace(5) != TextSpace(6)
    assert hash(TextSpace(5)) == hash(TextSpace(5))
    assert repr(TextSpace(5)) == "TextSpace(5, min_length=0)"


def test_a_batch_is_a_tuple_of_text_spaces() -> None:
    assert batch_space(TextSpace(5), 2) == Tuple([TextSpace(5), TextSpace(5)])


def test_shared_memory_is_refused_instead_of_returning_wrong_text() -> None:
    with pytest.raises(CustomSpaceError, match="shared_memory=False"):
        create_shared_memory(TextSpace(5), n=2)
