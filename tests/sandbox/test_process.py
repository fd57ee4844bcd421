"""The parent's side of a worker channel, against a worker that says whatever it likes."""

from __future__ import annotations

import shutil
import socket
import sys
import time
from typing import cast

import pytest

from synthgym.errors import SandboxError
from synthgym.sandbox.conversation import Talk, converse
from synthgym.sandbox.process import Lost, Request, Worker, Zygote
from synthgym.sandbox.protocol import (
    MAX_FRAME,
    MEMORY_EXIT,
    DropDone,
    Failed,
    Ready,
    Reset,
    ResetDone,
    Step,
    StepDone,
    encode,
    frame,
)
from synthgym.sandbox.results import FaultKind

READY = frame(encode(Ready(0, [("memory", True, "")])))


class Liar:
    """Stands in for the zygote: its workers send the bytes given and then fall silent or end."""

    def __init__(self, says: bytes, *, ends: bool = False, status: int = 0) -> None:
        self._says = says
        self._ends = ends
        self._status = status
        self._channel: socket.socket | None = None

    def spawn(self, channel: socket.socket, memory_mb: int) -> int:
        self._channel = channel.dup()
        self._channel.sendall(self._says)
        if self._ends:
            self._channel.shutdown(socket.SHUT_RDWR)
        return 4321

    def kill(self, pid: int) -> int:
        assert pid == 4321
        assert self._channel is not None
        self._channel.close()
        return self._status


def asked(liar: Liar, seconds: float = 0.2) -> tuple[Lost | None, list[object]]:
    """What comes of asking such a worker for a reset and a step."""
    with Worker(cast(Zygote, liar), 64) as worker:
        ops = [Reset(worker.next_id(), 1, 0), Step(worker.next_id(), 1, "go")]
        talk = Talk(worker, [Request(op, seconds) for op in ops])
        converse([talk])
        return worker.lost, [answer.reply for answer in talk.answers]


RESET = ResetDone(1, "start", "")
STEP = StepDone(2, "next", 0.5, False, False, "")


def test_replies_in_order_are_accepted() -> None:
    says = READY + frame(encode(RESET)) + frame(encode(STEP))
    lost, replies = asked(Liar(says))
    assert lost is None
    assert replies == [RESET, STEP]


@pytest.mark.parametrize(
    "says",
    [
        (1 << 31).to_bytes(4, "big"),
        (MAX_FRAME + 1).to_bytes(4, "big") + b"x" * 70_000,
        (0).to_bytes(4, "big"),
        frame(b"\xc1"),
        frame(b"\x91" * 100_000),
        frame(b"\x80\x04\x95"),
        frame(encode(STEP)),
        frame(encode(ResetDone(7, "start", ""))),
        frame(encode(Ready(1, []))),
        frame(encode(DropDone(1))),
        frame(encode(Failed(1, "timeout", ""))),
        frame(encode(Failed(1, "nonsense", ""))),
        frame(encode(RESET)) + frame(encode(StepDone(2, "x", float("nan"), False, False, ""))),
        frame(encode(RESET)) + frame(encode(STEP)) + frame(encode(STEP)),
    ],
)
def test_a_forged_reply_is_a_protocol_fault(says: bytes) -> None:
    lost, _ = asked(Liar(READY + says))
    assert lost is not None
    assert lost.kind is FaultKind.PROTOCOL


@pytest.mark.parametrize("cut", [1, 5, -1])
def test_a_reply_that_never_ends_is_a_timeout(cut: int) -> None:
    began = time.monotonic()
    lost, replies = asked(Liar(READY + frame(encode(RESET))[:cut]), seconds=0.05)
    assert lost is not None
    assert (lost.kind, replies) == (FaultKind.TIMEOUT, [])
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("says", "status", "kind"),
    [
        (READY, 11, FaultKind.CRASH),
        (READY, MEMORY_EXIT << 8, FaultKind.MEMORY),
        (READY, 0, FaultKind.CRASH),
        (READY + frame(encode(Failed(1, "memory", ""))), 0, FaultKind.MEMORY),
        (b"", 9, None),
    ],
    ids=["signal", "memory exit", "exit", "memory reply", "not started"],
)
def test_the_end_of_a_worker_is_told_by_how_it_ended(
    says: bytes, status: int, kind: FaultKind | None
) -> None:
    lost, replies = asked(Liar(says, ends=True, status=status))
    assert lost is not None
    assert (lost.kind, replies) == (kind, [])


def test_a_zygote_that_does_not_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(SandboxError, match="/no/such/python"):
        Zygote()
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(SandboxError, match="did not start"):
        Zygote()
