"""What a pool is asked to do, one task for each source and call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from synthgym.errors import SandboxError
from synthgym.sandbox.link import Link
from synthgym.sandbox.protocol import Failed, HintDone, Op, Reply, SolutionDone
from synthgym.sandbox.requests import Request
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded
from synthgym.sandbox.source import Source


class Task(Protocol):
    """Work for one source. Done when every row has a result or a fault."""

    source: Source
    call: str
    """`load`, `reset`, `step`, `hint` or `solution`."""
    tries: int
    """How often a worker was lost under it without any fault of the source."""
    done: bool
    error: SandboxError | None
    """What kept the sandbox from doing it; then it is done without results."""

    def occupy(self) -> None:
        """Keep others from the sessions until it is done."""

    def requests(self, link: Link) -> list[Request]:
        """What to ask the worker."""

    def blame(self, request: Request, row: int, fault: tuple[FaultKind, str]) -> None:
        """Make a fault of the row that was running; only for a request of this task."""

    def again(self) -> None:
        """Keep only what has no result yet; `requests` will be called once more."""

    def fail(self, fault: EnvFault) -> None:
        """Give every row without a result this fault."""

    def cancel(self) -> None:
        """Leave the sessions as if they had not been asked."""


class Countdown:
    """Whether all of some tasks are done, asked many times."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._left = list(tasks)

    def __call__(self) -> bool:
        while self._left and self._left[-1].done:
            self._left.pop()
        return not self._left


class TextTask:
    """A hint or a solution, from an instance of its own."""

    def __init__(
        self, source: Source, call: str, seconds: float, make: Callable[[Link], Op]
    ) -> None:
        self.source = source
        self.tries = 0
        self.done = False
        self.error: SandboxError | None = None
        self.call = call
        self.result: str | tuple[str, ...] | EnvFault | None = None
        self._seconds = seconds
        self._make = make

    def occupy(self) -> None:
        pass

    def requests(self, link: Link) -> list[Request]:
        return [
            Request(self._make(link), 1, lambda _request, _row: self._seconds, self._take, self)
        ]

    def blame(self, request: Request, row: int, fault: tuple[FaultKind, str]) -> None:
        del request, row
        self.fail(EnvFault(fault[0], self.call, fault[1]))

    def again(self) -> None:
        pass

    def fail(self, fault: EnvFault) -> None:
        self.result, self.done = fault, True

    def cancel(self) -> None:
        self.done = True

    def _take(
        self, request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]
    ) -> None:
        del request, seconds, slow
        self.source.answered += 1
        if type(reply) is HintDone:
            self.result = reply.text
        elif type(reply) is SolutionDone:
            self.result = tuple(reply.actions)
        elif type(reply) is Failed:
            self.result = EnvFault(FaultKind(reply.kind), self.call, reply.detail[:500])
            self.source.strike(self.result)
        self.done = True


class LoadTask:
    """Nothing but the loading of the source."""

    call = "load"

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tries = 0
        self.done = False
        self.error: SandboxError | None = None
        self.result: Loaded | EnvFault | None = None

    def occupy(self) -> None:
        pass

    def requests(self, link: Link) -> list[Request]:
        del link
        self.result, self.done = self.source.loaded, True
        return []

    def blame(self, request: Request, row: int, fault: tuple[FaultKind, str]) -> None:
        del request, row, fault

    def again(self) -> None:
        pass

    def fail(self, fault: EnvFault) -> None:
        self.result, self.done = fault, True

    def cancel(self) -> None:
        self.done = True
