"""The page of a measurement: one file of HTML that loads nothing and runs nothing.

Names, titles and details come from strangers. Each goes through `_text`, which makes invisible and
reordering characters visible and escapes the rest; the page's content security policy forbids
scripts and requests should that fail. The same measurement gives the same bytes.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from synthgym.atomic import write_file
from synthgym.diversity.charts import bar_chart, size_bins
from synthgym.diversity.collecting import Member
from synthgym.diversity.figures import FIGURES, Figure
from synthgym.diversity.report import Diversity, Measured, NearPair
from synthgym.diversity.resampling import RESAMPLES
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError

_MAX_UNMEASURED: Final = 50
"""Environments without a figure that the page names."""
_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 66rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; overflow-wrap: anywhere; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
code { font: .875rem/1.45 ui-monospace, monospace; } code, bdi { overflow-wrap: anywhere; }
svg { max-width: 100%; height: auto; font-size: 14px; } svg text { fill: currentColor; } rect { fill: #48a; }
.soft { opacity: .75; }
"""


def write_page(path: Path, found: Sequence[Diversity]) -> None:
    """Write the page, whole or not at all. `ConfigError` when it cannot be written."""
    try:
        write_file(path, render_page(found).encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def render_page(found: Sequence[Diversity]) -> str:
    """The page of one measurement or more as HTML text."""
    title = " and ".join(_text(one.name) for one in found)
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>Diversity of {title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>Diversity of <bdi>{title}</bdi></h1>",
            *_figures(found),
            *(part for one in found for part in _snapshot(one)),
            "</body>\n</html>\n",
        ]
    )


def _figures(found: Sequence[Diversity]) -> Iterator[str]:
    measured = [one for one in found if one.figures]
    if not measured:
        yield "<p>No environment could be measured.</p>"
        return
    for size in sorted({one.size for one in measured}):
        some = [one for one in measured if one.size == size]
        yield from _figure_table(size, some)
    yield (
        '<p class="soft">Figures of texts measure what the embedder sees, and the same thing told in '
        "other words counts as new: read them beside the share of near copies. Intervals of 95 % are "
        f"about other pools from the same source, by {RESAMPLES} random subsets.</p>"
    )


def _figure_table(size: int, found: Sequence[Diversity]) -> Iterator[str]:
    noun = "environment" if size == 1 else "environments"
    yield f"<h2>Figures at {size:,} {noun}</h2>"
    heads = ["figure", *(f"<bdi>{_text(one.name)}</bdi>" for one in found), "embedder", "meaning"]
    rows = [_figure_row(figure, found) for figure in FIGURES if _has(found, figure)]
    yield _table(heads, rows, numbers=range(1, len(found) + 1))


def _has(found: Sequence[Diversity], figure: Figure) -> bool:
    return any(item.figure is figure for one in found for item in one.figures)


def _figure_row(figure: Figure, found: Sequence[Diversity]) -> Iterator[str]:
    yield f'<th scope="row">{figure.title}</th>'
    for one in found:
        items = [item for item in one.figures if item.figure is figure]
        yield f'<td class="n">{_value(items[0]) if items else "-"}</td>'
    embedders = dict.fromkeys(one.embedder for one in found)
    yield f"<td>{', '.join(map(_text, embedders)) if figure.embedded else ''}</td>"
    yield f'<td class="soft">{figure.meaning}</td>'


def _value(item: Measured) -> str:
    figure, matched = item.figure, item.matched
    if matched is None:
        return "-"
    value = f"<strong>{figure.shown(matched.value)}</strong>"
    if matched.low is None or matched.high is None:
        return value
    interval = f"{figure.shown(matched.low)} to {figure.shown(matched.high)}"
    return f'{value}<br><span class="soft">{interval}</span>'


def _snapshot(one: Diversity) -> Iterator[str]:
    yield f"<h2><bdi>{_text(one.name)}</bdi></h2>"
    yield f"<p>{one.measured:,} of {one.total:,} environments measured. "
    yield f'<span class="soft"><code>{_text(one.digest)}</code></span></p>'
    if one.unskilled:
        yield f"<p>{one.unskilled:,} name no known skill and do not count for the skills.</p>"
    if one.untraced:
        yield f"<p>{one.untraced:,} have no witness that plays to its end and so no trace.</p>"
    yield from _whole(one)
    yield from _families(one)
    yield from _nearest(one)
    yield from _unmeasured(one)


def _whole(one: Diversity) -> Iterator[str]:
    """The figures of all members, where that says more than the table of subsets."""
    if one.measured == one.size or not one.figures:
        return
    yield f"<h3>Of all {one.measured:,}</h3>"
    yield (
        '<p class="soft">Not to be compared with other snapshots: they depend on the number of '
        "environments.</p>"
    )
    rows = [
        (
            f'<th scope="row">{item.figure.title}</th>',
            f'<td class="n">{item.figure.shown(item.whole)}</td>',
            f"<td>{_text(one.embedder) if item.figure.embedded else ''}</td>",
        )
        for item in one.figures
        if item.whole is not None
    ]
    yield _table(("figure", "value", "embedder"), rows, numbers=(1,))


def _families(one: Diversity) -> Iterator[str]:
    if not one.histogram:
        return
    count = sum(one.histogram.values())
    yield f"<h3>{count:,} {'family' if count == 1 else 'families'} by size</h3>"
    yield bar_chart(size_bins(one.histogram), "Number of families by number of members")
    if one.largest:
        rows = [
            (
                f'<td class="n">{family.size:,}</td>',
                f"<td>{'<br>'.join(_member(member) for member in family.members)}"
                f"{'<br>…' if family.size > len(family.members) else ''}</td>",
            )
            for family in one.largest
        ]
        yield _table(("members", "for example"), rows, numbers=(0,))


def _nearest(one: Diversity) -> Iterator[str]:
    if not one.nearest:
        return
    yield "<h3>Nearest pairs</h3>"
    among = "" if one.nearest_of == one.measured else f", among {one.nearest_of:,} chosen at random"
    yield (
        f'<p class="soft">By cosine of the rules texts (embedder {_text(one.embedder)}){among}. '
        "Similar texts need not be the same environment, and the same environment may be told in "
        "other words.</p>"
    )
    heads = ("cosine", "shared code", "one", "other", "same family")
    yield _table(heads, map(_pair, one.nearest), numbers=(0, 1))


def _pair(pair: NearPair) -> Iterator[str]:
    yield f'<td class="n">{pair.similarity:.3f}</td>'
    yield f'<td class="n">{pair.containment:.2f}</td>'
    yield f"<td>{_member(pair.first)}</td>"
    yield f"<td>{_member(pair.second)}</td>"
    yield f"<td>{'yes' if pair.related else 'no'}</td>"


def _unmeasured(one: Diversity) -> Iterator[str]:
    if not one.unmeasured:
        return
    yield f"<h3>In no figure: {len(one.unmeasured):,}</h3>\n<ul>"
    for item in one.unmeasured[:_MAX_UNMEASURED]:
        yield (
            f"<li><bdi><code>{_text(item.env_id)}</code></bdi>: {_text(item.kind)} in "
            f"{_text(item.call)}: <bdi>{_text(item.detail)}</bdi></li>"
        )
    yield "</ul>"
    more = len(one.unmeasured) - _MAX_UNMEASURED
    if more > 0:
        yield f'<p class="soft">and {more:,} more; <code>--json</code> names all.</p>'


def _table(
    heads: Sequence[str], rows: Iterable[Iterable[str]], *, numbers: Iterable[int] = ()
) -> str:
    right = set(numbers)
    head = "".join(
        f'<th scope="col"{" class=n" if place in right else ""}>{name}</th>'
        for place, name in enumerate(heads)
    )
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"


def _member(member: Member) -> str:
    title = f' <span class="soft">{_text(member.title)}</span>' if member.title else ""
    return f"<bdi><code>{_text(member.env_id)}</code>{title}</bdi>"


def _text(text: str) -> str:
    return html.escape(printable(text), quote=True)
