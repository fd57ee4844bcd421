"""What the engine does with one worker, in the open."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from liars import READY, Liar, Puppet, Script

from synthgym.sandbox.link import Link, Lost, Request
from synthgym.sandbox.polling import Poller
from synthgym.sandbox.protocol import MAX_FRAME, Reply, Resets, Rows, Steps, encode, frame

RESET = Rows(1, ["one", "two"], [0.0, 0.0], b"\0\0", {1: '{"seed":2}'}, {})
STEP = Rows(2, ["next", "last"], [0.5, 1.0], b"\0\1", {}, {})
LOOK = 0.02
"""Seconds between two looks at the clock."""
SLACK = 1.0
"""Seconds that a busy machine may add."""


def bytes_of(*replies: Reply | bytes) -> bytes:
    return b"".join(
        reply if isinstance(reply, bytes) else frame(encode(reply)) for reply in replies
    )


class Talk:
    """A reset and a step of two instances, asked of one worker."""

    def __init__(self, liar: Liar, seconds: float = 0.2) -> None:
        self._poller = Poller()
        self._buffer = bytearray(MAX_FRAME + 4)
        self.link = Link(liar.zygote, 64, self._poller)
        self.replies: list[Reply] = []
        self.seconds: list[float] = []
        self.slow: list[Mapping[int, float]] = []
        self._limit = seconds

    def take(
        self, request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]
    ) -> None:
        self.replies.append(reply)
        self.seconds.append(seconds)
        self.slow.append(dict(slow))

    def ask(self) -> Lost | None:
        """Why the worker was lost; None when everything was answered."""
        self.until(lambda: self.link.isolation is not None)
        if self.link.lost is None:
            ops = [
                Resets(self.link.next_id(), 1, [1, 2], [1, 2]),
                Steps(self.link.next_id(), 1, [1, 2], ["go", "on"]),
            ]
            limit = self._limit
            self.link.outbox += [Request(op, 2, lambda *_: limit, self.take) for op in ops]
            self.link.flush()
            self.until(lambda: not self.link.pending)
        return self.link.lost

    def until(self, finished: Callable[[], bool], seconds: float = 10.0) -> None:
        """What the engine does: read what has come, look at the clock."""
        end = time.monotonic() + seconds
        while not finished() and self.link.lost is None:
            assert time.monotonic() < end, "the link waits for ever"
            for _, events in self._poller.wait(LOOK):
                assert events
                self.link.read(self._buffer)
            now = time.monotonic()
            if self.link.lost is None and self.link.late(now):
                self.link.expire(now)

    def close(self) -> None:
        self.link.kill()
        self._poller.close()


def says(*replies: Reply | bytes) -> Script:
    """A worker that is ready, waits for its operations, sends this and falls silent."""

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        puppet.say(*replies)
        puppet.killed.wait(30)

    return script


Begin = Callable[..., Talk]


def conversations() -> Iterator[Begin]:
    """For a fixture: yields what begins a talk with a worker that follows a script."""
    opened: list[tuple[Liar, Talk]] = []

    def begin(script: Script, *, status: int = 9, seconds: float = 0.2) -> Talk:
        liar = Liar(script, status=status)
        opened.append((liar, Talk(liar, seconds)))
        return opened[-1][1]

    yield begin
    for liar, one in opened:
        one.close()
        assert len(liar.reaped) == 1
        liar.close()
