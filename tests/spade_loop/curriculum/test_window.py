"""The sliding window of difficulties, and the rule of learning progress."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from curricula import held, pool
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.curriculum import LearningProgress, Rung, SlidingWindow
from spade_loop.curriculum.window import Averages, Window
from spade_loop.errors import ConfigError, RunStateError

LADDER = {f"sort-{d}": Rung(environment="sort", difficulty=d) for d in range(21)} | {
    f"sat-{d}": Rung(environment="sat", difficulty=d) for d in range(21)
}
FRESH = SlidingWindow(rungs=LADDER, plays=4)
HELD = held(*LADDER)


def played(curriculum: SlidingWindow, *plays: tuple[int, float]) -> Window:
    """The window of `sort` after plays of (difficulty, share of successes)."""
    for difficulty, share in plays:
        curriculum = curriculum.observe(f"sort-{difficulty}", share, 0)
    return curriculum.window("sort")


def test_it_begins_with_the_easiest_and_counts_at_the_highest_alone() -> None:
    assert FRESH.window("sort") == Window(low=0, high=0)
    assert played(FRESH, (0, 0.75)) == Window(attempts=4, successes=3)
    assert played(FRESH, (0, 1.0), (0, 1.0), (0, 1.0), (0, 0.0), (1, 1.0)) == Window(
        low=0, high=1, attempts=4, successes=4
    )


def test_enough_successes_open_the_next_difficulty_and_clear_the_counters() -> None:
    assert played(FRESH, (0, 1.0), (0, 1.0)) == Window(low=0, high=1)
    assert played(FRESH, (0, 1.0), (0, 0.75)) == Window(low=0, high=0)  # 7 of 8 are below 0.9
    exact = SlidingWindow(rungs=LADDER, plays=10, tau_num=10)
    assert played(exact, (0, 0.9)) == Window(low=0, high=1)


def test_a_failed_check_clears_the_counters_too() -> None:
    assert played(FRESH, (0, 0.0), (0, 1.0), (0, 1.0)) == Window(attempts=4, successes=4)


def test_the_window_keeps_its_width_and_ends_at_the_hardest() -> None:
    steps = [(d, 1.0) for d in range(5) for _ in range(2)]
    assert played(FRESH, *steps) == Window(low=2, high=5)
    all_of_them = [(d, 1.0) for d in range(21) for _ in range(2)]
    assert played(FRESH, *all_of_them) == Window(low=17, high=20)


@given(
    plays=st.lists(st.tuples(st.sampled_from(sorted(LADDER)), st.floats(0, 1)), max_size=200),
    tau_num=st.integers(1, 9),
    tau_acc=st.floats(0, 1),
)
def test_the_bounds_hold_whatever_is_observed(
    plays: list[tuple[str, float]], tau_num: int, tau_acc: float
) -> None:
    curriculum = SlidingWindow(rungs=LADDER, plays=4, tau_num=tau_num, tau_acc=tau_acc)
    low = high = 0
    for digest, share in plays:
        curriculum = curriculum.observe(digest, share, 0)
        window = curriculum.window("sort")
        assert 0 <= window.low <= window.high <= 20
        assert window.high - window.low < 4
        assert window.low >= low
        assert high <= window.high <= high + 1
        assert 0 <= window.successes <= window.attempts < tau_num
        low, high = window.low, window.high


def test_difficulties_are_drawn_uniformly_within_the_window() -> None:
    curriculum = SlidingWindow(rungs=LADDER, plays=4, windows={"sort": Window(low=3, high=6)})
    rng = np.random.default_rng(0)
    counts = Counter(d for _ in range(2000) for d in curriculum.choose(HELD, 2, rng))
    assert counts.pop("sat-0") == 2000  # both environments, every time
    assert set(counts) == {"sort-3", "sort-4", "sort-5", "sort-6"}
    assert all(abs(count - 500) < 100 for count in counts.values())


def test_an_environment_comes_twice_only_when_all_were_named_and_never_with_one_rung() -> None:
    curriculum = SlidingWindow(rungs=LADDER, plays=4, windows={"sort": Window(low=3, high=6)})
    chosen = curriculum.choose(HELD, 9, np.random.default_rng(0))
    assert sorted(chosen) == ["sat-0", "sort-3", "sort-4", "sort-5", "sort-6"]
    assert {d.split("-")[0] for d in chosen[:2]} == {"sort", "sat"}


def test_what_has_no_rung_or_is_not_held_is_never_chosen() -> None:
    rng = np.random.default_rng(0)
    assert FRESH.choose(held("other", "sort-0", "sort-1"), 5, rng) == ["sort-0"]
    assert FRESH.choose(held("sort-1"), 5, rng) == []


def test_a_play_that_could_not_be_measured_or_has_no_rung_counts_for_nothing() -> None:
    assert played(FRESH, (0, float("nan"))) == Window()
    assert FRESH.observe("a-new-design", 1.0, 0) == FRESH


def test_a_share_beyond_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"lies in \[0, 1\], got 1.5"):
        FRESH.observe("sort-0", 1.5, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"plays": 0}, "plays, tau_num and width of at least 1"),
        ({"tau_num": 0}, "plays, tau_num and width of at least 1"),
        ({"tau_acc": 1.1}, "tau_acc must lie in"),
        ({"windows": {"sort": Window(low=0, high=4)}}, "breaks the rules"),
        ({"windows": {"sort": Window(low=18, high=21)}}, "breaks the rules"),
        ({"windows": {"sort": Window(attempts=8)}}, "breaks the rules"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused(
    settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        SlidingWindow(**({"rungs": LADDER, "plays": 4} | settings))  # type: ignore[arg-type]


def test_a_state_that_breaks_a_rule_is_refused() -> None:
    data = FRESH.observe("sort-0", 1.0, 0).to_json()
    data["windows"]["sort"]["low"] = 1
    with pytest.raises(RunStateError, match="breaks the rules"):
        SlidingWindow.from_json(data)


# --- learning progress ---


def test_progress_is_the_distance_of_two_averages() -> None:
    curriculum = LearningProgress().observe("a", 0.2, 0)
    assert curriculum.progress("a") == 0.0
    curriculum = curriculum.observe("a", 1.0, 1)
    assert curriculum.averages["a"].fast == pytest.approx(0.65 * 0.2 + 0.35)
    assert curriculum.averages["a"].slow == pytest.approx(0.85 * 0.2 + 0.15)
    assert curriculum.progress("a") == pytest.approx(0.8 * (0.35 - 0.15))
    assert curriculum.observe("a", float("nan"), 2) == curriculum


def test_half_is_what_moves_most_and_half_is_drawn_from_the_rest() -> None:
    moving = {
        "d0001": Averages(fast=0.1, slow=0.9),
        "d0003": Averages(fast=0.9, slow=0.2),
        "d0005": Averages(fast=0.4, slow=0.3),
    }
    curriculum = LearningProgress(averages=moving)
    rng = np.random.default_rng(0)
    rest: Counter[str] = Counter()
    for _ in range(600):
        chosen = curriculum.choose(pool(8), 4, rng)
        assert chosen[:2] == ["d0001", "d0003"]
        rest.update(chosen[2:])
    assert set(rest) == {"d0000", "d0002", "d0004", "d0005", "d0006", "d0007"}
    assert all(abs(count - 200) < 60 for count in rest.values())


def test_without_progress_no_environment_is_favoured() -> None:
    rng = np.random.default_rng(0)
    counts = Counter(d for _ in range(900) for d in LearningProgress().choose(pool(6), 2, rng))
    assert all(abs(count - 300) < 80 for count in counts.values())


@pytest.mark.parametrize("gammas", [(0.1, 0.2), (0.5, 0.0), (1.2, 0.5)])
def test_gammas_that_make_no_sense_are_refused(gammas: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match="gamma_slow <= gamma_fast <= 1"):
        LearningProgress(gamma_fast=gammas[0], gamma_slow=gammas[1])
