"""One round of work for one worker: from calls to requests, and from answers to results.

A worker may have died since an instance was last used, through another instance, or because the
pool needed its place. Then the instance is replayed first: reset with its seed, the recorded
actions, and a check that the observations are those of the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from synthgym.contract import BASE
from synthgym.sandbox.conversation import Talk
from synthgym.sandbox.process import Answered, Lost, Request, Worker
from synthgym.sandbox.protocol import (
    Drop,
    Failed,
    HintDone,
    Load,
    LoadDone,
    Op,
    Reply,
    Reset,
    ResetDone,
    SolutionDone,
    Step,
    StepDone,
)
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded, ResetResult, StepResult
from synthgym.spec import EnvRecord, Limits, canonical_json

Result: TypeAlias = Loaded | ResetResult | StepResult | str | tuple[str, ...]
_MAX_KWARGS_BYTES: Final = 64 * 1024
_DROP_SECONDS: Final = 5.0
_LASTING: Final = frozenset({FaultKind.REFUSED, FaultKind.ERROR, FaultKind.BAD_VALUE})
"""Faults of `load` that come again: the source is not tried twice."""
_NOT_DETERMINISTIC: Final = (
    "a replay gave other observations: the environment depends on more than its seed and actions"
)
_decode_info: Final = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(slots=True, eq=False)
class Source:
    """One record under one set of limits: its worker, while it has one, and what is known of it."""

    record: EnvRecord
    limits: Limits
    sessions: int = 0
    worker: Worker | None = None
    worker_loaded: bool = False
    reserved: bool = False
    """Whether a thread is in conversation with the worker."""
    loaded: Loaded | EnvFault | None = None
    texts: dict[tuple[str, int, int], Result] = field(default_factory=dict)
    """Hints and solutions by (call, seed, level)."""
    dropped: list[int] = field(default_factory=list)
    """Instances of closed sessions, to be dropped with the next message."""

    def refusal(self) -> EnvFault | None:
        """Why there is no point in starting a worker, as far as that is known."""
        if isinstance(self.loaded, EnvFault) and self.loaded.kind in _LASTING:
            return self.loaded
        if self.record.base != BASE:
            return _refused(f"this version runs {BASE}, the record is of {self.record.base}")
        if len(canonical_json(dict(self.record.kwargs))) > _MAX_KWARGS_BYTES:
            return _refused(f"the keyword arguments have more than {_MAX_KWARGS_BYTES} bytes")
        return None


@dataclass(slots=True, eq=False)
class Episode:
    """What it takes to bring one instance back: seed, actions, and a trace of what was observed."""

    instance: int
    seed: int | None = None
    actions: list[str] = field(default_factory=list)
    trace: int = 0
    spent: float = 0.0
    """Seconds of all calls since the last reset."""
    home: Worker | None = None
    """The worker that holds the instance, when it still lives."""
    broken: EnvFault | None = None
    """Why there is nothing to step until the next reset."""

    def began(self, seed: int, trace: int, seconds: float) -> None:
        """Note that a reset succeeded."""
        self.seed, self.trace, self.spent = seed, trace, seconds
        self.actions = []
        self.broken = None

    def stepped(self, action: str, trace: int, seconds: float) -> None:
        """Note that a step was answered, be it with a failure."""
        self.actions.append(action)
        self.trace = trace
        self.spent += seconds


@dataclass(slots=True, eq=False)
class Job:
    """One call of one session, and in the end its result."""

    source: Source
    episode: Episode
    call: str
    """`load`, `reset`, `step`, `hint` or `solution`."""
    seconds: float
    make: Callable[[int], Op] | None
    """The operation with the number given; None for `load`, which every worker does first anyway."""
    result: Result | EnvFault | None = None
    replayed: int | None = None
    """Trace of the replay so far; None when the instance was still there."""

    def fail(self, kind: FaultKind, detail: str) -> None:
        """Set the result to a fault of this call."""
        self.result = EnvFault(kind, self.call, detail)


class _Entry(NamedTuple):
    """Why a request is in the message: for a job, or (None) for the source as a whole."""

    request: Request
    job: Job | None = None
    replay: bool = False


class Round:
    """The requests that bring `jobs`, all of one source, forward in its worker; then their answers."""

    def __init__(self, source: Source, worker: Worker, jobs: Sequence[Job]) -> None:
        self._source = source
        self._worker = worker
        self._jobs = jobs
        self._entries = list(self._plan())
        self.talk = Talk(worker, [entry.request for entry in self._entries])

    def _plan(self) -> Iterator[_Entry]:
        source, number, limits = self._source, self._worker.next_id, self._source.limits
        if not source.worker_loaded:
            source.dropped.clear()
            yield _Entry(Request(_load(source, number()), limits.load_seconds))
        while source.dropped:
            yield _Entry(Request(Drop(number(), source.dropped.pop()), _DROP_SECONDS))
        for job in self._jobs:
            if job.make is None:
                continue
            episode, job.replayed = job.episode, None
            if job.call == "step" and episode.home is not self._worker:
                reset = Reset(number(), episode.instance, episode.seed or 0)
                yield _Entry(Request(reset, limits.reset_seconds), job, replay=True)
                for action in episode.actions:
                    step = Step(number(), episode.instance, action)
                    yield _Entry(Request(step, limits.step_seconds), job, replay=True)
            yield _Entry(Request(job.make(number()), job.seconds), job)

    def absorb(self) -> Lost | None:
        """Turn the answers into results.

        Returns the loss when it was nobody's fault and the jobs must be tried again.
        """
        for entry, answer in zip(self._entries, self.talk.answers, strict=False):
            if entry.job is None:
                self._absorb_own(answer.reply)
            elif entry.job.result is None:
                if entry.replay:
                    self._absorb_replay(entry.job, answer.reply)
                else:
                    self._absorb_call(entry.job, entry.request.op, answer)
        source = self._source
        for job in self._jobs:
            if job.call == "load" and job.result is None and source.worker_loaded:
                job.result = source.loaded
        return self._absorb_loss() if self._worker.lost else None

    def _absorb_own(self, reply: Reply) -> None:
        """Take the answer to a load or a drop."""
        if type(reply) is LoadDone:
            self._source.worker_loaded = True
            self._source.loaded = Loaded(
                entry=reply.entry,
                max_turns=reply.max_turns,
                docstring=reply.docstring,
                requires=tuple(reply.requires),
                has_hint=reply.has_hint,
                has_solution=reply.has_solution,
            )
        elif type(reply) is Failed:
            self._fail_load(FaultKind(reply.kind), reply.detail)
            self._worker.kill()

    def _absorb_replay(self, job: Job, reply: Reply) -> None:
        job.replayed = _traced(job.replayed or 0, reply)
        if type(reply) is ResetDone:
            job.episode.home = self._worker
        elif type(reply) is Failed and job.episode.home is not self._worker:  # the reset failed
            self._break(job, FaultKind(reply.kind), f"in the replay: {reply.detail}")

    def _absorb_call(self, job: Job, op: Op, answer: Answered) -> None:
        episode, reply = job.episode, answer.reply
        if type(op) is Step:
            if job.replayed not in (None, episode.trace):
                self._break(job, FaultKind.ERROR, _NOT_DETERMINISTIC)
                return
            episode.stepped(op.action, _traced(episode.trace, reply), answer.seconds)
        try:
            job.result = _result(job.call, reply)
        except (ValueError, RecursionError):
            job.fail(FaultKind.PROTOCOL, "info is not a JSON object")
            if not self._worker.lost:
                self._worker.lose(FaultKind.PROTOCOL, "info is not a JSON object")
        if type(op) is Reset:
            if isinstance(job.result, EnvFault):
                episode.broken = job.result
            else:
                episode.began(op.seed, _traced(0, reply), answer.seconds)
                episode.home = self._worker

    def _absorb_loss(self) -> Lost | None:
        """Find the guilty and set its fault.

        The first request without an answer was running when the worker was lost.
        """
        lost = self._worker.lost
        self._source.worker = None
        if lost is None or len(self.talk.answers) >= len(self._entries):
            return None
        if lost.kind is None:
            return None if all(job.result is not None for job in self._jobs) else lost
        entry = self._entries[len(self.talk.answers)]
        if entry.job is None:
            if type(entry.request.op) is Load:
                self._fail_load(lost.kind, lost.detail)
        elif entry.replay:
            self._break(entry.job, lost.kind, f"in the replay: {lost.detail}")
        else:
            entry.job.fail(lost.kind, lost.detail)
            entry.job.episode.spent += entry.request.seconds
            if entry.job.call == "reset":
                self._break(entry.job, lost.kind, lost.detail)
        return None

    def _break(self, job: Job, kind: FaultKind, detail: str) -> None:
        job.fail(kind, detail)
        assert isinstance(job.result, EnvFault)
        job.episode.broken = job.result

    def _fail_load(self, kind: FaultKind, detail: str) -> None:
        fault = EnvFault(kind, "load", detail)
        self._source.loaded = fault
        for job in self._jobs:
            job.result = fault
            if job.call == "reset":
                job.episode.broken = fault


def _load(source: Source, number: int) -> Load:
    record = source.record
    kwargs = canonical_json(dict(record.kwargs))
    return Load(number, record.source, record.entry, kwargs, source.limits.observation_chars)


def _result(call: str, reply: Reply) -> Result | EnvFault:
    """Return the result that a reply stands for.

    `ValueError` or `RecursionError` when its info is not a JSON object.
    """
    match reply:
        case StepDone():
            info = _decode_info(reply.info) if reply.info else {}
            return StepResult(
                reply.observation, reply.reward, reply.terminated, reply.truncated, info
            )
        case ResetDone():
            return ResetResult(reply.observation, _decode_info(reply.info) if reply.info else {})
        case HintDone():
            return reply.text
        case SolutionDone():
            return tuple(reply.actions)
        case Failed():
            return EnvFault(FaultKind(reply.kind), call, reply.detail[:500])
        case _:
            raise TypeError(f"{type(reply).__name__} answers no {call}")


def _traced(trace: int, reply: Reply) -> int:
    """Return the trace after one more reply, of use within this process and its forks only."""
    if type(reply) is StepDone:
        return hash((trace, reply.observation, reply.reward, reply.terminated, reply.truncated))
    if type(reply) is ResetDone:
        return hash(reply.observation)
    return hash((trace, reply.kind)) if type(reply) is Failed else trace


def _refused(detail: str) -> EnvFault:
    return EnvFault(FaultKind.REFUSED, "load", detail)
