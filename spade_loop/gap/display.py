"""What a measurement shows while it runs: one live line on a terminal, a line for each look anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
)
from rich.text import Text

from spade_loop.report.formats import count, duration
from spade_loop.speaking import Usage

Spent = Callable[[Usage], str]
"""What was spent, in words."""
NOTE_SECONDS: Final = 60.0
"""Between two lines that say how far a look is, where there is no live line."""


class GapDisplay:
    """A `Watch` that tells how far it is, what it cost and how long it took. Enter it."""

    def __init__(
        self,
        console: Console,
        spent: Spent,
        *,
        asked: Callable[[], Usage] = Usage,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`asked` tells what this process has asked for so far, episodes that are not over included."""
        self._console = console
        self._spent = spent
        self._asked = asked
        self._clock = clock
        self._began = self._noted = clock()
        self._usage = Usage()
        self._earlier: Usage | None = None
        self._title = ""
        self._done = 0
        self._live = console.is_terminal and not console.is_dumb_terminal
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            _Cell(self._now),
            console=console,
            transient=True,
            disable=not self._live,
        )
        self._task = self._bars.add_task("", total=None)

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
        self._done = 0
        if environments:
            self._title = f"{pairs} pairs of {environments}, {count(episodes, 'episode')} to play"
        self._bars.reset(self._task, description=f"{pairs} pairs of {environments}", total=episodes)

    def played(self, episodes: int, usage: Usage) -> None:
        """Episodes are over."""
        if self._earlier is None:  # nothing was asked yet
            self._earlier = usage
        self._usage = usage
        self._done += episodes
        self._bars.update(self._task, advance=episodes)
        if not self._live and self._clock() - self._noted >= NOTE_SECONDS:
            self.note(f"{self._title}, {self._done:,} played: {self._told()}")

    def note(self, text: str) -> None:
        """One line that stays."""
        self._noted = self._clock()
        self._console.print(Text(text), soft_wrap=True)

    def _end(self) -> None:
        if self._title:
            self.note(f"{self._title}: {self._told()}")
        self._title = ""

    def _told(self) -> str:
        return self._words(self._usage)

    def _now(self) -> str:
        """What was spent up to now: a long episode has to be seen to go on."""
        return self._words((self._earlier or Usage()) + self._asked())

    def _words(self, usage: Usage) -> str:
        return f"{self._spent(usage)}, {duration(self._clock() - self._began)}"


class _Cell(ProgressColumn):
    """What a function says at the moment."""

    def __init__(self, says: Callable[[], str]) -> None:
        super().__init__()
        self._says = says

    def render(self, task: Task) -> Text:
        """The text, as it is."""
        del task
        return Text(self._says(), style="cyan")
