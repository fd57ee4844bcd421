"""The page of an audit: one file of HTML that loads nothing and runs nothing.

Names, details, actions and observations come from strangers. Each goes through `_text`, which makes
invisible and reordering characters visible and escapes the rest; the page's content security policy
forbids scripts and requests should that fail. The same rows give the same bytes.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from synthgym.atomic import write_file
from synthgym.audit.rows import Row, Status
from synthgym.audit.summary import MAX_EXAMPLES, Summary, Tally
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError
from synthgym.validation import Finding, Reason

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; } h2 { margin-top: 2.5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
code, pre { font: .875rem/1.45 ui-monospace, monospace; }
code, pre, bdi { overflow-wrap: anywhere; white-space: pre-wrap; }
pre, ol { background: var(--soft); border-radius: .3rem; margin: .3rem 0; }
pre { padding: .5rem .8rem; } ol { padding: .5rem .8rem .5rem 3rem; }
details { margin: .6rem 0; } details > div { padding-left: 1rem; border-left: 3px solid var(--line); }
summary { cursor: pointer; } .soft { opacity: .75; } .bar { display: block; height: .3rem; background: #c33; }
"""


def write_page(path: Path, summary: Summary, title: str) -> None:
    """Write the page, whole or not at all. `ConfigError` when it cannot be written."""
    try:
        write_file(path, render_page(summary, title).encode("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot write {path}: {error.strerror}") from error


def render_page(summary: Summary, title: str) -> str:
    """The page as HTML text. `title` says what was audited; it is escaped like everything else."""
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
            "style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>Audit of {_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>",
            f"<h1>Audit of <bdi>{_text(title)}</bdi></h1>",
            *_totals(summary),
            *_reasons(summary),
            *_gates(summary),
            *_problems(summary),
            *(
                part
                for reason, tally in summary.reasons
                for part in _reason(summary, reason, tally)
            ),
            "</body>\n</html>\n",
        ]
    )


def _totals(summary: Summary) -> Iterator[str]:
    ok, refused = summary.of(Status.OK), summary.of(Status.REFUSED)
    rows = [
        ("sources", summary.sources, ""),
        (
            "fine",
            ok.sources,
            f"{summary.warned:,} of them with a warning" if summary.warned else "",
        ),
        ("refused", refused.sources, ""),
        ("unreadable", summary.of(Status.UNREADABLE).sources, "no text that could be read"),
        ("not audited", summary.of(Status.NOT_AUDITED).sources, "the next run tries them again"),
        ("copies", summary.copies, "the same text under another name; counted above as well"),
    ]
    cells = [
        (_head(name), _number(number), _share(summary, number), f'<td class="soft">{note}</td>')
        for name, number, note in rows
        if number or name in ("sources", "fine", "refused")
    ]
    yield _table((), cells)


def _reasons(summary: Summary) -> Iterator[str]:
    if not summary.reasons:
        return
    yield "<h2>Reasons</h2>"
    cells = [
        (
            f'<th scope="row"><a href="#{reason}"><code>{reason}</code></a></th>',
            f"<td>{_text(reason.explanation)}{_bar(summary.share(tally.sources))}</td>",
            _number(tally.sources),
            _share(summary, tally.sources),
            f"<td>{_name(tally.examples[0].name) if tally.examples else ''}</td>",
        )
        for reason, tally in summary.reasons
    ]
    yield _table(("reason", "what is wrong", "sources", "share", "for example"), cells)
    yield '<p class="soft">A source may have several. The share is of all sources.</p>'


def _gates(summary: Summary) -> Iterator[str]:
    if not summary.gates:
        return
    yield "<h2>Gates</h2>"
    cells = [
        (_head(name), _number(gate.tried), _number(gate.failed), _share(summary, gate.failed))
        for name, gate in summary.gates.items()
    ]
    yield _table(("gate", "tried", "failed", "share"), cells)
    yield (
        '<p class="soft">In the order in which they are tried. After some findings the rest is '
        "skipped: it could only find the same again.</p>"
    )


def _problems(summary: Summary) -> Iterator[str]:
    for status, title in ((Status.UNREADABLE, "Unreadable"), (Status.NOT_AUDITED, "Not audited")):
        tally = summary.of(status)
        if tally.sources:
            yield f"<h2>{title}</h2>\n<ul>"
            yield from (
                f"<li>{_name(row.name)}: {_text(row.detail)}</li>" for row in tally.examples
            )
            yield f"</ul>{_more(tally)}"


def _reason(summary: Summary, reason: Reason, tally: Tally) -> Iterator[str]:
    weight = "warning, " if reason.severity == "warning" else ""
    count = f"{weight}{tally.sources:,} of {summary.sources:,} sources"
    yield f'<h2 id="{reason}"><code>{reason}</code> <span class="soft">{count}</span></h2>'
    yield f"<p>{_text(reason.explanation)}<br><strong>To do:</strong> {_text(reason.remedy)}</p>"
    for row in tally.examples:
        yield f"<details>\n<summary>{_name(row.name)}{_title(row)}</summary>\n<div>"
        for finding in row.findings:
            if finding.reason is reason:
                yield from _finding(finding)
        yield f'<p class="soft"><code>{_text(row.digest)}</code></p></div>\n</details>'
    yield _more(tally)


def _finding(finding: Finding) -> Iterator[str]:
    place = [] if finding.line is None else [f"line {finding.line}"]
    place += [] if finding.seed is None else [f"seed {finding.seed}"]
    where = f' <span class="soft">({", ".join(place)})</span>' if place else ""
    if finding.detail or where:
        yield f"<p>{_text(finding.detail)}{where}</p>"
    if finding.actions:
        yield f"<p>Reset with seed {finding.seed}, then send:</p>\n<ol>"
        yield from (f"<li><code>{_quoted(action)}</code></li>" for action in finding.actions)
        yield "</ol>"
    if finding.seen:
        yield f'<p>What was seen:</p>\n<pre dir="auto">{_text(finding.seen)}</pre>'


def _more(tally: Tally) -> str:
    more = tally.sources - len(tally.examples)
    if tally.sources <= MAX_EXAMPLES or more <= 0:
        return ""
    return f'<p class="soft">and {more:,} more, in the file of rows.</p>'


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    numbers = ("sources", "share", "tried", "failed")
    head = "".join(
        f'<th scope="col"{" class=n" if name in numbers else ""}>{name}</th>' for name in heads
    )
    body = "\n".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if head else ''}\n<tbody>\n{body}\n</tbody></table>"


def _head(name: str) -> str:
    return f'<th scope="row">{_text(name)}</th>'


def _number(number: int) -> str:
    return f'<td class="n">{number:,}</td>'


def _share(summary: Summary, number: int) -> str:
    return f'<td class="n">{100 * summary.share(number):.1f} %</td>'


def _bar(share: float) -> str:
    return f'<span class="bar" style="width: {max(0.5, 100 * share):.1f}%"></span>'


def _name(name: str) -> str:
    return f"<bdi><code>{_text(name)}</code></bdi>"


def _title(row: Row) -> str:
    return f' <span class="soft">{_text(row.title)}</span>' if row.title else ""


def _quoted(text: str) -> str:
    """An action with quotes around it, so that an empty one and a line break show."""
    return _text(json.dumps(text, ensure_ascii=False))


def _text(text: str) -> str:
    return html.escape(printable(text), quote=True)
