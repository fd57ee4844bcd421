"""`synthgym diversity`: how diverse snapshots are, side by side at equal size."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from synthgym.cli.entries import open_snapshot
from synthgym.cli.output import print_json, print_table, print_text
from synthgym.diversity import FIGURES, Collection, Diversity, Figure, collect, compare, write_page
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError
from synthgym.memory import Embedder, load_embedder
from synthgym.registry import Snapshot

_PLAIN_SECONDS: Final = 10.0
"""Between two lines of progress where no terminal shows a bar."""
_SHOWN_PAIRS: Final = 5
_SHOWN_UNMEASURED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `diversity` is asked for."""

    embedder: str
    sample: int
    seed: int
    traces: bool


def run(
    places: Sequence[str], settings: Settings, html: Path | None, *, as_json: bool
) -> list[Diversity]:
    """Measure the snapshots of `places`, the bundled one when there is none; print and write it."""
    _check_page(html, places)
    snapshots = [open_snapshot(place) for place in places] or [open_snapshot(None)]
    embedder = load_embedder(settings.embedder)
    collections = [_collect(snapshot, embedder, settings) for snapshot in snapshots]
    found = compare(collections, sample=settings.sample, seed=settings.seed)
    if html is not None:
        write_page(html, found)
    if as_json:
        print_json(
            {
                "embedder": embedder.name,
                "sample": settings.sample,
                "seed": settings.seed,
                "snapshots": [one.to_json() for one in found],
            }
        )
    else:
        _print(found)
        if html is not None:
            print_text(f"page: {html}")
    return found


def _check_page(html: Path | None, places: Sequence[str]) -> None:
    """Better now than after an hour."""
    if html is None:
        return
    if html.is_dir() or not html.absolute().parent.is_dir():
        raise ConfigError(f"cannot write {html}: expected a file in a folder that is there")
    for place in places:
        if html.resolve().is_relative_to(Path(place).resolve()):
            raise ConfigError(f"cannot write the page to {html}: it would lie in a snapshot")


def _collect(snapshot: Snapshot, embedder: Embedder, settings: Settings) -> Collection:
    with _progress(f"{snapshot.name} {snapshot.version}", len(snapshot)) as tell:
        return collect(snapshot, embedder, traces=settings.traces, tell=tell)


@contextmanager
def _progress(name: str, total: int) -> Iterator[Callable[[int], None]]:
    """Tell how far it is: a bar on a terminal, a line now and then elsewhere."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _plain_progress(name, total)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(printable(name), total=total)
        yield lambda done: bar.update(task, completed=done)


def _plain_progress(name: str, total: int) -> Callable[[int], None]:
    said = time.monotonic()

    def tell(done: int) -> None:
        nonlocal said
        if time.monotonic() - said >= _PLAIN_SECONDS:
            said = time.monotonic()
            text = printable(f"{name}: {done:,} of {total:,} environments")
            print(text, file=sys.stderr, flush=True)

    return tell


def _print(found: Sequence[Diversity]) -> None:
    for one in found:
        families = sum(one.histogram.values())
        print_text(
            f"{one.name}: {one.measured:,} of {one.total:,} environments measured, "
            f"{families:,} {'family' if families == 1 else 'families'}"
        )
        _print_unmeasured(one)
    measured = [one for one in found if one.figures]
    if not measured:
        return
    sizes = ", ".join(dict.fromkeys(f"{one.size:,}" for one in measured))
    print_text(f"\nfigures at {sizes} environments, 95 % intervals where there are enough\n")
    headers = ["figure", *(one.name for one in measured), "embedder"]
    print_table(headers, [_row(figure, measured) for figure in FIGURES if _has(measured, figure)])
    for one in measured:
        _print_nearest(one)


def _print_unmeasured(one: Diversity) -> None:
    for item in one.unmeasured[:_SHOWN_UNMEASURED]:
        print_text(f"  in no figure: {item.env_id}: {item.kind} in {item.call}: {item.detail}")
    more = len(one.unmeasured) - _SHOWN_UNMEASURED
    if more > 0:
        print_text(f"  and {more:,} more, which --json names")


def _has(found: Sequence[Diversity], figure: Figure) -> bool:
    return any(item.figure is figure for one in found for item in one.figures)


def _row(figure: Figure, found: Sequence[Diversity]) -> list[str]:
    embedders = dict.fromkeys(one.embedder for one in found)
    cells = [_cell(figure, one) for one in found]
    return [figure.title, *cells, ", ".join(embedders) if figure.embedded else ""]


def _cell(figure: Figure, one: Diversity) -> str:
    if not _has([one], figure):
        return "-"
    matched = one.figure(figure.key).matched
    if matched is None:
        return "-"
    value = figure.shown(matched.value)
    if matched.low is None or matched.high is None:
        return value
    return f"{value}  ({figure.shown(matched.low)} to {figure.shown(matched.high)})"


def _print_nearest(one: Diversity) -> None:
    if not one.nearest:
        return
    print_text(f"\nnearest pairs of {one.name}, by texts (embedder {one.embedder})")
    rows = [
        (
            f"{pair.similarity:.3f}",
            f"{pair.containment:.2f}",
            pair.first.env_id,
            pair.second.env_id,
        )
        for pair in one.nearest[:_SHOWN_PAIRS]
    ]
    print_table(("cosine", "shared code", "one", "other"), rows)
