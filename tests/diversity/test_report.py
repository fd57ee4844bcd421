from __future__ import annotations

import json
import math

import numpy as np
import pytest
from diversity_pools import collection

from synthgym.diversity import FIGURES, Diversity, compare, measure, report
from synthgym.errors import ConfigError


def values(found: Diversity) -> dict[str, float | None]:
    return {
        item.figure.key: None if item.matched is None else item.matched.value
        for item in found.figures
    }


def measured(*kinds: int, **more: object) -> Diversity:
    return measure(collection(kinds, **more), np.random.default_rng(0))  # type: ignore[arg-type]


def test_the_figures_of_eight_are_those_worked_out_by_hand() -> None:
    # Four copies of 0, two of 1, one of 2 and one of 3; texts of different kinds are orthogonal.
    found = values(
        measured(
            *(0, 0, 0, 0, 1, 1, 2, 3),
            skills=[["optimisation"]] * 4 + [["data-retrieval"]] * 4,
            traces=["+"] * 4 + ["0+", "0+", None, None],
        )
    )
    rare = found.pop("rare_code")
    assert rare is not None
    assert rare > 0.0
    half, quarter, eighth = 0.5, 0.25, 0.125
    entropy = -(half * math.log(half) + quarter * math.log(quarter) + 2 * eighth * math.log(eighth))
    assert found == pytest.approx(
        {
            "vendi_1": math.exp(entropy),
            "near_copies": 4 / 8,
            "vendi_1_families": 4.0,
            "vendi_2": 1 / (half**2 + quarter**2 + 2 * eighth**2),
            "vendi_inf": 2.0,
            "nn_1": 2 / 8,  # two have no copy
            "knn_5": (4 * 2 + 2 * 4 + 2 * 5) / 40,
            "review": 0.0,
            "copies": 4 / 8,
            "same_structure": 4 / 8,
            "largest_family": 4 / 8,
            "families_per_100": 50.0,
            "new_families_per_100": 25.0,
            "skill_evenness": math.log(2) / math.log(12),
            "skills": 2.0,
            "traces": 2 / 6,
            "effective_traces": 3 / 4 ** (1 / 3),
            "largest_trace": 4 / 6,
        },
        abs=1e-6,
    )


def test_copies_move_the_distances_and_the_rates_but_hardly_the_vendi_score() -> None:
    once, twice = measured(*range(12)), measured(*range(12), *range(12))
    assert values(once)["vendi_1"] == pytest.approx(values(twice)["vendi_1"])
    assert (values(once)["nn_1"], values(twice)["nn_1"]) == pytest.approx((1.0, 0.0))
    assert (values(once)["near_copies"], values(twice)["near_copies"]) == (0.0, 0.5)


def test_new_words_for_old_code_move_the_vendi_score_and_not_the_one_a_family() -> None:
    found = values(measured(*[0] * 6, vectors=np.eye(6)))
    assert found["vendi_1"] == pytest.approx(6.0)
    assert found["vendi_1_families"] == pytest.approx(1.0)
    assert found["near_copies"] == pytest.approx(5 / 6)


def test_similar_texts_of_different_families_are_to_be_reviewed() -> None:
    close = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
    assert values(measured(0, 1, 2, vectors=close))["review"] == pytest.approx(2 / 3)
    assert values(measured(0, 0, 2, vectors=close))["review"] == 0.0


def test_blueprints_of_one_family_are_one_family_and_no_copies() -> None:
    found = measured(0, 1, 2, 3, families=["locks", "", "locks", ""])
    assert found.histogram == {1: 2, 2: 1}
    (family,) = found.largest
    assert family.size == 2
    assert values(found)["near_copies"] == 0.0
    assert values(found)["families_per_100"] == pytest.approx(75.0)


def test_figures_are_there_in_order_and_those_of_traces_when_they_were_asked_for() -> None:
    with_traces = measured(0, 1, 2, traces=[None] * 3)
    without = measured(0, 1, 2)
    keys = [figure.key for figure in FIGURES]
    assert list(values(with_traces)) == keys
    assert list(values(without)) == keys[:-3]
    assert values(with_traces)["traces"] is None
    assert (with_traces.untraced, without.untraced) == (3, None)
    with pytest.raises(KeyError):
        without.figure("traces")


@pytest.mark.parametrize("count", [1, 2, 5])
def test_small_pools_have_the_figures_that_they_can_have(count: int) -> None:
    found = values(measured(*range(count)))
    assert found["vendi_1"] == pytest.approx(count)
    assert (found["nn_1"] is None) == (count < 2)
    assert found["knn_5"] is None
    assert found["skills"] is None


def test_a_pool_without_members_has_no_figure() -> None:
    found = measured()
    assert (found.figures, found.measured, found.histogram) == ((), 0, {})
    assert found.to_json()["figures"] == {}


def test_pools_are_compared_at_the_size_of_the_smallest_that_has_members() -> None:
    pools = [collection(range(40)), collection([0] * 10), collection([])]
    large, small, empty = compare(pools, seed=3)
    assert (large.size, small.size, empty.size) == (10, 10, 0)
    assert values(large)["vendi_1"] == pytest.approx(10.0)
    assert values(small)["vendi_1"] == pytest.approx(1.0)
    assert large.figure("vendi_1").whole == pytest.approx(40.0)


def test_the_company_makes_no_difference_and_the_seed_does() -> None:
    pool, other = collection([n % 30 for n in range(80)]), collection(range(60), name="other 1")
    alone = compare([pool], sample=20, seed=1)[0]
    assert compare([other, pool], sample=20, seed=1)[1] == alone
    assert compare([pool], sample=20, seed=2)[0] != alone


def test_intervals_hold_only_what_can_be() -> None:
    found = measured(*[n % 39 for n in range(40)])
    for item in found.figures:
        if item.matched is not None and item.matched.low is not None:
            assert item.matched.high is not None
            assert item.figure.least <= item.matched.low <= item.matched.high <= item.figure.most
    assert found.figure("near_copies").matched is not None


def test_in_a_large_pool_not_every_pair_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_PAIRWISE_ROWS", 20)
    found = measure(collection(range(40)), np.random.default_rng(0), sample=10)
    assert found.nearest_of == 20
    assert found.figure("nn_1").whole is None
    assert found.figure("nn_1").matched is not None
    assert found.figure("vendi_1").whole == pytest.approx(40.0)


def test_nearest_pairs_say_whether_both_are_of_one_family() -> None:
    close = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.8, 0.6, 0.0]])
    first, second, third = measured(0, 0, 1, vectors=close).nearest
    assert (first.first.title, first.second.title) == ("number 1", "number 2")
    assert first.similarity == pytest.approx(1.0)
    assert (first.related, second.related, third.related) == (False, True, False)
    assert (second.containment, first.containment) == (1.0, pytest.approx(0.0, abs=0.3))


def test_json_is_strict_and_names_the_embedder_beside_each_figure_of_texts() -> None:
    found = measured(0, 0, 1).to_json()
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    for figure in FIGURES[:-3]:
        assert found["figures"][figure.key].get("embedder") == (
            "made/1" if figure.embedded else None
        )
    assert found["families"]["histogram"] == {"1": 1, "2": 1}
    assert found["families"]["largest"][0]["members"][0]["id"] == "synthgym/Made0-v0"


def test_the_same_pool_and_seed_give_the_same_json() -> None:
    def once() -> str:
        pool = collection([n % 30 for n in range(80)])
        return json.dumps(measure(pool, np.random.default_rng(7), sample=20).to_json())

    assert once() == once()


def test_what_cannot_be_compared_is_refused() -> None:
    pool = collection([0, 1])
    with pytest.raises(ConfigError, match="sample"):
        compare([pool], sample=0)
    with pytest.raises(ConfigError, match="no collection"):
        compare([])
    other = collection([0, 1])
    object.__setattr__(other, "embedder", "other/1")
    with pytest.raises(ConfigError, match="made/1, other/1"):
        compare([pool, other])
    with pytest.raises(ConfigError, match="vector for each"):
        collection([0, 1], vectors=np.eye(3))
