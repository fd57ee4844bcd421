"""How far a worker has got: the counters themselves, and what a counter that lies comes to."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable, Iterator

import pytest
from liars import READY, Puppet, Script
from talk import LOOK, RESET, SLACK, STEP, Begin, conversations

from synthgym.errors import SandboxError
from synthgym.sandbox import progress
from synthgym.sandbox.progress import ProgressBoard
from synthgym.sandbox.protocol import Rows, Steps
from synthgym.sandbox.results import FaultKind


@pytest.fixture
def talk() -> Iterator[Begin]:
    yield from conversations()


def page(board: ProgressBoard, slot: int) -> mmap.mmap:
    """What a worker maps."""
    return mmap.mmap(board.fileno(), mmap.PAGESIZE, offset=slot * mmap.PAGESIZE)


def test_what_a_worker_writes_into_its_page_is_read_and_no_other_counter_changes() -> None:
    board = ProgressBoard()
    one, two = board.take(), board.take()
    with page(board, one) as memory, memoryview(memory).cast("Q") as counters:
        counters[0] = 7
        assert (board.read(one), board.read(two)) == (7, 0)
        for index in range(len(counters)):
            counters[index] = (1 << 64) - 1
        assert (board.read(one), board.read(two)) == ((1 << 64) - 1, 0)
    board.close()


def test_a_slot_that_was_given_back_counts_from_0_again() -> None:
    board = ProgressBoard()
    slot = board.take()
    with page(board, slot) as memory, memoryview(memory).cast("Q") as counters:
        counters[0] = 7
    board.give_back(slot)
    assert board.take() == slot
    assert board.read(slot) == 0
    board.close()


def test_there_are_as_many_slots_as_there_are_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_SLOTS", 3)
    board = ProgressBoard()
    slots = [board.take() for _ in range(3)]
    assert len(set(slots)) == 3
    with pytest.raises(SandboxError, match="at most 3 workers"):
        board.take()
    board.give_back(slots[1])
    assert board.take() == slots[1]
    board.close()


def test_a_board_is_closed_twice_without_harm_and_its_descriptor_is_not_inherited() -> None:
    board = ProgressBoard()
    descriptor = board.fileno()
    assert not os.get_inheritable(descriptor)
    board.close()
    board.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    # A worker of a zygote that has died may still be asked about.
    assert board.read(3) == 0


# --- the progress counter ---


def counting(values: Iterator[int] | list[int]) -> Script:
    """A worker that never answers, and sets its counter to one value after the other."""

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        for value in values:
            if puppet.killed.wait(0.01):
                return
            puppet.count(value)
        puppet.killed.wait(30)

    return script


def for_ever(start: int, step: int) -> Iterator[int]:
    value = start
    while True:
        yield value % (1 << 64)
        value += step


@pytest.mark.parametrize(
    "values",
    [
        lambda: [0],
        lambda: [(1 << 64) - 1],
        lambda: [1 << 63, 0],
        lambda: for_ever(0, 1),
        lambda: for_ever((1 << 64) - 1, -1),
        lambda: for_ever(0, 1 << 61),
        lambda: (number % 3 for number in for_ever(0, 1)),
    ],
    ids=["none", "all", "back", "up", "down", "leaps", "to and fro"],
)
def test_no_counter_puts_a_deadline_off_for_longer_than_the_rows(
    talk: Begin, values: Callable[[], Iterator[int]]
) -> None:
    began = time.monotonic()
    limit, count = 0.15, 4
    lost = talk(counting(values()), seconds=limit).ask()
    took = time.monotonic() - began
    assert lost is not None
    assert lost.kind is FaultKind.TIMEOUT
    assert lost.request is not None
    assert 0 <= lost.row < 2
    assert took < count * (limit + 2 * LOOK) + SLACK
    assert took > limit


def test_a_counter_that_goes_on_after_answers_puts_nothing_off(talk: Begin) -> None:
    """Each answered row makes the clock start again; what was counted once is not counted twice."""

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        for row in range(2):
            puppet.say(Rows(1, ["x"], [0.0], b"\0", {}, {}))
            for value in [1, 2, 3, 4] * 3 if row else [4]:
                if puppet.killed.wait(0.13):
                    return
                puppet.count(value)
        puppet.killed.wait(30)

    began = time.monotonic()
    lost = talk(script, seconds=0.15).ask()
    assert lost is not None
    assert lost.kind is FaultKind.TIMEOUT
    assert time.monotonic() - began < 4 * 0.2 + SLACK


def test_each_row_has_its_own_seconds_and_the_one_that_is_late_is_named(talk: Begin) -> None:
    limit = 0.3

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        for row in range(1, 5):
            puppet.count(row)
            if puppet.killed.wait(30 if row == 4 else 0.7 * limit):
                return

    began = time.monotonic()
    one = talk(script, seconds=limit)
    lost = one.ask()
    took = time.monotonic() - began
    assert lost is not None
    assert (lost.kind, lost.row) == (FaultKind.TIMEOUT, 1)
    assert lost.request is not None
    assert isinstance(lost.request.op, Steps)
    assert 3 * 0.7 * limit + limit <= took < 4 * limit + SLACK


def test_the_seconds_of_a_slow_row_are_told_by_row(talk: Begin) -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        next(puppet.ops())
        puppet.count(1)
        puppet.say(RESET)
        puppet.count(4)
        time.sleep(0.3)
        puppet.say(STEP)
        puppet.killed.wait(30)

    one = talk(script, seconds=2.0)
    assert one.ask() is None
    assert one.seconds[1] >= 0.3
    assert list(one.slow[1]) == [1]
    assert 0.2 <= one.slow[1][1] <= one.seconds[1]
