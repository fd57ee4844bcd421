"""Which worker hosts which source: starting workers, making room, taking them apart."""

from __future__ import annotations

import select
from dataclasses import dataclass
from typing import Final, cast

from synthgym.errors import SandboxError
from synthgym.sandbox.link import Link
from synthgym.sandbox.polling import Poller
from synthgym.sandbox.process import Zygote
from synthgym.sandbox.requests import Request
from synthgym.sandbox.source import Source
from synthgym.sandbox.tasks import Task

READABLE: Final = ~select.POLLOUT
WRITABLE: Final = select.POLLOUT


@dataclass(frozen=True, slots=True)
class Shape:
    """How many workers there may be and what they are like."""

    max_workers: int
    sources_per_worker: int
    hash_seed: int = 0
    """PYTHONHASHSEED of every worker, whatever that of the parent is."""


class Hosts:
    """The workers of one pool in one process. Not thread-safe: the engine's lock guards it."""

    def __init__(self, shape: Shape) -> None:
        self._max_workers = shape.max_workers
        self._sources_per_worker = shape.sources_per_worker
        self._hash_seed = shape.hash_seed
        self._zygote: Zygote | None = None
        self._poller = Poller()
        self.closed = False
        """Whether `close` was called."""
        self.links: dict[int, Link] = {}
        """By descriptor."""
        self.waiting: dict[Source, None] = {}
        """Sources with work and without a worker."""

    def wait(self, seconds: float) -> list[tuple[int, int]]:
        """(descriptor, events) of workers that can be read from or written to, within `seconds`."""
        return self._poller.wait(seconds)

    def pids(self) -> list[int]:
        """Return the zygote's pid, when there is one, and then those of the workers."""
        zygote = [] if self._zygote is None else [self._zygote.pid]
        return [*zygote, *(link.pid for link in self.links.values())]

    def place(self, source: Source) -> Link | None:
        """Return a worker for a source that has none, or None when there is no room.

        The least recently used idle worker makes room. `SandboxError` when none can be started.
        """
        link = self._shared(source) if self._sources_per_worker > 1 else None
        if link is None:
            if len(self.links) >= self._max_workers:
                idle = [item for item in self.links.values() if item.idle]
                if not idle:
                    return None
                self.end(min(idle, key=lambda item: item.used))
            link = self.start(source.limits.memory_mb)
        link.programs += 1
        link.hosted[source] = source.program = link.programs
        source.unhost()
        source.link = link
        return link

    def release(self, source: Source) -> bool:
        """Take a source from its worker; whether the worker is still of use to others."""
        link = source.link
        assert link is not None
        del link.hosted[source]
        source.unhost()
        return bool(link.hosted) or link.programs < self._sources_per_worker

    def start(self, memory_mb: int) -> Link:
        """Fork a worker. `SandboxError` when that fails."""
        zygote = self._living_zygote()
        try:
            link = Link(zygote, memory_mb, self._poller)
        except SandboxError:
            if zygote.alive:
                raise
            # It had died since it was last used.
            link = Link(self._living_zygote(), memory_mb, self._poller)
        self.links[link.fd] = link
        return link

    def end(self, link: Link) -> None:
        """Kill a worker; what was under way there goes back to the queues of its sources.

        Sources with work are left in `waiting`.
        """
        link.kill()
        tasks = tasks_of(link)
        if self.links.get(link.fd) is link:  # a descriptor may have a new owner
            del self.links[link.fd]
        link.pending.clear()
        link.outbox.clear()
        for source in link.hosted:
            source.unhost()
        for task in reversed(tasks):
            task.again()
            if not task.done:
                task.source.queue.appendleft(task)
                if task.source.link is None:
                    self.waiting[task.source] = None
        self.waiting.update((source, None) for source in link.hosted if source.queue)
        link.hosted.clear()

    def close(self) -> None:
        """End every process. Twice is fine."""
        self.closed = True
        for link in list(self.links.values()):
            link.pending.clear()
            link.outbox.clear()
            self.end(link)
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
        self._poller.close()

    def abandon(self) -> None:
        """Let go of the parent's processes, in a forked child."""
        for link in self.links.values():
            link.abandon()
        if self._zygote is not None:
            self._zygote.abandon()
        self._poller.close()

    def _shared(self, source: Source) -> Link | None:
        for link in self.links.values():
            room = link.programs < self._sources_per_worker
            if room and link.memory_mb == source.limits.memory_mb:
                return link
        return None

    def _living_zygote(self) -> Zygote:
        if self._zygote is None or not self._zygote.alive:
            if self._zygote is not None:
                self._zygote.close()
            self._zygote = Zygote(self._hash_seed)
        return self._zygote


def tasks_of(link: Link) -> list[Task]:
    """Return the tasks that a worker has or is to get, in order."""
    owners = dict.fromkeys(request.owner for request in (*link.pending, *link.outbox))
    return [
        cast(Task, owner) for owner in owners if owner is not None and not isinstance(owner, Source)
    ]


def source_of(request: Request) -> Source | None:
    """Return the source that a request works for; None for what only makes room."""
    owner = request.owner
    if owner is None or isinstance(owner, Source):
        return owner
    return cast(Task, owner).source
