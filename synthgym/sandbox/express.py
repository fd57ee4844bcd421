"""The short way, for what nearly always happens: sessions at home in workers that have nothing else to do.

One message goes to each worker and one reply comes back, without queues and requests. Whatever is
out of the ordinary (a failure, a reply in parts, a worker that is slow or lost) is handed over to
the engine, as if it had been the engine's from the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from synthgym.sandbox.link import Link
from synthgym.sandbox.protocol import Resets, Rows, Steps
from synthgym.sandbox.reset_task import ResetTask
from synthgym.sandbox.row_tasks import Infos, RowTask, decode_infos
from synthgym.sandbox.step_task import StepTask
from synthgym.sandbox.tasks import Task

SECONDS: Final = 0.01
"""How long the short way may take before the engine takes over."""


class Flight:
    """What one worker is asked on the short way."""

    __slots__ = ("link", "ops", "tasks")

    def __init__(self, link: Link) -> None:
        self.link = link
        self.tasks: list[RowTask] = []
        self.ops: list[Steps | Resets] = []

    def start(self) -> None:
        """Send the message."""
        self.link.launch(self.ops)

    def land(self, room: memoryview) -> bool:
        """Take the reply; whether it was an ordinary one. Otherwise nothing was taken."""
        replies = self.link.land(room, len(self.ops))
        if replies is None:
            return False
        landings: list[tuple[RowTask, Rows, Infos]] = []
        for task, op, reply in zip(self.tasks, self.ops, replies, strict=True):
            if type(reply) is not Rows or reply.id != op.id or not _ordinary(reply, task):
                return False
            try:
                landings.append((task, reply, decode_infos(reply)))
            except (ValueError, RecursionError):
                return False
        seconds = self.link.landed(sum(task.count for task in self.tasks)) / len(landings)
        for task, reply, infos in landings:
            task.land(reply, infos, seconds)
        return True

    def hand_over(self) -> list[RowTask]:
        """Make requests of it, for the engine to go on with; the tasks."""
        for task in self.tasks:
            task.occupy()
        self.link.adopt(
            [task.request_for(op) for task, op in zip(self.tasks, self.ops, strict=True)]
        )
        return self.tasks


def plan(tasks: Sequence[Task]) -> dict[int, Flight] | None:
    """Return a flight for each worker, by descriptor; None when one task cannot take the short way."""
    flights: dict[int, Flight] = {}
    for task in tasks:
        source = task.source
        link = source.link
        if link is None or not source.undisturbed or not link.idle:
            return None
        if type(task) is not StepTask and type(task) is not ResetTask:
            return None
        op = task.lone_op(link)
        if op is None:
            return None
        flight = flights.get(link.fd)
        if flight is None:
            flight = flights[link.fd] = Flight(link)
        flight.tasks.append(task)
        flight.ops.append(op)
    return flights


def _ordinary(rows: Rows, task: RowTask) -> bool:
    """Whether a reply answers the whole task with values. What is not is looked at by the engine."""
    count = task.count
    return (
        len(rows.observations) == count == len(rows.rewards) == len(rows.flags)
        and not rows.failures
        and (not rows.infos or 0 <= min(rows.infos) <= max(rows.infos) < count)
        and max(map(len, rows.observations)) <= task.source.limits.observation_chars
        and max(rows.flags) <= task.max_flag
        and math.isfinite(sum(rows.rewards))
        and (task.pays or not any(rows.rewards))
    )
