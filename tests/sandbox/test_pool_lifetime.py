"""What a pool starts it ends: workers, zygotes, forks, threads."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from pool_sources import (
    LIMITS,
    WALK,
    eventually,
    observe,
    running,
    text,
    walk,
    worker_pid,
    zygote_pid,
)

from synthgym.sandbox import (
    Pool,
    ResetResult,
    Session,
    StepResult,
    default_pool,
)
from synthgym.spec import Limits


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as shared:
        yield shared


@pytest.fixture
def session(pool: Pool) -> Iterator[Session]:
    with pool.open(walk(), LIMITS) as opened:
        yield opened


def test_the_worker_ends_with_the_last_session_of_its_source(pool: Pool) -> None:
    one, two = (pool.open(walk(variant=77), LIMITS) for _ in range(2))
    pool.reset_many([(one, 0), (two, 1)])
    pid = worker_pid(one)
    one.close()
    assert running(pid)
    assert isinstance(two.step("go"), StepResult)
    two.close()
    assert not running(pid)


def test_no_process_is_left_when_the_pool_is_closed_or_forgotten() -> None:
    for forget in (False, True):
        pool = Pool()
        session = pool.open(walk(), LIMITS)
        session.reset(0)
        zygote, worker = zygote_pid(pool), worker_pid(session)
        pids = [zygote, worker]
        if not forget:
            pool.close()
        del pool, session
        gc.collect()
        assert not any(running(pid) for pid in pids)


PARENT = """
import os, sys, time
from synthgym.sandbox import Pool, default_pool
from synthgym.spec import EnvRecord
pool = default_pool()
session = pool.open(EnvRecord(source=sys.stdin.read(), entry="WalkEnv", max_turns=50))
session.reset(0)
if sys.argv[1] == "fork" and os.fork() == 0:
    time.sleep(30)  # holds a copy of nothing that matters
print(*pool.pids(), flush=True)
if sys.argv[1] == "loop":
    session.step("loop")
if sys.argv[1] != "end":
    time.sleep(30)
"""


@pytest.mark.parametrize("how", ["end", "kill", "loop", "fork"])
def test_no_process_is_left_when_the_parent_ends(how: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdin is not None
    assert parent.stdout is not None
    with parent.stdin, parent.stdout:
        parent.stdin.write(WALK)
        parent.stdin.close()
        pids = [int(item) for item in parent.stdout.readline().split()]
        if how != "end":
            assert all(running(pid) for pid in pids)
            parent.kill()
        parent.wait()
    assert len(pids) == 2
    assert eventually(lambda: not any(running(pid) for pid in pids))
    if how == "fork":
        os.killpg(parent.pid, signal.SIGKILL)


def test_a_dead_zygote_is_replaced_and_its_sessions_come_back(pool: Pool, session: Session) -> None:
    expected = observe(session, 3, ["a", "b"])
    found = observe(session, 3, ["a"])
    os.kill(zygote_pid(pool), signal.SIGKILL)
    assert [*found, text(session.step("b"))] == expected


def test_a_forked_child_has_workers_of_its_own_and_disturbs_nobody(session: Session) -> None:
    expected = observe(session, 3, ["a", "b"])
    found = observe(session, 3, ["a"])
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writer, text(session.step("b")).encode())
            default_pool().close()
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        assert answer.read() == expected[2]
    assert os.waitpid(pid, 0)[1] == 0
    assert [*found, text(session.step("b"))] == expected


def test_a_parent_and_its_fork_use_one_pool_at_the_same_time(pool: Pool) -> None:
    sessions = [pool.open(walk(variant=row % 2), LIMITS) for row in range(4)]
    turns = [f"{turn}" for turn in range(40)]
    expected = [observe(item, row, turns) for row, item in enumerate(sessions)]

    def play() -> bool:
        firsts = pool.reset_many([(item, row) for row, item in enumerate(sessions)])
        found = [[first.observation] for first in firsts if isinstance(first, ResetResult)]
        for turn in turns:
            results = pool.step_many([(item, turn) for item in sessions])
            for seen, result in zip(found, results, strict=True):
                seen.append(text(result))
        return found == expected

    pool.send(sessions[:2], ["a", "b"])  # a child does not wait for what its parent sent
    pid = os.fork()
    if not pid:
        status = 1
        try:
            status = 0 if play() and len(pool.recv()) == 0 else 2
            pool.close()
        finally:
            os._exit(status)
    received = 0
    while received < 2:
        received += len(pool.recv())
    assert play()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert play()
    for item in sessions:
        item.close()


def test_a_fork_in_a_thread_that_waits_leaves_a_pool_that_works(pool: Pool) -> None:
    """Another thread is in the loop, with the lock or without it, when the child is made."""
    busy = pool.open(walk(variant=70), Limits(step_seconds=20.0))
    mine = pool.open(walk(variant=70), Limits(step_seconds=20.0))
    expected = observe(mine, 1, ["a"])
    busy.reset(1)
    slow = threading.Thread(target=busy.step, args=("slow",))
    slow.start()
    pids = []
    for _ in range(5):
        pid = os.fork()
        if not pid:
            status = 1
            try:
                found = observe(mine, 1, ["a"])
                # The other thread is not here to get its answer.
                free = isinstance(busy.reset(1), ResetResult)
                status = 0 if found == expected and free else 2
                pool.close()
            finally:
                os._exit(status)
        pids.append(pid)
        time.sleep(0.03)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * 5
    slow.join()
    assert observe(mine, 1, ["a"]) == expected
    busy.close()
    mine.close()


def test_threads_share_a_worker_one_conversation_at_a_time(pool: Pool) -> None:
    sessions = [pool.open(walk(), LIMITS) for _ in range(6)]
    expected = [observe(item, seed, ["a"] * 20) for seed, item in enumerate(sessions)]
    found: list[list[str]] = [[] for _ in sessions]

    def play(seed: int) -> None:
        found[seed] = observe(sessions[seed], seed, ["a"] * 20)

    threads = [threading.Thread(target=play, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
    for item in sessions:
        item.close()


def test_more_threads_than_workers_wait_their_turn() -> None:
    with Pool(max_workers=1) as tiny:
        sessions = [tiny.open(walk(variant=number), LIMITS) for number in range(3)]
        found: list[list[str]] = [[] for _ in sessions]

        def play(number: int) -> None:
            found[number] = observe(sessions[number], 1, ["a"] * 3)

        threads = [threading.Thread(target=play, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found[0] == found[1] == found[2]
        assert len(found[0]) == 4


HASHES = """
import sys
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord
with Pool() as pool:
    session = pool.open(EnvRecord(source=sys.stdin.read(), entry="WalkEnv", max_turns=50))
    print(session.reset(1), session.step("a"), session.hint(1))
"""


def test_the_hash_seed_of_the_parent_changes_nothing() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", HASHES],
            input=WALK,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert "{'" in outputs.pop()


def test_the_default_pool_is_one_a_process_and_made_again_when_closed() -> None:
    first = default_pool()
    assert default_pool() is first
    first.close()
    assert default_pool() is not first
    default_pool().close()
