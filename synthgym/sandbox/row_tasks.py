"""What steps and resets of many sessions of one source have in common: rows, and where they go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from synthgym.errors import SandboxError
from synthgym.sandbox.batch import Batch
from synthgym.sandbox.link import Link
from synthgym.sandbox.protocol import (
    FrameError,
    Resets,
    Rows,
    Steps,
)
from synthgym.sandbox.requests import Request
from synthgym.sandbox.results import EnvFault, FaultKind
from synthgym.sandbox.source import Source

if TYPE_CHECKING:
    from synthgym.sandbox.session import Session

_NEGLIGIBLE_SECONDS: Final = 0.0005
"""A hundred turns of it are a twentieth of a second."""
_decode_info: Final = msgspec.json.Decoder(dict[str, Any]).decode
Infos: TypeAlias = Mapping[int, Mapping[str, Any]]
_NO_INFOS: Final[Infos] = {}


def decode_infos(rows: Rows) -> Infos:
    """Return what environments reported, by row; `ValueError` or `RecursionError` for no JSON object."""
    if not rows.infos:
        return _NO_INFOS
    return {row: _decode_info(info) for row, info in rows.infos.items()}


class RowTask(ABC):
    """One row for each of several sessions of one source."""

    call = ""
    pays = False
    """Whether a row may have a reward."""
    max_flag = 0
    """The flags that a row may have, as a number."""
    unblocks = False
    """Whether a session can be stepped after it that could not before."""

    def __init__(
        self,
        source: Source,
        sessions: Sequence[Session],
        where: Sequence[int],
        batch: Batch,
    ) -> None:
        self.source = source
        self.tries = 0
        self.done = False
        self.error: SandboxError | None = None
        self.batch = batch
        self._sessions = sessions
        self._where = where
        """Row of the batch, of each session."""
        self.rows = where
        """The rows of the batch that are this task's."""
        self._answered = 0
        self._offsets: dict[Request, int] = {}
        """First row of each request of this task."""
        self._settled: set[int] = set()
        """Rows, beyond those answered, that have a result."""
        self._occupied = False
        """Whether the sessions are marked as busy."""

    def occupy(self) -> None:
        """Mark the sessions as busy. Not on the short way, where nobody comes in between."""
        self._occupied = True
        for session in self._sessions:
            session.blocked = session.busy = True

    @property
    def count(self) -> int:
        """How many rows there are."""
        return len(self._sessions)

    @abstractmethod
    def requests(self, link: Link) -> list[Request]:
        """What to ask the worker."""

    @abstractmethod
    def lone_op(self, link: Link) -> Steps | Resets | None:
        """The one operation that is the whole task; None when it takes more than one."""

    @abstractmethod
    def request_for(self, op: Steps | Resets, start: int = 0) -> Request:
        """A request of `op`, which is this task from row `start` on."""

    @abstractmethod
    def land(self, rows: Rows, infos: Infos, seconds: float) -> None:
        """Take an ordinary answer to the whole task at once."""

    def blame(self, request: Request, row: int, fault: tuple[FaultKind, str]) -> None:
        self._set_fault(self._offsets[request] + row, EnvFault(fault[0], self.call, fault[1]))

    def fail(self, fault: EnvFault) -> None:
        for row in self._open_rows():
            self._set_fault(row, fault)
        self._finish()

    def cancel(self) -> None:
        self._finish()

    def again(self) -> None:
        rows = self._open_rows()
        kept = {self._sessions[row] for row in rows}
        for session in self._sessions:
            if session not in kept:
                session.free()
        self._keep(rows)
        self._answered = 0
        self._offsets.clear()
        self._settled.clear()
        if not rows:
            self._finish()

    def _keep(self, rows: Sequence[int]) -> None:
        self._sessions = [self._sessions[row] for row in rows]
        self._where = [self._where[row] for row in rows]

    def _open_rows(self) -> list[int]:
        return [
            row for row in range(self._answered, len(self._sessions)) if row not in self._settled
        ]

    def _set_fault(self, row: int, fault: EnvFault) -> None:
        self._settled.add(row)
        self._clear(row)
        self.batch.faults[self._where[row]] = fault
        self._sessions[row].free()

    def _clear(self, row: int) -> None:
        """Take back what a row has said: a fault says nothing else."""
        position, batch = self._where[row], self.batch
        batch.observations[position], batch.rewards[position], batch.flags[position] = "", 0.0, 0
        batch.infos.pop(position, None)

    def _place(self, rows: Rows) -> tuple[int, int]:
        """Copy columns into the batch; the rows of the task that they are."""
        start, count = self._answered, len(rows.observations)
        stop = start + count
        if stop > len(self._sessions):
            raise FrameError("more rows than were asked for")
        if max(map(len, rows.observations)) > self.source.limits.observation_chars:
            raise FrameError("an observation above the limit")
        infos = decode_infos(rows)
        self._copy(rows, start)
        for row, info in infos.items():
            if start + row not in self._settled:
                self.batch.infos[self._where[start + row]] = info
        self._answered = stop
        self.source.answered += count
        return start, stop

    def _copy(self, rows: Rows, start: int) -> None:
        """Put columns where they belong in the batch."""
        where, batch, count = self._where, self.batch, len(rows.observations)
        if isinstance(where, range):
            first = where.start + start
            batch.observations[first : first + count] = rows.observations
            batch.rewards[first : first + count] = rows.rewards
            batch.flags[first : first + count] = rows.flags
        else:
            for position, observation, reward, flag in zip(
                where[start : start + count],
                rows.observations,
                rows.rewards,
                rows.flags,
                strict=True,
            ):
                batch.observations[position] = observation
                batch.rewards[position] = reward
                batch.flags[position] = flag

    def _land(self, rows: Rows, infos: Infos, seconds: float) -> None:
        self._copy(rows, 0)
        for row, info in infos.items():
            self.batch.infos[self._where[row]] = info
        self.source.answered += len(rows.observations)
        if seconds > _NEGLIGIBLE_SECONDS * len(rows.observations):
            for session in self._sessions:
                session.spend(seconds / len(rows.observations))
        self._finish()

    def _take_failures(self, rows: Rows, start: int) -> None:
        for row, (kind, detail) in rows.failures.items():
            if start + row not in self._settled:
                fault = EnvFault(FaultKind(kind), self.call, detail[:500])
                self._set_fault(start + row, fault)
                self.source.strike(fault)

    def _charge(
        self,
        request: Request,
        sessions: Sequence[Session],
        seconds: float,
        slow: Mapping[int, float],
    ) -> None:
        """Put the time of a reply on the accounts of the episodes.

        A row that was seen running long pays for itself; the others share the rest, unless it is
        too little to matter.
        """
        for row, took in slow.items():
            if 0 <= row < request.rows:
                self._sessions[self._offsets[request] + row].spend(took)
        share = (seconds - sum(slow.values())) / len(sessions)
        if share > _NEGLIGIBLE_SECONDS:
            for session in sessions:
                session.spend(share)

    def _finish(self) -> None:
        self.done = True
        if not (self._occupied or self.unblocks):
            return
        for session in self._sessions:  # `Session.free`, written out: it is a call a row
            session.busy = False
            session.blocked = session.awaited or session.broken is not None
