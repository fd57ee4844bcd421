"""What a pool holds does not grow: processes, descriptors, memory, places on the progress board."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Iterator

import pytest
from pool_sources import (
    LIMITS,
    children_of,
    eventually,
    game,
    kill_worker,
    kinds,
    observe,
    plain,
    running,
    text,
    walk,
    worker_pid,
    zygote_pid,
)

from synthgym.sandbox import FaultKind, Pool
from synthgym.sandbox.oversight import resident_bytes
from synthgym.spec import Limits

pytestmark = pytest.mark.timeout(120)
MB = 1 << 20


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as made:
        yield made


def descriptors(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208  # only their number


def resident(pid: int) -> int:
    found = resident_bytes(pid)
    assert found is not None
    return found


def free_slots(pool: Pool) -> int:
    zygote = pool._engine._hosts._zygote
    assert zygote is not None
    return len(zygote.board._free)


def holds_nothing(pool: Pool) -> bool:
    """Whether the pool keeps no trace of what is closed."""
    engine = pool._engine
    return not (pool._sources or pool._sent or engine._open or engine._hosts.waiting)


def test_a_thousand_episodes_leave_everything_as_it_was(pool: Pool) -> None:
    kept = [pool.open(game(variant=row), LIMITS) for row in range(3)]

    def play(episodes: int) -> None:
        for number in range(episodes):
            seed = number % 9
            with pool.open(game(variant=number % 3), LIMITS) as fresh:
                first, _ = pool.reset_many([(fresh, seed), (kept[number % 3], seed)])
                assert kinds(first) == [None]
                for action in ("info", "fail"):
                    pool.step_many([(fresh, action), (kept[number % 3], action)])

    play(150)
    gc.collect()
    workers = [worker_pid(session) for session in kept]
    pids = [os.getpid(), zygote_pid(pool), *workers]
    before = [(descriptors(pid), resident(pid)) for pid in pids]
    play(1000)
    gc.collect()
    after = [(descriptors(pid), resident(pid)) for pid in pids]
    assert [worker_pid(session) for session in kept] == workers
    assert sorted(children_of(pool)) == sorted(workers)
    assert [count for count, _ in after] == [count for count, _ in before]
    growth = [new - old for (_, old), (_, new) in zip(before, after, strict=True)]
    assert max(growth) < 2 * MB, growth
    for session in kept:
        session.close()
    assert holds_nothing(pool)


def test_two_hundred_sources_leave_no_worker_no_descriptor_and_no_slot(pool: Pool) -> None:
    def play(first: int, count: int) -> None:
        for variant in range(first, first + count):
            with pool.open(walk(variant=variant), LIMITS) as session:
                assert observe(session, 1, ["a"])

    play(0, 20)
    gc.collect()
    zygote = zygote_pid(pool)
    before = descriptors(), descriptors(zygote), free_slots(pool)
    memory = resident(os.getpid()), resident(zygote)
    play(20, 200)
    gc.collect()
    assert (descriptors(), descriptors(zygote), free_slots(pool)) == before
    assert children_of(pool) == []
    assert holds_nothing(pool)
    assert resident(zygote) - memory[1] < 2 * MB
    # The parent keeps the checked code of each, a few kilobytes.
    assert resident(os.getpid()) - memory[0] < 8 * MB


def test_sources_that_are_open_together_and_closed_leave_nothing(pool: Pool) -> None:
    with pool.open(walk(), LIMITS) as first:
        first.reset(1)
        before = descriptors(), free_slots(pool)
        for _ in range(4):
            sessions = [pool.open(walk(variant=row + 1), LIMITS) for row in range(12)]
            pool.reset_many([(session, row) for row, session in enumerate(sessions)])
            assert len(children_of(pool)) <= 4
            for session in sessions:
                session.close()
        first.reset(1)
        assert (descriptors(), free_slots(pool)) == before
        assert children_of(pool) == [worker_pid(first)]


@pytest.mark.parametrize("how", ["killed", "late", "out of memory", "refused", "broken load"])
def test_workers_that_end_in_any_way_leave_nothing(pool: Pool, how: str) -> None:
    limits = Limits(step_seconds=0.05, load_seconds=2.0, memory_mb=64)
    records = {
        "refused": plain(module="import os"),
        "broken load": plain(module="raise ValueError"),
    }

    def once(number: int) -> None:
        with pool.open(records.get(how, walk(variant=number)), limits) as session:
            session.reset(1)
            if how == "killed":
                kill_worker(session)
                assert text(session.step("a"))
            elif how == "late":
                assert kinds(session.step("loop")) == [FaultKind.TIMEOUT]
            elif how == "out of memory":
                assert set(kinds(session.step("bomb"))) <= {FaultKind.MEMORY, FaultKind.TIMEOUT}

    once(0)
    gc.collect()
    zygote = zygote_pid(pool)
    before = descriptors(), descriptors(zygote), free_slots(pool)
    for number in range(5):
        once(number)
    gc.collect()
    assert (descriptors(), descriptors(zygote), free_slots(pool)) == before
    assert children_of(pool) == []
    assert holds_nothing(pool)


def test_an_instance_of_a_closed_session_is_dropped_by_its_worker(pool: Pool) -> None:
    """Each holds 4 MB, and the worker may have 64."""
    heavy = plain(reset="self.held = bytearray(4 * 1024 * 1024)")
    with pool.open(heavy, Limits(memory_mb=64)) as kept:
        kept.reset(0)
        pid = worker_pid(kept)
        for seed in range(60):
            with pool.open(heavy, Limits(memory_mb=64)) as session:
                assert kinds(session.reset(seed)) == [None]
        assert worker_pid(kept) == pid
        assert kept.source.strikes == 0


def test_a_pool_that_is_closed_or_forgotten_gives_its_descriptors_back() -> None:
    def once(forget: bool) -> None:
        pool = Pool()
        session = pool.open(walk(), LIMITS)
        session.reset(1)
        if not forget:
            pool.close()

    once(forget=False)
    gc.collect()
    before = descriptors()
    for round_ in range(4):
        once(forget=round_ % 2 == 0)
        gc.collect()
    assert eventually(lambda: descriptors() == before)


def test_hints_and_solutions_that_are_remembered_are_bounded(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthgym.sandbox.session.MAX_TEXTS", 5)
    with pool.open(walk(), LIMITS) as session:
        for seed in range(12):
            assert kinds(session.hint(seed)) == [None]
            assert len(session.source.texts) <= 5
        assert session.hint(11) == session.hint(11)


@pytest.mark.parametrize("why", ["age", "size"])
def test_a_worn_worker_is_replaced_between_two_calls_and_its_episodes_go_on(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    with Pool(max_workers=2) as pool, pool.open(walk(), LIMITS) as session:
        expected = observe(session, 3, ["a"] * 8)
        first = worker_pid(session)
        monkeypatch.setattr("synthgym.sandbox.engine._WEIGH_SECONDS", 0.0)
        monkeypatch.setattr("synthgym.sandbox.engine.LOOK_SECONDS", 0.0)
        monkeypatch.setattr("synthgym.sandbox.oversight._WARM_ROWS", 0)
        if why == "age":
            monkeypatch.setattr("synthgym.sandbox.oversight._RECYCLE_AFTER", 0)
        else:
            monkeypatch.setattr("synthgym.sandbox.oversight._RECYCLE_MEMORY", 0.0)
        time.sleep(0.2)  # until workers are looked at again
        assert observe(session, 3, ["a"] * 8) == expected
        monkeypatch.undo()
        session.step("a")
        assert worker_pid(session) != first
        assert not running(first)
