"""The display of a running run, with a clock that the test turns."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from spade_loop.progress import Progress
from spade_loop.report.display import LineDisplay, LiveDisplay, Tally, make_progress


class Clock:
    """Seconds that pass when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def lines_console() -> Console:
    return Console(file=io.StringIO(), force_terminal=False, width=40)


def terminal() -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=100, _environ={"TERM": "xterm-256color"}
    )


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def play_iteration(
    progress: Progress, clock: Clock, index: int, total: int, seconds: float
) -> None:
    progress.iteration(index, total)
    progress.phase("design", 6)
    clock.now += 1.3
    progress.phase("play", 64)
    progress.advance(0, 1912)
    progress.advance(64, 2000)
    clock.now += seconds - 1.3


def test_off_a_terminal_each_phase_and_iteration_ends_with_a_line() -> None:
    clock, console = Clock(), lines_console()
    with make_progress(console, clock=clock) as progress:
        progress.phase("load", 1)
        clock.now += 2
        progress.advance(1)
        for index in range(3):
            play_iteration(progress, clock, index, 3, 40.0)
    assert written(console).splitlines() == [
        "load: 1 model, 2.0 s",
        "[iteration 1/3] design: 6 designs, 1.3 s",
        "[iteration 1/3] play: 64 episodes, 3,912 tokens, 101 tokens/s, 38.7 s",
        "[iteration 1/3] done in 40.0 s; about 1 min 20 s left",
        "[iteration 2/3] design: 6 designs, 1.3 s",
        "[iteration 2/3] play: 64 episodes, 3,912 tokens, 101 tokens/s, 38.7 s",
        "[iteration 2/3] done in 40.0 s; about 40.0 s left",
        "[iteration 3/3] design: 6 designs, 1.3 s",
        "[iteration 3/3] play: 64 episodes, 3,912 tokens, 101 tokens/s, 38.7 s",
        "[iteration 3/3] done in 40.0 s",
    ]


def test_the_time_left_is_unknown_until_an_iteration_is_complete() -> None:
    clock = Clock()
    tally = Tally(clock)
    assert tally.left_now is None
    tally.begin_iteration(4, 10)  # resumed: four iterations were done by another process
    clock.now += 30
    assert tally.left_now is None
    tally.end_iteration()
    tally.begin_iteration(5, 10)
    assert tally.left_now == pytest.approx(150)
    clock.now += 10
    assert tally.left_now == pytest.approx(140)
    clock.now += 10_000
    assert tally.left_now == 0.0


def test_a_terminal_shows_iteration_phase_bar_speed_and_time_left() -> None:
    clock, console = Clock(), terminal()
    display = make_progress(console, clock=clock)
    assert isinstance(display, LiveDisplay)
    with display as progress:
        play_iteration(progress, clock, 0, 3, 40.0)
        progress.iteration(1, 3)
        progress.phase("play", 64)
        progress.advance(16, 500)
        clock.now += 5
        display._bars.refresh()
    text = written(console)
    for wanted in ("iteration 2/3", "play", "16/64", "100 tokens/s", "about 1 min 15 s left", "━"):
        assert wanted in text
    assert "[iteration 1/3] done in 40.0 s; about 1 min 20 s left" in text
    assert text.count("\x1b[?25h") == text.count("\x1b[?25l") == 1


def break_off(console: Console, error: type[BaseException]) -> None:
    with make_progress(console, clock=Clock()) as progress:
        progress.iteration(0, 2)
        progress.phase("play", 8)
        progress.note("stopping")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("make", [terminal, lines_console])
def test_an_exception_goes_on_and_leaves_a_clean_terminal(make, error: type[BaseException]) -> None:
    console = make()
    with pytest.raises(error):
        break_off(console, error)
    text = written(console)
    assert "stopping" in text
    assert "done in" not in text
    assert text.count("\x1b[?25h") == text.count("\x1b[?25l")
    assert console._live_stack == []


def test_a_note_is_one_line_and_nothing_in_it_is_obeyed() -> None:
    console = lines_console()
    with make_progress(console) as progress:
        progress.note("[red]x[/red] \x1b[31m\u202e " + "word " * 20 + "\nend")
    (line,) = written(console).splitlines()
    assert line.startswith(r"[red]x[/red] \u{1b}[31m\u{202e} word")
    assert line.endswith("end")


def test_a_dumb_terminal_gets_plain_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(make_progress(console), LineDisplay)


def test_a_phase_may_have_no_steps_and_steps_may_come_before_a_phase() -> None:
    for console in (lines_console(), terminal()):
        with make_progress(console, clock=Clock()) as progress:
            progress.advance(1, 5)
            progress.iteration(0, 1)
            progress.phase("rest", 0)
        assert "[iteration 1/1] done in 0.0 s" in written(console)
