"""Zones as a table, and as a partition of everything that can be measured."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pages import table

from spade_loop.errors import ConfigError
from spade_loop.gap.zones import Figures, Zone, ZoneRules, zone_of
from spade_loop.tasks import CHECKS

RULES = ZoneRules()
SHARES = st.floats(0.0, 1.0)


def figures(plain: float, hinted: float, low: float | None = None) -> Figures:
    regret = hinted - plain
    return Figures(
        plain=plain,
        hinted=hinted,
        regret=regret,
        regret_low=regret - 0.2 if low is None else low,
    )


@pytest.mark.parametrize(
    ("plain", "hinted", "low", "zone"),
    [
        (1.0, 1.0, None, "mastered"),
        (0.9, 0.0, None, "mastered"),
        (0.89, 0.89, None, "frontier"),
        (0.11, 0.0, None, "frontier"),  # solved at times, though the hint does harm
        (0.0, 1.0, 0.7, "frontier"),
        (0.0, 0.08, 0.01, "frontier"),  # a small help that is sure
        (0.0, 0.2, -0.1, "frontier"),  # a help of the target's size, not sure
        (0.0, 0.0, None, "out-of-reach"),
        (0.1, 0.1, None, "out-of-reach"),
        (0.0, 0.15, -0.05, "hint-useless"),
        (0.1, 0.2, -0.2, "hint-useless"),
    ],
)
def test_zones_by_example(plain: float, hinted: float, low: float | None, zone: str) -> None:
    assert zone_of(figures(plain, hinted, low), RULES) == zone


def test_what_could_not_be_measured_has_a_zone_of_its_own() -> None:
    assert zone_of(None, RULES) is Zone.UNMEASURED


def test_a_hint_of_another_level_tells_what_is_within_reach() -> None:
    useless = Figures(plain=0.0, hinted=0.9, regret=0.0, regret_low=-0.1)
    assert zone_of(useless, RULES) is Zone.HINT_USELESS


@given(plain=SHARES, hinted=SHARES, width=st.floats(0.0, 1.0))
def test_each_zone_keeps_what_it_promises(plain: float, hinted: float, width: float) -> None:
    found = figures(plain, hinted, hinted - plain - width)
    zone = zone_of(found, RULES)
    helped = found.regret_low > 0 or found.regret >= RULES.helps
    assert zone is not Zone.UNMEASURED
    assert (zone is Zone.MASTERED) == (plain >= RULES.mastered)
    if zone is Zone.FRONTIER:
        assert helped or RULES.solvable < plain < RULES.mastered
    if zone in (Zone.OUT_OF_REACH, Zone.HINT_USELESS):
        assert plain <= RULES.solvable
        assert not helped
        assert (hinted <= RULES.solvable) == (zone is Zone.OUT_OF_REACH)


@given(plain=SHARES, hinted=SHARES, more=SHARES)
def test_a_better_hint_never_puts_an_environment_out_of_reach(
    plain: float, hinted: float, more: float
) -> None:
    assume(hinted + more <= 1.0)
    if zone_of(figures(plain, hinted), RULES) is not Zone.OUT_OF_REACH:
        assert zone_of(figures(plain, hinted + more), RULES) is not Zone.OUT_OF_REACH


@pytest.mark.parametrize(
    "bad",
    [
        {"mastered": 0.1},
        {"mastered": 1.2},
        {"solvable": -0.1},
        {"solvable": 0.95},
        {"mastered": math.nan},
        {"helps": 0.0},
    ],
)
def test_rules_that_leave_no_room_are_refused(bad: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        ZoneRules(**bad)


def test_the_page_has_every_zone_and_every_check() -> None:
    assert set(table("docs/gap.md", "zones")) >= {*Zone}
    assert list(table("docs/gap.md", "checks")) == list(CHECKS)
