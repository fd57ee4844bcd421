"""What the designer is paid: every formula against a second computation of it, and the penalties."""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, pvariance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.errors import ConfigError
from spade_loop.rewards import (
    BLEND_CODE_DEFAULTS,
    BLEND_LATE_PHASE,
    DESIGNER_REWARDS,
    FAULT_FLOOR,
    NOT_MEASURED,
    REFERENCE_SETTINGS,
    BlendParameters,
    Incidents,
    LearningRates,
    Regret,
    RewardSettings,
    Tracker,
    Window,
    blend,
    designer_reward,
    gated_regret,
    learnability,
    penalised,
    plain_regret,
    solve_rate,
    with_faults,
)

NAN = math.nan
UNIT = st.floats(0.0, 1.0)
SIGNED = st.floats(-1.0, 1.0)
NEEDS_RETURNS = ("learning_potential", "micro_learning_potential", "variance")


def regret_of(value: float = 0.0, solve_rate: float = 0.5) -> Regret:
    return Regret(value, 0.1, solve_rate, 0.9, 4)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    returns = draw(st.lists(st.lists(UNIT, max_size=3).map(tuple), max_size=4))
    maybe = st.one_of(st.just(NOT_MEASURED), st.builds(regret_of, SIGNED, UNIT))
    return Window(
        regret=draw(maybe),
        matched=draw(maybe),
        returns=tuple(returns),
        hinted_mean=draw(st.one_of(st.just(NAN), UNIT)),
        skill=draw(st.sampled_from(["logic", "maths"])),
    )


def settings() -> st.SearchStrategy[RewardSettings]:
    weights = st.sampled_from([0.0, 0.4, 1.0])
    parameters = st.builds(
        BlendParameters,
        regret_weight=weights,
        micro_weight=weights,
        plateau_weight=weights,
        front_weight=weights,
        regret_floor=st.booleans(),
        micro=st.sampled_from(["trend", "gain"]),
        micro_floor=st.booleans(),
        low=st.just(0.3),
        high=st.sampled_from([0.3, 0.6]),
        ramp=st.sampled_from([0.2, 0.25]),
    )
    return st.builds(
        RewardSettings,
        floored=st.booleans(),
        estimator=st.sampled_from(["paired", "means"]),
        blend=parameters,
        learning=st.builds(LearningRates, variance=st.booleans()),
        trackers=st.just({"logic": Tracker(0.6, 0.4)}),
    )


# --- by hand ---


@pytest.mark.parametrize(
    ("value", "solve_rate", "expected"),
    [(0.4, 0.5, 0.4), (0.4, 0.0, 0.0), (0.4, 0.075, 0.2), (-0.3, 0.5, -0.3), (2.0, 1.0, 1.0)],
)
def test_gated_regret_pays_nothing_for_what_only_the_hint_solves(
    value: float, solve_rate: float, expected: float
) -> None:
    assert gated_regret(regret_of(value, solve_rate)) == pytest.approx(expected)


def test_the_gate_may_be_elsewhere() -> None:
    assert gated_regret(regret_of(0.4, 0.1), RewardSettings(gate=0.2)) == pytest.approx(0.2)


def test_regret_is_floored_only_on_request() -> None:
    assert plain_regret(regret_of(-0.2)) == -0.2
    assert plain_regret(regret_of(-0.2), RewardSettings(floored=True)) == 0.0
    assert math.isnan(plain_regret(NOT_MEASURED, RewardSettings(floored=True)))


@pytest.mark.parametrize(
    ("value", "solve_rate", "expected"),
    [(0.15, 0.5, 1.0), (0.0, 0.5, 0.6), (0.3, 0.15, 0.4), (0.0, 0.275, 0.3), (0.0, 1.0, 0.0)],
)
def test_blend_is_the_reference_recipes_reward(
    value: float, solve_rate: float, expected: float
) -> None:
    assert blend(regret_of(value, solve_rate)) == pytest.approx(expected)


LEARNT = Window(
    regret=regret_of(-0.4, 0.5),
    matched=regret_of(0.3, 0.0),
    returns=((0.0, 0.0), (1.0, 1.0)),
    hinted_mean=0.3,
    skill="logic",
)


def test_blend_takes_the_regret_of_the_first_offset_and_the_solve_rate_of_all() -> None:
    assert blend(LEARNT) == pytest.approx(0.6 + 0.4)


def test_the_codes_defaults_are_half_regret_and_half_learning_unclipped() -> None:
    # 0.5 * 0.3 / 0.15 + 0.5 * 1 / 0.10
    code = RewardSettings(blend=BLEND_CODE_DEFAULTS)
    assert blend(LEARNT, code) == pytest.approx(1.0 + 5.0)
    forgot = replace(LEARNT, returns=LEARNT.returns[::-1])
    assert math.isnan(blend(forgot, code))
    floor = replace(BLEND_CODE_DEFAULTS, micro_floor=True)
    assert blend(forgot, RewardSettings(blend=floor)) == pytest.approx(1.0)


@pytest.mark.parametrize(("micro", "learnt"), [("trend", 0.5), ("gain", 0.75)])
def test_learning_is_the_trend_or_the_gain(micro: str, learnt: float) -> None:
    three = replace(LEARNT, returns=((0.0,), (1.0,), (0.5,)))
    alone = BlendParameters(
        regret_weight=0.0, plateau_weight=0.0, micro_weight=1.0, micro_scale=0.5, micro=micro
    )
    assert blend(three, RewardSettings(blend=alone)) == pytest.approx(learnt / 0.5)


def test_the_front_term_masks_what_is_far_from_even() -> None:
    front = RewardSettings(blend=BlendParameters(front_weight=1.0, plateau_weight=0.0))
    # 0.4 * 1 - (0.7 - 0.5)^2 / 0.08 = -0.1
    assert math.isnan(blend(regret_of(0.15, 0.7), front))
    # 0.4 - 0.01 / 0.08
    assert blend(regret_of(0.15, 0.6), front) == pytest.approx(0.275)


def test_the_late_phase_wants_harder_environments() -> None:
    late = RewardSettings(blend=BLEND_LATE_PHASE)
    assert [solve_rate(regret_of(0.0, w), late) for w in (0.0, 0.1, 0.3, 0.5, 0.6)] == (
        pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    )


@given(UNIT)
def test_the_solve_rate_control_is_the_blend_with_the_plateau_alone(rate: float) -> None:
    alone = BlendParameters(regret_weight=0.0, plateau_weight=1.0)
    made = replace(LEARNT, regret=regret_of(0.2, rate), matched=NOT_MEASURED)
    assert solve_rate(made) == blend(made, RewardSettings(blend=alone))


@pytest.mark.parametrize(("rate", "expected"), [(0.0, 0.0), (0.5, 1.0), (0.25, 0.75), (1.0, 0.0)])
def test_learnability_is_highest_where_half_is_solved(rate: float, expected: float) -> None:
    assert learnability(regret_of(0.2, rate)) == pytest.approx(expected)


def test_as_the_released_code_regret_is_of_means_and_floored() -> None:
    # R_h - mean(S) = 0.3 - 0.5, and R_h - mean(S_0) = 0.3
    assert plain_regret(LEARNT, REFERENCE_SETTINGS) == 0.0
    assert blend(LEARNT, REFERENCE_SETTINGS) == pytest.approx(1.0)
    easy = replace(LEARNT, returns=((0.2, 0.0), (0.0, 0.2)))
    assert plain_regret(easy, REFERENCE_SETTINGS) == pytest.approx(0.2)
    # plateau(0.1) = 0, clip(0.2 / 0.15) = 1
    assert blend(easy, REFERENCE_SETTINGS) == pytest.approx(0.4)


# --- every formula once more, independently ---


def plateau_again(w: float, p: BlendParameters) -> float:
    if w < p.low:
        return max(0.0, 1 - (p.low - w) / p.ramp)
    if w > p.high:
        return max(0.0, 1 - (w - p.high) / p.ramp)
    return 1.0


def blend_again(w: float, r0: float, window: Window, p: BlendParameters) -> float:
    reg = max(0.0, min(1.0, r0 / p.regret_scale)) if p.regret_floor else r0 / p.regret_scale
    raw = p.plateau_weight * plateau_again(w, p) if p.plateau_weight else 0.0
    if p.regret_weight:
        raw += p.regret_weight * (NAN if math.isnan(r0) else reg)
    if p.micro_weight:
        if not window.plays:
            return NAN
        micro = window.trend if p.micro == "trend" else window.gain
        raw += p.micro_weight * (max(0.0, micro) if p.micro_floor else micro) / 0.10
    if p.front_weight:
        raw -= p.front_weight * (w - 0.5) ** 2 / 0.08
    if p.plateau_weight and math.isnan(w):
        return NAN
    return raw if raw >= 0.0 else NAN


def potential_again(window: Window, mean: float, s: RewardSettings) -> float:
    distance = abs(mean - 0.4) if window.skill == "logic" else 0.0
    if s.learning.variance and len(window.plays) > 1:
        distance += math.exp(-((pvariance(window.plays) - 0.25) ** 2) / 0.02)
    return distance


def again(name: str, window: Window, s: RewardSettings) -> float:
    plays = window.plays
    if name in NEEDS_RETURNS and not plays:
        return NAN
    mean = fmean(plays) if plays else NAN
    first = window.returns[0] if window.returns else ()
    r, w, r0 = window.regret.value, window.regret.solve_rate, window.matched.value
    if s.estimator == "means":
        r, w, r0 = (
            window.hinted_mean - mean,
            mean,
            window.hinted_mean - (fmean(first) if first else NAN),
        )
    unknown = math.isnan(r)
    formulas = {
        "gated_regret": lambda: NAN if unknown else max(-1.0, min(1.0, r)) * min(1.0, w / 0.15),
        "regret": lambda: r if unknown or not s.floored else max(r, 0.0),
        "blend": lambda: blend_again(w, r0, window, s.blend),
        "solve_rate": lambda: NAN if math.isnan(w) else plateau_again(w, s.blend),
        "learnability": lambda: 4 * (w - w * w),
        "variance": lambda: pvariance(plays),
        "micro_learning_potential": lambda: max(0.0, window.gain),
        "learning_potential": lambda: potential_again(window, mean, s),
    }
    return formulas[name]()


@pytest.mark.parametrize("name", DESIGNER_REWARDS)
@given(window=windows(), chosen=settings())
def test_a_reward_is_its_formula(name: str, window: Window, chosen: RewardSettings) -> None:
    made = DESIGNER_REWARDS[name](window, chosen)
    expected = again(name, window, chosen)
    # On the edge of the mask rounding decides.
    if name == "blend" and math.isnan(made) != math.isnan(expected):
        kept = expected if math.isnan(made) else made
        assert kept == pytest.approx(0.0, abs=1e-9)
    else:
        assert made == pytest.approx(expected, abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("name", DESIGNER_REWARDS)
@given(window=windows())
def test_what_was_measured_has_a_reward(name: str, window: Window) -> None:
    """NaN comes of nothing but NaN; the default blend masks nothing."""
    if window.plays and not any(math.isnan(r.value) for r in (window.regret, window.matched)):
        assert math.isfinite(DESIGNER_REWARDS[name](window))


@pytest.mark.parametrize("name", sorted(set(DESIGNER_REWARDS) - set(NEEDS_RETURNS)))
def test_a_bare_regret_is_a_window_of_one_iteration(name: str) -> None:
    regret = regret_of(0.2, 0.35)
    window = Window(regret=regret, matched=regret, returns=((0.5,),), hinted_mean=0.5, skill="")
    assert DESIGNER_REWARDS[name](regret) == DESIGNER_REWARDS[name](window)
    with pytest.raises(TypeError, match="'means' needs a Window"):
        DESIGNER_REWARDS[name](regret, REFERENCE_SETTINGS)


@pytest.mark.parametrize("name", NEEDS_RETURNS)
def test_a_reward_of_returns_refuses_a_bare_regret(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} needs the returns of a Window, got a bare Regret"):
        DESIGNER_REWARDS[name](regret_of())


# --- penalties ---


def test_reproduced_faults_pull_a_reward_to_the_floor() -> None:
    assert with_faults(0.6, 0.5) == pytest.approx(0.05)
    assert with_faults(0.6, 1.0) == FAULT_FLOOR


@pytest.mark.parametrize("name", DESIGNER_REWARDS)
def test_penalties_hold_in_every_variant(name: str) -> None:
    half = RewardSettings(repaired_factor=0.5)
    free = designer_reward(name, LEARNT)
    repaired = designer_reward(name, LEARNT, Incidents(repaired=True), half)
    assert repaired == pytest.approx(min(free, free / 2))
    faulty = designer_reward(name, LEARNT, Incidents(fault_share=0.2))
    assert faulty == pytest.approx(0.8 * free + 0.2 * FAULT_FLOOR)
    assert designer_reward(name, LEARNT, Incidents(step_timeout=True)) == FAULT_FLOOR


@pytest.mark.parametrize(
    ("reward", "incidents", "expected"),
    [
        (0.6, Incidents(repaired=True), 0.6),
        (NAN, Incidents(repaired=True, fault_share=0.5), NAN),
        (NAN, Incidents(fault_share=1.0), -0.5),
        (NAN, Incidents(step_timeout=True), -0.5),
        (0.6, Incidents(fault_share=0.5, step_timeout=True), -0.5),
    ],
)
def test_penalties_by_default(reward: float, incidents: Incidents, expected: float) -> None:
    assert penalised(reward, incidents) == pytest.approx(expected, nan_ok=True)


def test_the_released_code_pays_nothing_for_what_had_to_be_repaired() -> None:
    assert penalised(0.6, Incidents(repaired=True), REFERENCE_SETTINGS) == 0.0
    # No loss is made smaller by it.
    assert penalised(-0.6, Incidents(repaired=True), REFERENCE_SETTINGS) == -0.6


@given(st.floats(-0.5, 1.0), UNIT, st.booleans(), st.booleans(), UNIT)
def test_a_penalty_never_raises_a_reward_above_the_floor(
    reward: float, share: float, timeout: bool, repaired: bool, factor: float
) -> None:
    incidents = Incidents(fault_share=share, step_timeout=timeout, repaired=repaired)
    paid = penalised(reward, incidents, RewardSettings(repaired_factor=factor))
    assert FAULT_FLOOR - 1e-12 <= paid <= reward + 1e-12


# --- what is refused ---


def test_an_unknown_reward_is_named_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"must be one of gated_regret, .*got 'regrets'"):
        designer_reward("regrets", LEARNT)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RewardSettings(gate=0.0), "gate must be above 0, got 0.0"),
        (lambda: RewardSettings(repaired_factor=1.5), r"repaired_factor must lie in \[0, 1\]"),
        (lambda: Incidents(fault_share=NAN), r"fault_share must lie in \[0, 1\], got nan"),
        (lambda: BlendParameters(ramp=0.0), "blend: ramp must be above 0"),
        (lambda: BlendParameters(regret_scale=-1.0), "blend: regret_scale must be above 0"),
        (lambda: BlendParameters(low=0.7), "blend: low must not exceed high, got 0.7 and 0.6"),
    ],
)
def test_settings_that_cannot_be_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
