from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from synthgym.errors import ConfigError
from synthgym.memory import Description, HashEmbedder, NoveltyMemory
from synthgym.memory.retrieval import SPADE_CAPACITY

Describe = Callable[..., Description]
Digest = Callable[[object], str]


def pool(
    digest: Digest, rows: list[tuple[str, float | None, float | None, float | None]]
) -> NoveltyMemory:
    """Environments of one skill by text, win rate, regret and its standard error."""
    memory = NoveltyMemory(HashEmbedder())
    for i, (text, rate, regret, error) in enumerate(rows):
        memory.add(
            digest(i),
            Description(text, f"ast/1:{i}", ""),
            name=f"E{i}",
            skill="s",
            iteration=0,
            win_rate=rate,
            regret=regret,
            regret_se=error,
        )
    return memory


def names(memory: NoveltyMemory, k: int, seed: int = 0, policy: str = "mmr") -> list[str]:
    drawn = memory.exemplars("s", k, np.random.default_rng(seed), policy)
    return [record.name for record in drawn]


def test_a_regret_that_few_plays_showed_does_not_rank_first(digest: Digest) -> None:
    rows = [(f"word{i}", 0.5, 0.3, 0.01) for i in range(10)]
    memory = pool(digest, [*rows, ("sure", 0.5, 0.5, 0.01), ("unsure", 0.5, 0.9, 0.5)])
    seen = {name for seed in range(40) for name in names(memory, 2, seed)}
    assert "E10" in seen
    assert "E11" not in seen
    assert "E11" in {name for seed in range(40) for name in names(memory, 2, seed, "spade")}


def test_half_of_the_choice_is_rank_and_half_is_being_different(digest: Digest) -> None:
    texts = ["locks gates", "locks gates", "ledgers sums", "primes"]
    regrets = [0.9, 0.8, 0.5, 0.0]
    memory = pool(digest, [(t, 0.5, r, None) for t, r in zip(texts, regrets, strict=True)])
    # Beside E0, E1 gains 0.89 / 2 - 1 / 2 and E2 0.56 / 2: rank alone would take E1.
    pairs = {tuple(names(memory, 2, seed)) for seed in range(30)}
    assert pairs == {("E0", "E2"), ("E1", "E2"), ("E0", "E3")}
    assert names(memory, 4) == ["E0", "E1", "E2", "E3"]


def test_the_policy_spade_forgets_all_but_the_last_two_hundred(digest: Digest) -> None:
    old = [(f"a{i}", 0.5, 1.0, None) for i in range(5)]
    unmeasured = [(f"b{i}", None, None, None) for i in range(3)]
    new = [(f"c{i}", 0.5, i / 1000, None) for i in range(SPADE_CAPACITY)]
    memory = pool(digest, [*old, *unmeasured, *new])
    drawn = {name for seed in range(60) for name in names(memory, 2, seed, "spade")}
    assert drawn == {f"E{207 - i}" for i in range(10)}
    assert set(names(memory, 2)) <= {*(f"E{i}" for i in range(5)), *drawn}


@pytest.mark.parametrize("policy", ["mmr", "spade"])
def test_the_window_of_win_rates_includes_its_ends(digest: Digest, policy: str) -> None:
    rates = (0.14, 0.15, 0.5, 0.85, 0.86, None)
    memory = pool(digest, [(f"t{i}", rate, 0.1, None) for i, rate in enumerate(rates)])
    assert set(names(memory, 9, policy=policy)) == {"E1", "E2", "E3"}


@pytest.mark.parametrize("policy", ["mmr", "spade"])
def test_a_draw_follows_from_its_generator(digest: Digest, policy: str) -> None:
    memory = pool(digest, [(f"text {i}", 0.5, i / 40, None) for i in range(40)])
    assert names(memory, 3, 1, policy) == names(memory, 3, 1, policy)
    assert len({tuple(names(memory, 3, seed, policy)) for seed in range(10)}) > 1
    assert names(memory, 0, 1, policy) == []


def test_an_unknown_policy_is_refused(digest: Digest) -> None:
    with pytest.raises(ConfigError, match="mmr, spade"):
        names(pool(digest, []), 1, policy="best")


def test_near_misses_are_the_nearest_one_of_each_structure(digest: Digest) -> None:
    memory = NoveltyMemory(HashEmbedder())
    for i, (text, structure) in enumerate(
        [
            ("open the gates", "a"),
            ("open the gates now", "a"),
            ("open the doors", "b"),
            ("sum", "c"),
        ]
    ):
        description = Description(text, f"ast/1:{structure}", str(i))
        memory.add(digest(i), description, name=f"E{i}", skill="s", iteration=0)
    found = memory.near_misses("open the gates", 2)
    assert [record.name for record in found] == ["E0", "E2"]
    assert [r.name for r in memory.near_misses("open the gates", 9)] == ["E0", "E2", "E3"]
    assert memory.near_misses("open the gates", 0) == ()
    assert NoveltyMemory(HashEmbedder()).near_misses("x", 3) == ()


def test_a_new_regret_without_its_error_leaves_none(digest: Digest) -> None:
    memory = pool(digest, [("t", 0.5, 0.4, 0.1)])
    assert memory.get(digest(0)).regret_bound == pytest.approx(0.4 - 1.645 * 0.1)
    memory.update(digest(0), win_rate=0.6)
    assert memory.get(digest(0)).regret_se == 0.1
    memory.update(digest(0), regret=0.5)
    assert memory.get(digest(0)).regret_bound == 0.5
