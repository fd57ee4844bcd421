"""What processes there are, as the kernel tells it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def parents() -> dict[int, int]:
    """The parent of each process that is not dead, by its id."""
    found: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended since
            continue
        if fields[0] != "Z":
            found[int(path.parent.name)] = int(fields[1])
    return found


def descendants(pid: int) -> set[int]:
    """Every process below `pid`."""
    table = parents()
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        above = waiting.pop()
        below = {child for child, parent in table.items() if parent == above} - found
        found |= below
        waiting += below
    return found


def wait_until(condition: Callable[[], bool], seconds: float = 15.0) -> None:
    """Wait for `condition`; fail when it takes too long."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come true in time"
        time.sleep(0.01)
