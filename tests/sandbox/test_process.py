"""The parent's side of the zygote: a real one, and what stands in for one that does not answer."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pool_sources import eventually, running

from synthgym.errors import SandboxError
from synthgym.sandbox import process
from synthgym.sandbox.process import Zygote
from synthgym.sandbox.protocol import (
    MAX_FRAME,
    Answer,
    FrameDecoder,
    Ready,
    decode_reply,
    encode,
    frame,
)

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    with Zygote() as started:
        yield started


def spawned(zygote: Zygote, memory_mb: int = 64) -> tuple[int, socket.socket]:
    """The pid of a worker and our end of its channel."""
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            return zygote.spawn(theirs, memory_mb, zygote.board.take()), ours
        except BaseException:
            ours.close()
            raise


def test_a_worker_is_forked_by_the_zygote_and_says_that_it_is_ready(zygote: Zygote) -> None:
    pid, channel = spawned(zygote)
    with channel:
        channel.settimeout(20)
        decoder = FrameDecoder()
        bodies: list[bytes] = []
        while not bodies:
            bodies = decoder.feed(channel.recv(1 << 16))
        ready = decode_reply(bodies[0])
        assert isinstance(ready, Ready)
        assert ready.layers
        parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        assert int(parent) == zygote.pid
        assert os.WTERMSIG(zygote.kill(pid)) == signal.SIGKILL
        assert not running(pid)


def test_a_worker_is_killed_once_and_nobody_else_by_its_pid(zygote: Zygote) -> None:
    pid, channel = spawned(zygote)
    with channel:
        zygote.kill(pid)
        assert zygote.kill(pid) == 0
        assert zygote.kill(os.getpid()) == 0
        assert zygote.kill(zygote.pid) == 0
    assert zygote.alive


def test_the_status_of_a_worker_that_had_ended_is_that_of_its_end(zygote: Zygote) -> None:
    pid, channel = spawned(zygote)
    with channel:
        os.kill(pid, signal.SIGSEGV)
        assert eventually(lambda: not running(pid))
        assert os.WTERMSIG(zygote.kill(pid)) == signal.SIGSEGV


def test_a_worker_whose_channel_is_closed_ends_itself(zygote: Zygote) -> None:
    pid, channel = spawned(zygote)
    channel.close()
    assert eventually(lambda: not running(pid))
    zygote.kill(pid)


def test_workers_end_with_their_zygote(zygote: Zygote) -> None:
    pids, channels = zip(*(spawned(zygote) for _ in range(3)), strict=True)
    os.kill(zygote.pid, signal.SIGKILL)
    assert eventually(lambda: not any(running(pid) for pid in (*pids, zygote.pid)))
    assert not zygote.alive
    with pytest.raises(SandboxError):
        zygote.kill(pids[0])
    with pytest.raises(SandboxError):
        spawned(zygote)
    for channel in channels:
        channel.close()


def test_closing_ends_the_zygote_and_its_workers_and_twice_is_fine() -> None:
    zygote = Zygote()
    pid, channel = spawned(zygote)
    with channel:
        zygote.close()
        zygote.close()
        assert eventually(lambda: not running(pid))
        assert not running(zygote.pid)
        assert not zygote.alive
        with pytest.raises(SandboxError, match="cannot be used any more"):
            zygote.kill(pid)


def test_a_zygote_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(SandboxError, match="/no/such/python"):
        Zygote()
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(SandboxError, match="did not start"):
        Zygote()


def test_a_zygote_that_cannot_import_shows_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ENVIRONMENT", {"PYTHONHASHSEED": "none"})
    command = [sys.executable, "-S", "-c", "raise ImportError('no such module')"]
    monkeypatch.setattr(process, "zygote_command", lambda *_, **__: command)
    with pytest.raises(SandboxError, match="did not start"):
        Zygote()


# --- answers that are none ---


class Stub:
    """A program in the place of the zygote: it answers every request with the bytes given."""

    SOURCE = """
import socket, sys, time
control = socket.socket(fileno=int(sys.argv[1]))
control.sendall(bytes.fromhex(sys.argv[2]))
while control.recv(65536):
    control.sendall(bytes.fromhex(sys.argv[3]))
"""


@pytest.mark.parametrize(
    "answer",
    [
        b"\xff\xff\xff\xff",
        (MAX_FRAME + 1).to_bytes(4, "big"),
        frame(b"\xc1"),
        frame(encode(["no pid", ""])),
        frame(encode(Answer(0, "fork: no memory"))),
        frame(encode(Answer(7)))[:-1],
    ],
    ids=["header", "too long", "garbage", "another type", "an error", "half"],
)
def test_an_answer_of_the_zygote_that_is_none_is_a_failure_of_the_sandbox(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    hello = frame(encode(Answer(os.getpid())))

    def command(control: int, *_: object, **__: object) -> list[str]:
        return [sys.executable, "-c", Stub.SOURCE, str(control), hello.hex(), answer.hex()]

    monkeypatch.setattr(process, "zygote_command", command)
    monkeypatch.setattr(process, "CONTROL_SECONDS", 1.0)
    with Zygote() as zygote:
        began = time.monotonic()
        with pytest.raises(SandboxError):
            zygote.kill(1)
        assert time.monotonic() - began < 5
        if answer == frame(encode(Answer(0, "fork: no memory"))):
            assert zygote.alive
        else:
            # Its next answer might be that of the request before.
            assert not zygote.alive
            with pytest.raises(SandboxError, match="cannot be used any more"):
                zygote.kill(1)
