"""Comparisons: pairing, which test, what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spade_loop.errors import ConfigError
from spade_loop.evaluation.comparing import MCNEMAR, SIGN_FLIP, Comparison, Side, compare
from spade_loop.evaluation.presenting import comparison_table, tables_of
from spade_loop.evaluation.results import Evaluation, ItemResult, SuiteResult, groups_of
from spade_loop.evaluation.statistics import holm, mcnemar
from spade_loop.evaluation.tables import as_markdown
from spade_loop.speaking import Decoding, Usage

Tries = dict[str, tuple[bool, ...]]


def side(label: str, tries: Tries, **changes: Any) -> Side:
    items = tuple(
        ItemResult(
            id=name,
            category=name.partition("/")[0],
            correct=correct,
            score=tuple(float(c) / 2 for c in correct),
            unscored=0 if correct else 1,
        )
        for name, correct in tries.items()
    )
    suite = SuiteResult(
        name="quiz",
        version="1",
        options={},
        decoding=Decoding(max_tokens=8),
        samples=len(next(iter(tries.values()))),
        seed=0,
        groups=groups_of(items, seed=0),
        failures={},
        usage=Usage(1, 2, 3),
        items=items,
    )
    model = {"name": label, "backend": "test"}
    return Side(
        label=label, evaluation=Evaluation(model=model, suites=(replace(suite, **changes),))
    )


def quiz(*wins: int, categories: int = 1) -> Tries:
    return {f"c{n % categories}/{n}": (bool(won),) for n, won in enumerate(wins)}


A = quiz(*[1] * 10, *[0] * 20)
B = quiz(*[1] * 8, *[0] * 2, *[1] * 12, *[0] * 8)


def only(comparison: Comparison) -> Any:
    (row,) = comparison.rows
    return row


def test_single_answers_are_compared_by_mcnemar_on_the_pairs_that_differ() -> None:
    row = only(compare([side("a", A), side("b", B)]))
    assert (row.only_first, row.only_second, row.test) == (2, 12, MCNEMAR)
    assert row.p_value == row.adjusted == mcnemar(2, 12)
    assert row.difference.value == pytest.approx(10 / 30)
    assert row.difference.low < 10 / 30 < row.difference.high
    assert (row.first_mean, row.second_mean) == (pytest.approx(10 / 30), pytest.approx(20 / 30))
    back = only(compare([side("b", B), side("a", A)]))
    assert back.difference.value == -row.difference.value


def test_the_order_of_items_does_not_matter_and_the_seed_decides_all_else() -> None:
    turned = dict(reversed(B.items()))
    assert only(compare([side("a", A), side("b", turned)])) == only(
        compare([side("a", A), side("b", B)])
    )


def test_several_samples_and_scores_are_compared_by_sign_flips() -> None:
    draws = np.random.default_rng(0)
    many = {f"q/{n}": tuple(map(bool, draws.random(4) < 0.3)) for n in range(30)}
    more = {f"q/{n}": tuple(map(bool, draws.random(4) < 0.8)) for n in range(30)}
    row = only(compare([side("a", many), side("b", more)]))
    assert row.test == SIGN_FLIP
    assert row.p_value < 0.01
    assert row.difference.value == pytest.approx(
        np.mean(list(more.values())) - np.mean(list(many.values()))
    )
    scored = only(compare([side("a", A), side("b", B)], metric="score"))
    assert scored.test == SIGN_FLIP
    assert scored.difference.value == pytest.approx(10 / 30 / 2)


def test_holm_corrects_categories_among_themselves_and_suites_among_themselves() -> None:
    first = quiz(*[1] * 10, *[0] * 20, categories=3)
    second = quiz(*[1] * 8, *[0] * 2, *[1] * 12, *[0] * 8, categories=3)
    rows = compare([side("a", first), side("b", second), side("c", first)]).rows
    assert [(r.group, r.second) for r in rows[:5]] == [
        ("overall", "b"), ("c0", "b"), ("c1", "b"), ("c2", "b"), ("overall", "c"),
    ]  # fmt: skip
    for family in (True, False):
        members = [r for r in rows if (r.group == "overall") is family]
        assert [r.adjusted for r in members] == holm([r.p_value for r in members])
    same = [r for r in rows if r.second == "c"]
    assert all(r.difference.value == 0 and r.p_value == 1.0 for r in same)
    assert all(r.difference.low < 0 < r.difference.high for r in same)


def test_other_items_are_refused_by_name_unless_common_ones_are_asked_for() -> None:
    fewer = dict(list(B.items())[3:]) | {"c0/new": (True,)}
    with pytest.raises(
        ConfigError, match=r"b lacks c0/0, c0/1, c0/2; a lacks c0/new; --common compares the 27"
    ):
        compare([side("a", A), side("b", fewer)])
    found = compare([side("a", A), side("b", fewer)], common=True)
    assert only(found).items == 27
    assert found.notes == (
        "quiz: compared on the 27 items that all have; b lacks c0/0, c0/1, c0/2; a lacks c0/new.",
    )


def test_items_that_a_fault_left_without_a_result_are_no_pair() -> None:
    broken = B | {"c0/0": ()}
    assert only(compare([side("a", A), side("b", broken)], common=True)).items == 29
    with pytest.raises(ConfigError, match="no item with a result"):
        compare([side("a", quiz(1)), side("b", {"c0/0": ()}, samples=1)])


@pytest.mark.parametrize(
    ("sides", "told"),
    [
        ([side("a", A)], "two or more different"),
        ([side("a", A), side("a", A)], "two or more different"),
        ([side("a", A), side("b", A, version="2")], r"version 2.*version 1"),
        ([side("a", A), side("b", A, name="other")], "no suite is in all.*a has quiz; b has other"),
    ],
)
def test_what_cannot_be_compared_is_refused(sides: list[Side], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        compare(sides)


def test_a_suite_can_be_chosen_and_a_wrong_name_is_corrected() -> None:
    sides = [side("a", A), side("b", B)]
    assert len(compare(sides, suites=["quiz"]).rows) == 1
    with pytest.raises(ConfigError, match="did you mean 'quiz'"):
        compare(sides, suites=["quizz"])


def test_other_conditions_are_told() -> None:
    other = side("b", B, decoding=Decoding(max_tokens=9, temperature=0.5), samples=4)
    notes = compare([side("a", A), other]).notes
    assert notes == (
        "quiz: b was decoded as temperature 0.5, top-p 1, top-k 0, 9 tokens, a as temperature 0, top-p 1, "
        "top-k 0, 8 tokens.",
        "quiz: b has 4 samples an item, a 1.",
    )


def test_other_options_are_told_but_not_another_place_of_the_same_data() -> None:
    a = side("a", A, options={"max_turns": "2", "data": "here.jsonl"})
    b = side("b", B, options={"data": "there.jsonl"})
    assert compare([a, b]).notes == ("quiz: options of b were none, of a max_turns=2.",)
    same = side("b", B, options={"max_turns": "2", "data": "there.jsonl"})
    assert compare([a, same]).notes == ()


def test_tables_say_what_they_are(tmp_path: Path) -> None:
    text = as_markdown([comparison_table(compare([side("a", A), side("b", B)]))])
    assert "A is a, B is b" in text
    assert "| quiz | overall | 30 | 33.3 | 66.7 | +33.3 |" in text
    three = comparison_table(compare([side("a", A), side("b", B), side("c", A)]))
    assert "| quiz | overall | c | 30 | 33.3 | 33.3 | +0.0 |" in as_markdown([three])
    assert "0.0129 \\*" in text
    assert "McNemar, exact" in text
    tables = tables_of(side("a", A).evaluation, cost=lambda usage: 0.5)
    text = as_markdown(tables)
    assert "| quiz | overall | 30 | 1 | 33.3 | [" in text.replace("\\[", "[")
    assert "| quiz | none |" in text
    assert "| 0.5 |" in text
