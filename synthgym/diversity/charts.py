"""A bar chart as inline SVG: no script, no request, colours of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_ROW: Final = 24
_LABEL: Final = 130
_BAR: Final = 420
_WIDTH: Final = 640


def size_bins(histogram: Mapping[int, int]) -> dict[str, int]:
    """Families by their size, in bins that double: 1, 2, 3 to 4, 5 to 8, ... up to the largest."""
    if not histogram:
        return {}
    bins: dict[str, int] = {}
    low, high, largest = 1, 1, max(histogram)
    while low <= largest:
        name = str(low) if low == high else f"{low} to {high}"
        bins[name] = sum(count for size, count in histogram.items() if low <= size <= high)
        low, high = high + 1, 2 * high
    return bins


def bar_chart(bars: Mapping[str, int], title: str) -> str:
    """One bar a row, its length in proportion, with its number. Texts must be ours: they are not escaped."""
    most = max([1, *bars.values()])
    height = _ROW * len(bars)
    rows = "\n".join(_bar(row, name, count, most) for row, (name, count) in enumerate(bars.items()))
    return (
        f'<svg role="img" aria-label="{title}" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}">\n<title>{title}</title>\n{rows}\n</svg>'
    )


def _bar(row: int, name: str, count: int, most: int) -> str:
    top, middle = row * _ROW, row * _ROW + _ROW // 2
    length = _BAR * count / most
    return (
        f'<text x="{_LABEL - 10}" y="{middle}" dy=".35em" text-anchor="end">{name}</text>'
        f'<rect x="{_LABEL}" y="{top + 4}" width="{length:.1f}" height="{_ROW - 8}"/>'
        f'<text x="{_LABEL + length + 6:.1f}" y="{middle}" dy=".35em">{count:,}</text>'
    )
