"""A pool of workers and the sessions that play in them.

One worker process serves every session of one source (same record, same limits): sources are
isolated from each other, and a tick over many sessions costs one message a source. Workers are
bounded in number; the least recently used one makes room, and its sessions come back by replay when
they are next called. So does a session whose worker died through another one. Faults of
environments are values; `SandboxError` is ours.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Final, Self, cast

from synthgym.errors import ConfigError, SandboxError
from synthgym.sandbox.batch import Episode, Job, Round, Source
from synthgym.sandbox.conversation import Talk, converse
from synthgym.sandbox.isolation import IsolationReport
from synthgym.sandbox.process import Worker, Zygote
from synthgym.sandbox.results import EnvFault, FaultKind, ResetResult, StepResult
from synthgym.sandbox.session import Session
from synthgym.spec import EnvRecord, Limits

BATCH_SECONDS: Final = 60.0
"""For all the calls of one batch, replays and second tries included; what has not run by then is a
timeout."""


class Pool:
    """Runs sessions in at most `max_workers` worker processes. Thread-safe; works across a fork.

    A child process gets workers of its own, and its sessions are replayed there. `close()` ends
    every process; it is called at exit and when the pool is collected, but a `with` block says
    when.
    """

    def __init__(self, *, max_workers: int = 32) -> None:
        if max_workers < 1:
            raise ConfigError(f"max_workers must be at least 1, got {max_workers}")
        self._max_workers = max_workers
        self._sources: dict[tuple[str, Limits], Source] = {}
        self._idle: dict[Source, None] = {}
        """Sources with a live worker that nobody talks to, least recently used first."""
        self._reserved = 0
        self._instances = 0
        self._closed = False
        self._zygote: Zygote | None = None
        self._make_locks()
        _watch_forks(self)

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self._closed

    def open(self, record: EnvRecord, limits: Limits | None = None) -> Session:
        """Return a new instance of `record`. Nothing runs before its first call."""
        limits = limits or Limits()
        key = (record.digest, limits)
        with self._changed:
            self._check_open()
            source = self._sources.setdefault(key, Source(record, limits))
            source.sessions += 1
            self._instances += 1
            return Session(source, Episode(self._instances), self._run, self._release)

    def step_many(self, calls: Sequence[tuple[Session, str]]) -> list[StepResult | EnvFault]:
        """Step many sessions at once, one message for each source.

        Results in the order of the calls.

        `ResetNeeded` when a session was never reset; `ConfigError` when one is named twice.
        """
        jobs = [session.step_job(action) for session, action in calls]
        self._run(jobs)
        return [cast(StepResult | EnvFault, job.result) for job in jobs]

    def reset_many(self, calls: Sequence[tuple[Session, int]]) -> list[ResetResult | EnvFault]:
        """Reset many sessions at once, one message for each source.

        Results in the order of the calls.
        """
        jobs = [session.reset_job(seed) for session, seed in calls]
        self._run(jobs)
        return [cast(ResetResult | EnvFault, job.result) for job in jobs]

    def isolation(self) -> IsolationReport:
        """Return what protects a worker on this machine: starts one, asks it, and ends it."""
        with Worker(self._living_zygote(), Limits().memory_mb) as worker:
            converse([Talk(worker, [])])
            if worker.isolation is None:
                raise SandboxError(f"a worker did not start: {worker.lost}")
            return worker.isolation

    def close(self) -> None:
        """End every process of this pool. Sessions cannot be used any more. Twice is fine."""
        with self._changed:
            self._closed = True
            for source in self._idle:
                _end(source)
            self._idle.clear()
            self._changed.notify_all()
        with self._starting:
            if self._zygote is not None:
                self._zygote.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, jobs: Sequence[Job]) -> None:
        """Give every job its result, in waves of at most `max_workers` sources."""
        if len({job.episode.instance for job in jobs}) < len(jobs):
            raise ConfigError("a session may take part in a batch once")
        by_source: dict[Source, list[Job]] = {}
        for job in jobs:
            by_source.setdefault(job.source, []).append(job)
        sources = list(by_source)
        for start in range(0, len(sources), self._max_workers):
            wave = sources[start : start + self._max_workers]
            with self._conversation(wave):
                self._settle([(source, by_source[source]) for source in wave])

    def _release(self, source: Source, episode: Episode) -> None:
        """Note that a session of `source` is closed; the last one ends the worker."""
        with self._changed:
            source.sessions -= 1
            if episode.home is not None and episode.home is source.worker:
                source.dropped.append(episode.instance)
            if source.sessions == 0 and not self._closed:
                del self._sources[source.record.digest, source.limits]
                if source in self._idle:  # else the thread that talks to its worker ends it
                    del self._idle[source]
                    _end(source)

    # --- reservation: who may talk to which worker ---

    @contextmanager
    def _conversation(self, wave: Sequence[Source]) -> Iterator[None]:
        """Keep the workers of `wave` for the calling thread.

        Waits until nobody else has any of them and there is room for all; taking them at once
        rather than one by one is what rules a deadlock out.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._has_room(wave))
            self._check_open()
            self._reserved += len(wave)
            for source in wave:
                source.reserved = True
                self._idle.pop(source, None)
            while len(self._idle) + self._reserved > self._max_workers:
                oldest = next(iter(self._idle))
                del self._idle[oldest]
                _end(oldest)
        try:
            yield
        finally:
            with self._changed:
                self._reserved -= len(wave)
                for source in wave:
                    source.reserved = False
                    # Still waiting: an exception cut the conversation short, and late answers would
                    # be taken for those of the next one.
                    unfinished = source.worker is not None and source.worker.waiting
                    if self._closed or source.sessions == 0 or unfinished:
                        _end(source)
                    elif source.worker is not None:
                        self._idle[source] = None
                self._changed.notify_all()

    def _has_room(self, wave: Sequence[Source]) -> bool:
        if self._reserved + len(wave) > self._max_workers:
            return False
        return not any(source.reserved for source in wave)

    # --- rounds: from jobs to results ---

    def _settle(self, work: Sequence[tuple[Source, list[Job]]]) -> None:
        """Run rounds until every job has a result.

        A round ends early for a source whose worker is lost.
        """
        until = time.monotonic() + BATCH_SECONDS
        until += max(
            job.seconds + source.limits.load_seconds for source, jobs in work for job in jobs
        )
        tries = 2
        while open_work := [
            (source, remaining) for source, jobs in work if (remaining := _unsettled(source, jobs))
        ]:
            if time.monotonic() > until:
                for _, jobs in open_work:
                    for job in jobs:
                        job.fail(FaultKind.TIMEOUT, "not run: the time for this batch is over")
                return
            rounds = [Round(source, self._worker(source), jobs) for source, jobs in open_work]
            converse([item.talk for item in rounds], until)
            losses = [loss for item in rounds if (loss := item.absorb())]
            tries -= bool(losses)
            if losses and not tries:
                raise SandboxError(f"a worker was lost twice: {losses[0].detail}")

    def _worker(self, source: Source) -> Worker:
        if source.worker is None or source.worker.lost:
            source.worker_loaded = False
            source.worker = self._start_worker(source.limits.memory_mb)
        return source.worker

    def _start_worker(self, memory_mb: int) -> Worker:
        zygote = self._living_zygote()
        try:
            return Worker(zygote, memory_mb)
        except SandboxError:
            if zygote.alive:
                raise
            return Worker(self._living_zygote(), memory_mb)  # it had died since it was last used

    def _living_zygote(self) -> Zygote:
        with self._starting:
            self._check_open()
            if self._zygote is None or not self._zygote.alive:
                if self._zygote is not None:
                    self._zygote.close()
                self._zygote = Zygote()
            return self._zygote

    def _check_open(self) -> None:
        if self._closed:
            raise SandboxError("the pool is closed")

    # --- forks ---

    def _make_locks(self) -> None:
        self._changed = threading.Condition()
        self._starting = threading.Lock()

    def _abandon(self) -> None:
        """Let go of the parent's processes and locks, in a forked child.

        Sessions are replayed when they are next called.
        """
        self._make_locks()
        self._reserved = 0
        self._idle.clear()
        for source in self._sources.values():
            source.reserved = False
            if source.worker is not None:
                source.worker.abandon()
                source.worker = None
        if self._zygote is not None:
            self._zygote.abandon()
            self._zygote = None


def _unsettled(source: Source, jobs: Sequence[Job]) -> list[Job]:
    """Return the jobs without a result, none when the source is known not to run."""
    remaining = [job for job in jobs if job.result is None]
    if remaining and source.worker is None and (fault := source.refusal()):
        for job in remaining:
            job.result = fault
            if job.call == "reset":
                job.episode.broken = fault
        return []
    return remaining


def _end(source: Source) -> None:
    if source.worker is not None:
        source.worker.kill()
        source.worker = None


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


class _Default:
    """The default pool of this process."""

    lock = threading.Lock()
    pool: Pool | None = None
    pid = 0
    watching = False


def default_pool() -> Pool:
    """Return the pool that everything uses unless told otherwise.

    There is one a process, made when first asked for and closed at exit.
    """
    with _Default.lock:
        pool = _Default.pool
        if pool is None or pool.closed or _Default.pid != os.getpid():
            pool = Pool()
            atexit.register(pool.close)
            _Default.pool, _Default.pid = pool, os.getpid()
        return pool


def isolation() -> IsolationReport:
    """Return what protects a worker on this machine, asked of a real one."""
    return default_pool().isolation()


def _watch_forks(pool: Pool) -> None:
    _pools.add(pool)
    if not _Default.watching:
        _Default.watching = True
        os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    _Default.lock = threading.Lock()
    _Default.pid = os.getpid()
    for pool in list(_pools):
        pool._abandon()
