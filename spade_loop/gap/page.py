"""`gap.html`: one file that shows a whole measurement, and loads nothing. Text of strangers is escaped and visible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from spade_loop.gap.report import GapReport, rate_text, regret_text
from spade_loop.gap.results import Rate, Result
from spade_loop.gap.zones import Zone
from spade_loop.report.page import templates

WIDTH: Final = 220
HEIGHT: Final = 34
INSET: Final = 8
"""Room for markers at both ends of the axis."""
MEANINGS: Final = {
    Zone.MASTERED: "solved without a hint: nothing is left to learn",
    Zone.FRONTIER: "solved at times, or a hint makes the difference: train here",
    Zone.OUT_OF_REACH: "solved neither without a hint nor with one",
    Zone.HINT_USELESS: "not solved without a hint, and the hint cannot be told from luck",
    Zone.UNMEASURED: "faults of the environment left too little to go by",
}


def render_page(report: GapReport) -> str:
    """The page as HTML text. The same report gives the same bytes."""
    order = sorted(report.results, key=_by_zone)
    return (
        templates()
        .get_template("gap.html")
        .render(
            report=report,
            settings=report.settings,
            sentences=report.sentences(),
            zones=[(zone, number, MEANINGS[zone]) for zone, number in report.zones.items()],
            rows=[(r, rates_strip(r), regret_strip(r)) for r in order],
            others=list(order[0].others) if order else [],
            rate_text=rate_text,
            regret_text=regret_text,
        )
    )


def rates_strip(result: Result) -> Markup:
    """Both solve rates on one axis from 0 to 1: a disc for plain, a square for hinted, each with its interval."""
    parts = [_axis((0.0, 0.5, 1.0), 0.0, 1.0)]
    for index, (name, rate) in enumerate((("plain", result.plain), ("hinted", result.hinted))):
        parts.append(_mark(rate.value, rate.interval, 0.0, index, f"{name}: {rate_text(rate)}"))
    return _strip(parts, f"solve rates: {_told(result.plain)} plain, {_told(result.hinted)} hinted")


def regret_strip(result: Result) -> Markup:
    """The regret on an axis from -1 to 1."""
    mark = _mark(result.regret, result.regret_interval, -1.0, 0, regret_text(result), middle=17.0)
    return _strip([_axis((-1.0, 0.0, 1.0), -1.0, 1.0), mark], f"regret: {regret_text(result)}")


def _by_zone(result: Result) -> tuple[int, float]:
    """The frontier first, and of a zone the largest regret."""
    order = (
        Zone.FRONTIER,
        Zone.HINT_USELESS,
        Zone.OUT_OF_REACH,
        Zone.MASTERED,
        Zone.UNMEASURED,
    )
    return order.index(result.zone), -(result.regret or 0.0)


def _told(rate: Rate) -> str:
    return rate_text(rate)


def _place(value: float, low: float) -> float:
    """From low..1 to the drawing."""
    inside = min(1.0, max(low, value))
    return INSET + (WIDTH - 2 * INSET) * (inside - low) / (1.0 - low)


def _axis(values: Sequence[float], low: float, high: float) -> Markup:
    del high
    lines = [
        Markup('<line class="{}" x1="{:.1f}" x2="{:.1f}" y1="2" y2="{}"/>').format(
            "zero" if value == 0.0 else "grid", _place(value, low), _place(value, low), HEIGHT - 2
        )
        for value in values
    ]
    return Markup("").join(lines)


def _mark(
    value: float | None,
    interval: Sequence[float],
    low: float,
    index: int,
    title: str,
    middle: float | None = None,
) -> Markup:
    if value is None:
        return Markup("")
    y = (11.0, 23.0)[index] if middle is None else middle
    x, start, end = (_place(v, low) for v in (value, *interval))
    path = f"M{start:.1f} {y:.1f}H{end:.1f}M{start:.1f} {y - 3:.1f}v6M{end:.1f} {y - 3:.1f}v6"
    shape = (
        Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(x, y)
        if index == 0
        else Markup('<rect class="mark" x="{:.1f}" y="{:.1f}" width="7" height="7"/>').format(
            x - 3.5, y - 3.5
        )
    )
    return Markup(
        '<g class="series-{}"><path class="error" d="{}"/>{}<title>{}</title></g>'
    ).format(index, path, shape, title)


def _strip(parts: Sequence[Markup], label: str) -> Markup:
    return Markup(
        '<svg class="strip" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
    ).format(WIDTH, HEIGHT, label, Markup("").join(parts))
