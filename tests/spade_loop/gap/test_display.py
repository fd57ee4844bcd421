"""What `spade-loop gap` says while it plays."""

from __future__ import annotations

import io

from rich.console import Console

from spade_loop.gap.display import NOTE_SECONDS, GapDisplay
from spade_loop.speaking import Usage


def test_what_a_long_episode_costs_is_seen_before_it_is_over() -> None:
    now, asked = [0.0], [Usage()]
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with GapDisplay(
        console,
        lambda usage: f"{usage.tokens} generated",
        asked=lambda: asked[0],
        clock=lambda: now[0],
    ) as display:
        display.look(2, 1, 4)
        display.played(0, Usage(1, 10, 100))  # of an earlier process
        now[0], asked[0] = 90.0, Usage(1, 10, 7)
    assert "107 generated, 1 min 30 s" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_log_is_told_now_and_then() -> None:
    now = [0.0]
    console = Console(file=io.StringIO(), width=120)
    with GapDisplay(
        console, lambda usage: f"{usage.tokens} generated", clock=lambda: now[0]
    ) as display:
        display.look(2, 1, 4)
        display.played(1, Usage(1, 10, 1))
        assert console.file.getvalue() == ""  # type: ignore[attr-defined]
        now[0] = NOTE_SECONDS
        display.played(1, Usage(2, 20, 2))
        display.played(1, Usage(3, 30, 3))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[0] == "2 pairs of 1, 4 episodes to play, 2 played: 2 generated, 1 min 00 s"
    assert len(lines) == 2
