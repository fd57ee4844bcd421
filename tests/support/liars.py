"""A zygote whose workers are threads of the test and say whatever the test wants."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, cast

from pool_sources import walk

from synthgym.sandbox import Pool, Session
from synthgym.sandbox.process import Zygote
from synthgym.sandbox.progress import ProgressBoard
from synthgym.sandbox.protocol import (
    Compile,
    Compiled,
    Done,
    FrameDecoder,
    Hint,
    HintDone,
    Load,
    LoadDone,
    Op,
    Ready,
    Replay,
    Replayed,
    Reply,
    Resets,
    Rows,
    Solution,
    SolutionDone,
    Steps,
    decode_ops,
    encode,
    frame,
)
from synthgym.spec import Limits

READY = Ready(0, [("memory", True, "")])
LIMITS = Limits(
    load_seconds=0.3,
    reset_seconds=0.3,
    step_seconds=0.3,
    hint_seconds=0.3,
    solution_seconds=0.3,
    memory_mb=64,
)
FIRST_PID = 1 << 22
"""Above every pid that the kernel gives out, so that no clock of a real process is read."""


def step_rows(op: Steps) -> Rows:
    """What an honest worker answers: the action comes back, with a reward and an info."""
    count = len(op.actions)
    return Rows(
        op.id,
        [f"did {action}" for action in op.actions],
        [0.5] * count,
        bytes(count),
        {row: f'{{"row":"{action}"}}' for row, action in enumerate(op.actions)},
        {},
    )


def honest(op: Op) -> Reply:
    """What an honest worker answers."""
    match op:
        case Compile():
            return Compiled(op.id, b"code", [], "", [])
        case Load():
            return LoadDone(op.id, op.entry, 50, "", True, True)
        case Resets():
            count = len(op.seeds)
            observations = [f"start {seed}" for seed in op.seeds]
            return Rows(op.id, observations, [0.0] * count, bytes(count), {}, {})
        case Steps():
            return step_rows(op)
        case Replay():
            shown = f"did {op.actions[-1]}" if op.actions else f"start {op.seed}"
            return Replayed(op.id, shown, 0.5 * len(op.actions))
        case Hint():
            return HintDone(op.id, "a hint")
        case Solution():
            return SolutionDone(op.id, ["go"])
        case _:
            return Done(op.id)


class Puppet(threading.Thread):
    """A worker that is a thread. It follows `script`, and then answers honestly until it is killed."""

    def __init__(
        self, number: int, channel: socket.socket, board: ProgressBoard, slot: int, script: Script
    ) -> None:
        super().__init__(daemon=True)
        self.number = number
        """0 for the first worker of its zygote, and so on."""
        self.begun = 0
        """Rows, as an honest worker counts them."""
        self._channel = channel
        self._board = board
        self._slot = slot
        self._script = script
        self.killed = threading.Event()

    def run(self) -> None:
        try:
            self._script(self)
            for op in self.ops():
                self.say(honest(op))
        except OSError:
            pass  # it was killed

    def say(self, *replies: Reply | bytes) -> None:
        """Send replies, framed, and bytes as they are."""
        self._channel.sendall(
            b"".join(
                reply if isinstance(reply, bytes) else frame(encode(reply)) for reply in replies
            )
        )

    def ops(self) -> Iterator[Op]:
        """Operations as they come, until it is killed; rows are counted."""
        decoder = FrameDecoder()
        while data := self._channel.recv(1 << 16):
            for body in decoder.feed(data):
                for op in decode_ops(body):
                    self.begun += _rows_of(op)
                    self.count(self.begun)
                    yield op

    def end(self) -> None:
        """End as a process that was killed from outside does."""
        self._channel.shutdown(socket.SHUT_RDWR)

    def count(self, value: int) -> None:
        """Set the progress counter."""
        if not self.killed.is_set():
            self._board._counters[self._slot * self._board._step] = value


Script: TypeAlias = Callable[[Puppet], None]


class Liar:
    """Stands in for a zygote."""

    pid = 0
    alive = True

    def __init__(self, script: Script, *, status: int = 9) -> None:
        self.board = ProgressBoard()
        self.puppets: list[Puppet] = []
        self.reaped: list[int] = []
        self._script = script
        self._status = status
        """What the end of a worker is told as."""
        self._channels: dict[int, socket.socket] = {}

    def spawn(self, channel: socket.socket, memory_mb: int, slot: int) -> int:
        assert memory_mb > 0
        number = len(self.puppets)
        own = channel.dup()
        puppet = Puppet(number, own, self.board, slot, self._script)
        self.puppets.append(puppet)
        self._channels[FIRST_PID + number] = own
        puppet.start()
        return FIRST_PID + number

    def kill(self, pid: int) -> int:
        puppet, channel = self.puppets[pid - FIRST_PID], self._channels.pop(pid)
        puppet.killed.set()
        with contextlib.suppress(OSError):
            channel.shutdown(socket.SHUT_RDWR)
        puppet.join(10)
        assert not puppet.is_alive()
        channel.close()
        self.reaped.append(pid)
        return self._status

    def unreaped(self) -> list[int]:
        """Workers that were started and never killed."""
        return list(self._channels)

    def close(self) -> None:
        for pid in list(self._channels):
            self.kill(pid)
        self.board.close()

    @property
    def zygote(self) -> Zygote:
        return cast(Zygote, self)


def lying_pool(liar: Liar, **settings: Any) -> Pool:
    """A pool whose workers are the liar's."""
    pool = Pool(**settings)
    pool._engine._hosts._zygote = liar.zygote
    return pool


def lying_once(kind: type[Op], *lies: Callable[[Op], list[Reply | bytes]], skip: int = 0) -> Script:
    """Honest until an operation of a kind; the answer to that is a lie in the first workers.

    One lie for each worker; later ones are honest. The first worker answers `skip` operations of the
    kind before.
    """

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        if puppet.number >= len(lies):
            return
        left = skip if puppet.number == 0 else 0
        for op in puppet.ops():
            left -= type(op) is kind
            if type(op) is kind and left < 0:
                puppet.say(*lies[puppet.number](op))
                puppet.killed.wait(30)
                return
            puppet.say(honest(op))

    return script


def _rows_of(op: Op) -> int:
    match op:
        case Resets():
            return len(op.seeds)
        case Steps():
            return len(op.actions)
        case Replay():
            return len(op.actions) + (0 if op.resumed else 1)
        case Compile() | Load() | Hint() | Solution():
            return 1
        case _:
            return 0


@contextmanager
def against(
    script: Script, count: int = 3, **settings: int
) -> Iterator[tuple[Liar, list[Session]]]:
    """A pool of workers that follow the script, and sessions of one source in it."""
    liar = Liar(script)
    with lying_pool(liar, **settings) as pool:
        yield liar, [pool.open(walk(), LIMITS) for _ in range(count)]
        assert not liar.unreaped() or not pool.closed
    assert not liar.unreaped()


def pool_of(session: Session) -> Pool:
    return session.pool
