"""Prioritised level replay: its probabilities against ones computed by hand, and what it draws."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from curricula import held, plays, pool
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.curriculum import Replay
from spade_loop.curriculum.replay import (
    Level,
    score_probabilities,
    staleness_probabilities,
)
from spade_loop.errors import ConfigError, RunStateError


def test_score_probabilities_are_those_of_the_paper() -> None:
    # beta = 1: weights 1, 1/2, 1/3, whose sum is 11/6.
    found = score_probabilities(np.asarray([0.2, 0.9, 0.5]), 1.0)
    assert found == pytest.approx([2 / 11, 6 / 11, 3 / 11])
    # beta = 0.5: weights 1, 1/4, 1/9, whose sum is 49/36.
    found = score_probabilities(np.asarray([3.0, 2.0, 1.0]), 0.5)
    assert found == pytest.approx([36 / 49, 9 / 49, 4 / 49])


def test_equal_scores_share_the_weights_of_their_ranks() -> None:
    # Ranks 1 | 2, 3 | 4 with weights 1, 1/2, 1/3, 1/4: the two in the middle get 5/12 each; all is 25/12.
    found = score_probabilities(np.asarray([0.5, 0.1, 0.9, 0.5]), 1.0)
    assert found == pytest.approx([5 / 25, 3 / 25, 12 / 25, 5 / 25])


def test_staleness_probabilities_are_those_of_the_paper() -> None:
    found = staleness_probabilities(np.asarray([1.0, 4.0, 3.0]), 5)
    assert found == pytest.approx([4 / 7, 1 / 7, 2 / 7])
    assert staleness_probabilities(np.asarray([5.0, 5.0]), 5) == pytest.approx([0.5, 0.5])


def test_the_mixture_is_that_of_the_paper() -> None:
    replay = Replay(
        temperature=1.0,
        staleness=0.25,
        now=5,
        levels={
            "a": Level(score=0.9, last=1),
            "b": Level(score=0.2, last=4),
            "c": Level(score=0.5, last=3),
            "gone": Level(score=1.0, last=0),
        },
    )
    found = replay.probabilities(held("a", "b", "c", "unseen"))
    assert found == pytest.approx(
        {
            "a": 0.75 * 6 / 11 + 0.25 * 4 / 7,
            "b": 0.75 * 2 / 11 + 0.25 * 1 / 7,
            "c": 0.75 * 3 / 11 + 0.25 * 2 / 7,
        }
    )


@given(
    seen=plays,
    temperature=st.floats(0.01, 10.0),
    staleness=st.floats(0.0, 1.0),
)
def test_probabilities_sum_to_one_over_the_held_levels_that_were_played(
    seen: list[tuple[str, float, int]], temperature: float, staleness: float
) -> None:
    replay = Replay(temperature=temperature, staleness=staleness)
    for digest, score, iteration in seen:
        replay = replay.observe(digest, score, iteration)
    found = replay.probabilities(pool(15))
    assert set(found) == {d for d, _, _ in seen} & {h.digest for h in pool(15)}
    if found:
        assert sum(found.values()) == pytest.approx(1.0)
        assert min(found.values()) >= 0.0
        if staleness == 0.0:
            ordered = sorted(found, key=lambda d: -replay.levels[d].score)
            assert [found[d] for d in ordered] == sorted(found.values(), reverse=True)


@given(
    seen=st.lists(st.tuples(st.sampled_from("abcdef"), st.floats(0, 1)), unique_by=lambda x: x[0])
)
def test_the_order_of_the_environments_of_one_iteration_does_not_matter(
    seen: list[tuple[str, float]],
) -> None:
    one = two = Replay()
    for digest, score in seen:
        one = one.observe(digest, score, 3)
    for digest, score in seen[::-1]:
        two = two.observe(digest, score, 3)
    assert one.to_json() == two.to_json()
    assert list(one.levels) == list(two.levels)


def frequencies(replay: Replay, environments: int, draws: int = 4000) -> Counter[str]:
    rng = np.random.default_rng(11)
    return Counter(replay.choose(pool(environments), 1, rng)[0] for _ in range(draws))


def test_draws_follow_the_probabilities() -> None:
    replay = Replay(temperature=1.0, staleness=0.0, replay_probability=0.75)
    for digest, score in (("d0000", 0.9), ("d0001", 0.5), ("d0002", 0.2)):
        replay = replay.observe(digest, score, 0)
    counts = frequencies(replay, 5)
    expected = {"d0000": 0.75 * 6 / 11, "d0001": 0.75 * 3 / 11, "d0002": 0.75 * 2 / 11}
    expected |= {"d0003": 0.125, "d0004": 0.125}
    for digest, share in expected.items():
        # The standard deviation of a share is at most 0.008.
        assert counts[digest] / 4000 == pytest.approx(share, abs=0.03)


def test_by_default_replays_are_as_frequent_as_levels_that_were_seen() -> None:
    replay = Replay().observe("d0000", 1.0, 0)
    assert frequencies(replay, 4)["d0000"] / 4000 == pytest.approx(0.25, abs=0.03)


def test_a_side_that_runs_out_leaves_its_draws_to_the_other() -> None:
    always = Replay(replay_probability=1.0).observe("d0002", 1.0, 0)
    chosen = always.choose(pool(4), 3, np.random.default_rng(0))
    assert chosen[0] == "d0002"
    assert len(set(chosen)) == 3
    never = Replay(replay_probability=0.0).observe("d0002", 1.0, 0)
    assert never.choose(pool(4), 4, np.random.default_rng(0))[-1] == "d0002"


def test_a_small_temperature_plays_the_best_and_staleness_alone_the_oldest() -> None:
    replay = Replay(temperature=0.001, staleness=0.0)
    for i in range(4):
        replay = replay.observe(f"d{i:04d}", float(i == 2), i)
    assert frequencies(replay, 4, 50) == {"d0002": 50}
    old = Replay(staleness=1.0).observe("d0001", 9.0, 7).observe("d0000", 0.0, 2)
    assert frequencies(old, 2, 50) == {"d0000": 50}


def test_only_replays_are_trained_on_when_it_is_robust() -> None:
    replay = Replay.robust_plr().observe("a", 0.5, 0)
    assert (replay.temperature, replay.staleness, replay.replay_probability) == (0.1, 0.3, 0.5)
    accel = Replay.accel("positive_advantage")
    assert (accel.temperature, accel.staleness, accel.replay_probability) == (0.3, 0.3, 0.8)
    assert (accel.robust, accel.score) == (True, "positive_advantage")
    assert replay.trains_on("a")
    assert not replay.trains_on("b")
    assert Replay().trains_on("b")


def test_the_newest_score_counts_and_one_that_could_not_be_measured_leaves_it() -> None:
    replay = Replay().observe("a", 0.5, 0).observe("a", 0.7, 2).observe("a", float("nan"), 4)
    assert replay.levels == {"a": Level(score=0.7, last=4)}
    assert replay.now == 4
    assert Replay().observe("b", float("nan"), 1).levels == {"b": Level(score=0.0, last=1)}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above 0, got 0"),
        ({"staleness": 1.5}, "staleness must lie in"),
        ({"replay_probability": -0.1}, "replay_probability must lie in"),
        ({"score": "novelty"}, "score must be one of regret, l1_advantage"),
        ({"levels": {"a": Level(score=0.0, last=3)}, "now": 2}, "not of the future"),
        ({"levels": {"a": Level(score=float("inf"), last=0)}}, "expected a finite score"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Replay(**settings)  # type: ignore[arg-type]


def test_a_state_that_breaks_a_rule_is_refused() -> None:
    data = Replay().observe("a", 0.5, 3).to_json()
    with pytest.raises(RunStateError, match="not of the future"):
        Replay.from_json({**data, "now": 1})
