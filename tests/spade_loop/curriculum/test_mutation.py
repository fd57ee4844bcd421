"""Designers that are not trained: parents of high regret, legal edits, random blueprints."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from curricula import held
from hypothesis import given
from hypothesis import strategies as st

from spade_loop import families as catalogue
from spade_loop.curriculum import Held, blueprint_of, mutate, pick_parents, random_blueprint
from spade_loop.errors import BlueprintError, ConfigError
from spade_loop.families import Blueprint, Family, load_families, parse_blueprint

FAMILIES = load_families()
NUMBERS = Family(
    "numbers",
    "",
    {
        "properties": {
            "size": {"type": "integer", "minimum": 1, "maximum": 5},
            "spare": {"enum": [3, 2, 1]},
            "theme": {"enum": ["a", "b", "c"]},
            "dark": {"type": "boolean"},
            "fixed": {"const": 1},
        }
    },
    "optimisation",
)
LEGAL = {"size": 3, "spare": 3, "theme": "a", "dark": False, "fixed": 1}


def ladder(*regrets: float | None) -> list[Held]:
    return [
        replace(h, regret=regret)
        for h, regret in zip(held(*(f"d{i}" for i in range(len(regrets)))), regrets, strict=True)
    ]


# --- parents ---


def test_parents_are_drawn_uniformly_from_the_top_share_by_regret() -> None:
    environments = ladder(0.1, 0.9, None, 0.5, -0.2, 0.7, 0.3, 0.2, float("nan"), 0.0)
    counts = Counter(pick_parents(environments, 4000, np.random.default_rng(0), share=0.25))
    assert set(counts) == {"d1", "d5"}  # a quarter of the eight that were measured
    assert abs(counts["d1"] - 2000) < 160


@given(
    regrets=st.lists(st.none() | st.floats(-1, 1), max_size=20),
    k=st.integers(0, 8),
    share=st.floats(0.01, 1.0),
    seed=st.integers(0, 2**32),
)
def test_no_environment_that_stays_behind_has_a_higher_regret_than_a_parent(
    regrets: list[float | None], k: int, share: float, seed: int
) -> None:
    environments = ladder(*regrets)
    parents = pick_parents(environments, k, np.random.default_rng(seed), share=share)
    again = pick_parents(environments[::-1], k, np.random.default_rng(seed), share=share)
    assert parents == again
    known = {h.digest: h.regret for h in environments if h.regret is not None}
    assert len(parents) == (k if known else 0)
    for parent in parents:
        better = [d for d, regret in known.items() if regret > known[parent]]
        assert len(better) < max(1, np.ceil(share * len(known)))


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1])
def test_a_share_of_parents_lies_between_none_and_all(share: float) -> None:
    with pytest.raises(ConfigError, match="share of parents"):
        pick_parents(ladder(0.5), 1, np.random.default_rng(0), share=share)


# --- edits ---


@given(
    seed=st.integers(0, 2**32), number=st.integers(0, len(FAMILIES) - 1), edits=st.integers(1, 9)
)
def test_a_mutation_is_legal_and_differs_in_as_many_parameters_as_were_edited(
    seed: int, number: int, edits: int
) -> None:
    family = FAMILIES[number]
    rng = np.random.default_rng(seed)
    parent = catalogue.random_blueprint(family, rng)
    state = rng.bit_generator.state
    child = mutate(parent, FAMILIES, rng, edits=edits)
    assert parse_blueprint(child.to_json(), FAMILIES) == child
    assert child.family == parent.family
    changed = [n for n in parent.parameters if parent.parameters[n] != child.parameters[n]]
    free = [n for n, values in family.choices().items() if len(values) > 1]
    assert len(changed) == min(edits, len(free))
    rng.bit_generator.state = state
    assert mutate(parent, FAMILIES, rng, edits=edits) == child


def children(parameters: dict[str, object]) -> Counter[tuple[str, object]]:
    """Parameter and new value of many mutations."""
    rng = np.random.default_rng(0)
    found: Counter[tuple[str, object]] = Counter()
    for _ in range(1200):
        child = mutate(Blueprint("numbers", parameters), [NUMBERS], rng).parameters
        (name,) = [n for n in parameters if child[n] != parameters[n]]
        found[name, child[name]] += 1
    return found


def test_numbers_move_by_one_step_and_names_to_any_other() -> None:
    counts = children(LEGAL)
    assert set(counts) == {
        ("size", 2),
        ("size", 4),
        ("spare", 2),
        ("theme", "b"),
        ("theme", "c"),
        ("dark", True),
    }
    # Every parameter that can change is as likely as every other: 300 each, give or take 15.
    assert abs(counts["size", 2] + counts["size", 4] - 300) < 75
    assert abs(counts["spare", 2] - 300) < 75
    assert abs(counts["theme", "b"] - 150) < 60


def test_at_the_end_of_a_range_a_number_can_only_go_back() -> None:
    ends = children({**LEGAL, "size": 5, "spare": 1, "dark": True})
    assert {value for name, value in ends if name == "size"} == {4}
    assert {value for name, value in ends if name == "spare"} == {2}
    assert {value for name, value in ends if name == "dark"} == {False}


def test_what_cannot_be_edited_is_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(BlueprintError, match=r"numbers.size must be one of"):
        mutate(Blueprint("numbers", {**LEGAL, "size": 9}), [NUMBERS], rng)
    with pytest.raises(ConfigError, match="at least 1 edit, got 0"):
        mutate(Blueprint("numbers", LEGAL), [NUMBERS], rng, edits=0)
    single = replace(NUMBERS, schema={"properties": {"fixed": {"const": 1}}})
    with pytest.raises(ConfigError, match="it has one blueprint"):
        mutate(Blueprint("numbers", {"fixed": 1}), [single], rng)


# --- random blueprints ---


def test_a_random_blueprint_is_of_any_family_equally_often_and_legal() -> None:
    rng = np.random.default_rng(3)
    drawn = [random_blueprint(FAMILIES, rng) for _ in range(200 * len(FAMILIES))]
    assert all(parse_blueprint(b.to_json(), FAMILIES) == b for b in drawn)
    counts = Counter(b.family for b in drawn)
    assert set(counts) == {family.name for family in FAMILIES}
    assert all(abs(count - 200) < 75 for count in counts.values())
    again = np.random.default_rng(3)
    assert random_blueprint(FAMILIES, again) == drawn[0]


def test_without_families_there_is_no_random_blueprint() -> None:
    with pytest.raises(ConfigError, match="at least one family"):
        random_blueprint([], np.random.default_rng(0))


def test_the_blueprint_of_an_environment_is_read_off_its_provenance() -> None:
    blueprint = catalogue.random_blueprint(FAMILIES[0], np.random.default_rng(0))
    assert blueprint_of(blueprint.family, blueprint.parameters, FAMILIES) == blueprint
    assert blueprint_of("", {}, FAMILIES) is None
    assert blueprint_of(blueprint.family, {"old": 1}, FAMILIES) is None
