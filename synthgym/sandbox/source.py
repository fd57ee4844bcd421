"""One source in a pool: what it is, where it runs, and what is known of it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from synthgym.contract import BASES, MAX_TURNS, MIN_TURNS
from synthgym.sandbox.code_cache import CheckedCode
from synthgym.sandbox.link import Link
from synthgym.sandbox.protocol import (
    MAX_CODE,
    MAX_DETAIL,
    MAX_ROWS,
    Compile,
    Compiled,
    Drop,
    Failed,
    FrameError,
    Load,
    LoadDone,
    Reply,
)
from synthgym.sandbox.requests import Request
from synthgym.sandbox.results import BREACHES, EnvFault, FaultKind, Loaded
from synthgym.spec import EnvRecord, Limits, canonical_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from synthgym.sandbox.tasks import Task

MAX_TEXTS: Final = 4096
"""Hints and solutions remembered for one source."""
_MAX_KWARGS_BYTES: Final = 64 * 1024
_FORGIVEN_AFTER: Final = 10_000
"""Calls answered since the last strike after which it no longer counts."""
_LASTING: Final = frozenset({FaultKind.REFUSED, FaultKind.ERROR, FaultKind.BAD_VALUE})
"""Faults of `load` that come again: the source is not tried twice."""


@dataclass(slots=True, eq=False)
class Source:
    """One record under one set of limits."""

    record: EnvRecord
    limits: Limits
    max_strikes: int
    check_only: bool = False
    """Whether it is to be compiled and never run."""
    sessions: int = 0
    link: Link | None = None
    """The worker that hosts it, when there is one."""
    program: int = 0
    """Its number there."""
    posted: bool = False
    """Whether that worker was told to load it."""
    ready: bool = False
    """Whether that worker has loaded it."""
    compiled_here: bool = False
    """Whether `checked` is news to the cache."""
    checked: CheckedCode | None = None
    loaded: Loaded | EnvFault | None = None
    queue: deque[Task] = field(default_factory=deque)
    """Tasks that no worker has been given yet."""
    texts: dict[tuple[str, int, int], str | tuple[str, ...]] = field(default_factory=dict)
    """Hints and solutions by (call, seed, level)."""
    dropped: list[int] = field(default_factory=list)
    """Instances of closed sessions, to be dropped with the next message."""
    strikes: int = 0
    answered: int = 0
    """Calls answered since the last strike."""
    quarantine: EnvFault | None = None

    @property
    def undisturbed(self) -> bool:
        """Whether its worker has loaded it and there is nothing to be done first."""
        return self.ready and not (self.queue or self.dropped or self.quarantine)

    def refusal(self) -> EnvFault | None:
        """Why there is no point in asking a worker, as far as that is known."""
        if self.quarantine is not None:
            return self.quarantine
        if isinstance(self.loaded, EnvFault) and self.loaded.kind in _LASTING:
            return self.loaded
        if self.loaded is not None:
            return None
        if self.record.base not in BASES:
            return _refused(
                f"this version runs {', '.join(BASES)}; the record is of {self.record.base}"
            )
        if len(canonical_json(dict(self.record.kwargs))) > _MAX_KWARGS_BYTES:
            return _refused(f"the keyword arguments have more than {_MAX_KWARGS_BYTES} bytes")
        return None

    def unhost(self) -> None:
        """Note that no worker hosts it any more."""
        self.link, self.posted, self.ready = None, False, False

    def fail_queue(self, fault: EnvFault) -> None:
        """Give every task that no worker has been given this fault."""
        while self.queue:
            self.queue.popleft().fail(fault)

    def forget_done(self) -> None:
        """Take from the queue what got its result there."""
        self.queue = deque(task for task in self.queue if not task.done)

    def strike(self, fault: EnvFault) -> None:
        """Count a fault that cost a worker its life; the last one allowed ends the source."""
        if fault.kind not in BREACHES:
            return
        if self.answered > _FORGIVEN_AFTER:
            self.strikes = 0
        self.strikes, self.answered = self.strikes + 1, 0
        if self.strikes >= self.max_strikes:
            detail = f"quarantined after {self.strikes} breaches; the last: {fault.detail}"
            self.quarantine = EnvFault(fault.kind, fault.call, detail[:500])

    def load_requests(self, link: Link) -> list[Request]:
        """Return what makes a worker ready for this source."""
        limits, checked = self.limits, self.checked
        requests: list[Request] = []

        def seconds(request: Request, row: int) -> float:
            del request, row
            return limits.load_seconds

        if checked is None or not checked.code:
            compile_ = Compile(link.next_id(), self.record.source, self.record.base)
            requests.append(Request(compile_, 1, seconds, self._take_compiled, self))
        if self.check_only:
            return requests
        load = Load(
            link.next_id(),
            self.program,
            checked.code if checked is not None else b"",
            self.record.entry,
            canonical_json(dict(self.record.kwargs)),
            limits.observation_chars,
            self.record.base,
        )
        requests.append(Request(load, 1, seconds, self._take_loaded, self))
        self.dropped.clear()
        return requests

    def drop_requests(self, link: Link) -> list[Request]:
        """Return what makes a worker forget the instances of closed sessions."""
        if not self.dropped:
            return []
        dropped, self.dropped = self.dropped, []
        return [
            Request(Drop(link.next_id(), dropped[at : at + MAX_ROWS]), 0, no_rows, ignore)
            for at in range(0, len(dropped), MAX_ROWS)
        ]

    def _take_compiled(
        self, request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]
    ) -> None:
        del request, seconds, slow
        if type(reply) is Compiled:
            if len(reply.code) > MAX_CODE or (reply.code and reply.violations):
                raise FrameError("no checker says this of a source")
            self.checked = CheckedCode(
                code=reply.code,
                requires=tuple(reply.requires),
                docstring=reply.docstring,
                violations=tuple(reply.violations),
            )
            self.compiled_here = True
            self.ready = self.check_only
            if reply.violations:
                self.loaded = _refused(first_violations(reply.violations))
        elif type(reply) is Failed:
            self.loaded = EnvFault(FaultKind(reply.kind), "load", reply.detail[:MAX_DETAIL])

    def _take_loaded(
        self, request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]
    ) -> None:
        del request, seconds, slow
        if isinstance(self.loaded, EnvFault) and self.loaded.kind in _LASTING:
            return  # it did not compile, so this says nothing new
        if type(reply) is LoadDone:
            known = self.record.entry in ("", reply.entry)
            if not known or not MIN_TURNS <= reply.max_turns <= MAX_TURNS:
                raise FrameError("no checker says this of a class")
            checked = self.checked
            self.ready = True
            self.loaded = Loaded(
                entry=reply.entry,
                max_turns=reply.max_turns,
                docstring=(checked.docstring if checked else "") or reply.docstring,
                requires=checked.requires if checked else (),
                has_hint=reply.has_hint,
                has_solution=reply.has_solution,
                tools=_tools(reply.tools),
            )
        elif type(reply) is Failed:
            self.loaded = EnvFault(FaultKind(reply.kind), "load", reply.detail[:MAX_DETAIL])


def first_violations(violations: list[tuple[int, str]] | tuple[tuple[int, str], ...]) -> str:
    """Return the first violations in one line."""
    return "; ".join(f"line {line}: {message}" for line, message in violations[:5])[:500]


def _tools(text: str) -> tuple[Mapping[str, Any], ...]:
    """Schemas as a worker sent them; `FrameError` when they are none."""
    try:
        return tuple(msgspec.json.decode(text, type=list[dict[str, Any]]))
    except msgspec.DecodeError as error:
        raise FrameError("no checker says this of tools") from error


def _refused(detail: str) -> EnvFault:
    return EnvFault(FaultKind.REFUSED, "load", detail)


def no_rows(request: Request, row: int) -> float:
    """No limit, for what has no rows."""
    del request, row
    return float("inf")


def ignore(request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]) -> None:
    """Take an answer that says nothing."""
    del request, reply, seconds, slow
