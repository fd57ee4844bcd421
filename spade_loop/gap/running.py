"""A whole measurement: from what was asked for to the files in its directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from rich.console import Console

from spade_loop.errors import ConfigError, ModelError, RunStateError
from spade_loop.gap.display import GapDisplay
from spade_loop.gap.episodes import EpisodePlayer
from spade_loop.gap.grading import TaskPlayer
from spade_loop.gap.measuring import Measurement, measure_all, replayed
from spade_loop.gap.noting import check_notable, note
from spade_loop.gap.page import render_page
from spade_loop.gap.report import GapReport
from spade_loop.gap.settings import GapSettings
from spade_loop.gap.subjects import Field, open_field
from spade_loop.journal import Journal
from spade_loop.library import BUNDLED
from spade_loop.measurement import Reproduces
from spade_loop.speaking import Speaker, Usage
from spade_loop.state import replace_text
from spade_loop.types import JsonRow
from synthgym.sandbox import Pool

EPISODES: Final = "episodes.jsonl"
REPORT: Final = "gap.json"
PAGE: Final = "gap.html"
MAX_WORKERS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked for."""

    place: str
    out: Path
    only: tuple[str, ...]
    environments: int | None
    settings: GapSettings
    write: bool
    """Whether the figures are noted in the snapshot."""
    model: JsonRow
    """Name and backend."""
    open_speaker: Callable[[], Speaker]
    threads: int
    """Episodes under way at once."""
    prices: tuple[float, float]
    """Of a million tokens read, and generated."""
    spent: Callable[[Usage], str]
    """What was spent, in words."""


def run(asked: Asked, console: Console) -> GapReport:
    """Measure, write `gap.json` and `gap.html`, and note the figures if asked to.

    Whatever the user named is looked at before a model is. `ModelError` says how to go on where the model is gone.
    """
    field = open_field(asked.place, asked.only, asked.environments)
    check(asked, field)
    with open_journal(asked, field) as journal:
        report = _measured(asked, field, journal, console)
    _write(asked.out, report)
    if asked.write:
        snapshot = note(report, field)
        console.print(
            f"noted in {snapshot.path}, now {snapshot.name} {snapshot.version}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )
    return report


def check(asked: Asked, field: Field) -> None:
    """Refuse what can be refused before anything is loaded, asked or written."""
    if asked.write:
        if asked.place == BUNDLED and not Path(BUNDLED).exists():
            raise ConfigError(
                f"--write notes figures in a snapshot of your own, and {BUNDLED!r} belongs to the package: make a copy "
                "(`synthgym snapshot filter` writes one), and name its folder"
            )
        check_notable(field)
    if field.snapshot is None and asked.settings.decoding.temperature == 0.0:
        raise ConfigError(
            "a task has one instance, and at --temperature 0 every play of it would be the same: give one above 0"
        )
    if field.snapshot is None and asked.settings.levels:
        raise ConfigError("--levels asks environments for hints, and a task has only one")


def header_of(asked: Asked, field: Field) -> JsonRow:
    """What the episodes depend on; other settings would make others."""
    return {
        "command": "spade-loop gap",
        "field": {"kind": field.kind, "content": field.digest},
        "model": asked.model,
        **asked.settings.to_json(),
    }


def open_journal(asked: Asked, field: Field) -> Journal:
    """The journal in `--out`; `RunStateError` for a folder that holds something else."""
    path = asked.out / EPISODES
    if not path.exists() and asked.out.is_dir() and any(asked.out.iterdir()):
        raise RunStateError(
            f"{asked.out} is not empty and holds no {EPISODES}: give --out a new or an empty directory"
        )
    return Journal.open(path, header_of(asked, field))


def _measured(asked: Asked, field: Field, journal: Journal, console: Console) -> GapReport:
    settings = asked.settings
    with ExitStack() as stack:
        workers = min(MAX_WORKERS, asked.threads + 1)
        pool = stack.enter_context(Pool(max_workers=workers))
        speaker = stack.enter_context(asked.open_speaker())
        player, reproduces = _player(stack, speaker, pool, field, settings)
        display = stack.enter_context(GapDisplay(console, asked.spent, asked=lambda: speaker.usage))
        stack.enter_context(_told_how_to_go_on(display, asked.out))
        work = Measurement(
            settings=settings,
            player=player,
            journal=journal,
            watch=display,
            threads=asked.threads,
            stop=speaker.close,
            reproduces=reproduces,
        )
        results, usage = measure_all(work, field.subjects)
    return GapReport(
        place={"kind": field.kind, "name": field.name, "content": field.digest},
        model=asked.model,
        settings=settings,
        results=results,
        usage=usage,
        prices=asked.prices,
        version=version("synthgym"),
    )


def _player(
    stack: ExitStack, speaker: Speaker, pool: Pool, field: Field, settings: GapSettings
) -> tuple[EpisodePlayer, Reproduces]:
    tasks = [subject.task for subject in field.subjects if subject.task is not None]
    if not tasks:
        return EpisodePlayer(speaker, pool, settings), replayed(settings)
    grading = stack.enter_context(TaskPlayer(speaker, pool, tasks, settings.decoding))
    player = EpisodePlayer(speaker, pool, settings, grading)
    return player, lambda _, trajectory: grading.fails_again(trajectory)


@contextmanager
def _told_how_to_go_on(display: GapDisplay, out: Path) -> Iterator[None]:
    try:
        yield
    except ModelError as error:
        raise type(error)(
            f"{error}. Every finished episode is kept in {out / EPISODES}: give the same command again to go on"
        ) from error
    except KeyboardInterrupt:
        display.note(
            f"interrupted; every finished episode is kept in {out}: give the same command again to go on"
        )
        raise


def _write(out: Path, report: GapReport) -> None:
    try:
        replace_text(out / REPORT, json.dumps(report.to_json(), indent=2) + "\n")
        replace_text(out / PAGE, render_page(report))
    except OSError as error:
        raise RunStateError(f"cannot write into {out}: {error}") from error
