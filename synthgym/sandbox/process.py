"""The parent's side of the zygote: workers are forked, killed and reaped through it.

What goes wrong with the processes themselves, a zygote that does not start or is gone, is
`SandboxError`.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import weakref
from types import TracebackType
from typing import Final, Self

from synthgym.errors import SandboxError
from synthgym.sandbox.bootstrap import ENVIRONMENT, zygote_command
from synthgym.sandbox.progress import ProgressBoard
from synthgym.sandbox.protocol import (
    RECV_BYTES,
    Answer,
    Control,
    FrameDecoder,
    Kill,
    Spawn,
    decode_answer,
    encode,
    frame,
)

START_SECONDS: Final = 30.0
"""For the zygote to import its modules, or a worker to lock itself down, on a machine that is busy."""
CONTROL_SECONDS: Final = 10.0
"""For the zygote to fork, or to kill and reap."""


class Zygote:
    """The process that forks workers. Thread-safe.

    It ends with `close()`, when this object is collected, or when the owner's process ends.
    """

    def __init__(self, hash_seed: int = 0) -> None:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self._process = _start_zygote(theirs, hash_seed)
        except SandboxError:
            ours.close()
            raise
        self._socket = ours
        self.board = ProgressBoard()
        self._lock = threading.Lock()
        self._in_step = True
        """Whether the next answer will be that of the next request."""
        self._finalizer = weakref.finalize(self, _end_zygote, self._process, ours, self.board)
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

    def spawn(self, channel: socket.socket, memory_mb: int, slot: int) -> int:
        """Fork a worker that talks on `channel`, of which the caller closes its copy; its pid.

        `slot` is the worker's counter on `board`.
        """
        return self._ask(Spawn(memory_mb, slot), [channel.fileno(), self.board.fileno()])

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
        self.board.close()
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


def _start_zygote(channel: socket.socket, hash_seed: int) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            zygote_command(channel.fileno()),
            env=ENVIRONMENT | {"PYTHONHASHSEED": str(hash_seed)},
            cwd="/",
            pass_fds=[channel.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C in a terminal goes to the parent alone
        )
    except OSError as error:
        raise SandboxError(f"the sandbox cannot start {sys.executable}: {error}") from error


def _end_zygote(
    process: subprocess.Popen[bytes], control: socket.socket, board: ProgressBoard
) -> None:
    board.close()
    control.close()  # the zygote sees the end, kills its workers and exits
    try:
        process.wait(CONTROL_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # its workers die with it
        process.wait()
    if process.stderr is not None:
        process.stderr.close()
