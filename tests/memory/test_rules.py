from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import ConfigError
from synthgym.memory import rules
from synthgym.memory.rules import Likeness, Relation, Strictness, relation, strongest

LEVELS = tuple(Strictness)


def like(
    containment: float = 0.0,
    cosine: float = 0.0,
    *,
    ast: bool = False,
    data: bool = False,
    behaviour: bool | None = None,
) -> Likeness:
    return Likeness(
        ast_equal=ast,
        data_equal=data,
        containment=containment,
        cosine=cosine,
        behaviour_equal=behaviour,
    )


COPY, REFACTOR, SIBLING = Strictness.COPY, Strictness.REFACTOR, Strictness.SIBLING
TABLE = [
    (like(ast=True, data=True), (Relation.COPY, Relation.COPY, Relation.COPY)),
    (
        like(1.0, 1.0, ast=True),
        (Relation.SAME_FAMILY, Relation.SAME_FAMILY, Relation.SIBLING),
    ),
    (
        like(1.0, 1.0, ast=True, behaviour=True),
        (Relation.SAME_FAMILY, Relation.RESKIN, Relation.RESKIN),
    ),
    (
        like(rules.REFACTORED_CONTAINMENT),
        (Relation.NEEDS_REVIEW, Relation.REFACTORED_COPY, Relation.REFACTORED_COPY),
    ),
    (
        like(rules.RESKIN_CONTAINMENT, behaviour=True),
        (Relation.NEEDS_REVIEW, Relation.RESKIN, Relation.RESKIN),
    ),
    (
        like(rules.SIBLING_CONTAINMENT, behaviour=False),
        (Relation.NEEDS_REVIEW, Relation.NEEDS_REVIEW, Relation.SIBLING),
    ),
    (
        like(rules.SIBLING_TEXT_CONTAINMENT, rules.SIBLING_COSINE),
        (Relation.NEEDS_REVIEW, Relation.NEEDS_REVIEW, Relation.SIBLING),
    ),
    (like(0.0, 1.0), (Relation.NEEDS_REVIEW,) * 3),
    (like(0.3, 0.7, data=True, behaviour=True), (Relation.NEW,) * 3),
]


@pytest.mark.parametrize(("likeness", "expected"), TABLE)
def test_each_strictness_knows_its_relations(
    likeness: Likeness, expected: tuple[Relation, ...]
) -> None:
    assert tuple(relation(likeness, level) for level in LEVELS) == expected


def test_the_default_is_refactor() -> None:
    likeness = like(rules.REFACTORED_CONTAINMENT)
    assert relation(likeness) is relation(likeness, REFACTOR)


def test_copies_and_more_are_rejected_families_and_reviews_are_not() -> None:
    rejected = {item for item in Relation if item.rejects}
    assert rejected == {
        Relation.COPY,
        Relation.REFACTORED_COPY,
        Relation.RESKIN,
        Relation.SIBLING,
    }


likenesses = st.builds(
    Likeness,
    ast_equal=st.booleans(),
    data_equal=st.booleans(),
    containment=st.floats(0.0, 1.0),
    cosine=st.floats(-1.0, 1.0),
    behaviour_equal=st.none() | st.booleans(),
)


@given(likenesses)
def test_a_stricter_level_never_lets_in_what_a_milder_one_rejects(likeness: Likeness) -> None:
    rejected = [relation(likeness, level).rejects for level in LEVELS]
    assert all(not milder or stricter for milder, stricter in pairwise(rejected))


@given(likenesses)
def test_text_and_behaviour_alone_reject_nothing(likeness: Likeness) -> None:
    if likeness.ast_equal or likeness.containment >= rules.SIBLING_TEXT_CONTAINMENT:
        return
    assert not any(relation(likeness, level).rejects for level in LEVELS)


@given(likenesses)
def test_only_equal_structure_is_rejected_by_copy(likeness: Likeness) -> None:
    assert relation(likeness, COPY).rejects == (likeness.ast_equal and likeness.data_equal)


@given(st.lists(st.sampled_from(Relation)))
def test_the_strongest_decides(found: list[Relation]) -> None:
    assert strongest(found).rejects == any(item.rejects for item in found)
    assert strongest(found) in (found or [Relation.NEW])


def test_an_exact_copy_outweighs_everything() -> None:
    assert strongest([Relation.SIBLING, Relation.COPY, Relation.NEW]) is Relation.COPY


@pytest.mark.parametrize(
    "numbers", [(1.1, 0.0), (-0.1, 0.0), (0.0, 1.1), (math.nan, 0.0), (0.0, math.nan)]
)
def test_numbers_out_of_range_are_refused(numbers: tuple[float, float]) -> None:
    with pytest.raises(ConfigError, match=r"0\.\.1"):
        like(*numbers)
