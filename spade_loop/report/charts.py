"""Line charts as inline SVG: nothing but text, so that the page needs neither scripts nor a plotting library.

Colours and fonts come from the page's style sheet (classes `series-0`, `series-1`), which knows light and dark.
Series differ by colour, dash and marker, so that no reader depends on the colour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH, HEIGHT = 400, 240
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 34, 40
INSET = 10
"""Room between the frame and the first and last point, so that markers and bars stay clear of the axis."""
MAX_MARKED = 60
"""Points above which markers and error bars would run together: a plain line and a band are drawn instead."""


@dataclass(frozen=True, slots=True)
class Point:
    """A measurement; `y` None is a gap, `error` None has no bar."""

    x: int
    y: float | None
    error: float | None = None

    @property
    def known(self) -> bool:
        """Whether there is something to draw."""
        return self.y is not None and math.isfinite(self.y)

    @property
    def span(self) -> tuple[float, float]:
        """`y` minus and plus its error."""
        y = self.y or 0.0
        error = self.error if self.error is not None and math.isfinite(self.error) else 0.0
        return y - error, y + error


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart; at most two share one."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """What is drawn. `ident` makes the ids of the SVG unique within the page."""

    ident: str
    title: str
    description: str
    series: tuple[Series, ...]
    floor: float | None = None
    """The axis reaches down to this at least."""
    ceiling: float | None = None
    x_label: str = "iteration"

    @property
    def empty(self) -> bool:
        """Whether nothing was measured."""
        return not any(p.known for s in self.series for p in s.points)


@dataclass(frozen=True, slots=True)
class _Axes:
    """From numbers to places in the drawing."""

    xs: tuple[int, int]
    ys: tuple[float, float]

    def x(self, value: float) -> float:
        low, high = self.xs
        share = 0.5 if high == low else (value - low) / (high - low)
        return LEFT + INSET + (WIDTH - LEFT - RIGHT - 2 * INSET) * share

    def y(self, value: float) -> float:
        low, high = self.ys
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)


def ticks(low: float, high: float, wanted: int = 6) -> list[float]:
    """About `wanted` round numbers (1, 2 or 5 times a power of ten apart) that cover low..high; low < high."""
    raw = (high - low) / max(1, wanted - 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [k * step for k in range(first, last + 1)]


def draw(chart: Chart) -> Markup:
    """The chart as an `<svg>` element. A chart of which nothing was measured says so."""
    if chart.empty:
        return Markup('<p class="nothing">Nothing was measured yet.</p>')
    axes, marks = _axes(chart)
    parts = [_grid(axes, marks, chart)]
    parts += [_series(axes, s, i) for i, s in enumerate(chart.series)]
    parts.append(_legend(chart.series))
    return Markup(
        '<svg viewBox="0 0 {w} {h}" role="img" aria-labelledby="{i}-title {i}-desc">'
        '<title id="{i}-title">{title}</title><desc id="{i}-desc">{desc}</desc>{body}</svg>'
    ).format(
        w=WIDTH,
        h=HEIGHT,
        i=chart.ident,
        title=chart.title,
        desc=chart.description,
        body=_join(parts),
    )


def _axes(chart: Chart) -> tuple[_Axes, list[float]]:
    points = [p for s in chart.series for p in s.points]
    spans = [p.span for p in points if p.known]
    bounds = [v for v in (chart.floor, chart.ceiling) if v is not None]
    low, high = min([*bounds, *(s[0] for s in spans)]), max([*bounds, *(s[1] for s in spans)])
    if high - low < 1e-9 * max(1.0, abs(high)):
        room = 0.1 * abs(high) or 1.0
        low, high = (low if low == chart.floor else low - room), high + room
    marks = ticks(low, high)
    xs = [p.x for p in points]
    return _Axes((min(xs), max(xs)), (marks[0], marks[-1])), marks


def _grid(axes: _Axes, marks: Sequence[float], chart: Chart) -> Markup:
    step = marks[1] - marks[0]
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    parts = []
    for value in marks:
        y = axes.y(value)
        kind = "zero" if abs(value) < step / 2 else "grid"
        parts.append(
            Markup(
                '<line class="{}" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text x="{}" y="{:.1f}" text-anchor="end">{}</text>'
            ).format(kind, LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, f"{value + 0.0:,.{digits}f}")
        )
    low, high = axes.xs
    every = max(1, math.ceil((high - low) / 8))
    parts += [
        Markup('<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>').format(
            axes.x(x), HEIGHT - BOTTOM + 16, x
        )
        for x in range(low, high + 1, every)
    ]
    parts.append(
        Markup('<text x="{}" y="{}" text-anchor="middle">{}</text>').format(
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5, chart.x_label
        )
    )
    return _join(parts)


def _series(axes: _Axes, series: Series, index: int) -> Markup:
    known = [p for p in series.points if p.known]
    marked = len(series.points) <= MAX_MARKED
    errors = _bars(axes, known, index) if marked else _band(axes, series.points)
    lines = [
        Markup('<polyline points="{}"/>').format(_places(axes, run, lambda p: p.y or 0.0))
        for run in _runs(series.points)
        if len(run) > 1
    ]
    lone = [run[0] for run in _runs(series.points) if len(run) == 1]
    markers = [_marker(axes, p, index, series.label) for p in (known if marked else lone)]
    return Markup('<g class="series-{}">{}</g>').format(index, _join([errors, *lines, *markers]))


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """Stretches without a gap."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if point.known:
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _places(axes: _Axes, points: Sequence[Point], of: Callable[[Point], float]) -> str:
    return " ".join(f"{axes.x(p.x):.1f},{axes.y(of(p)):.1f}" for p in points)


def _bars(axes: _Axes, points: Sequence[Point], index: int) -> Markup:
    """Error bars; those of the second series a little to the right, so that both can be seen."""
    parts = []
    for point in points:
        low, high = point.span
        if high > low:
            x, top, bottom = axes.x(point.x) + 4 * index, axes.y(high), axes.y(low)
            path = f"M{x:.1f} {top:.1f}V{bottom:.1f}M{x - 4:.1f} {top:.1f}h8M{x - 4:.1f} {bottom:.1f}h8"
            parts.append(Markup('<path class="error" d="{}"/>').format(path))
    return _join(parts)


def _band(axes: _Axes, points: Sequence[Point]) -> Markup:
    parts = []
    for run in _runs(points):
        upper = _places(axes, run, lambda p: p.span[1])
        lower = _places(axes, run[::-1], lambda p: p.span[0])
        if any(p.span[0] < p.span[1] for p in run):
            parts.append(Markup('<polygon class="band" points="{} {}"/>').format(upper, lower))
    return _join(parts)


def _marker(axes: _Axes, point: Point, index: int, label: str) -> Markup:
    x, y = axes.x(point.x), axes.y(point.y or 0.0)
    error = "" if point.span[0] == point.span[1] else f" ± {point.span[1] - (point.y or 0.0):.3g}"
    title = f"{label}, iteration {point.x}: {point.y:,.4g}{error}"
    return Markup("<g>{}<title>{}</title></g>").format(_shape(x, y, index), title)


def _shape(x: float, y: float, index: int) -> Markup:
    """A disc for the first series, a square for the second."""
    if index == 0:
        return Markup('<circle class="mark" cx="{:.1f}" cy="{:.1f}" r="4"/>').format(x, y)
    return Markup('<rect class="mark" x="{:.1f}" y="{:.1f}" width="7" height="7"/>').format(
        x - 3.5, y - 3.5
    )


def _legend(series: Sequence[Series]) -> Markup:
    parts = []
    for index, one in enumerate(series):
        x = LEFT + index * (WIDTH - LEFT - RIGHT) / 2
        parts.append(
            Markup(
                '<g class="series-{}"><polyline points="{:.0f},14 {:.0f},14"/>{}</g>'
                '<text x="{:.0f}" y="18">{}</text>'
            ).format(index, x, x + 24, _shape(x + 12, 14, index), x + 30, one.label)
        )
    return _join(parts)


def _join(parts: Sequence[Markup]) -> Markup:
    return Markup("").join(parts)
