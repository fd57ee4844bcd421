"""The parent's side of a worker's channel, against a worker that says whatever it likes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from liars import READY, Puppet, Script
from talk import RESET, SLACK, STEP, Begin, bytes_of, conversations, says

from synthgym.sandbox.process import CONTROL_SECONDS
from synthgym.sandbox.protocol import (
    MAX_FRAME,
    MEMORY_EXIT,
    Compiled,
    Done,
    Failed,
    HintDone,
    LoadDone,
    Ready,
    Replayed,
    Reply,
    Rows,
    Steps,
    encode,
    frame,
)
from synthgym.sandbox.results import FaultKind


@pytest.fixture
def talk() -> Iterator[Begin]:
    yield from conversations()


def test_replies_in_order_are_accepted(talk: Begin) -> None:
    one = talk(says(RESET, STEP))
    assert one.ask() is None
    assert one.replies == [RESET, STEP]


def test_the_rows_of_a_batch_may_come_in_many_replies(talk: Begin) -> None:
    parts = [
        Rows(1, ["one"], [0.0], b"\0", {}, {}),
        Rows(1, ["two"], [0.0], b"\0", {0: "{}"}, {}),
        Rows(2, ["next"], [0.5], b"\0", {}, {0: ("error", "")}),
        Rows(2, ["last"], [1.0], b"\1", {}, {}),
    ]
    one = talk(says(*parts))
    assert one.ask() is None
    assert one.replies == parts


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_replies_are_accepted_however_they_are_cut(talk: Begin, size: int) -> None:
    stream = bytes_of(RESET, STEP)

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        for start in range(0, len(stream), size):
            puppet.say(stream[start : start + size])
            time.sleep(0.0005)
        puppet.killed.wait(30)

    one = talk(script, seconds=5.0)
    assert one.ask() is None
    assert one.replies == [RESET, STEP]


def rows(
    number: int = 1,
    observations: object = ("x", "y"),
    rewards: object = (0.0, 0.0),
    flags: bytes = b"\0\0",
    infos: object = None,
    failures: object = None,
) -> bytes:
    """A frame of rows, of whatever is given."""
    return frame(encode([4, number, observations, rewards, flags, infos or {}, failures or {}]))


NAN, INFINITY = float("nan"), float("inf")
FORGED: dict[str, bytes] = {
    "header far above the cap": (1 << 31).to_bytes(4, "big"),
    "header above the cap": (MAX_FRAME + 1).to_bytes(4, "big") + b"x" * 70_000,
    "empty frame": (0).to_bytes(4, "big"),
    "no such byte": frame(b"\xc1"),
    "deep": frame(b"\x91" * 100_000),
    "pickle": frame(b"\x80\x04\x95"),
    "wrong order": bytes_of(STEP),
    "wrong id": rows(7),
    "negative id": rows(-1),
    "huge id": rows((1 << 64) - 1),
    "ready twice": bytes_of(Ready(0, [])),
    "ready with the id": bytes_of(Ready(1, [])),
    "done for a batch": bytes_of(Done(1)),
    "load done for a batch": bytes_of(LoadDone(1, "A", 5, "", False, False)),
    "hint for a batch": bytes_of(HintDone(1, "x")),
    "compiled for a batch": bytes_of(Compiled(1, b"", [], "", [])),
    "replayed for a batch": bytes_of(Replayed(1, "x", 0.0)),
    "failed for a batch": bytes_of(Failed(1, "error", "")),
    "memory failure of a batch": bytes_of(Failed(1, "memory", "")),
    "a kind that is the parent's": bytes_of(Failed(1, "timeout", "")),
    "unknown kind": bytes_of(Failed(1, "nonsense", "")),
    "no rows": rows(1, [], [], b""),
    "more rows than asked": rows(1, ["x"] * 3, [0.0] * 3, b"\0\0\0"),
    "far more rows": rows(1, [""] * 90_000, [0.0] * 90_000, bytes(90_000)),
    "short rewards": rows(1, rewards=[0.0]),
    "long rewards": rows(1, rewards=[0.0] * 3),
    "short flags": rows(1, flags=b"\0"),
    "no flags": rows(1, flags=b""),
    "unknown flags": rows(1, flags=b"\0\4"),
    "nan reward": rows(1, rewards=[0.0, NAN]),
    "infinite reward": rows(1, rewards=[INFINITY, 0.0]),
    "rewards that cancel out": rows(1, rewards=[INFINITY, -INFINITY]),
    "info of no row": rows(1, infos={2: "{}"}),
    "info of a negative row": rows(1, infos={-1: "{}"}),
    "failure of no row": rows(1, failures={2: ("error", "")}),
    "failure of a negative row": rows(1, failures={-1: ("error", "")}),
    "failure of a huge row": rows(1, failures={(1 << 64) - 1: ("error", "")}),
    "failure of unknown kind": rows(1, failures={0: ("nonsense", "")}),
    "failure of the parent's kind": rows(1, failures={0: ("lost", "")}),
    "one row too many in two": rows(1, ["x"], [0.0], b"\0") + rows(1),
    "the same rows again": bytes_of(RESET, RESET),
    "one answer too many": bytes_of(RESET, STEP, STEP),
    "nan after a good answer": bytes_of(RESET) + rows(2, rewards=[NAN, 0.0]),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_reply_is_a_protocol_fault(talk: Begin, name: str) -> None:
    one = talk(says(FORGED[name]))
    lost = one.ask()
    if name == "one answer too many" and lost is None:
        one.until(lambda: False)
        lost = one.link.lost
    assert lost is not None
    assert lost.kind is FaultKind.PROTOCOL
    assert len(lost.detail) <= 500


def test_what_is_said_while_nothing_was_asked_is_a_protocol_fault(talk: Begin) -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY, RESET)
        puppet.killed.wait(30)

    lost = talk(script).ask()
    assert lost is not None
    assert (lost.kind, lost.request) == (FaultKind.PROTOCOL, None)


def test_an_answer_before_it_is_ready_is_a_protocol_fault(talk: Begin) -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(RESET)
        puppet.killed.wait(30)

    lost = talk(script).ask()
    assert lost is not None
    assert lost.kind is FaultKind.PROTOCOL


@pytest.mark.parametrize("cut", [1, 5, -1])
def test_a_reply_that_never_ends_is_a_timeout(talk: Begin, cut: int) -> None:
    began = time.monotonic()
    one = talk(says(bytes_of(RESET)[:cut]), seconds=0.05)
    lost = one.ask()
    assert lost is not None
    assert (lost.kind, one.replies) == (FaultKind.TIMEOUT, [])
    assert time.monotonic() - began < 2


def test_a_reply_that_comes_a_byte_at_a_time_does_not_put_the_deadline_off(talk: Begin) -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        puppet.say(MAX_FRAME.to_bytes(4, "big"))
        while not puppet.killed.wait(0.001):
            puppet.say(b"x")

    began = time.monotonic()
    lost = talk(script, seconds=0.1).ask()
    assert lost is not None
    assert lost.kind is FaultKind.TIMEOUT
    assert time.monotonic() - began < 0.1 + SLACK


# --- how it ended ---


def ends(*replies: Reply | bytes, asked: bool = True) -> Script:
    def script(puppet: Puppet) -> None:
        puppet.say(*replies)
        if asked:
            next(puppet.ops())
        puppet.end()

    return script


@pytest.mark.parametrize(
    ("script", "status", "kind"),
    [
        (ends(READY), 11, FaultKind.CRASH),
        (ends(READY), MEMORY_EXIT << 8, FaultKind.MEMORY),
        (ends(READY), 0, FaultKind.CRASH),
        (ends(READY), 9, FaultKind.LOST),
        (ends(READY, asked=False), 11, FaultKind.CRASH),
        (ends(asked=False), 9, FaultKind.LOST),
        (ends(asked=False), 1 << 8, FaultKind.LOST),
        (says(rows(1, ["x"], [0.0], b"\0", None, {0: ("memory", "")})), 0, FaultKind.MEMORY),
    ],
    ids=[
        "signal", "memory exit", "exit", "killed", "signal while idle", "not started",
        "exit before it started", "memory reply",
    ],
)  # fmt: skip
def test_the_end_of_a_worker_is_told_by_how_it_ended(
    talk: Begin, script: Script, status: int, kind: FaultKind
) -> None:
    one = talk(script, status=status, seconds=CONTROL_SECONDS)
    lost = one.ask()
    assert lost is not None
    assert lost.kind is kind


def test_an_answer_before_the_end_is_taken(talk: Begin) -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        puppet.say(RESET)
        puppet.end()

    one = talk(script, status=11)
    lost = one.ask()
    assert lost is not None
    assert one.replies == [RESET]
    assert (lost.kind, lost.row) == (FaultKind.CRASH, 0)
    assert lost.request is not None
    assert isinstance(lost.request.op, Steps)
