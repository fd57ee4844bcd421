"""The stopping rule: where it looks, what it spends, and that it is right as often as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spade_loop.rewards import (
    DEFAULT_RULE,
    Decision,
    Interval,
    StoppingRule,
    decide,
    next_look,
    regret_interval,
)
from spade_loop.rewards.quantiles import student_quantile

ENVIRONMENTS = 2000
RESCUED = 0.3
"""Share of the plays lost without the hint that are won with it."""


def interval(half: float, look: int, rule: StoppingRule = DEFAULT_RULE) -> Interval:
    return Interval(0.1 - half, 0.1 + half, rule.confidence(look), "adjusted-t")


def test_looks_double_and_end() -> None:
    looks = [0]
    while (look := next_look(looks[-1])) is not None:
        looks.append(look)
    assert looks == [0, 16, 32, 64, 128, 256]
    assert (next_look(17), next_look(31), next_look(300)) == (32, 32, None)


def test_all_of_alpha_is_spent_and_no_more() -> None:
    spent = [1.0 - DEFAULT_RULE.confidence(look) for look in DEFAULT_RULE.looks]
    assert sum(spent) == pytest.approx(0.05)
    # 0.05 ln(1 + (e - 1) / 16), and what 32 of 256 pairs add to it
    assert spent[0] == pytest.approx(0.05 * math.log(1 + 1.718281828459045 / 16))
    assert spent[1] == pytest.approx(0.05 * math.log(1 + 1.718281828459045 / 8) - spent[0])


def test_the_confidences_are_those_of_the_docs() -> None:
    percent = [f"{100 * DEFAULT_RULE.confidence(look):.2f}" for look in DEFAULT_RULE.looks]
    assert percent == ["99.49", "99.54", "99.19", "98.69", "98.10"]


@pytest.mark.parametrize(
    ("look", "half", "decision"),
    [
        (16, 0.2, Decision.STOP),
        (16, 0.201, Decision.CONTINUE),
        (128, 0.5, Decision.CONTINUE),
        (256, 0.5, Decision.STOP),
    ],
)
def test_play_stops_at_a_narrow_interval_or_at_the_last_look(
    look: int, half: float, decision: Decision
) -> None:
    assert decide(look, interval(half, look)) is decision


def test_a_rule_of_ones_own_is_followed() -> None:
    rule = StoppingRule(looks=(8, 24), alpha=0.1, target=0.35)
    assert next_look(8, rule) == 24
    assert decide(8, interval(0.3, 8, rule), rule) is Decision.STOP
    assert sum(1.0 - rule.confidence(look) for look in rule.looks) == pytest.approx(0.1)


def test_what_no_look_allows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"look at \(16, 32, 64, 128, 256\) pairs only, not at 20"):
        decide(20, interval(0.1, 16))
    with pytest.raises(ValueError, match=r"look 16 has confidence 0\.99.*got 0\.95"):
        decide(16, Interval(0.0, 0.1, 0.95, "adjusted-t"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"looks": ()}, "rising positive numbers"),
        ({"looks": (16, 16)}, "rising positive numbers"),
        ({"looks": (0, 16)}, "rising positive numbers"),
        ({"alpha": 0.0}, "alpha must lie between"),
        ({"target": 0.0}, "target must be a half-width above 0"),
    ],
)
def test_a_rule_that_is_none_is_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StoppingRule(**settings)


# --- coverage ---


def environments(
    plays: int, rate: float, correlation: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Wins of both arms, [environments, seeds, plays], of 256 pairs each.

    A seed's plain rate is drawn from a beta distribution of mean `rate`, so that `correlation` is that of two plain
    plays of one seed. With the hint a play is won also where it would have been lost, three times in ten.
    """
    shape = (ENVIRONMENTS, DEFAULT_RULE.looks[-1] // plays, 1)
    if correlation > 0.0:
        total = (1.0 - correlation) / correlation
        rate_ES1 = rng.beta(rate * total, (1.0 - rate) * total, shape)
    else:
        rate_ES1 = np.full(shape, rate)
    drawn = (*shape[:2], plays)
    plain = rng.random(drawn) < rate_ES1
    hinted = rng.random(drawn) < rate_ES1 + (1.0 - rate_ES1) * RESCUED
    return hinted.astype(np.float64), plain.astype(np.float64)


def stopped(hinted_SK: np.ndarray, plain_SK: np.ndarray) -> tuple[int, Interval]:
    """Pairs played under the default rule, and the interval at its end."""
    plays = hinted_SK.shape[1]
    look = next_look(0)
    while look is not None:
        seeds = look // plays
        found = regret_interval(hinted_SK[:seeds], plain_SK[:seeds], DEFAULT_RULE.confidence(look))
        if decide(look, found) is Decision.STOP:
            return look, found
        look = next_look(look)
    raise AssertionError("the last look stops")


@pytest.mark.parametrize("plays", [1, 4])
@pytest.mark.parametrize(
    ("rate", "correlation"), [(0.05, 0.0), (0.05, 0.8), (0.5, 0.3), (0.9, 0.0), (0.9, 0.8)]
)
def test_intervals_under_the_rule_cover_the_regret(
    plays: int, rate: float, correlation: float
) -> None:
    rng = np.random.default_rng([plays, round(100 * rate), round(100 * correlation)])
    hinted, plain = environments(plays, rate, correlation, rng)
    true = (1.0 - rate) * RESCUED
    ends = [stopped(h, p) for h, p in zip(hinted, plain, strict=True)]
    covered = np.mean([found.low <= true <= found.high for _, found in ends])
    assert covered >= 0.93
    # It does stop early: all 256 pairs are never needed for a half-width of 0.2 where plays of a seed vary.
    assert np.mean([pairs for pairs, _ in ends]) <= 160
    assert all(found.half_width <= 0.2 or pairs == 256 for pairs, found in ends)


def test_a_t_interval_without_the_two_seeds_would_stop_at_luck() -> None:
    """Why `regret_interval` adds two seeds: four seeds that agree by chance make a plain t interval a point."""
    rng = np.random.default_rng(11)
    hinted, plain = environments(4, 0.9, 0.8, rng)
    difference_ES = (hinted - plain).mean(axis=2)
    open_E = np.ones(ENVIRONMENTS, dtype=bool)
    covered_E = np.zeros(ENVIRONMENTS, dtype=bool)
    for look in DEFAULT_RULE.looks:
        seen_ES = difference_ES[:, : look // 4]
        n = seen_ES.shape[1]
        t = student_quantile(DEFAULT_RULE.confidence(look), n - 1)
        half_E = t * seen_ES.std(axis=1, ddof=1) / math.sqrt(n)
        ends_E = open_E & ((half_E <= DEFAULT_RULE.target) | (look == 256))
        covered_E[ends_E] = (np.abs(seen_ES.mean(axis=1) - 0.1 * RESCUED) <= half_E)[ends_E]
        open_E &= ~ends_E
    assert covered_E.mean() < 0.6
