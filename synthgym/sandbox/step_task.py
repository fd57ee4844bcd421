"""Steps of many sessions of one source: one of each, or several in turn.

A worker may have died since an instance was last used, through another instance, or because the
pool needed its place. Then the instance is replayed first: reset with its seed, the recorded
actions, and a check that it stands where it stood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from synthgym.sandbox.batch import Batch
from synthgym.sandbox.link import Link
from synthgym.sandbox.protocol import (
    TERMINATED,
    TRUNCATED,
    Failed,
    FrameError,
    Replay,
    Replayed,
    Reply,
    Resets,
    Rows,
    Steps,
    fits,
    slices,
)
from synthgym.sandbox.requests import Request
from synthgym.sandbox.results import EnvFault, FaultKind
from synthgym.sandbox.row_tasks import Infos, RowTask
from synthgym.sandbox.source import Source

if TYPE_CHECKING:
    from synthgym.sandbox.session import Session

_NOT_DETERMINISTIC: Final = (
    "a replay gave other observations: the environment depends on more than its seed and actions"
)


class StepTask(RowTask):
    """One step of each session; where a session comes more than once, its steps one after the other.

    After a step that ended its episode or failed, the rows of a session say nothing, whatever stands in them.
    """

    call = "step"
    pays = True
    max_flag = TERMINATED | TRUNCATED

    def __init__(
        self,
        source: Source,
        sessions: Sequence[Session],
        actions: Sequence[str],
        where: Sequence[int],
        batch: Batch,
        *,
        repeats: bool = False,
    ) -> None:
        super().__init__(source, sessions, where, batch)
        self._actions = actions
        self._repeats = repeats
        """Whether a session may come more than once."""
        self._over: dict[Session, int] = {}
        """The row from which on those of a session say nothing."""

    def requests(self, link: Link) -> list[Request]:
        requests: list[Request] = []
        for session in dict.fromkeys(self._sessions):
            if session.home is not link:
                requests += self._replay(session, link)
        instances = [session.instance for session in self._sessions]
        for part in slices(self._actions):
            op = Steps(
                link.next_id(), self.source.program, instances[part], list(self._actions[part])
            )
            requests.append(self.request_for(op, part.start))
        return requests

    def lone_op(self, link: Link) -> Steps | None:
        instances: list[int] = []
        for session in self._sessions:
            if session.home is not link:
                return None
            instances.append(session.instance)
        if not fits(self._actions):
            return None
        return Steps(link.next_id(), self.source.program, instances, list(self._actions))

    def request_for(self, op: Steps | Resets, start: int = 0) -> Request:
        request = Request(op, len(op.instances), self._seconds, self._take, self)
        self._offsets[request] = start
        return request

    def land(self, rows: Rows, infos: Infos, seconds: float) -> None:
        self._log(self._sessions, self._actions, rows)
        self._land(rows, infos, seconds)

    def blame(self, request: Request, row: int, fault: tuple[FaultKind, str]) -> None:
        if request in self._offsets:
            super().blame(request, row, fault)
            session = self._sessions[self._offsets[request] + row]
            session.spend(self.source.limits.step_seconds)
            return
        assert isinstance(request.op, Replay)
        detail = f"in the replay: {fault[1]}"[:500]
        for row, session in enumerate(self._sessions):
            if session.instance == request.op.instance:
                session.broken = EnvFault(fault[0], self.call, detail)
                self._set_fault(row, session.broken)

    def _keep(self, rows: Sequence[int]) -> None:
        super()._keep(rows)
        self._actions = [self._actions[row] for row in rows]

    def _seconds(self, request: Request, row: int) -> float:
        limits, session = self.source.limits, self._sessions[self._offsets[request] + row]
        return min(limits.step_seconds, limits.episode_seconds - session.spent)

    def _take(
        self, request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]
    ) -> None:
        if type(reply) is not Rows:
            assert isinstance(reply, Failed)
            raise FrameError("a batch is answered with rows")
        start, stop = self._place(reply)
        # Logs end before a step that broke the worker: a replay must not break the next one.
        broke = any(kind == FaultKind.MEMORY for kind, _ in reply.failures.values())
        self._log(self._sessions[start : stop - broke], self._actions[start : stop - broke], reply)
        self._charge(request, self._sessions[start:stop], seconds, slow)
        self._take_failures(reply, start)
        for row in self._settled:  # some had a fault before: their replay had failed
            self._clear(row)
        if stop == len(self._sessions):
            self._finish()

    def _log(self, sessions: Sequence[Session], actions: Sequence[str], rows: Rows) -> None:
        """Write down what a replay needs; `rows` may have one row more."""
        if self._repeats and (self._over or rows.failures or any(rows.flags)):
            self._log_in_turn(sessions, actions, rows)
            return
        for session, action, observation, reward in zip(
            sessions, actions, rows.observations, rows.rewards, strict=False
        ):
            session.actions.append(action)
            session.observation = observation
            session.paid += reward

    def _log_in_turn(self, sessions: Sequence[Session], actions: Sequence[str], rows: Rows) -> None:
        """The same, without the rows that say nothing."""
        over = self._over
        for row, (session, action) in enumerate(zip(sessions, actions, strict=True)):
            if session not in over:
                session.actions.append(action)
                session.observation = rows.observations[row]
                session.paid += rows.rewards[row]
                if rows.flags[row] or row in rows.failures:
                    over[session] = 0  # what is still to be answered comes later

    def again(self) -> None:
        super().again()
        self._over.clear()  # of a session that broke the worker, what comes before is left
        if self._repeats and not self.done:
            self.occupy()

    def _open_rows(self) -> list[int]:
        rows, over = super()._open_rows(), self._over
        return [row for row in rows if row < over.get(self._sessions[row], row + 1)]

    def _set_fault(self, row: int, fault: EnvFault) -> None:
        if self._repeats:
            session = self._sessions[row]
            self._over[session] = min(row, self._over.get(session, row))
        super()._set_fault(row, fault)

    def _replay(self, session: Session, link: Link) -> Iterator[Request]:
        limits, actions = self.source.limits, session.actions
        parts = slices(actions)

        def take(request: Request, reply: Reply, seconds: float, slow: Mapping[int, float]) -> None:
            del seconds, slow
            if type(reply) is Failed:
                detail = f"in the replay: {reply.detail}"[:500]
                fault = EnvFault(FaultKind(reply.kind), self.call, detail)
                self._spoil(session, fault)
                self.source.strike(fault)
            elif type(reply) is Replayed and request is last:
                session.home = link
                if (reply.observation, reply.paid) != (session.observation, session.paid):
                    self._spoil(session, EnvFault(FaultKind.ERROR, self.call, _NOT_DETERMINISTIC))

        def seconds(request: Request, row: int) -> float:
            del request
            return limits.step_seconds if row else max(limits.reset_seconds, limits.step_seconds)

        requests = [
            Request(
                Replay(
                    link.next_id(),
                    self.source.program,
                    session.instance,
                    session.seed or 0,
                    actions[part],
                    resumed=bool(part.start),
                ),
                part.stop - part.start + (0 if part.start else 1),
                seconds,
                take,
                self,
            )
            for part in parts
        ]
        last = requests[-1]
        return iter(requests)

    def _spoil(self, session: Session, fault: EnvFault) -> None:
        session.broken = session.broken or fault
        for row, other in enumerate(self._sessions):
            if other is session and row not in self._settled:
                self._set_fault(row, session.broken)
