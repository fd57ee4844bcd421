"""From the rewards of an episode to its return."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.rewards import EPISODE_RETURNS, EpisodeOutcome


@pytest.mark.parametrize(
    ("rewards", "terminated", "success", "expected"),
    [
        ((0.25, 0.75), True, True, {"terminal": 1.0, "sum": 1.0, "reference": 0.75}),
        ((0.25, 0.25), False, False, {"terminal": 0.0, "sum": 0.5, "reference": 0.0}),
        ((0.5, 0.0), True, False, {"terminal": 0.0, "sum": 0.5, "reference": 0.0}),
        ((-10.0,), True, False, {"terminal": 0.0, "sum": -10.0, "reference": -1.0}),
        ((7.0,), True, True, {"terminal": 1.0, "sum": 7.0, "reference": 1.0}),
        ((), False, False, {"terminal": 0.0, "sum": 0.0, "reference": 0.0}),
        ((0.1,) * 10, True, True, {"terminal": 1.0, "sum": 1.0, "reference": 0.1}),
    ],
)
def test_an_episode_is_worth(
    rewards: tuple[float, ...], terminated: bool, success: bool, expected: dict[str, float]
) -> None:
    episode = EpisodeOutcome(rewards, terminated, success)
    assert {name: of(episode) for name, of in EPISODE_RETURNS.items()} == expected


@given(st.lists(st.floats(-10.0, 10.0)), st.booleans(), st.booleans())
def test_a_return_is_a_number_and_the_released_codes_lies_in_a_unit(
    rewards: list[float], terminated: bool, success: bool
) -> None:
    episode = EpisodeOutcome(rewards, terminated, success)
    assert all(math.isfinite(of(episode)) for of in EPISODE_RETURNS.values())
    assert -1.0 <= EPISODE_RETURNS["reference"](episode) <= 1.0
