"""What a run shows while it runs: a live line on a terminal, plain lines anywhere else."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task
from rich.progress import Progress as Bars
from rich.text import Text

from spade_loop.progress import Progress
from spade_loop.report.formats import count, duration, visible

Clock = Callable[[], float]

UNITS = {
    "load": ("model", "models"),
    "design": ("design", "designs"),
    "admit": ("design", "designs"),
    "play": ("episode", "episodes"),
    "update": ("forward pass", "forward passes"),
}
"""What a step of a phase is; a phase that is not listed has steps."""


def make_progress(
    console: Console, *, clock: Clock = time.monotonic
) -> AbstractContextManager[Progress]:
    """A display for one run: live when `console` is a terminal, else a line a phase.

    Enter it to get a `Progress`. Leaving it by an exception, Ctrl-C included, leaves the terminal as it was and
    lets the exception go on. `clock` gives seconds and never goes back.
    """
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(console, clock)
    return LineDisplay(console, clock)


@dataclass(slots=True)
class Tally:
    """What has been reported, and when: the arithmetic of both displays."""

    clock: Clock
    index: int | None = None
    """The iteration in progress, counted from 0; None before the first."""
    total: int = 0
    iteration_began: float = 0.0
    finished: list[float] = field(default_factory=list)
    """Seconds of each iteration that was completed since this display was opened."""
    phase: str | None = None
    phase_began: float = 0.0
    planned: int = 0
    steps: int = 0
    tokens: int = 0

    def begin_iteration(self, index: int, total: int) -> None:
        """Iteration `index` of `total` begins now."""
        self.index, self.total, self.iteration_began = index, total, self.clock()

    def end_iteration(self) -> float | None:
        """The seconds of the iteration that ends now; None when there was none."""
        if self.index is None:
            return None
        seconds = self.clock() - self.iteration_began
        self.finished.append(seconds)
        return seconds

    def begin_phase(self, name: str, steps: int) -> None:
        """A phase of `steps` steps begins now."""
        self.phase, self.phase_began = name, self.clock()
        self.planned, self.steps, self.tokens = steps, 0, 0

    def advance(self, steps: int, tokens: int) -> None:
        """Count what is done."""
        self.steps += steps
        self.tokens += tokens

    @property
    def where(self) -> str:
        """`iteration 2/3`, or nothing before the first."""
        return "" if self.index is None else f"iteration {self.index + 1}/{self.total}"

    @property
    def speed(self) -> float | None:
        """Tokens a second in this phase; None when none were counted."""
        seconds = self.clock() - self.phase_began
        return self.tokens / seconds if self.tokens and seconds > 0 else None

    def seconds_left(self, *, iterations: int, elapsed: float = 0.0) -> float | None:
        """For `iterations` iterations of the mean length, less what has `elapsed`; None before one is complete."""
        if not self.finished:
            return None
        mean = sum(self.finished) / len(self.finished)
        return max(0.0, mean * iterations - elapsed)

    @property
    def left_now(self) -> float | None:
        """Seconds to the end of the run as seen now, in the middle of an iteration."""
        if self.index is None:
            return None
        elapsed = self.clock() - self.iteration_began
        return self.seconds_left(iterations=self.total - self.index, elapsed=elapsed)

    def phase_line(self) -> str:
        """The phase that ends now, in one line."""
        name = self.phase or ""
        # A phase that does not report its steps one by one has done all of them when it ends.
        done = self.steps or self.planned
        parts = [count(done, *UNITS.get(name, ("step", "steps")))]
        if self.tokens:
            parts.append(count(self.tokens, "token"))
        if self.speed is not None:
            parts.append(f"{self.speed:,.0f} tokens/s")
        parts.append(duration(self.clock() - self.phase_began))
        return f"{self._prefix}{name}: {', '.join(parts)}"

    def iteration_line(self, seconds: float) -> str:
        """The iteration that ends now, and how long the rest will take."""
        line = f"{self._prefix}done in {duration(seconds)}"
        remaining = self.total - (self.index or 0) - 1
        left = self.seconds_left(iterations=remaining)
        return line if remaining <= 0 or left is None else f"{line}; about {duration(left)} left"

    @property
    def _prefix(self) -> str:
        return f"[{self.where}] " if self.where else ""


class _Display:
    """What both displays share: the tally, and the order in which phases and iterations end."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self.console = console
        self.tally = Tally(clock)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What an exception cut short has not ended: nothing is said of it.
        if kind is None:
            self._end_iteration()

    def iteration(self, index: int, total: int) -> None:
        """Iteration `index` of `total` begins, and the one before it is over."""
        self._end_iteration()
        self.tally.begin_iteration(index, total)

    def phase(self, name: str, steps: int) -> None:
        """A phase begins, and the one before it is over."""
        self._end_phase()
        self.tally.begin_phase(name, steps)

    def advance(self, steps: int, tokens: int = 0) -> None:
        """Steps and tokens that are done."""
        self.tally.advance(steps, tokens)

    def note(self, text: str) -> None:
        """Print one line that stays; markup and control characters in it are shown, not obeyed."""
        line = visible(" ".join(text.splitlines()))
        self.console.print(Text(line), soft_wrap=True)

    def _end_phase(self) -> None:
        if self.tally.phase is not None:
            self._phase_ended()
            self.tally.phase = None

    def _end_iteration(self) -> None:
        self._end_phase()
        seconds = self.tally.end_iteration()
        if seconds is not None:
            self.note(self.tally.iteration_line(seconds))

    def _phase_ended(self) -> None:
        """Show that the phase is over."""


class LineDisplay(_Display):
    """A line at the end of each phase and of each iteration: for logs and pipes."""

    def _phase_ended(self) -> None:
        self.note(self.tally.phase_line())


class LiveDisplay(_Display):
    """One live line with bar, speed and time left; a line that stays for each iteration."""

    def __init__(self, console: Console, clock: Clock) -> None:
        super().__init__(console, clock)
        self._bars = Bars(
            _Cell(lambda: self.tally.where),
            _Cell(lambda: self.tally.phase or "", style="bold"),
            BarColumn(bar_width=24),
            _Cell(self._steps),
            _Cell(self._speed),
            _Cell(self._left, style="cyan"),
            console=console,
            transient=True,
        )
        self._task = self._bars.add_task("", total=None, visible=False)

    def __enter__(self) -> Progress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._bars.stop()

    def phase(self, name: str, steps: int) -> None:
        """A phase begins: its bar moves to and fro until the first step is reported."""
        super().phase(name, steps)
        # A task that has a total can never lose it again, so each phase has a task of its own.
        self._bars.remove_task(self._task)
        self._task = self._bars.add_task("", total=None)

    def advance(self, steps: int, tokens: int = 0) -> None:
        """Steps and tokens that are done."""
        super().advance(steps, tokens)
        tally = self.tally
        if tally.steps:
            self._bars.update(self._task, total=tally.planned or None, completed=tally.steps)

    def _steps(self) -> str:
        return f"{self.tally.steps}/{self.tally.planned}" if self.tally.steps else ""

    def _speed(self) -> str:
        speed = self.tally.speed
        return "" if speed is None else f"{speed:,.0f} tokens/s"

    def _left(self) -> str:
        left = self.tally.left_now
        return "" if left is None else f"about {duration(left)} left"


class _Cell(ProgressColumn):
    """A column whose text is asked for at every refresh, so that the time left goes down between reports."""

    def __init__(self, text: Callable[[], str], style: str = "") -> None:
        super().__init__()
        self._text = text
        self._style = style

    def render(self, task: Task) -> Text:
        """The text as it is now."""
        del task
        return Text(visible(self._text()), style=self._style)
