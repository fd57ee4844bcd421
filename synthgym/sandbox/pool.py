"""A pool of workers and the sessions that play in them.

One worker process serves every session of one source (same record, same limits): sources are
isolated from each other, and a tick over many sessions costs one message a source. Workers are
bounded in number; the least recently used one makes room, and its sessions come back by replay when
they are next called. So does a session whose worker died through another one. Faults of
environments are values; `SandboxError` is ours.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from synthgym.contract import BASE, MAX_TURNS
from synthgym.errors import ConfigError
from synthgym.sandbox.batch import (
    Batch,
    gathered,
    in_turns,
    part_of,
    pick,
    reset_result,
    step_result,
    step_results,
    up_to_end,
)
from synthgym.sandbox.code_cache import CodeCache
from synthgym.sandbox.compile import Violation, text_problem
from synthgym.sandbox.engine import Engine
from synthgym.sandbox.hosting import Shape
from synthgym.sandbox.isolation import IsolationReport, Level
from synthgym.sandbox.reset_task import ResetTask
from synthgym.sandbox.results import EnvFault, ResetResult, StepResult
from synthgym.sandbox.session import Session, check_calls, positions, sendable
from synthgym.sandbox.source import Source
from synthgym.sandbox.step_task import StepTask
from synthgym.sandbox.tasks import LoadTask, Task
from synthgym.spec import EnvRecord, Limits

MAX_STRIKES: Final = 3
"""Breaches (a timeout, a crash, used up memory, a forged message) after which a source is given up."""
_ONE: Final = range(1)
_Calls = tuple[Sequence[Session], Sequence[str]]
_Resets = tuple[Sequence[Session], Sequence[int]]


class Pool:
    """Runs sessions in at most `max_workers` worker processes. Thread-safe; works across a fork.

    `sources_per_worker` above 1 lets a worker host that many sources in its life, one after the
    other or at once. They are then one trust domain: each could disturb the others, none could
    leave the worker. Meant for candidates of one author, as in validation.

    `require` is the level of isolation below which nothing is run (`SandboxError`). Without it, the
    level is reported in a log message when it is not `full`.

    `hash_seed` is the PYTHONHASHSEED of the workers: the order of sets of strings depends on it.

    A source is given up after `max_strikes` breaches. `code_cache` is a folder in which checked code
    is kept from one process to the next; without it, it is kept in memory.

    A child process gets workers of its own, and its sessions are replayed there. `close()` ends
    every process; it is called at exit and when the pool is collected, but a `with` block says
    when.
    """

    def __init__(
        self,
        *,
        max_workers: int = 32,
        sources_per_worker: int = 1,
        require: Level | None = None,
        max_strikes: int = MAX_STRIKES,
        hash_seed: int = 0,
        code_cache: CodeCache | Path | None = None,
    ) -> None:
        for name, value in (
            ("max_workers", max_workers),
            ("sources_per_worker", sources_per_worker),
            ("max_strikes", max_strikes),
        ):
            if value < 1:
                raise ConfigError(f"{name} must be at least 1, got {value}")
        self._max_strikes = max_strikes
        self._require = require
        self._sources: dict[tuple[str, Limits], Source] = {}
        self._instances = 0
        self._last: tuple[EnvRecord | None, str] = None, ""
        """The record that was opened last, and its digest."""
        self._sent: list[_Sent] = []
        """What `send` has begun and `recv` has not handed out."""
        if not isinstance(code_cache, CodeCache):
            code_cache = CodeCache(code_cache)
        self._cache = code_cache
        self._twin: Pool | None = None
        self._shape = Shape(max_workers, sources_per_worker, hash_seed)
        self._engine = Engine(self._shape, require, self._cache)
        weakref.finalize(self, self._engine.close)
        _pools.add(self)

    @property
    def closed(self) -> bool:
        """Whether `close()` was called."""
        return self._engine.closed

    def open(self, record: EnvRecord, limits: Limits | None = None) -> Session:
        """Return a new instance of `record`. Nothing runs before its first call."""
        limits = limits or Limits()
        last = self._last
        if last[0] is not record:  # a digest reads the whole source; many sessions have the same
            last = self._last = record, record.digest
        key = (last[1], limits)
        with self._engine.lock:
            self._engine.check_open()
            source = self._sources.get(key)
            if source is None:
                source = self._sources[key] = Source(record, limits, self._max_strikes)
            source.sessions += 1
            self._instances += 1
            return Session(self, source, self._instances)

    def twin(self) -> Pool:
        """Return a pool like this one whose workers hash strings differently; it ends with this one.

        What depends on the order of a set gives itself away by being played in both.
        """
        with self._engine.lock:
            self._engine.check_open()
            if self._twin is None:
                self._twin = Pool(
                    max_workers=self._shape.max_workers,
                    sources_per_worker=self._shape.sources_per_worker,
                    require=self._require,
                    max_strikes=self._max_strikes,
                    hash_seed=self._shape.hash_seed + 1,
                    code_cache=self._cache,
                )
            return self._twin

    def check(
        self, source: str, limits: Limits | None = None, base: str = BASE
    ) -> tuple[Violation, ...] | EnvFault:
        """Return every violation of size, syntax and policy in `source`, by line; empty for none.

        It is parsed in a worker, never run, and never parsed in this process: text that breaks the
        parser breaks the worker, which is a fault. What it compiles to is kept for its first run.
        """
        problem = text_problem(source, base)
        if problem is not None:
            return (problem,)
        checked = self._cache.get(source, base)
        if checked is None:
            record = EnvRecord(source=source, entry="", max_turns=MAX_TURNS, base=base)
            item = Source(record, limits or Limits(), self._max_strikes, check_only=True)
            task = LoadTask(item)
            try:
                self._engine.run([task])
            finally:
                with self._engine.lock:
                    self._engine.release(item)
            checked = item.checked
            if checked is None:
                assert isinstance(task.result, EnvFault)
                return task.result
        return tuple(Violation(line, message) for line, message in checked.violations)

    def step_many(self, calls: Sequence[tuple[Session, str]]) -> list[StepResult | EnvFault]:
        """Step many sessions at once, one message for each source.

        Results in the order of the calls.

        `ResetNeeded` when a session was never reset; `ConfigError` when one is named twice.
        """
        batch, _ = self.play(steps=([call[0] for call in calls], [call[1] for call in calls]))
        return step_results(batch)

    def step_through(
        self, sessions: Sequence[Session], scripts: Sequence[Sequence[str]], at_once: int
    ) -> list[list[StepResult | EnvFault]]:
        """Step each session through the beginning of a script of its own, all in turns, in one go.

        As many whole turns as `at_once` steps and one message allow, but at least one. The results of
        each session in order, up to the step that ends its episode or fails. Errors as in `step_many`.
        """
        check_calls(sessions, scripts)
        turns, actions = in_turns([sendable(script) for script in scripts], at_once)
        batch = Batch(pick(sessions, turns))
        self._engine.run(self._step_tasks((batch.sessions, actions), batch, repeats=True))
        return up_to_end(batch, turns, len(sessions))

    def step_one(self, session: Session, action: str) -> StepResult | EnvFault:
        """Step one session: `Session.step`, without the bookkeeping of many."""
        fault = session.expect_step() if session.blocked else None
        if fault is not None:
            return fault
        batch = Batch((session,))
        texts = sendable((action,))
        self._engine.run((StepTask(session.source, (session,), texts, _ONE, batch),))
        return step_result(batch, 0)

    def reset_many(self, calls: Sequence[tuple[Session, int]]) -> list[ResetResult | EnvFault]:
        """Reset many sessions at once, one message for each source.

        Results in the order of the calls.
        """
        _, batch = self.play(resets=([call[0] for call in calls], [call[1] for call in calls]))
        return [reset_result(batch, row) for row in range(len(batch))]

    def play(self, *, steps: _Calls = ((), ()), resets: _Resets = ((), ())) -> tuple[Batch, Batch]:
        """Step some sessions and reset others, all at once; the answers as columns.

        `steps` is (sessions, actions) and `resets` (sessions, seeds). Errors as in `step_many`.
        """
        if steps[0] and resets[0] and not set(steps[0]).isdisjoint(resets[0]):
            raise ConfigError("a session may take part in a round once, and in one at a time")
        stepped, reset = Batch(steps[0]), Batch(resets[0])
        check_calls(*steps)
        tasks: list[Task] = [*self._step_tasks(steps, stepped)]
        try:
            tasks += self._reset_tasks(*resets, reset)
        except BaseException:
            for task in tasks:
                task.cancel()
            raise
        self._engine.run(tasks)
        return stepped, reset

    def send(self, sessions: Sequence[Session], actions: Sequence[str]) -> None:
        """Begin a step of each session and return at once; `recv` gives the answers.

        A session may be sent again when its answer was received. Errors as in `step_many`.
        """
        whole = Batch(list(sessions))
        check_calls(sessions, actions)
        tasks = self._step_tasks((sessions, actions), whole)
        with self._engine.lock:
            self._engine.begin(tasks)
            if len(whole):
                self._sent.append(_Sent(whole, tasks))

    def recv(self, timeout: float | None = None) -> Batch:
        """Return what has been answered of what was sent, one batch; wait for at least one answer.

        The answers of one worker come together, so a slow source holds up nobody else. Empty when
        nothing is under way, or after `timeout` seconds without an answer.
        """
        until = float("inf") if timeout is None else time.monotonic() + timeout
        with self._engine.lock:
            self._engine.wait(lambda: not self._sent or any(map(_Sent.news, self._sent)), until)
            rows = [(sent, row) for sent in self._sent for row in sent.take(self._engine)]
            # What was broken off is told when there is nothing better to tell.
            broken = [] if rows else [task for sent in self._sent for task in sent.broken()]
            self._sent = [sent for sent in self._sent if sent.tasks]
            self._engine.forget(broken)
        return gathered([(sent.batch, row) for sent, row in rows])

    def isolation(self) -> IsolationReport:
        """Return what protects a worker on this machine: asked of one, started if need be."""
        return self._engine.probe()

    def pids(self) -> list[int]:
        """Return the process ids of this pool: the zygote's, then the workers'."""
        return self._engine.pids()

    def close(self) -> None:
        """End every process of this pool. Sessions cannot be used any more. Twice is fine."""
        if self._twin is not None:
            self._twin.close()
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- for sessions ---

    def run(self, tasks: Sequence[Task]) -> None:
        """Bring tasks to their end."""
        self._engine.run(tasks)

    def release(self, session: Session) -> None:
        """Note that a session is closed; the last one of a source gives up its place."""
        source = session.source
        with self._engine.lock:
            source.sessions -= 1
            if session.home is not None and session.home is source.link:
                source.dropped.append(session.instance)
            if source.sessions == 0 and not self._engine.closed:
                del self._sources[source.record.digest, source.limits]
                self._engine.release(source)

    def _step_tasks(self, calls: _Calls, batch: Batch, *, repeats: bool = False) -> list[StepTask]:
        sessions, actions = calls
        texts = sendable(actions)
        rows_of, blocked = positions(sessions, self)
        for row in blocked:
            fault = sessions[row].expect_step()
            if fault is not None:
                batch.faults[row] = fault
        tasks: list[StepTask] = []
        for source, rows in rows_of.items():
            if batch.faults:
                rows = [row for row in rows if row not in batch.faults]
            if rows:
                part = part_of(rows)
                mine = pick(sessions, part), pick(texts, part), part, batch
                tasks.append(StepTask(source, *mine, repeats=repeats))
        return tasks

    def _reset_tasks(
        self, sessions: Sequence[Session], seeds: Sequence[int], batch: Batch
    ) -> list[ResetTask]:
        check_calls(sessions, seeds)
        for session, seed in zip(sessions, seeds, strict=True):
            session.expect_reset(seed)
        tasks: list[ResetTask] = []
        for source, rows in positions(sessions, self)[0].items():
            part = part_of(rows)
            chosen = pick(sessions, part)
            for session in chosen:
                session.forget()
            tasks.append(ResetTask(source, chosen, pick(seeds, part), part, batch))
        return tasks

    # --- forks ---

    def abandon(self) -> None:
        """Let go of the parent's processes, in a forked child; sessions are replayed when called."""
        for sent in self._sent:
            sent.give_up()
        self._sent.clear()
        self._engine.abandon(list(self._sources.values()))


class _Sent:
    """One call of `send`: what is under way, and what of its batch was not handed out yet."""

    def __init__(self, batch: Batch, tasks: Sequence[StepTask]) -> None:
        self.batch = batch
        self.tasks = list(tasks)
        self._ready = sorted(batch.faults)
        for session in batch.sessions:
            session.awaited = session.blocked = True

    def news(self) -> bool:
        """Whether there is something to hand out."""
        return bool(self._ready) or any(task.done for task in self.tasks)

    def take(self, engine: Engine) -> list[int]:
        """Return the rows of the batch to hand out."""
        done = [task for task in self.tasks if task.done and task.error is None]
        engine.forget(done)
        rows, self._ready = self._ready, []
        for task in done:
            rows += task.rows
        self._received(done, rows)
        return rows

    def broken(self) -> list[StepTask]:
        """Return what the sandbox failed to do, and forget it."""
        broken = [task for task in self.tasks if task.error is not None]
        self._received(broken, [row for task in broken for row in task.rows])
        return broken

    def give_up(self) -> None:
        """Let go of the sessions; their answers will never come."""
        self._received(self.tasks, range(len(self.batch)))

    def _received(self, tasks: Sequence[StepTask], rows: Sequence[int]) -> None:
        gone = set(tasks)
        self.tasks = [task for task in self.tasks if task not in gone]
        for row in rows:
            self.batch.sessions[row].received()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool.abandon()


os.register_at_fork(after_in_child=_after_fork)
