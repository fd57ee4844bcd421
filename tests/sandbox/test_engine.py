"""What many threads, sources and workers do to each other in one pool: nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from liars import READY, Liar, Puppet, honest, lying_pool
from pool_sources import (
    LIMITS,
    children_of,
    eventually,
    game,
    in_threads,
    kinds,
    observe,
    plain,
    running,
    text,
    told,
    walk,
    worker_pid,
    zygote_pid,
)

from synthgym.errors import SandboxError
from synthgym.sandbox import EnvFault, FaultKind, Pool, Session
from synthgym.sandbox.protocol import Steps
from synthgym.spec import Limits

pytestmark = pytest.mark.timeout(60)
PATIENT = Limits(step_seconds=20.0, reset_seconds=20.0, memory_mb=64)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=8) as shared:
        yield shared


def episode(session: Session, seed: int) -> Callable[[], list[str]]:
    return lambda: observe(session, seed, ["a", "b", "c"] * 4)


# --- threads ---


@pytest.mark.parametrize("workers", [3, 1])
@pytest.mark.parametrize("variants", [[0] * 8, list(range(8)), [0, 0, 0, 1, 1, 2, 3, 3]])
def test_eight_threads_play_what_they_would_play_alone(workers: int, variants: list[int]) -> None:
    with Pool(max_workers=workers) as pool:
        sessions = [pool.open(walk(variant=variant), PATIENT) for variant in variants]
        expected = [episode(sessions[0], seed)() for seed in range(8)]
        found = in_threads(*(episode(item, seed) for seed, item in enumerate(sessions)))
        assert found == expected
        assert len(children_of(pool)) <= workers


def test_an_interrupted_thread_leaves_the_others_alone(pool: Pool) -> None:
    """Control-C reaches the main thread, whether it leads the loop or follows."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    sessions = [pool.open(walk(variant=row % 3), PATIENT) for row in range(8)]
    expected = [episode(item, seed)() for seed, item in enumerate(sessions)]
    mine = sessions[0]
    mine.reset(0)
    found: list[object] = []
    others = threading.Thread(
        target=lambda: found.extend(
            in_threads(*(episode(sessions[row], row) for row in range(1, 8)))
        )
    )
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        others.start()
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            mine.step("loop")
    finally:
        signal.signal(signal.SIGALRM, before)
    others.join(50)
    assert found == expected[1:]
    assert episode(mine, 0)() == expected[0]
    for item in sessions:
        item.close()


def test_a_failure_of_the_sandbox_reaches_every_thread_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that leads the loop finds it out, and nobody is left waiting."""
    started = threading.Event()

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            if isinstance(op, Steps) and puppet.number < 3:
                started.wait(20)
                puppet.end()
                return
            puppet.say(honest(op))

    with lying_pool(Liar(script)) as pool:
        sessions = [pool.open(walk(variant=row % 3), LIMITS) for row in range(8)]
        pool.reset_many([(item, 1) for item in sessions])

        def broken(memory_mb: int) -> None:
            raise SandboxError("no worker can be started")

        monkeypatch.setattr(pool._engine._hosts, "start", broken)
        threading.Timer(0.2, started.set).start()
        found = in_threads(*(lambda item=item: item.step("go") for item in sessions))
        assert all(isinstance(item, SandboxError | EnvFault) for item in found), found
        assert any(isinstance(item, SandboxError) for item in found)
        assert not pool._engine._open
        # Nothing is left under way, and nobody is kept from going on.
        monkeypatch.undo()
        assert [text(item.step("on")) for item in sessions] == ["did on"] * 8


def test_a_failure_after_an_interrupt_reaches_the_threads_that_still_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker of all of them is ended with the call of the one, and no other can be started."""

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            if not isinstance(op, Steps):
                puppet.say(honest(op))

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    def broken(memory_mb: int) -> None:
        raise SandboxError("no worker can be started")

    with lying_pool(Liar(script)) as pool:
        sessions = [pool.open(walk(), PATIENT) for _ in range(4)]
        pool.reset_many([(item, 1) for item in sessions])
        monkeypatch.setattr(pool._engine._hosts, "start", broken)
        found: list[object] = []
        calls = [lambda item=item: item.step("go") for item in sessions[1:]]
        others = threading.Thread(target=lambda: found.extend(in_threads(*calls)))
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            others.start()
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises((KeyboardInterrupt, SandboxError)):
                sessions[0].step("go")
        finally:
            signal.signal(signal.SIGALRM, before)
        others.join(50)
        assert [type(item) for item in found] == [SandboxError] * 3


def test_a_late_row_is_found_while_other_threads_are_heard_all_the_time(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("synthgym.sandbox.express.SECONDS", 0.2)
    late = pool.open(walk(), Limits(step_seconds=0.4, memory_mb=64))
    others = [pool.open(walk(variant=row), PATIENT) for row in (1, 1, 2, 2)]
    pool.reset_many([(item, 1) for item in [late, *others]])
    done = threading.Event()
    took: list[float] = []

    def hang() -> object:
        began = time.monotonic()
        try:
            return late.step("loop")
        finally:
            took.append(time.monotonic() - began)
            done.set()

    def chat(session: Session) -> None:
        time.sleep(0.05)  # the other one is on its way
        while not done.wait(0.001):
            session.reset(1)

    # Without an end the test ends by itself.
    threading.Timer(10, done.set).start()
    fault, *rest = in_threads(hang, *(lambda item=item: chat(item) for item in others))
    assert rest == [None] * 4
    assert kinds(fault) == [FaultKind.TIMEOUT]
    assert took[0] < 0.4 + 0.2 + 0.5
    for item in [late, *others]:
        item.close()


def test_closing_the_pool_ends_the_wait_of_every_thread() -> None:
    pool = Pool(max_workers=2)
    sessions = [pool.open(walk(variant=row % 3), PATIENT) for row in range(8)]
    pool.reset_many([(item, 1) for item in sessions])
    pids = pool.pids()
    threading.Timer(0.3, pool.close).start()
    began = time.monotonic()
    found = in_threads(*(lambda item=item: item.step("loop") for item in sessions))
    assert time.monotonic() - began < 5
    assert all(isinstance(item, SandboxError) for item in found), found
    assert eventually(lambda: not any(running(pid) for pid in pids))


@pytest.mark.parametrize("seconds", [0.001, 0.2, 2.0])
def test_a_thread_may_close_a_session_while_another_one_waits_for_it(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Whether its call is still on the short way or not."""
    monkeypatch.setattr("synthgym.sandbox.express.SECONDS", seconds)
    workers = len(children_of(pool)) if pool.pids() else 0
    session = pool.open(walk(variant=50), PATIENT)
    session.reset(1)
    threading.Timer(0.3, session.close).start()
    (found,) = in_threads(lambda: session.step("loop"))
    assert isinstance(found, EnvFault)
    assert found.kind is FaultKind.LOST
    assert eventually(lambda: len(children_of(pool)) <= workers)


# --- more sources than workers ---


def test_a_batch_of_more_sources_than_workers_is_played() -> None:
    with Pool(max_workers=2) as small:
        sessions = [small.open(game(variant=row), LIMITS) for row in range(7)]
        expected = []
        for row in range(7):
            with small.open(game(variant=9), LIMITS) as other:
                expected.append([told(other.reset(row)), *(told(other.step(a)) for a in "ab")])
        found = [
            [told(item)] for item in small.reset_many(list(zip(sessions, range(7), strict=True)))
        ]
        for action in "ab":
            for seen, item in zip(
                found, small.step_many([(session, action) for session in sessions]), strict=True
            ):
                seen.append(told(item))
        assert found == expected
        assert len(children_of(small)) <= 2


def test_a_worker_with_a_call_under_way_makes_room_for_nobody() -> None:
    with Pool(max_workers=1) as tiny:
        busy, other = (tiny.open(walk(variant=row), PATIENT) for row in range(2))
        tiny.reset_many([(busy, 1), (other, 1)])
        busy.step("a")
        tiny.send([busy], ["slow"])
        pid = worker_pid(busy)
        assert text(other.step("a"))
        assert len(tiny.recv()) == 1
        assert worker_pid(other) != pid


# --- processes ---


def test_a_dead_zygote_is_replaced_for_every_source(pool: Pool) -> None:
    sessions = [pool.open(walk(variant=row), LIMITS) for row in range(4)]
    expected = [observe(item, row, ["a", "b"]) for row, item in enumerate(sessions)]
    found = [observe(item, row, ["a"]) for row, item in enumerate(sessions)]
    pids = pool.pids()
    os.kill(zygote_pid(pool), signal.SIGKILL)
    assert eventually(lambda: not any(running(pid) for pid in pids))
    for seen, item in zip(found, sessions, strict=True):
        seen.append(text(item.step("b")))
    assert found == expected
    for item in sessions:
        item.close()


def test_a_zygote_killed_in_the_middle_of_calls_costs_nobody_anything(pool: Pool) -> None:
    sessions = [pool.open(walk(variant=row % 3), PATIENT) for row in range(6)]
    expected = [observe(item, row, ["slow"]) for row, item in enumerate(sessions)]
    pool.reset_many([(item, row) for row, item in enumerate(sessions)])
    threading.Timer(0.1, os.kill, (zygote_pid(pool), signal.SIGKILL)).start()
    found = in_threads(*(lambda item=item: item.step("slow") for item in sessions))
    assert [text(item) for item in found] == [seen[1] for seen in expected]  # type: ignore[arg-type]
    for item in sessions:
        item.close()


def test_a_worker_that_is_killed_whenever_it_loads_is_a_fault_of_the_infrastructure(
    pool: Pool,
) -> None:
    done = threading.Event()
    session = pool.open(plain(module="forever()\nV = 8"), Limits(load_seconds=20.0))

    def kill_on() -> None:
        while not done.wait(0.02):
            link = session.source.link
            if link is not None and link.isolation is not None and link.lost is None:
                try:
                    os.kill(link.pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue

    killer = threading.Thread(target=kill_on)
    killer.start()
    (fault,) = in_threads(session.load)
    done.set()
    killer.join()
    assert isinstance(fault, EnvFault)
    assert fault.kind is FaultKind.LOST
    session.close()


NO_DESCRIPTORS = """
import os, resource, sys
from synthgym.errors import SandboxError
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord
source = sys.stdin.read()
with Pool() as pool:
    def opened(number):
        record = EnvRecord(source=f"{source}\\nV = {number}\\n", entry="WalkEnv", max_turns=50)
        return pool.open(record)
    first = opened(0)
    first.reset(1)
    here = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (here, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    used = []
    try:
        for number in range(1, 50):
            used.append(opened(number))
            used[-1].reset(1)
    except SandboxError as error:
        print(error)
    print(first.step("a").observation)
    used[0].close()
    print(first.step("a").observation)
"""


def test_no_descriptors_left_is_a_failure_of_the_sandbox_and_the_rest_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", NO_DESCRIPTORS],
        input=walk().source,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    failure, *shown = done.stdout.splitlines()
    assert "no channel for a worker" in failure
    assert [line[:3] for line in shown] == ["a [", "a ["]
