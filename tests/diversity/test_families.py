from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.diversity.families import (
    families_per_hundred,
    joined,
    labels_of,
    largest_share,
    new_families_per_hundred,
    redundant_share,
    size_histogram,
    sizes,
    skill_coverage,
)
from synthgym.errors import ConfigError

# Ten rows: families of 4, 3, 1, 1 and 1.
TEN = labels_of(list("aabababxyz"))


def test_a_label_is_the_first_row_with_that_key() -> None:
    assert TEN.tolist() == [0, 0, 2, 0, 2, 0, 2, 7, 8, 9]


def test_the_figures_of_ten_rows_are_those_worked_out_by_hand() -> None:
    assert sizes(TEN).tolist() == [4, 3, 1, 1, 1]
    assert redundant_share(TEN) == pytest.approx(0.5)
    assert largest_share(TEN) == pytest.approx(0.4)
    assert size_histogram(TEN) == {1: 3, 3: 1, 4: 1}
    assert families_per_hundred(TEN) == pytest.approx(50.0)
    assert new_families_per_hundred(TEN) == pytest.approx(30.0)  # three singletons in ten


def test_links_join_families_directly_and_through_others() -> None:
    labels = np.arange(6)
    assert joined(labels, [(4, 5), (5, 1)]).tolist() == [0, 1, 2, 3, 1, 1]
    assert joined(TEN, [(9, 8), (7, 3)]).tolist() == [0, 0, 2, 0, 2, 0, 2, 0, 8, 8]
    assert joined(labels, []).tolist() == labels.tolist()


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), max_size=30))
def test_the_order_of_links_makes_no_difference(links: list[tuple[int, int]]) -> None:
    found = joined(np.arange(20), links)
    turned = [(second, first) for first, second in reversed(links)]
    assert joined(np.arange(20), turned).tolist() == found.tolist()
    assert all(found[first] == found[second] for first, second in links)
    assert all(found[found[row]] == found[row] <= row for row in range(20))


def test_a_share_of_nothing_is_refused() -> None:
    for share in (redundant_share, families_per_hundred, new_families_per_hundred):
        with pytest.raises(ConfigError, match="at least one row"):
            share(labels_of([]))
    with pytest.raises(ConfigError, match="at least one row"):
        largest_share(labels_of([]))
    assert size_histogram(labels_of([])) == {}


SKILLS = ("plan", "count", "read", "map")


def test_skills_in_equal_parts_are_even() -> None:
    found = skill_coverage([[skill] for skill in SKILLS * 3], SKILLS)
    assert found == pytest.approx((1.0, 4.0))


def test_coverage_of_three_quarters_and_one_is_that_worked_out_by_hand() -> None:
    # H = 3/4 ln 4/3 + 1/4 ln 4 = ln 4 - 3/4 ln 3
    entropy = math.log(4) - 0.75 * math.log(3)
    found = skill_coverage([["plan"], ["plan"], ["plan"], ["map"]], SKILLS)
    assert found == pytest.approx((entropy / math.log(4), math.exp(entropy)))


def test_a_row_with_several_skills_counts_one_in_all() -> None:
    found = skill_coverage([["plan", "map", "plan"], ["read", "cook"], ["cook"], []], SKILLS)
    assert found is not None
    assert found.effective == pytest.approx(2 * math.sqrt(2))  # shares 1/4, 1/4, 1/2


def test_one_skill_has_no_evenness_and_none_has_no_figure() -> None:
    assert skill_coverage([["plan"]] * 3, SKILLS) == pytest.approx((0.0, 1.0))
    assert skill_coverage([["cook"], []], SKILLS) is None
    with pytest.raises(ConfigError, match="two skills"):
        skill_coverage([["plan"]], ["plan"])
