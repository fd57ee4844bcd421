"""What a measurement shows while it runs: one live line on a terminal, a line for each look anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from spade_loop.report.formats import count, duration
from spade_loop.speaking import Usage

Spent = Callable[[Usage], str]
"""What was spent, in words."""


class GapDisplay:
    """A `Watch` that tells how far it is, what it cost and how long it took. Enter it."""

    def __init__(
        self, console: Console, spent: Spent, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console = console
        self._spent = spent
        self._clock = clock
        self._began = clock()
        self._usage = Usage()
        self._title = ""
        self._live = console.is_terminal and not console.is_dumb_terminal
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[spent]}", markup=False, style="cyan"),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._bars.add_task("", total=None, spent="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()
        self._end()

    def look(self, pairs: int, environments: int, episodes: int) -> None:
        """A look begins, and the one before it is over."""
        self._end()
        if environments:
            self._title = f"{pairs} pairs of {environments}, {count(episodes, 'episode')} to play"
        self._bars.reset(
            self._task, description=f"{pairs} pairs of {environments}", total=episodes, spent=""
        )

    def played(self, episodes: int, usage: Usage) -> None:
        """Episodes are over."""
        self._usage = usage
        self._bars.update(self._task, advance=episodes, spent=self._told())

    def note(self, text: str) -> None:
        """One line that stays."""
        self._console.print(Text(text), soft_wrap=True)

    def _end(self) -> None:
        if self._title:
            self.note(f"{self._title}: {self._told()}")
        self._title = ""

    def _told(self) -> str:
        return f"{self._spent(self._usage)}, {duration(self._clock() - self._began)}"
