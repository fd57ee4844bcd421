"""The processes of an audit: each judges one text at a time, and may die over it."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, Self

import multiprocess
from multiprocess import connection, resource_tracker

from synthgym.audit.judging import Failed, Ready, serve
from synthgym.audit.rows import Judgement, Status
from synthgym.audit.settings import AuditSettings
from synthgym.errors import SandboxError

TRIES: Final = 2
"""A text over which so many processes were lost is given up."""
MAX_FAILURES: Final = 6
"""Texts in a row for which there was no sandbox, tries included, after which it is the machine's fault."""
RECYCLE_AFTER: Final = 2000
"""Texts after which a process is replaced: parsing so much of strangers leaves its memory in pieces."""
_START_SECONDS: Final = 120.0
"""For a process to import its modules, on a machine that is busy."""
_END_SECONDS: Final = 10.0
"""For a process to end that was asked to, or was killed."""


@dataclass(frozen=True, slots=True)
class Job:
    """A text to judge."""

    name: str
    title: str
    digest: str
    text: str
    tries: int = 0
    """Processes that were lost over it."""


def start_process(channel: Any, settings: AuditSettings) -> Any:
    """Start a process that judges what comes through `channel`.

    Spawned: a fork would inherit the channels of the others, and hold them open when we are gone.
    """
    context = multiprocess.get_context("spawn")
    process = context.Process(target=serve, args=(channel, settings), daemon=True)
    process.start()
    return process


class _Lane:
    """One process and what it is at."""

    def __init__(self, settings: AuditSettings) -> None:
        self.channel, theirs = multiprocess.Pipe()
        self.job: Job | None = None
        self.ready = False
        self.began = time.monotonic()
        self.judged = 0
        with theirs:
            self.process = start_process(theirs, settings)

    def give(self, job: Job) -> None:
        """Begin with `job`, or note it until the process has started."""
        self.job = job
        if self.ready:
            self.began = time.monotonic()
            with suppress(OSError):  # it has died: its channel says so to whoever listens next
                self.channel.send(job.text)

    def end(self) -> str:
        """End the process, if it has not ended, and say how it did."""
        self.channel.close()
        self.process.join(_END_SECONDS)
        if self.process.exitcode is None:
            return self.kill()
        return _how_it_ended(self.process.exitcode)

    def kill(self) -> str:
        """Kill the process, and say how it ended. Its sandbox ends by itself."""
        self.channel.close()
        self.process.kill()
        self.process.join(_END_SECONDS)
        return _how_it_ended(self.process.exitcode)


class Crew:
    """Processes that judge texts, started as they are needed. A lost one is replaced.

    Leaving the `with` block ends all of them, and kills those that are not idle.
    """

    def __init__(self, settings: AuditSettings) -> None:
        self._settings = settings
        self._lanes: list[_Lane] = []
        self._failures = 0
        """Texts in a row for which there was no sandbox."""

    @property
    def has_room(self) -> bool:
        """Whether another text can be given."""
        return self.busy < self._settings.processes

    @property
    def busy(self) -> int:
        """How many texts are being judged."""
        return sum(lane.job is not None for lane in self._lanes)

    def give(self, job: Job) -> None:
        """Have `job` judged; only when there is room."""
        lane = next((lane for lane in self._lanes if lane.job is None), None)
        if lane is None:
            with _interrupts_held_back():  # a child that is starting would die of one, loudly
                lane = _Lane(self._settings)
                self._lanes.append(lane)
        lane.give(job)

    def wait(self, *, block: bool) -> list[tuple[Job, Judgement]]:
        """What has been judged since the last call; with `block`, wait until something happens.

        `SandboxError` when processes do not start, or there is no sandbox for text after text.
        """
        lanes = {lane.channel: lane for lane in self._lanes}
        heard = connection.wait(list(lanes), self._patience() if block else 0)
        done = [item for channel in heard for item in self._hear(lanes[channel])]
        now = time.monotonic()
        for lane in [lane for lane in self._lanes if self._due(lane) < now]:
            self._lanes.remove(lane)
            lane.kill()
            if lane.job is None or not lane.ready:
                raise SandboxError(f"a process of the audit did not start in {_START_SECONDS:g} s")
            done.append((lane.job, _given_up(f"it took over {self._settings.source_seconds:g} s")))
        return done

    def close(self) -> None:
        """End every process."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            if lane.job is None and lane.ready:
                lane.channel.close()  # all are told before one is waited for
        for lane in lanes:
            if lane.job is None and lane.ready:
                lane.end()
            else:
                lane.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def _due(self, lane: _Lane) -> float:
        """When the patience with a lane ends."""
        if not lane.ready:
            return lane.began + _START_SECONDS
        return lane.began + self._settings.source_seconds if lane.job is not None else math.inf

    def _patience(self) -> float:
        """Seconds until the patience with some lane ends."""
        return max(0.0, min(map(self._due, self._lanes)) - time.monotonic()) + 0.1

    def _hear(self, lane: _Lane) -> Iterator[tuple[Job, Judgement]]:
        try:
            message = lane.channel.recv()
        except (EOFError, OSError):
            yield from self._lose(lane, "")
            return
        match message:
            case Ready():
                lane.ready = True
                if lane.job is not None:
                    lane.give(lane.job)
            case Failed(detail):
                self._failures += 1
                if self._failures >= MAX_FAILURES:
                    raise SandboxError(f"nothing can be audited on this machine: {detail}")
                yield from self._lose(lane, detail)
            case Judgement():
                assert lane.job is not None
                yield lane.job, message
                self._settle(lane)

    def _settle(self, lane: _Lane) -> None:
        """Make a lane idle after a judgement."""
        self._failures = 0
        lane.job = None
        lane.judged += 1
        if lane.judged >= RECYCLE_AFTER:
            self._lanes.remove(lane)
            lane.end()

    def _lose(self, lane: _Lane, detail: str) -> Iterator[tuple[Job, Judgement]]:
        """Take a lane out that is dead or of no use any more, and try its text once more elsewhere."""
        self._lanes.remove(lane)
        how = lane.end()
        if not lane.ready:
            raise SandboxError(
                f"a process of the audit did not start: it {how}. A script that calls audit() must "
                'do so under `if __name__ == "__main__":`'
            )
        if lane.job is None:
            return
        job = replace(lane.job, tries=lane.job.tries + 1)
        if job.tries < TRIES:
            self.give(job)
        else:
            yield job, _given_up(detail or f"a process that validated it {how}, {TRIES} times")


def _given_up(detail: str) -> Judgement:
    return Judgement(status=Status.NOT_AUDITED, detail=detail)


def _how_it_ended(code: int | None) -> str:
    if code is not None and code < 0:
        known = {item.value: item.name for item in signal.Signals}
        name = known.get(-code, f"signal {-code}")
        why = ", most often for want of memory" if -code == signal.SIGKILL else ""
        return f"was ended by {name}{why}"
    return f"ended with code {code}"


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Have Ctrl-C wait for the end of the block. What is started in it never gets any: its starter ends it."""
    resource_tracker.ensure_running()  # starting it would let interrupts through again
    old = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, old)
