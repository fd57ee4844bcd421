"""`synthgym audit`: a folder of environments that others wrote, validated whole."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from synthgym.audit import (
    AuditSettings,
    Status,
    Summary,
    Tally,
    audit,
    count_sources,
    default_out,
    write_page,
)
from synthgym.cli.output import print_json, print_table, print_text
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError

_PLAIN_SECONDS: Final = 10.0
"""Between two lines of progress where no terminal shows a bar."""


def run(
    paths: Sequence[Path],
    settings: AuditSettings,
    limit: int | None,
    out: Path | None,
    html: Path | None,
    *,
    as_json: bool,
) -> bool:
    """Audit what is in `paths`, write the rows and the page, print the summary; whether all is fine."""
    began = time.monotonic()
    rows = audit(paths, out=(out := out or default_out(paths)), limit=limit, settings=settings)
    _check_page(html, [out, *paths])
    _say(f"rows go to {out}; after an interruption the same command goes on from there")
    total = count_sources(paths)
    if total is not None and limit is not None:
        total = min(total, limit)
    summary = Summary()
    try:
        with closing(rows), _progress(total) as tell:
            for row in rows:
                summary.add(row)
                tell(summary)
    except KeyboardInterrupt:
        _say(f"interrupted: {summary.sources:,} sources are in {out}, run it again to go on")
        raise
    title = ", ".join(map(str, paths))
    if html is not None:
        write_page(html, summary, title)
    if as_json:
        print_json({"rows": str(out)} | summary.to_json())
    else:
        _print_summary(summary, title, time.monotonic() - began)
        print_text(f"rows: {out}" + ("" if html is None else f"\npage: {html}"))
    return summary.ok


def _check_page(html: Path | None, others: Sequence[Path]) -> None:
    """Better now than after an hour."""
    if html is None:
        return
    if html.is_dir() or not html.absolute().parent.is_dir():
        raise ConfigError(f"cannot write {html}: expected a file in a folder that is there")
    if html.resolve() in [path.resolve() for path in others]:
        raise ConfigError(f"cannot write the page to {html}: that file is used otherwise here")


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


@contextmanager
def _progress(total: int | None) -> Iterator[Callable[[Summary], None]]:
    """Tell how far the audit is: a bar on a terminal, a line now and then elsewhere."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _plain_progress(total)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("auditing", total=total)

        def tell(summary: Summary) -> None:
            bar.update(task, completed=summary.sources, description=_how_far(summary))

        yield tell


def _plain_progress(total: int | None) -> Callable[[Summary], None]:
    said = time.monotonic()

    def tell(summary: Summary) -> None:
        nonlocal said
        if time.monotonic() - said >= _PLAIN_SECONDS:
            said = time.monotonic()
            of = "" if total is None else f" of {total:,}"
            _say(f"{summary.sources:,}{of} sources: {_how_far(summary)}")

    return tell


def _how_far(summary: Summary) -> str:
    return f"{summary.of(Status.OK).sources:,} fine, {summary.of(Status.REFUSED).sources:,} refused"


def _print_summary(summary: Summary, title: str, seconds: float) -> None:
    counts = [
        f"{summary.of(Status.OK).sources:,} fine"
        + (f" ({summary.warned:,} with a warning)" if summary.warned else ""),
        f"{summary.of(Status.REFUSED).sources:,} refused",
    ]
    counts += [
        f"{summary.of(status).sources:,} {status.replace('-', ' ')}"
        for status in (Status.UNREADABLE, Status.NOT_AUDITED)
        if summary.of(status).sources
    ]
    copies = f"; copies of others: {summary.copies:,}" if summary.copies else ""
    sources = "source" if summary.sources == 1 else "sources"
    print_text(f"{summary.sources:,} {sources} in {title}: {', '.join(counts)}{copies}")
    print_text(f"this run took {seconds:.1f} s, the validations {summary.seconds:.1f} s in all\n")
    failed = [(name, gate) for name, gate in summary.gates.items() if gate.failed]
    if failed:
        rows = [
            (name, f"{gate.tried:,}", f"{gate.failed:,}", _share(summary, gate.failed))
            for name, gate in failed
        ]
        print_table(("gate", "tried", "failed", "share"), rows)
        print_text("")
    if summary.reasons:
        rows = [
            (str(reason), f"{tally.sources:,}", _share(summary, tally.sources), _example(tally))
            for reason, tally in summary.reasons
        ]
        print_table(("reason", "sources", "share", "for example"), rows)
        print_text("")
    for status in (Status.UNREADABLE, Status.NOT_AUDITED):
        for row in summary.of(status).examples:
            print_text(f"{status.replace('-', ' ')}: {row.name}: {row.detail}")


def _share(summary: Summary, number: int) -> str:
    return f"{100 * summary.share(number):.1f} %"


def _example(tally: Tally) -> str:
    return tally.examples[0].name if tally.examples else ""
