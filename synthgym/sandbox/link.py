"""One worker, seen from the parent: operations in, replies out, until it is lost.

A worker answers in order. Its clock is the parent's: a row is late when its seconds have passed
since the parent saw it begin. What the parent sees is the replies and the worker's progress counter.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import weakref
from collections import deque
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from synthgym.errors import SandboxError
from synthgym.sandbox.isolation import IsolationReport, Layer, report
from synthgym.sandbox.oversight import cpu_seconds, how_it_ended
from synthgym.sandbox.polling import Poller
from synthgym.sandbox.process import START_SECONDS, Zygote
from synthgym.sandbox.protocol import (
    ANSWERS,
    MAX_DETAIL,
    MEMORY_EXIT,
    Failed,
    FrameDecoder,
    FrameError,
    Op,
    Ready,
    Reply,
    Rows,
    decode_reply,
    messages,
)
from synthgym.sandbox.requests import WORKER_FAULTS, Lost, Request, check_rows
from synthgym.sandbox.results import FaultKind

if TYPE_CHECKING:
    from synthgym.sandbox.source import Source

_ZYGOTE_GONE: Final = "the zygote has ended"
_STARVED: Final = 0.1
"""A row that is late without having had this share of its seconds as CPU time was not at fault: the
machine did not run it. Generated code has nothing to wait for; time that it does not compute is not
its own."""
_NOTHING_SLOW: Final[Mapping[int, float]] = {}
"""Every value that the flags of a row can have."""


class Link:
    """A worker and its channel. Not thread-safe: the engine's lock guards it.

    When it is `lost`, `pending` holds what has no answer, oldest first.
    """

    def __init__(self, zygote: Zygote, memory_mb: int, poller: Poller) -> None:
        self._zygote = zygote
        self._poller = poller
        self.memory_mb = memory_mb
        self._slot = zygote.board.take()
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            zygote.board.give_back(self._slot)
            raise SandboxError(f"no channel for a worker: {error}") from error
        try:
            with theirs:
                self.pid = zygote.spawn(theirs, memory_mb, self._slot)
        except SandboxError:
            ours.close()
            zygote.board.give_back(self._slot)
            raise
        ours.setblocking(False)
        self._socket = ours
        self.fd = ours.fileno()
        poller.add(self.fd)
        weakref.finalize(self, ours.close)
        self.lost: Lost | None = None
        self.isolation: IsolationReport | None = None
        self.pending: deque[Request] = deque()
        self.flying = False
        """Whether something was launched that has no request."""
        self._caught: list[Reply] = []
        """Replies to it."""
        self._caught_bad = ""
        """What was wrong with the bytes after them."""
        self.outbox: list[Request] = []
        """Requests for the next message."""
        self._writing = False
        """Whether the poller waits for room to write."""
        self.hosted: dict[Source, int] = {}
        """The sources that live there, each under its number."""
        self.programs = 0
        """How many sources it has hosted in its life."""
        self.loading = False
        """Whether it has been told to load a source and has not answered."""
        self.weighed_at = 0.0
        """When its memory was last looked at."""
        self.used = time.monotonic()
        """When it was last given work while it had none."""
        self._decoder = FrameDecoder()
        self._last_id = 0
        self.rows = 0
        """Rows of all requests so far: where the counter stands when all are answered."""
        self._outgoing = bytearray()
        self.answered_at = self._since = time.monotonic()
        """When the last reply came in (or the first request went out), and when the running row was
        first seen."""
        self._seen = 0
        """The highest counter of all looks."""
        self._looked = False
        """Whether there was a look since the last reply."""
        self._cpu: float | None = None
        """The worker's CPU clock when the running row was first seen."""
        self._cpu_at = 0.0
        """When that was."""
        self._slow: dict[int, float] = {}
        """Seconds of rows that were seen running for long, by the counter."""

    @property
    def idle(self) -> bool:
        """Whether it has started and has nothing to do."""
        return not (self.isolation is None or self.pending or self.outbox or self.flying)

    def next_id(self) -> int:
        """Return a number for the next operation."""
        self._last_id += 1
        return self._last_id

    def post(self, requests: Sequence[Request]) -> None:
        """Send requests at once."""
        self.outbox += requests
        self.flush()

    def flush(self) -> None:
        """Send what is in the outbox, in as few messages as its size allows."""
        requests, self.outbox = self.outbox, []
        if not requests:
            return
        if not self.pending:
            self.used = self.answered_at = self._since = time.monotonic()
            self._looked = False
        for request in requests:
            request.base = self.rows
            self.rows += request.rows
        self.pending.extend(requests)
        if self.lost is not None:
            return  # they go to the next worker
        encoded = messages([request.op for request in requests])
        if self._outgoing:
            self._outgoing += encoded
            return
        self._outgoing = encoded
        self.write()

    def launch(self, ops: Sequence[Op]) -> None:
        """Send operations without requests, to a worker that is idle; `land` or `adopt` must follow."""
        self.flying = True
        self.used = self.answered_at = self._since = time.monotonic()
        self._looked = False
        self._outgoing = messages(ops)
        self.write()

    def land(self, room: memoryview, count: int) -> list[Reply] | None:
        """Return the replies to what was launched when exactly `count` have arrived, else None.

        They stay here until `landed` or `adopt`.
        """
        try:
            size = self._socket.recv_into(room)
            for body in self._decoder.feed(room[:size]):
                self._caught.append(decode_reply(body))
        except OSError:
            return None  # it has ended: the next look at it will say how
        except (ValueError, RecursionError) as error:
            self._caught_bad = str(error)
            return None
        whole = len(self._caught) == count and not self._decoder.holding
        return self._caught if whole else None

    def landed(self, rows: int) -> float:
        """Note that what was launched, `rows` rows, has been answered; the seconds that it took."""
        self.flying = False
        self._caught = []
        self.rows += rows
        now = time.monotonic()
        seconds, self.answered_at = now - self.answered_at, now
        return seconds

    def adopt(self, requests: Sequence[Request]) -> None:
        """Take up what was launched as requests, and what has come back so far as their answers."""
        self.flying = False
        for request in requests:
            request.base = self.rows
            self.rows += request.rows
        self.pending.extend(requests)
        caught, self._caught = self._caught, []
        try:
            for reply in caught:
                if self.lost is None:
                    self._accept(reply)
            if self._caught_bad and self.lost is None:
                raise FrameError(self._caught_bad)
        except (ValueError, RecursionError) as error:
            self.lose(FaultKind.PROTOCOL, f"not a reply: {error}")

    def drop(self, owners: Container[object]) -> None:
        """Forget the requests of `owners`; the worker, which knows them, must be ended."""
        self.pending = deque(item for item in self.pending if item.owner not in owners)
        self.outbox = [item for item in self.outbox if item.owner not in owners]

    def write(self) -> None:
        """Send what the socket takes now, and have the poller tell when it takes more."""
        try:
            sent = self._socket.send(self._outgoing)
        except BlockingIOError:
            sent = 0
        except OSError:
            sent = len(self._outgoing)  # it has ended: reading will say how
        rest = sent < len(self._outgoing)
        if rest:
            del self._outgoing[:sent]
        else:
            self._outgoing = bytearray()
        if rest != self._writing:
            self._writing = rest
            self._poller.change(self.fd, writing=rest)

    def read(self, room: memoryview) -> None:
        """Take the replies that have arrived; `room` is memory to read into.

        Bytes that are no reply, or the end of them, lose the worker.
        """
        try:
            size = self._socket.recv_into(room)
            if not size:
                self._lose_ended()
                return
            for body in self._decoder.feed(room[:size]):
                self._accept(decode_reply(body))
                if self.lost:
                    return
        except BlockingIOError:
            pass
        except OSError:
            self._lose_ended()
        except (ValueError, RecursionError) as error:  # what decoders raise on hostile bytes
            self.lose(FaultKind.PROTOCOL, f"not a reply: {error}")

    def late(self, now: float) -> bool:
        """Whether the running row has had more than its seconds. To be asked again and again.

        What has arrived should have been read before.
        """
        if not self.pending and self.isolation is not None:
            return False
        # A row makes the clock start again once, and no more rows than were asked for do.
        counter = min(self._zygote.board.read(self._slot), self.rows)
        if not self._looked or counter > self._seen:
            if self._looked:
                self._since = now
            self._looked, self._seen = True, max(counter, self._seen)
            self._cpu, self._cpu_at = cpu_seconds(self.pid), now
            return False
        took = now - self._since
        self._slow[counter - 1] = took
        return took > self._limit()

    def expire(self, now: float) -> None:
        """Kill the worker because it is late."""
        request, _ = self._running()
        took = now - self._since
        starved = request is None or self._starved(now)
        late = f"no reply in {took:.1f} s (limit {self._limit():g} s)"
        self.lose(FaultKind.LOST if starved else FaultKind.TIMEOUT, late)

    def lose(self, kind: FaultKind, detail: str) -> None:
        """Kill the worker for the reason given."""
        request, row = self._running()
        if self.kill() is None:
            kind, detail = FaultKind.LOST, _ZYGOTE_GONE
        self.lost = Lost(kind, detail[:MAX_DETAIL], request, row)

    def kill(self) -> int | None:
        """Kill and reap the process.

        Returns the wait status, or None when the zygote is gone. A second time does nothing.
        """
        if self._socket.fileno() < 0:
            return 0
        self._poller.remove(self.fd)  # a fork may hold a copy, which would keep it in there
        self._socket.close()
        if self.lost is None:
            self.lost = Lost(FaultKind.LOST, "killed by its owner")
        try:
            status = self._zygote.kill(self.pid)
        except SandboxError:
            return None
        self._zygote.board.give_back(self._slot)
        return status

    def abandon(self) -> None:
        """For a forked child: close the inherited channel; the worker goes on for the parent."""
        self._socket.close()
        self.lost = Lost(FaultKind.LOST, "it belongs to another process")

    def _running(self) -> tuple[Request | None, int]:
        """Return the request and its row that the counter points at, among what is unanswered."""
        counter = self._zygote.board.read(self._slot) if self._socket.fileno() >= 0 else 0
        found: Request | None = None
        for request in self.pending:
            if request.rows and (found is None or request.base < counter):
                found = request
        if found is None:
            return None, 0
        row = min(max(counter - found.base, 1), found.rows) - 1
        return found, max(row, found.answered)

    def _limit(self) -> float:
        request, row = self._running()
        return (
            START_SECONDS
            if self.isolation is None or not request
            else request.seconds(request, row)
        )

    def _starved(self, now: float) -> bool:
        cpu, before = cpu_seconds(self.pid), self._cpu
        if cpu is None or before is None:
            return False
        return cpu - before < _STARVED * (now - self._cpu_at)

    def _accept(self, reply: Reply) -> None:
        """Hand `reply` to who waits for it; `FrameError` when nobody does."""
        now = time.monotonic()
        seconds, self.answered_at = now - self.answered_at, now
        self._since, self._looked = now, False
        if type(reply) is Ready:
            if self.isolation is not None:
                raise FrameError("the worker was ready before")
            self.isolation = report(Layer(*layer) for layer in reply.layers)
            return
        if not self.pending or self.isolation is None:
            raise FrameError("nothing was asked")
        request = self.pending[0]
        kind, expected = type(reply), ANSWERS[type(request.op)]
        failed = kind is Failed and expected is not Rows  # a batch fails row by row
        if reply.id != request.op.id or not (kind is expected or failed):
            raise FrameError(f"expected a reply to {type(request.op).__name__} {request.op.id}")
        if kind is Rows:
            self._accept_rows(request, reply, seconds)  # type: ignore[arg-type]  # just tested
            return
        if type(reply) is Failed and reply.kind not in WORKER_FAULTS:
            raise FrameError(f"unknown kind of failure {reply.kind!r}")
        slow, self._slow = self._slow, {}
        request.take(request, reply, seconds, _shifted(slow, request) if slow else _NOTHING_SLOW)
        self.pending.popleft()
        if type(reply) is Failed and reply.kind == FaultKind.MEMORY:
            self._end_spent()

    def _accept_rows(self, request: Request, rows: Rows, seconds: float) -> None:
        check_rows(rows, request.rows - request.answered)
        slow, self._slow = self._slow, {}
        request.take(request, rows, seconds, _shifted(slow, request) if slow else _NOTHING_SLOW)
        request.answered += len(rows.observations)
        if request.answered == request.rows:
            self.pending.popleft()
        if any(kind == FaultKind.MEMORY for kind, _ in rows.failures.values()):
            self._end_spent()

    def _end_spent(self) -> None:
        """The worker has told whose memory was too much, and ends itself: nobody else is to blame."""
        self.kill()
        self.lost = Lost(FaultKind.MEMORY, "the memory quota is used up")

    def _lose_ended(self) -> None:
        request, row = self._running()
        status = self.kill()
        if status is None:
            self.lost = Lost(FaultKind.LOST, _ZYGOTE_GONE)
        elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == MEMORY_EXIT:
            self.lost = Lost(FaultKind.MEMORY, "the memory quota is used up", request, row)
        elif self.isolation is None or (
            os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        ):
            # Only somebody outside can send it: the operator, or a machine without memory.
            self.lost = Lost(FaultKind.LOST, how_it_ended(status), request, row)
        else:
            self.lost = Lost(FaultKind.CRASH, how_it_ended(status), request, row)


def _shifted(slow: Mapping[int, float], request: Request) -> dict[int, float]:
    return {row - request.base: seconds for row, seconds in slow.items()}
