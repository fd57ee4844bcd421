"""Charts, texts and numbers of the report."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from spade_loop.config import Config
from spade_loop.report.charts import Chart, Point, Series, draw, ticks
from spade_loop.report.formats import (
    MISSING,
    clip,
    decimal,
    duration,
    percent,
    plus_minus,
    significant,
    visible,
)
from spade_loop.report.gallery import choose_pairs
from spade_loop.report.headline import headline
from spade_loop.report.reading import Arms, EpisodeRow, MeanRegret, MetricsRow, Run
from spade_loop.report.summary import print_summary
from spade_loop.state import RunDirectory
from spade_loop.types import Arm


@given(st.text())
def test_visible_text_can_be_encoded_and_hides_nothing(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert visible(shown) == shown
    assert all(c.isprintable() or c.isspace() for c in shown)
    assert not set(shown) & set(
        "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff\r\x00"
    )


def test_letters_of_all_scripts_stay_as_they_are() -> None:
    text = "Grüße, 東京 שלום مرحبا 🙂\n\tnext"
    assert visible(text) == text


def chart(*points: Point, **bounds: Any) -> Chart:
    return Chart(ident="c", title="<t>", description="d", series=(Series("<s>", points),), **bounds)


def test_a_chart_breaks_its_line_at_a_gap_and_escapes_its_labels() -> None:
    points = [Point(1, 0.1), Point(2, 0.2, 0.05), Point(3, None), Point(4, 0.4), Point(5, 0.3)]
    svg = str(draw(chart(*points)))
    assert svg.count("<polyline") == 2 + 1  # two stretches and the legend
    assert svg.count('class="error"') == 1
    assert "<s>" not in svg
    assert "&lt;s&gt;, iteration 2: 0.2 ± 0.05" in svg


@pytest.mark.parametrize(
    "points",
    [(Point(1, 0.0),), (Point(1, 5.0), Point(2, 5.0)), (Point(1, -3e-9),), (Point(7, 1e12, 1e12),)],
)
def test_a_flat_or_single_chart_stays_within_its_frame(points: tuple[Point, ...]) -> None:
    svg = str(draw(chart(*points, floor=0.0)))
    assert "nan" not in svg
    assert all(-1 <= float(y) <= 241 for y in re.findall(r' c?y="([-\d.]+)"', svg))


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_chart_without_a_measurement_says_so(value: float | None) -> None:
    assert "Nothing was measured" in draw(chart(Point(1, value), Point(2, None)))


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9))
def test_ticks_cover_the_range_with_few_round_numbers(low: float, width: float) -> None:
    marks = ticks(low, low + width)
    slack = 1e-6 * max(1.0, abs(low), width)
    assert marks[0] <= low + slack
    assert marks[-1] >= low + width - slack
    assert 2 <= len(marks) <= 8


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (decimal(-0.001), "0.00"),
        (decimal(1234.5, 1), "1,234.5"),
        (decimal(float("nan")), MISSING),
        (significant(4321.0), "4,321"),
        (significant(0.01234), "0.0123"),
        (percent(0.256), "26 %"),
        (plus_minus(0.1, None), "+0.10"),
        (plus_minus(None, 0.1), MISSING),
        (duration(0.04), "0.0 s"),
        (duration(59.96), "1 min 00 s"),
        (duration(3599.9), "1 h 00 min"),
        (duration(7500), "2 h 05 min"),
        (clip("abcdef", 4), "abcd\n… (2 more characters)"),
    ],
)
def test_numbers_read_as_people_write_them(text: str, wanted: str) -> None:
    assert text == wanted


@pytest.mark.parametrize(
    ("regret", "said"),
    [
        (MeanRegret(mean=0.1, standard_error=0.06), "it may be noise"),
        (
            MeanRegret(mean=-0.3, standard_error=0.1),
            "-0.30 ± 0.10 (one standard error): more than two",
        ),
        (MeanRegret(mean=0.0, standard_error=0.0), "was 0.00 ± 0.00."),
        (MeanRegret(mean=0.2, standard_error=None), "was +0.20."),
    ],
)
def test_the_headline_says_whether_regret_stands_out_of_the_noise(
    regret: MeanRegret, said: str
) -> None:
    row = MetricsRow(iteration=0, solve_rate=Arms(plain=0.1, hinted=0.2), regret=regret)
    run = Run(Path(), Config(iterations=1), (row,), (), {}, {})
    sentences = " ".join(headline(run))
    assert said in sentences
    assert "1 of 1 iteration is complete" in sentences


def test_the_headline_says_how_often_a_reply_held_no_action() -> None:
    def said(*rows: MetricsRow) -> str:
        return " ".join(headline(Run(Path(), Config(iterations=2), rows, (), {}, {})))

    first = MetricsRow(
        iteration=0,
        turns={"plain": 10, "hinted": 10},
        parse_failures={"plain": {"no-box": 2}, "hinted": {"no-box": 1, "empty": 2}},
    )
    second = MetricsRow(iteration=1, turns={"plain": 5, "hinted": 15}, parse_failures={"plain": {}})
    assert "12 % of the agent's turns held no usable action, most often no-box." in said(
        first, second
    )
    for clean in (second, MetricsRow(iteration=0)):
        assert "usable action" not in said(clean)


def episode(seed: int, arm: Arm, earned: float, **fields: Any) -> EpisodeRow:
    return EpisodeRow(iteration=0, digest="d", seed=seed, arm=arm, episode_return=earned, **fields)


def test_a_pair_is_the_one_that_differs_most_and_never_a_faulty_one() -> None:
    fault = {"fault": {"kind": "raised", "call": "step"}}
    rows = [
        episode(11, Arm.PLAIN, 0.5),
        episode(13, Arm.HINTED, 0.0),
        episode(11, Arm.HINTED, 0.5),
        episode(13, Arm.PLAIN, 1.0),
        episode(14, Arm.PLAIN, 0.0, **fault),
        episode(14, Arm.HINTED, 50.0, **fault),
        episode(15, Arm.PLAIN, 50.0),
    ]
    pair = choose_pairs(rows, {"d"})["d"]
    assert pair.seed == 13
    assert [(e.arm, e.episode_return) for e in pair.episodes] == [("plain", 1.0), ("hinted", 0.0)]
    assert choose_pairs(rows, {"another"}) == {}


def test_the_summary_of_a_run_without_iterations_is_one_line(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, Config(name="tiny", iterations=3))
    console = Console(width=80)
    with console.capture() as captured:
        print_summary(tmp_path, console)
    assert captured.get() == "tiny: none of 3 iterations is complete yet\n"


def test_the_report_needs_no_torch() -> None:
    code = (
        "import sys, spade_loop.report.page, spade_loop.report.display, spade_loop.report.summary;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
