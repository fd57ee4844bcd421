"""One reset of each of many sessions of one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from synthgym.sandbox.batch import Batch
from synthgym.sandbox.link import Link
from synthgym.sandbox.protocol import MAX_ROWS, FrameError, Reply, Resets, Rows, Steps
from synthgym.sandbox.requests import Request
from synthgym.sandbox.results import EnvFault
from synthgym.sandbox.row_tasks import Infos, RowTask
from synthgym.sandbox.source import Source

if TYPE_CHECKING:
    from synthgym.sandbox.session import Session


class ResetTask(RowTask):
    """One reset of each session."""

    call = "reset"
    unblocks = True

    def __init__(
        self,
        source: Source,
        sessions: Sequence[Session],
        seeds: Sequence[int],
        where: Sequence[int],
        batch: Batch,
    ) -> None:
        super().__init__(source, sessions, where, batch)
        self._seeds = seeds
        self._link: Link | None = None

    def requests(self, link: Link) -> list[Request]:
        self._link = link
        instances = [session.instance for session in self._sessions]
        requests: list[Request] = []
        for start in range(0, len(instances), MAX_ROWS):
            part = slice(start, start + MAX_ROWS)
            op = Resets(
                link.next_id(), self.source.program, instances[part], list(self._seeds[part])
            )
            requests.append(self.request_for(op, start))
        return requests

    def lone_op(self, link: Link) -> Resets | None:
        self._link = link
        if len(self._sessions) > MAX_ROWS:
            return None
        instances = [session.instance for session in self._sessions]
        return Resets(link.next_id(), self.source.program, instances, list(self._seeds))

    def request_for(self, op: Steps | Resets, start: int = 0) -> Request:
        limit = self.source.limits.reset_seconds
        request = Request(op, len(op.instances), lambda _request, _row: limit, self._take, self)
        self._offsets[request] = start
        return request

    def land(self, rows: Rows, infos: Infos, seconds: float) -> None:
        for session, seed, observation in zip(
            self._sessions, self._seeds, rows.observations, strict=True
        ):
            session.began(seed, observation, self._link)
        self._land(rows, infos, seconds)

    def _keep(self, rows: Sequence[int]) -> None:
        super()._keep(rows)
        self._seeds = [self._seeds[row] for row in rows]

    def _set_fault(self, row: int, fault: EnvFault) -> None:
        self._sessions[row].broken = fault
        super()._set_fault(row, fault)

    def _take(
        self, request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]
    ) -> None:
        if type(reply) is not Rows:
            raise FrameError("a batch is answered with rows")
        if any(reply.rewards) or any(reply.flags):
            raise FrameError("a reset has neither a reward nor an end")
        start, stop = self._place(reply)
        for session, seed, observation in zip(
            self._sessions[start:stop], self._seeds[start:stop], reply.observations, strict=True
        ):
            session.began(seed, observation, self._link)
        self._charge(request, self._sessions[start:stop], seconds, slow)
        self._take_failures(reply, start)
        if stop == len(self._sessions):
            self._finish()
