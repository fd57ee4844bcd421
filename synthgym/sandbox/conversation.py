"""Talks with several workers at once, each request under its own deadline."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from synthgym.sandbox.process import Answered, Request, Worker


@dataclass(slots=True)
class Talk:
    """What one worker is asked and what it answers.

    Afterwards either every request has its answer, or `worker.lost` says why the first one without
    does not.
    """

    worker: Worker
    requests: Sequence[Request]
    answers: list[Answered] = field(default_factory=list)


def converse(talks: Sequence[Talk], until: float = math.inf) -> None:
    """Carry on all talks at the same time until each has ended.

    At `until` (monotonic clock) the workers that still owe a reply are killed.
    """
    poller = select.poll()
    talking: dict[int, Talk] = {}
    for talk in talks:
        talk.worker.post(talk.requests)
        if talk.worker.waiting:
            talking[talk.worker.fileno()] = talk
            poller.register(talk.worker.fileno(), _events(talk.worker))
    earliest = 0.0  # no request is late before this
    while talking:
        now = time.monotonic()
        if earliest <= now:
            earliest = min(until, *(talk.worker.deadline for talk in talking.values()))
        wait = max(0.0, earliest - now)
        ready = dict(poller.poll(math.ceil(wait * 1000)))
        for descriptor, event in ready.items():
            talk = talking[descriptor]
            writing = talk.worker.writing
            _advance(talk, event)
            if talk.worker.lost or not talk.worker.waiting:
                poller.unregister(descriptor)
                del talking[descriptor]
                continue
            earliest = min(earliest, talk.worker.deadline)
            if writing and not talk.worker.writing:
                poller.modify(descriptor, _events(talk.worker))
        if not wait:
            for descriptor in _kill_late(talking, ready, until):
                poller.unregister(descriptor)
                del talking[descriptor]


def _kill_late(talking: dict[int, Talk], ready: dict[int, int], until: float) -> list[int]:
    """Kill the workers that were late before the last look and silent in it; their descriptors.

    Late before it: this process may itself have been held up while the reply came in.
    """
    now = time.monotonic()
    late = [
        descriptor
        for descriptor, talk in talking.items()
        if descriptor not in ready and min(talk.worker.deadline, until) <= now
    ]
    for descriptor in late:
        talking[descriptor].worker.expire()
    return late


def _events(worker: Worker) -> int:
    return select.POLLIN | (select.POLLOUT if worker.writing else 0)


def _advance(talk: Talk, event: int) -> None:
    if event & select.POLLOUT:
        talk.worker.write()
    if event & ~select.POLLOUT:
        talk.answers += talk.worker.read()
