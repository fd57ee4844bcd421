"""What holds for every curriculum: distinct choices, the same again, states that survive JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest
from curricula import held, names_of, plays, pool
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.curriculum import (
    CURRICULA,
    SCORES,
    Curriculum,
    LearningProgress,
    Replay,
    Rung,
    SlidingWindow,
    Uniform,
    WithoutReplacement,
    curriculum_from_json,
)
from spade_loop.errors import ConfigError, RunStateError

RUNGS = {f"d{i:04d}": Rung(environment=f"e{i % 5}", difficulty=i // 5) for i in range(31)}
FRESH: dict[str, Curriculum] = {
    "uniform": Uniform(),
    "without-replacement": WithoutReplacement(),
    "replay": Replay(),
    "sliding-window": SlidingWindow(rungs=RUNGS, plays=4),
    "learning-progress": LearningProgress(),
}
every = pytest.mark.parametrize("kind", CURRICULA)


def shown(curriculum: Curriculum, seen: Iterable[tuple[str, float, int]]) -> Curriculum:
    for digest, score, iteration in seen:
        curriculum = curriculum.observe(digest, score, iteration)
    return curriculum


def test_every_curriculum_of_the_table_is_tested_here() -> None:
    assert set(FRESH) == set(CURRICULA)
    assert all(FRESH[kind].score in SCORES for kind in FRESH)


@every
@given(seen=plays, size=st.integers(0, 31), k=st.integers(0, 40), seed=st.integers(0, 2**32))
def test_a_choice_is_distinct_held_and_the_same_again(
    kind: str, seen: list[tuple[str, float, int]], size: int, k: int, seed: int
) -> None:
    curriculum, environments = shown(FRESH[kind], seen), pool(size)
    chosen = curriculum.choose(environments, k, np.random.default_rng(seed))
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= names_of(environments)
    expected = min(k, size)
    assert len(chosen) == expected or (kind == "sliding-window" and len(chosen) < expected)
    assert all(type(digest) is str for digest in chosen)
    backwards = curriculum.choose(environments[::-1], k, np.random.default_rng(seed))
    assert backwards == chosen


@every
@given(seen=plays)
def test_a_state_survives_json(kind: str, seen: list[tuple[str, float, int]]) -> None:
    curriculum = shown(FRESH[kind], seen)
    text = json.dumps(curriculum.to_json(), allow_nan=False)
    again = curriculum_from_json(json.loads(text))
    assert again == curriculum
    assert json.dumps(again.to_json()) == text
    rngs = [np.random.default_rng(1), np.random.default_rng(1)]
    assert again.choose(pool(20), 5, rngs[0]) == curriculum.choose(pool(20), 5, rngs[1])


@every
@given(seen=plays)
def test_observing_changes_nothing_of_the_curriculum_that_observes(
    kind: str, seen: list[tuple[str, float, int]]
) -> None:
    before = json.dumps(FRESH[kind].to_json())
    shown(FRESH[kind], seen)
    assert json.dumps(FRESH[kind].to_json()) == before


@every
def test_a_digest_that_comes_twice_or_a_negative_number_is_refused(kind: str) -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ConfigError, match="a comes twice"):
        FRESH[kind].choose(held("a", "b", "a"), 1, rng)
    with pytest.raises(ConfigError, match="at least 0 environments, got -1"):
        FRESH[kind].choose(held("a"), -1, rng)


@every
def test_a_state_with_a_field_more_or_less_or_of_another_kind_is_refused(kind: str) -> None:
    cls, data = CURRICULA[kind], FRESH[kind].to_json()
    with pytest.raises(RunStateError, match="missing or unknown: extra"):
        cls.from_json({**data, "extra": 1})
    with pytest.raises(RunStateError, match="must have that kind, got 'other'"):
        cls.from_json({**data, "kind": "other"})
    with pytest.raises(RunStateError, match="must be an object, got list"):
        cls.from_json([])  # type: ignore[arg-type]
    for field in data:
        if field != "kind":
            with pytest.raises(RunStateError, match=f"missing or unknown: {field}"):
                cls.from_json({name: value for name, value in data.items() if name != field})
            with pytest.raises(RunStateError, match="cannot be read"):
                cls.from_json({**data, field: object()})


@pytest.mark.parametrize("data", [{}, {"kind": "greedy"}, {"kind": ["replay"]}, [], None])
def test_a_state_of_no_curriculum_is_refused_with_the_names_of_all(data: object) -> None:
    with pytest.raises(RunStateError, match="uniform, without-replacement, replay"):
        curriculum_from_json(data)  # type: ignore[arg-type]


# --- uniform ---


def test_uniform_draws_what_the_loop_has_drawn_from_its_pool() -> None:
    names = sorted(names_of(pool(12)))
    rngs = [np.random.default_rng(5), np.random.default_rng(5)]
    drawn = rngs[0].choice(len(names), size=4, replace=False)
    assert Uniform().choose(pool(12), 4, rngs[1]) == [names[i] for i in drawn]


def test_uniform_reaches_every_environment_equally_often() -> None:
    rng = np.random.default_rng(0)
    counts = Counter(d for _ in range(3000) for d in Uniform().choose(pool(6), 2, rng))
    # 1000 expected each; the standard deviation of a count is 26.
    assert all(abs(count - 1000) < 130 for count in counts.values())
    assert len(counts) == 6


# --- without replacement ---


def drawn(curriculum: WithoutReplacement, size: int, k: int, rounds: int) -> list[list[str]]:
    choices = []
    for i in range(rounds):
        choices.append(curriculum.choose(pool(size), k, np.random.default_rng(i)))
        curriculum = shown(curriculum, [(d, float("nan"), i) for d in choices[-1]])  # type: ignore[assignment]
    return choices


@given(size=st.integers(1, 12), k=st.integers(1, 5), seed=st.integers(0, 9))
def test_a_pass_names_everything_once_before_anything_comes_twice(
    size: int, k: int, seed: int
) -> None:
    k = min(k, size)
    flat = [d for choice in drawn(WithoutReplacement(seed=seed), size, k, 3 * size) for d in choice]
    counts: Counter[str] = Counter()
    for digest in flat:
        counts[digest] += 1
        everything = [counts[name] for name in names_of(pool(size))]
        assert max(everything) - min(everything) <= 1
    assert counts.total() == 3 * size * k


def test_passes_have_orders_of_their_own_and_the_seed_decides_them() -> None:
    first, second = drawn(WithoutReplacement(), 10, 10, 2)
    assert sorted(first) == sorted(second)
    assert first != second
    assert drawn(WithoutReplacement(seed=43), 10, 10, 1)[0] != first
    assert drawn(WithoutReplacement(), 10, 10, 1)[0] == first


def test_an_environment_that_leaves_moves_no_other_in_the_queue() -> None:
    curriculum = WithoutReplacement(draws={"d0001": 1, "d0004": 2})
    full = curriculum.queue(pool(8))
    assert full[-2:] == ["d0001", "d0004"]
    without = [h for h in pool(8) if h.digest != "d0003"]
    assert curriculum.queue(without) == [d for d in full if d != "d0003"]


def test_the_state_of_a_pool_cannot_hold_counts_that_nothing_leads_to() -> None:
    with pytest.raises(ConfigError, match="draws of at least 1"):
        WithoutReplacement(draws={"a": 0})
    with pytest.raises(RunStateError, match="draws of at least 1"):
        WithoutReplacement.from_json({"kind": "without-replacement", "seed": 1, "draws": {"a": -1}})
