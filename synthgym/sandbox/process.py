"""The parent's side of the sandbox processes: the zygote, and one worker at a time.

What goes wrong in generated code comes back as a value (`Lost`, then `EnvFault`). What goes wrong
with the processes themselves, a zygote that does not start or is gone, is `SandboxError`.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NamedTuple, Self

from synthgym.errors import SandboxError
from synthgym.sandbox.bootstrap import ENVIRONMENT, zygote_command
from synthgym.sandbox.isolation import IsolationReport, Layer, report
from synthgym.sandbox.protocol import (
    ANSWERS,
    MEMORY_EXIT,
    RECV_BYTES,
    Answer,
    Control,
    Failed,
    FrameDecoder,
    FrameError,
    Kill,
    Op,
    Ready,
    Reply,
    Spawn,
    StepDone,
    decode_answer,
    decode_reply,
    encode,
    frame,
    messages,
)
from synthgym.sandbox.results import FaultKind

START_SECONDS: Final = 30.0
"""For the zygote to import its modules, or a worker to lock itself down, on a machine that is busy."""
CONTROL_SECONDS: Final = 10.0
"""For the zygote to fork, or to kill and reap."""
_ZYGOTE_GONE: Final = "the zygote has ended"
_WORKER_FAULTS: Final = frozenset(
    {FaultKind.MEMORY, FaultKind.ERROR, FaultKind.REFUSED, FaultKind.BAD_VALUE}
)
"""What a worker may say of itself; the other kinds are the parent's findings."""


class Zygote:
    """The process that forks workers. Thread-safe.

    It ends with `close()`, when this object is collected, or when the owner's process ends.
    """

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _start_zygote(theirs)
        except SandboxError:
            ours.close()
            raise
        self._socket = ours
        self._lock = threading.Lock()
        self._in_step = True
        """Whether the next answer will be that of the next request."""
        self._finalizer = weakref.finalize(self, _end_zygote, self._process, ours)
        ours.settimeout(START_SECONDS)
        try:
            self.pid = self._receive().value
        except SandboxError as error:
            self._process.kill()
            _, stderr = self._process.communicate()
            self.close()
            tail = stderr.decode("utf-8", "replace").strip()[-2000:]
            raise SandboxError(f"the sandbox did not start: {error}\n{tail}") from error
        ours.settimeout(CONTROL_SECONDS)

    @property
    def alive(self) -> bool:
        """Whether the zygote can still be asked."""
        return self._in_step and self._finalizer.alive and self._process.poll() is None

    def spawn(self, channel: socket.socket, memory_mb: int) -> int:
        """Fork a worker that talks on `channel`, of which the caller closes its copy; its pid."""
        return self._ask(Spawn(memory_mb), [channel.fileno()])

    def kill(self, pid: int) -> int:
        """Kill and reap a worker; its wait status."""
        return self._ask(Kill(pid), [])

    def close(self) -> None:
        """End the zygote and, with it, its workers. Twice is fine."""
        with self._lock:
            self._finalizer()

    def abandon(self) -> None:
        """Let go of what belongs to the parent, in a forked child, without a word to the zygote."""
        self._finalizer.detach()
        self._socket.close()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._process.returncode = 0  # not a child of this process: nothing to wait for

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, message: Control, descriptors: list[int]) -> int:
        with self._lock:
            if not (self._finalizer.alive and self._in_step):
                raise SandboxError("the zygote cannot be used any more")
            answer = None
            try:
                socket.send_fds(self._socket, [frame(encode(message))], descriptors)
                answer = self._receive()
            except OSError as error:
                raise SandboxError(f"the zygote cannot be reached: {error}") from error
            finally:
                self._in_step = answer is not None  # not after an interrupt either
        if answer.error:
            raise SandboxError(f"the zygote could not start a worker: {answer.error}")
        return answer.value

    def _receive(self) -> Answer:
        decoder = FrameDecoder()
        try:
            while data := self._socket.recv(RECV_BYTES):
                for body in decoder.feed(data):
                    return decode_answer(body)
        except (OSError, ValueError) as error:
            raise SandboxError(f"the zygote does not answer: {error}") from error
        raise SandboxError("the zygote has ended")


def _start_zygote(channel: socket.socket) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            zygote_command(channel.fileno()),
            env=ENVIRONMENT,
            cwd="/",
            pass_fds=[channel.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal goes to the parent alone
        )
    except OSError as error:
        raise SandboxError(f"the sandbox cannot start {sys.executable}: {error}") from error


def _end_zygote(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()  # the zygote sees the end, kills its workers and exits
    try:
        process.wait(CONTROL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # its workers die with it
        process.wait()
    if process.stderr is not None:
        process.stderr.close()


class Request(NamedTuple):
    """An operation and the seconds that it may take, counted from the end of the one before."""

    op: Op
    seconds: float


class Answered(NamedTuple):
    """A reply and the seconds that it took."""

    reply: Reply
    seconds: float


@dataclass(frozen=True, slots=True)
class Lost:
    """Why a worker is no more. `kind` is None when it is not the environment's doing."""

    kind: FaultKind | None
    detail: str


class Worker:
    """One worker process, seen from the parent: requests in, replies out, until it is lost.

    Not thread-safe: one conversation at a time, driven by `conversation.converse`. The first
    request that has no reply when the worker is lost is the one that was running.
    """

    def __init__(self, zygote: Zygote, memory_mb: int) -> None:
        self._zygote = zygote
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self.pid = zygote.spawn(theirs, memory_mb)
        except SandboxError:
            ours.close()
            raise
        ours.setblocking(False)
        self._socket = ours
        weakref.finalize(self, ours.close)
        self.lost: Lost | None = None
        self.isolation: IsolationReport | None = None
        self._decoder = FrameDecoder()
        self._last_id = 0
        self._outgoing = b""
        self._pending: deque[tuple[Op | None, float]] = deque([(None, START_SECONDS)])
        self._since = time.monotonic()

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def next_id(self) -> int:
        """Return a number for the next operation."""
        self._last_id += 1
        return self._last_id

    @property
    def waiting(self) -> bool:
        """Whether a reply is due."""
        return bool(self._pending)

    @property
    def writing(self) -> bool:
        """Whether bytes wait until the worker reads."""
        return bool(self._outgoing)

    @property
    def deadline(self) -> float:
        """When the running request is late, on the monotonic clock."""
        return self._since + self._pending[0][1] if self._pending else float("inf")

    def post(self, requests: Sequence[Request]) -> None:
        """Send requests, in as few messages as their size allows.

        The clock of the first starts now.
        """
        if not self._pending:
            self._since = time.monotonic()
        self._pending += [(request.op, request.seconds) for request in requests]
        self._outgoing += messages([request.op for request in requests])
        self.write()

    def write(self) -> None:
        """Send what the socket takes now."""
        try:
            sent = self._socket.send(self._outgoing)
        except BlockingIOError:
            return
        except OSError:
            self._outgoing = b""  # it has ended: reading will say how
            return
        self._outgoing = self._outgoing[sent:]

    def read(self) -> list[Answered]:
        """Return the replies that have arrived, oldest first.

        Bytes that are no reply, or the end of them, lose the worker.
        """
        answers: list[Answered] = []
        try:
            data = self._socket.recv(RECV_BYTES)
            if not data:
                self._lose_ended()
                return answers
            for body in self._decoder.feed(data):
                answer = self._accept(decode_reply(body))
                if answer is not None:
                    answers.append(answer)
                if self.lost:
                    break
        except BlockingIOError:
            pass
        except OSError:
            self._lose_ended()
        except (ValueError, RecursionError) as error:  # what decoders raise on hostile bytes
            self.lose(FaultKind.PROTOCOL, f"not a reply: {error}")
        return answers

    def expire(self) -> None:
        """Kills the worker because the running request is late."""
        running, seconds = self._pending[0]
        late = f"no reply in {time.monotonic() - self._since:.1f} s (limit {seconds:g} s)"
        self.lose(FaultKind.TIMEOUT if running is not None else None, late)

    def lose(self, kind: FaultKind | None, detail: str) -> None:
        """Kills the worker for the reason given."""
        status = self.kill()
        self.lost = Lost(kind, detail) if status is not None else Lost(None, _ZYGOTE_GONE)

    def kill(self) -> int | None:
        """Kill and reap the process.

        Returns the wait status, or None when the zygote is gone. A second time does nothing.
        """
        if self._socket.fileno() < 0:
            return 0
        self._socket.close()
        if self.lost is None:
            self.lost = Lost(None, "killed by its owner")
        try:
            return self._zygote.kill(self.pid)
        except SandboxError:
            return None

    def abandon(self) -> None:
        """For a forked child: closes the inherited channel; the worker goes on for the parent."""
        self._socket.close()
        self.lost = Lost(None, "it belongs to another process")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def _accept(self, reply: Reply) -> Answered | None:
        """`reply` when it answers the running request; `FrameError` when it does not."""
        if not self._pending:
            raise FrameError("nothing was asked")
        op, _ = self._pending[0]
        if op is None:
            if type(reply) is not Ready:
                raise FrameError(f"expected Ready, got {type(reply).__name__}")
            self.isolation = report(Layer(*layer) for layer in reply.layers)
        elif reply.id != op.id or type(reply) not in (ANSWERS[type(op)], Failed):
            raise FrameError(f"expected a reply to {type(op).__name__} {op.id}")
        elif type(reply) is Failed and reply.kind not in _WORKER_FAULTS:
            raise FrameError(f"unknown kind of failure {reply.kind!r}")
        elif type(reply) is Failed and reply.kind == FaultKind.MEMORY:
            self.lose(FaultKind.MEMORY, reply.detail)
            return None
        elif type(reply) is StepDone and not math.isfinite(reply.reward):
            raise FrameError(f"the reward is {reply.reward}")
        self._pending.popleft()
        now = time.monotonic()
        seconds, self._since = now - self._since, now
        return None if op is None else Answered(reply, seconds)

    def _lose_ended(self) -> None:
        starting = bool(self._pending) and self._pending[0][0] is None
        status = self.kill()
        if status is None:
            self.lost = Lost(None, _ZYGOTE_GONE)
        elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == MEMORY_EXIT:
            self.lost = Lost(FaultKind.MEMORY, "the memory quota is used up")
        else:
            self.lost = Lost(None if starting else FaultKind.CRASH, _how_it_ended(status))


def _how_it_ended(status: int) -> str:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        known = {item.value: item.name for item in signal.Signals}
        return f"the worker was ended by {known.get(number, f'signal {number}')}"
    return f"the worker ended with status {os.waitstatus_to_exitcode(status)}"
