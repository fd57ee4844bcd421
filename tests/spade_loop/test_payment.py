"""What the designer is paid, and with which rows it is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spade_loop.chat import ChatFormat
from spade_loop.completers import ScriptedSampler
from spade_loop.config import Config, load_config
from spade_loop.hints import WrittenHint
from spade_loop.payment import (
    Payment,
    earned,
    effective_share,
    hint_samples,
    pay,
    settle,
)
from spade_loop.rewards import Tracker
from spade_loop.schedule import Attempt, Waiting
from spade_loop.types import NOTHING, Completion, Role, Sample
from spade_loop.windows import Visit, table

SAID = Completion((2, 3), (-0.5, 0.0), (1, 0))


def config(*overrides: str) -> Config:
    return load_config("tiny", ["reward.designer=regret", "trainer.learning_rate=1e-6", *overrides])


def visit(
    plain: Sequence[float],
    hinted: Sequence[float] = (),
    *,
    iteration: int = 0,
    faults: float = 0.0,
    hung: bool = False,
) -> Visit:
    plain_SK = np.asarray(plain)[:, None]
    hinted_SK = np.asarray(hinted)[:, None] if len(hinted) else np.zeros((0, 0))
    won = [
        table(np.where(np.isnan(a), np.nan, a >= 1.0)) if a.size else ()
        for a in (plain_SK, hinted_SK)
    ]
    return Visit(
        iteration=iteration,
        plain=table(plain_SK),
        plain_won=won[0],
        hinted=table(hinted_SK) if hinted_SK.size else (),
        hinted_won=won[1],
        faults=faults,
        plays=plain_SK.size + hinted_SK.size,
        hung=hung,
    )


def attempt(
    digest: str = "",
    *,
    valid: bool | None = None,
    trained: bool = True,
    skill: str = "s",
    **more: Any,
) -> Attempt:
    return Attempt(
        skill=skill,
        group=f"designer:{skill}",
        trained=trained,
        valid=bool(digest) if valid is None else valid,
        digest=digest,
        prompt_ids=(1,),
        completion=SAID if trained else NOTHING,
        **more,
    )


def rows_of(
    attempts: Sequence[Attempt],
    windows: dict[str, tuple[Visit, ...]],
    config: Config,
    trackers: dict[str, Tracker],
) -> list[Sample]:
    paid = settle(attempts, windows, config, trackers)
    assert [p.attempt for p in paid] == list(attempts)
    return list(Payment(paid=tuple(paid), trackers={}).samples)


def regrets(iteration: int = 0, **values: float) -> dict[str, tuple[Visit, ...]]:
    """A window for each digest, whose regret is the value."""
    return {d: (visit([0.0, 0.0], [v, v], iteration=iteration),) for d, v in values.items()}


def test_designers_are_compared_with_all_attempts_of_their_skill_untrained_ones_too() -> None:
    attempts = [
        attempt("a"),
        attempt(),
        attempt(),
        attempt("b", trained=False),
        attempt(skill="t"),
    ]
    rows = rows_of(attempts, regrets(a=0.2, b=0.6), config("reward.valid_weight=0.3"), {})
    assert len(rows) == 4
    mean_valid = 2 / 4
    assert rows[0].advantage == pytest.approx(0.3 * (1 - mean_valid) + (0.2 - 0.6))
    assert rows[1].advantage == rows[2].advantage == pytest.approx(-0.3 * mean_valid)
    assert [r.reward for r in rows] == pytest.approx([0.5, 0.0, 0.0, 0.0])
    assert rows[3].advantage == 0.0
    assert [r.group for r in rows] == ["designer:s"] * 3 + ["designer:t"]


def test_an_admitted_design_that_was_not_measured_is_paid_for_validity_alone() -> None:
    attempts = [attempt("a"), attempt("b"), attempt("c"), attempt()]
    rows = rows_of(attempts, regrets(a=0.4, c=0.2), config(), {})
    assert [r.advantage for r in rows] == pytest.approx(
        [0.3 / 4 + 0.2, 0.3 / 4, 0.3 / 4 - 0.2, -0.3 * 3 / 4]
    )
    assert rows[1].reward == pytest.approx(0.3)


def test_a_design_that_gave_way_to_another_draw_is_valid_and_not_paid() -> None:
    rows = rows_of([attempt("a"), attempt(valid=True), attempt()], regrets(a=0.4), config(), {})
    assert [r.reward for r in rows] == pytest.approx([0.7, 0.3, 0.0])


def test_nothing_admitted_is_no_signal() -> None:
    rows = rows_of([attempt()] * 4, {}, config(), {})
    assert [r.advantage for r in rows] == [0.0] * 4


@pytest.mark.parametrize(
    ("visits", "reward"),
    [
        ([visit([0.0, 0.0], [1.0, 0.0])], 0.5),
        # faults: (1 - f) r + f * floor
        ([visit([0.0, 1.0, 0.0], [1.0, 1.0, 1.0], faults=1)], 5 / 6 * (2 / 3) - 0.5 / 6),
        # not measurable: the floor when a quarter of the plays failed again
        ([visit([math.nan, math.nan], [1.0, 1.0], faults=2)], -0.5),
        ([visit([math.nan, math.nan], [1.0, 1.0], faults=0)], math.nan),
        ([visit([0.0, 1.0])], math.nan),
        ([], math.nan),
    ],
)
def test_what_a_design_earns(visits: list[Visit], reward: float) -> None:
    paid = earned(attempt("a", bonus=0.0), {"a": tuple(visits)}, config(), {})
    assert paid == pytest.approx(reward, nan_ok=True)


def test_the_bonus_of_a_rare_cell_is_added() -> None:
    assert earned(attempt("a", bonus=0.25), regrets(a=0.5), config(), {}) == pytest.approx(0.75)


def test_matched_regret_looks_at_the_iteration_of_the_hints_alone() -> None:
    windows = {"a": (visit([0.0, 0.0], [1.0, 1.0]), visit([1.0, 1.0], iteration=1))}
    whole = earned(attempt("a"), windows, config("schedule.regret=window"), {})
    matched = earned(attempt("a"), windows, config("schedule.regret=matched"), {})
    assert (whole, matched) == (pytest.approx(0.5), pytest.approx(1.0))


def test_the_reference_floors_and_scales_and_knows_no_validity() -> None:
    """C = min(50, n_A / n_D * R) = 32 / 6 here, raw regret minus the mean of the skill."""
    made = config("reward.reference=true")
    rows = rows_of([attempt("a"), attempt("b"), attempt()], regrets(a=0.4, b=-0.2), made, {})
    assert [r.advantage for r in rows] == pytest.approx([0.2 * 32 / 6, -0.2 * 32 / 6, 0.0])
    hung = {"a": (visit([0.0, 0.0], [1.0, 1.0], faults=1, hung=True),)}
    assert earned(attempt("a"), hung, made, {}) == -0.5


def test_learning_potential_is_told_against_earlier_steps(chat: ChatFormat, tokenizer: Any) -> None:
    sampler = ScriptedSampler(chat, lambda *_: "", tokenizer.eos_token_id)
    made = config("reward.designer=learning_potential", "reward.valid_weight=0.0")
    windows = {"a": (visit([1.0, 1.0], [1.0, 1.0]),), "b": (visit([0.5, 0.5], [1.0, 1.0]),)}
    due = [Waiting(iteration=0, attempts=(attempt("a"), attempt("b")))]
    paid = pay(due, windows, {"s": Tracker(0.5, 0.5)}, made, sampler, 0)
    assert [s.reward for s in paid.samples] == pytest.approx([0.5, 0.0])
    assert paid.trackers["s"].fast == pytest.approx(0.02 * 0.5 + 0.98 * 0.75)


def test_what_was_measured_before_a_design_does_not_pay_for_it(
    chat: ChatFormat, tokenizer: Any
) -> None:
    sampler = ScriptedSampler(chat, lambda *_: "", tokenizer.eos_token_id)
    earlier = visit([0.0, 0.0], [1.0, 1.0], iteration=2)
    now = visit([0.5, 0.5], [0.75, 0.75], iteration=3)
    due = [Waiting(iteration=3, attempts=(attempt("a"), attempt("b")))]
    windows = {"a": (earlier, now), "b": (earlier,)}
    paid = pay(due, windows, {}, config("reward.valid_weight=0.0"), sampler, 3).paid
    assert paid[0].reward == pytest.approx(0.25)
    assert math.isnan(paid[1].reward)


class Moved(ScriptedSampler):
    """The policy of later: it says how likely it finds what was said."""

    def __init__(self, chat: ChatFormat, stop_id: int, now: list[float]) -> None:
        super().__init__(chat, lambda *_: "", stop_id)
        self.now = now

    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        return self.now


@pytest.mark.parametrize(
    ("now", "weights"),
    [
        ([-1.0, -1.0, 0.0], (1.0, 1.0, 0.0)),
        ([-1.0 + math.log(1.5), -1.0 + math.log(0.5), 0.0], (1.5, 0.5, 0.0)),
        ([9.0, -1.0, 0.0], (2.0, 1.0, 0.0)),
    ],
)
def test_a_delayed_design_is_weighed_by_how_far_the_policy_has_moved(
    now: list[float],
    weights: tuple[float, ...],
    chat: ChatFormat,
    tokenizer: Any,
) -> None:
    said = Completion((2, 3, 4), (-1.0, -7.0, 0.0), (1, 1, 0), {1: (3, 5)}, {1: -1.0})
    attempts = tuple(
        Attempt(
            skill="s",
            group="g",
            trained=True,
            valid=True,
            digest=d,
            prompt_ids=(1,),
            completion=said,
        )
        for d in "ab"
    )
    sampler = Moved(chat, tokenizer.eos_token_id, now)
    windows = regrets(a=0.2, b=0.6, iteration=3)
    made = config("schedule.designer_delay=2")
    paid = pay([Waiting(iteration=1, attempts=attempts)], windows, {}, made, sampler, 3)
    assert (paid.delayed, paid.dropped) == (2, 0)
    assert [s.weights for s in paid.samples] == [pytest.approx(weights)] * 2
    at_once = pay([Waiting(iteration=3, attempts=attempts)], windows, {}, made, sampler, 3)
    assert [s.weights for s in at_once.samples] == [(), ()]
    assert (at_once.delayed, at_once.effective) == (0, None)


def test_a_delayed_design_that_one_token_decides_is_dropped(
    chat: ChatFormat, tokenizer: Any
) -> None:
    said = Completion((2,) * 5, (-1.0,) * 5, (1,) * 5)
    attempts = tuple(replace(attempt(d), completion=said) for d in "ab")
    sampler = Moved(chat, tokenizer.eos_token_id, [0.0, -99.0, -99.0, -99.0, -99.0])
    waiting = [Waiting(iteration=1, attempts=attempts)]
    windows = regrets(a=0.2, b=0.6, iteration=1)
    paid = pay(waiting, windows, {}, config("schedule.designer_delay=2"), sampler, 3)
    assert (paid.samples, paid.delayed, paid.dropped) == ((), 2, 2)
    assert paid.effective == pytest.approx(0.2)


def test_the_effective_share_of_weights() -> None:
    assert effective_share([1.0, 1.0, 9.0], [1, 1, 0]) == 1.0
    assert effective_share([1.0, 0.0], [1, 1]) == 0.5
    assert effective_share([0.0, 0.0], [1, 1]) == 0.0


def test_hints_are_paid_the_regret_that_they_brought() -> None:
    written = [
        WrittenHint(digest="a", text="t", prompt_ids=(1,), completion=SAID),
        WrittenHint(digest="b", text="t", prompt_ids=(1,), completion=SAID),
        WrittenHint(digest="c", text="t", prompt_ids=(1,), completion=SAID, refused="it tells"),
    ]
    rows = hint_samples(written, regrets(a=0.2, b=0.6, c=0.9), config())
    assert {r.role for r in rows} == {Role.DESIGNER}
    assert [r.reward for r in rows] == pytest.approx([0.5, 0.9, 0.0])
    assert [r.advantage for r in rows] == pytest.approx([0.1 - 0.4, 0.1 + 0.4, -0.2])
    assert hint_samples([], {}, config()) == []
