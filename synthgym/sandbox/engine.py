"""The work under way in a pool: one loop over epoll that any waiting thread may run.

Tasks are queued by source. A source's worker is told about all of them in one message; replies are
taken as they come. A lost worker takes nothing with it: the row that was running gets the fault,
everything else is asked again of the next worker, after a replay.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from synthgym.errors import SandboxError
from synthgym.sandbox import express
from synthgym.sandbox.blame import TRIES, blame
from synthgym.sandbox.code_cache import CodeCache
from synthgym.sandbox.feeding import Feeder
from synthgym.sandbox.hosting import READABLE, WRITABLE, Hosts, Shape, source_of, tasks_of
from synthgym.sandbox.isolation import LINUX, IsolationReport, Level
from synthgym.sandbox.link import Link
from synthgym.sandbox.oversight import check_level, known_level, resident_bytes, shortcoming, worn
from synthgym.sandbox.protocol import RECV_BYTES, Unload
from synthgym.sandbox.requests import Request
from synthgym.sandbox.results import EnvFault, FaultKind
from synthgym.sandbox.source import Source, ignore, no_rows
from synthgym.sandbox.tasks import Countdown, Task

LOOK_SECONDS: Final = 0.1
"""How often the clocks of busy workers are looked at. A deadline may be overrun by two looks."""
_WEIGH_SECONDS: Final = 1.0
"""How often the memory of a worker is looked at."""
_PROBE_MB: Final = 256
_log = logging.getLogger("synthgym.sandbox")


class Engine:
    """Runs tasks. Thread-safe. `SandboxError` when workers cannot be started or are not confined."""

    def __init__(self, shape: Shape, require: Level | None, cache: CodeCache) -> None:
        self._shape = shape
        self._require = known_level(require)
        self._cache = cache
        self._room = memoryview(bytearray(RECV_BYTES))
        self._warned = False
        self.closed = False
        """Whether `close` was called."""
        self.isolation: IsolationReport | None = None
        """What the last worker that started reported."""
        self._begin()

    def _begin(self) -> None:
        """Set up what belongs to one process and is made anew in a forked child."""
        self.lock = threading.Lock()
        self._changed = threading.Condition(self.lock)
        self._leading = False
        """Whether a thread is in the loop."""
        self._torn = False
        """Whether a turn of it was cut short, between reading a reply and having taken it."""
        self._hosts = Hosts(self._shape)
        self._feeder = Feeder(self._hosts, self._cache)
        self._open: dict[Task, None] = {}
        """Tasks whose end nobody has seen yet."""
        self._flying: list[express.Flight] = []
        """What is on the short way."""
        self._false_starts = 0
        self._next_look = 0.0

    # --- what the pool calls ---

    def run(self, tasks: Sequence[Task]) -> None:
        """Bring tasks to their end. After an exception they are as if never begun."""
        with self.lock:
            try:
                flights = express.plan(tasks) if self._undisturbed() else None
                if flights is None:
                    self.submit(tasks)
                elif self._fly(flights):
                    return
                self.wait(Countdown(tasks))
            except BaseException:
                self._cancel(tasks)
                raise
            self.forget(tasks)

    def begin(self, tasks: Sequence[Task]) -> None:
        """Hand tasks to their workers, or leave none of them begun. With the lock held."""
        try:
            self.submit(tasks)
        except BaseException:
            self._cancel(tasks)
            raise

    def _undisturbed(self) -> bool:
        """Whether nobody else wants anything from the workers."""
        return not (self._open or self._leading or self._hosts.waiting or self.closed)

    def _fly(self, flights: dict[int, express.Flight]) -> bool:
        """Take the short way; whether it has answered everything. The rest is then under way."""
        unusual: list[express.Flight] = []
        self._flying = list(flights.values())
        self._leading = self._torn = True
        try:
            until = time.monotonic() + express.SECONDS
            for flight in self._flying:
                flight.start()
            while flights and (left := until - time.monotonic()) > 0:
                unusual += self._land(flights, unusual, self._poll(left))
            self._torn = False
        finally:
            self._leading = False
            self._flying = []
            if self._open:
                self._changed.notify_all()
        unusual += flights.values()
        for flight in unusual:
            self._open.update((task, None) for task in flight.hand_over())
            self._take(flight.link, starting=False)
        self._after_flights()
        return not unusual

    def _land(
        self,
        flights: dict[int, express.Flight],
        unusual: Sequence[express.Flight],
        ready: Sequence[tuple[int, int]],
    ) -> list[express.Flight]:
        """Take what has come back; what cannot be taken the short way is left to be handed over."""
        found: list[express.Flight] = []
        for descriptor, events in ready:
            if descriptor in flights and events & READABLE:
                flight = flights.pop(descriptor)
                if not flight.land(self._room):
                    found.append(flight)
            elif not any(flight.link.fd == descriptor for flight in (*unusual, *found)):
                self._handle(descriptor, events)
        return found

    def _after_flights(self) -> None:
        """See to what the short way leaves out: those who came meanwhile, and worn workers."""
        links = list(self._hosts.links.values())
        if self._open:
            for source in [item for link in links for item in link.hosted]:
                self._feeder.feed(source)
            self._feeder.flush()
        now = time.monotonic()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            for link in links:
                if link.idle:
                    self._idle(link)

    def submit(self, tasks: Sequence[Task]) -> None:
        """Hand tasks to their workers. With the lock held."""
        self.check_open()
        for task in tasks:
            self._open[task] = None
            task.occupy()
            task.source.queue.append(task)
        for task in tasks:
            if task.source.queue:
                self._feeder.feed(task.source)
        self._feeder.flush()

    def forget(self, tasks: Sequence[Task]) -> None:
        """Note that somebody has seen the end of these. With the lock held.

        `SandboxError` when one of them was broken off.
        """
        for task in tasks:
            self._open.pop(task, None)
        for task in tasks:
            if task.error is not None:
                raise task.error

    def wait(self, finished: Callable[[], bool], until: float = float("inf")) -> None:
        """Take replies until `finished`, or the monotonic clock says `until`. With the lock held."""
        while not finished():
            self.check_open()
            left = until - time.monotonic()
            if left <= 0:
                return
            if self._leading:
                self._changed.wait(LOOK_SECONDS)
                continue
            self._leading = True
            try:
                self._turn(min(LOOK_SECONDS, left))
            finally:
                self._leading = False
                self._changed.notify_all()

    def release(self, source: Source) -> None:
        """Let go of a source that nobody uses any more. With the lock held."""
        for task in self._unfinished():
            if task.source is source:
                task.fail(EnvFault(FaultKind.LOST, task.call, "the session was closed"))
        source.queue.clear()
        self._hosts.waiting.pop(source, None)
        link = source.link
        if link is None:
            return
        posted, number = source.posted, source.program
        busy = link.flying or any(
            source_of(request) is source for request in (*link.pending, *link.outbox)
        )
        if not self._hosts.release(source) or busy:
            self._hosts.end(link)
            self._feed_waiting()
        elif posted:
            link.post([Request(Unload(link.next_id(), number), 0, no_rows, ignore)])
        self._feeder.flush()

    def probe(self) -> IsolationReport:
        """Start a worker, unless one has started already, and return what protects it."""
        with self.lock:
            if self.isolation is None:
                self.check_open()
                link = self._hosts.start(_PROBE_MB)
                try:
                    self.wait(lambda: link.isolation is not None or link.lost is not None)
                finally:
                    self._hosts.end(link)
            if self.isolation is None:
                raise SandboxError("a worker did not start")
            return self.isolation

    def pids(self) -> list[int]:
        """Return the zygote's pid, when there is one, and then those of the workers."""
        with self.lock:
            return self._hosts.pids()

    def close(self) -> None:
        """End every process. Twice is fine."""
        with self.lock:
            if not self.closed:
                self.closed = True
                self._hosts.close()
                self._changed.notify_all()

    def abandon(self, sources: Sequence[Source]) -> None:
        """Let go of the parent's processes and locks, in a forked child."""
        self._hosts.abandon()
        for task in self._unfinished():
            task.cancel()
        for source in sources:
            source.unhost()
            source.queue.clear()
        self._begin()

    def _unfinished(self) -> list[Task]:
        """Return the tasks under way."""
        tasks = [*self._open, *(task for flight in self._flying for task in flight.tasks)]
        return [task for task in tasks if not task.done]

    def check_open(self) -> None:
        """`SandboxError` when this was closed."""
        if self.closed:
            raise SandboxError("the pool is closed")

    def _cancel(self, tasks: Sequence[Task]) -> None:
        """Forget tasks.

        A worker that has one of them under way is ended: late answers would be taken for others.
        """
        gone = set(tasks)
        for task in tasks:
            self._open.pop(task, None)
            task.cancel()
            if task in task.source.queue:
                task.source.queue.remove(task)
        for link in list(self._hosts.links.values()):
            if self._torn or not gone.isdisjoint(tasks_of(link)):
                link.drop(gone)
                self._hosts.end(link)
        self._torn = False
        self._feed_waiting()
        self._feeder.flush()

    def _break_off(self, error: SandboxError) -> None:
        """End all that is under way: every thread that waits for a part of it gets `error`."""
        tasks = [task for task in self._open if not task.done]
        for task in tasks:
            task.error = error
        self._torn = True
        self._cancel(tasks)
        for task in tasks:
            self._open[task] = None  # until its thread has seen it

    # --- one turn of the loop ---

    def _turn(self, seconds: float) -> None:
        """Wait for replies, at most `seconds` and without the lock, and take them."""
        ready = self._poll(seconds)
        self._torn = True
        try:
            for descriptor, events in ready:
                self._handle(descriptor, events)
            now = time.monotonic()
            if now >= self._next_look:
                self._next_look = now + LOOK_SECONDS
                for link in list(self._hosts.links.values()):
                    self._look(link, now)
            self._feeder.flush()
        except SandboxError as error:
            self._break_off(error)
        self._torn = False

    def _poll(self, seconds: float) -> list[tuple[int, int]]:
        """Wait for workers that can be read from or written to, without the lock."""
        self.lock.release()
        try:
            return self._hosts.wait(seconds)
        finally:
            self.lock.acquire()

    def _handle(self, descriptor: int, events: int) -> None:
        link = self._hosts.links.get(descriptor)
        if link is None:
            return
        if events & WRITABLE:
            link.write()
        if events & READABLE:
            self._read(link)

    def _read(self, link: Link) -> None:
        starting = link.isolation is None
        link.read(self._room)
        self._take(link, starting)

    def _take(self, link: Link, starting: bool) -> None:
        """Go on with what a worker has answered."""
        if link.loading:
            self._feeder.take_loads(link)
        if link.lost is not None:
            self._lost(link)
        elif starting and link.isolation is not None:
            self._started(link, link.isolation)
        elif link.idle and not starting:
            self._idle(link)

    def _look(self, link: Link, now: float) -> None:
        """End a worker that is late or too large."""
        if self._hosts.links.get(link.fd) is not link:
            return  # it has made room for another one
        if link.late(now):
            # This process may have been held up after it last looked for replies.
            self._read(link)
            if link.lost is None and link.late(now):
                link.expire(now)
                self._lost(link)
        elif not LINUX and link.pending:  # where no limit of the system holds
            resident = resident_bytes(link.pid)
            if resident is not None and resident > link.memory_mb << 20:
                link.lose(FaultKind.MEMORY, "the memory quota is used up")
                self._lost(link)

    def _started(self, link: Link, isolation: IsolationReport) -> None:
        """Check the protection of a worker, and give it the work that has waited for it."""
        self.isolation = isolation
        self._false_starts = 0
        check_level(isolation, self._require)
        if isolation.level != "full" and not self._warned:
            self._warned = True
            _log.warning("%s", shortcoming(isolation))
        for source in list(link.hosted):
            self._feeder.feed(source)

    def _idle(self, link: Link) -> None:
        """What to do with a worker that has answered everything."""
        if link.answered_at - link.weighed_at > _WEIGH_SECONDS:
            link.weighed_at = link.answered_at
            if worn(link.pid, link.memory_mb, link.rows):
                self._hosts.end(link)
        if self._hosts.waiting:
            self._feed_waiting()

    def _feed_waiting(self) -> None:
        """Go on with the sources that had no worker, as far as there is room now."""
        try:
            self._feeder.feed_waiting()
        except SandboxError as error:
            self._break_off(error)  # or those who wait for such a source would wait for ever

    # --- when a worker is lost ---

    def _lost(self, link: Link) -> None:
        """Find who is to blame for the end of a worker, and have the rest done again."""
        if link.isolation is None:
            self._false_starts += 1
            if self._false_starts >= TRIES:
                detail = link.lost.detail if link.lost is not None else ""
                raise SandboxError(f"workers do not start: {detail}")
        else:
            blame(link)
        self._hosts.end(link)
        self._feed_waiting()
