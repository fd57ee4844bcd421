"""Who is to blame for the end of a worker, and whose work is begun anew."""

from __future__ import annotations

from typing import Final, cast

from synthgym.sandbox.hosting import tasks_of
from synthgym.sandbox.link import Link
from synthgym.sandbox.requests import Lost
from synthgym.sandbox.results import EnvFault, FaultKind
from synthgym.sandbox.source import Source
from synthgym.sandbox.tasks import Task

TRIES: Final = 3
"""How often a task is begun when workers are lost without any fault of the source."""


def blame(link: Link) -> None:
    """Make a fault of what ended a worker, if anything that it was asked did."""
    lost = link.lost
    assert lost is not None
    owner = lost.request.owner if lost.request is not None else None
    if lost.kind is FaultKind.LOST:
        _count_tries(link, lost.detail)
    elif isinstance(owner, Source):
        fault = EnvFault(lost.kind, "load", lost.detail)
        owner.loaded = fault
        owner.strike(fault)
        owner.fail_queue(fault)
    elif owner is not None and lost.request is not None:
        task = cast(Task, owner)  # what is no source is a task
        task.blame(lost.request, lost.row, (lost.kind, lost.detail))
        task.source.strike(EnvFault(lost.kind, task.call, lost.detail))
    elif lost.kind is not FaultKind.MEMORY:  # that one has been told, and counted, row by row
        _blame_between_calls(link, lost)


def _blame_between_calls(link: Link, lost: Lost) -> None:
    """A worker broke the rules while nothing was asked of it: no call is to blame."""
    if len(link.hosted) > 1:  # nobody knows which of them it was
        _count_tries(link, lost.detail)
        return
    for source in link.hosted:
        source.strike(EnvFault(lost.kind, "load", lost.detail))


def _count_tries(link: Link, detail: str) -> None:
    """A worker was lost through nobody's fault: its tasks are begun anew, but not for ever."""
    loading = [task for source in link.hosted if not source.ready for task in source.queue]
    for task in [*tasks_of(link), *loading]:
        task.tries += 1
        if task.tries >= TRIES:
            task.fail(EnvFault(FaultKind.LOST, task.call, detail))
    for source in link.hosted:
        source.forget_done()
