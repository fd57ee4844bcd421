"""Steps that are sent now and received later."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from liars import READY, Liar, Puppet, honest, lying_pool
from pool_sources import LIMITS, kill_worker, observe, plain, running, text, told, walk, worker_pid

from synthgym.errors import ConfigError, ResetNeeded, SandboxError
from synthgym.sandbox import FaultKind, Pool, Session
from synthgym.sandbox.batch import Batch
from synthgym.sandbox.protocol import Steps
from synthgym.spec import Limits

pytestmark = pytest.mark.timeout(60)
PATIENT = Limits(step_seconds=20.0, memory_mb=64)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as shared:
        yield shared


def opened(pool: Pool, variants: list[int], limits: Limits = LIMITS) -> list[Session]:
    """Sessions of the walk that have been reset, each with its position as seed."""
    sessions = [pool.open(walk(variant=variant), limits) for variant in variants]
    pool.reset_many([(session, row) for row, session in enumerate(sessions)])
    return sessions


def received(pool: Pool, count: int) -> list[tuple[Session, str, FaultKind | None]]:
    """What comes until `count` rows have come."""
    found: list[tuple[Session, str, FaultKind | None]] = []
    while len(found) < count:
        batch = pool.recv(timeout=20)
        assert len(batch), "nothing comes"
        assert len(batch.sessions) == len(batch.rewards) == len(batch.flags) == len(batch)
        found += rows_of(batch)
    assert len(found) == count
    return found


def rows_of(batch: Batch) -> list[tuple[Session, str, FaultKind | None]]:
    return [
        (session, batch.observations[row], fault.kind if fault is not None else None)
        for row, session in enumerate(batch.sessions)
        for fault in [batch.faults.get(row)]
    ]


def close(sessions: list[Session]) -> None:
    for session in sessions:
        session.close()


def test_what_was_sent_is_received_once_and_is_what_a_step_gives(pool: Pool) -> None:
    with pool.open(walk(), LIMITS) as other:
        expected = [observe(other, row, ["go"])[1] for row in range(6)]
    sessions = opened(pool, [0, 1, 2, 0, 1, 2])
    pool.send(sessions, ["go"] * 6)
    found = {id(session): shown for session, shown, _ in received(pool, 6)}
    assert [found[id(session)] for session in sessions] == expected
    assert len(pool.recv()) == 0
    close(sessions)


def test_the_rows_of_one_worker_come_in_the_order_in_which_they_were_sent(pool: Pool) -> None:
    sessions = opened(pool, [0] * 6)
    order = [sessions[row] for row in (3, 0, 5, 1)]
    pool.send(order, ["go"] * 4)
    assert [session for session, _, _ in received(pool, 4)] == order
    pool.send(sessions[:1], ["a"])
    pool.send(sessions[3:], ["b"] * 3)
    found = received(pool, 4)
    assert [session for session, _, _ in found] == [sessions[row] for row in (0, 3, 4, 5)]
    assert [shown[0] for _, shown, _ in found] == ["a", "b", "b", "b"]
    close(sessions)


def test_a_slow_source_holds_up_no_other(pool: Pool) -> None:
    slow, fast = opened(pool, [0, 1], PATIENT)
    pool.send([slow, fast], ["slow", "go"])
    began = time.monotonic()
    (only,) = received(pool, 1)
    assert only[0] is fast
    for _ in range(3):
        pool.send([fast], ["go"])
        assert received(pool, 1)[0][0] is fast
    assert received(pool, 1)[0][0] is slow
    assert time.monotonic() - began < 20
    close([slow, fast])


def test_a_timeout_gives_an_empty_batch_and_the_answer_comes_later(pool: Pool) -> None:
    (session,) = opened(pool, [0], PATIENT)
    pool.send([session], ["slow"])
    began = time.monotonic()
    assert len(pool.recv(timeout=0.05)) == 0
    assert 0.05 <= time.monotonic() - began < 0.4
    assert len(pool.recv(timeout=0)) in (0, 1)
    assert received(pool, 1)[0][0] is session
    session.close()


def test_nothing_sent_is_nothing_to_wait_for(pool: Pool) -> None:
    began = time.monotonic()
    assert len(pool.recv()) == 0
    pool.send([], [])
    assert len(pool.recv()) == 0
    assert time.monotonic() - began < 1


def test_a_session_cannot_be_used_before_its_answer_was_received(pool: Pool) -> None:
    one, two = opened(pool, [0, 0])
    pool.send([one], ["a"])
    text(two.step("go"))  # by now the other answer has come too
    for misuse in (
        lambda: pool.send([one], ["b"]),
        lambda: one.step("b"),
        lambda: one.reset(1),
        lambda: pool.send([two, one], ["b", "b"]),
        lambda: pool.play(steps=([two], ["b"]), resets=([one], [3])),
    ):
        with pytest.raises(ConfigError, match="one at a time"):
            misuse()
    assert [shown[0] for _, shown, _ in received(pool, 1)] == ["a"]
    pool.send([one, two], ["c", "c"])
    assert [shown[0] for _, shown, _ in received(pool, 2)] == ["c", "c"]
    close([one, two])


def test_a_send_that_is_refused_leaves_every_session_as_it_was(pool: Pool) -> None:
    one, two = opened(pool, [0, 0])
    fresh = pool.open(walk(), LIMITS)
    with pytest.raises(ResetNeeded):
        pool.send([one, fresh], ["a", "a"])
    with pytest.raises(ConfigError, match="got int"):
        pool.send([one, two], ["a", 1])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="one argument a session"):
        pool.send([one, two], ["a"])
    with pytest.raises(ConfigError, match="once"):
        pool.send([one, one], ["a", "a"])
    assert len(pool.recv()) == 0
    assert text(one.step("b"))
    close([one, two, fresh])


def test_a_play_that_is_refused_leaves_every_session_as_it_was(pool: Pool) -> None:
    one, two = opened(pool, [0, 0])
    with pytest.raises(ConfigError, match="seed"):
        pool.play(steps=([one], ["a"]), resets=([two], [-1]))
    with pytest.raises(ConfigError, match="one at a time"):
        pool.play(steps=([one], ["a"]), resets=([one], [1]))
    assert [text(one.step("b")), text(two.step("b"))]
    close([one, two])


def test_the_list_of_sessions_may_be_changed_after_it_was_sent(pool: Pool) -> None:
    sessions = opened(pool, [0, 0])
    given, actions = list(sessions), ["a", "b"]
    pool.send(given, actions)
    given.reverse()
    actions.reverse()
    found = {id(session): shown[0] for session, shown, _ in received(pool, 2)}
    assert [found[id(session)] for session in sessions] == ["a", "b"]
    close(sessions)


def test_faults_are_rows(pool: Pool) -> None:
    sessions = opened(pool, [0, 0, 1, 2])
    pool.send(sessions, ["raise", "a", "loop", "bomb"])
    found = {id(session): (shown, kind) for session, shown, kind in received(pool, 4)}
    assert [found[id(session)][1] for session in sessions] == [
        FaultKind.ERROR,
        None,
        FaultKind.TIMEOUT,
        FaultKind.MEMORY,
    ]
    assert [found[id(session)][0] for session in (sessions[0], *sessions[2:])] == [""] * 3
    close(sessions)


def test_the_fault_of_a_broken_session_is_received_at_once(pool: Pool) -> None:
    slow, broken = opened(pool, [0, 1], PATIENT)
    kill_worker(broken)
    broken.paid += 1  # as if the first run had shown something else
    assert told(broken.step("a")) == (FaultKind.ERROR, "step")
    pool.send([slow, broken], ["slow", "a"])
    ((session, shown, kind),) = received(pool, 1)
    assert (session, shown, kind) == (broken, "", FaultKind.ERROR)
    pool.send([broken], ["b"])
    assert received(pool, 1)[0][0] is broken
    assert received(pool, 1)[0][0] is slow
    close([slow, broken])


def test_what_was_sent_survives_the_end_of_its_worker(pool: Pool) -> None:
    (session,) = opened(pool, [0], PATIENT)
    with pool.open(walk(), PATIENT) as other:  # how long it takes is not the point
        expected = observe(other, 0, ["slow", "a"])
    pool.send([session], ["slow"])
    time.sleep(0.1)
    kill_worker(session)
    assert received(pool, 1)[0][1] == expected[1]
    pool.send([session], ["a"])
    assert received(pool, 1)[0][1] == expected[2]
    session.close()


def test_more_sources_than_workers_are_all_received_with_the_same_observations() -> None:
    actions = ["a", "b", "c"]
    with Pool(max_workers=2) as small:
        with small.open(walk(), LIMITS) as other:
            expected = [observe(other, row, actions)[1:] for row in range(5)]
        sessions = opened(small, [1, 2, 3, 4, 5])
        found: dict[int, list[str]] = {id(session): [] for session in sessions}
        small.send(sessions, ["a"] * 5)
        for _ in range(15):
            if all(len(seen) == 3 for seen in found.values()):
                break
            for session, shown, kind in rows_of(small.recv(timeout=20)):
                assert kind is None
                seen = found[id(session)]
                seen.append(shown)
                if len(seen) < 3:
                    small.send([session], [actions[len(seen)]])
        assert [found[id(session)] for session in sessions] == expected
        assert len(small.pids()) <= 3


@pytest.mark.parametrize("variants", [[0, 1, 2, 3], [0, 0, 0, 1], [0, 0, 1, 1, 2]])
def test_no_source_waits_for_ever_for_one_that_always_has_work(variants: list[int]) -> None:
    with Pool(max_workers=1) as tiny:
        sessions = opened(tiny, variants)
        counts = dict.fromkeys(map(id, sessions), 0)
        for session in sessions:
            tiny.send([session], ["go"])
        for _ in range(60):
            # One at a time, so that its source has work under way while the next one is sent.
            for session, _, kind in rows_of(tiny.recv(timeout=20)):
                assert kind is None
                counts[id(session)] += 1
                tiny.send([session], ["go"])
        by_source: dict[int, list[int]] = {}
        for variant, session in zip(variants, sessions, strict=True):
            by_source.setdefault(variant, []).append(counts[id(session)])
        assert min(min(seen) for seen in by_source.values()) >= 5, by_source


def test_a_worker_that_is_never_idle_makes_room_all_the_same() -> None:
    """Two sessions take turns, so that one of them is always under way."""
    step = "sum(range(400_000))"
    with Pool(max_workers=1) as tiny:
        one, two = (tiny.open(plain(step=step), PATIENT) for _ in range(2))
        other = tiny.open(plain(step=f"{step}\n        1"), PATIENT)
        tiny.reset_many([(item, 1) for item in (one, two, other)])
        tiny.step_many([(one, "go"), (two, "go")])  # from now on the worker is theirs
        tiny.send([one], ["go"])
        time.sleep(0.002)
        tiny.send([two], ["go"])
        tiny.send([other], ["go"])
        turns: list[list[Session]] = []
        while len(turns) < 20 and (not turns or other not in turns[-1]):
            turns.append([session for session, _, _ in rows_of(tiny.recv(timeout=20))])
            for session in turns[-1]:
                tiny.send([session], ["go"])
        assert other in turns[-1]


def test_closing_a_session_that_was_sent_gives_its_answer_up() -> None:
    with Pool() as pool:
        one, two = opened(pool, [0, 1], PATIENT)
        pool.send([one, two], ["slow", "slow"])
        pid = worker_pid(one)
        one.close()
        assert not running(pid)
        found = {id(session): kind for session, _, kind in received(pool, 2)}
        assert found == {id(one): FaultKind.LOST, id(two): None}


def test_receiving_from_a_closed_pool_is_an_error() -> None:
    pool = Pool()
    one, two = opened(pool, [0, 1], PATIENT)
    pool.send([one], ["slow"])
    pool.close()
    with pytest.raises(SandboxError, match="closed"):
        pool.recv()
    for _ in range(2):
        with pytest.raises(SandboxError, match="closed"):
            pool.send([two], ["a"])


def test_a_receiver_is_woken_by_what_another_thread_sends(pool: Pool) -> None:
    one, two = opened(pool, [0, 1], PATIENT)
    pool.send([one], ["slow"])
    late = threading.Timer(0.05, pool.send, ([two], ["go"]))
    late.start()
    assert {id(session) for session, _, _ in received(pool, 2)} == {id(one), id(two)}
    late.join()
    close([one, two])


# --- when the sandbox itself fails ---


def test_what_was_answered_is_received_before_the_failure_of_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            if isinstance(op, Steps) and op.actions == ["die"]:
                puppet.end()
                return
            puppet.say(honest(op))

    with lying_pool(Liar(script)) as pool:
        one, two = opened(pool, [0, 1])
        pool.send([one, two], ["a", "b"])
        assert len(received(pool, 2)) == 2
        pool.send([one], ["good"])
        pool.step_many([(two, "go")])  # takes the other answer as well
        hosts = pool._engine._hosts

        def broken(memory_mb: int) -> None:
            raise SandboxError("no worker can be started")

        monkeypatch.setattr(hosts, "start", broken)
        pool.send([two], ["die"])
        found: list[Session] = []
        with pytest.raises(SandboxError, match="no worker can be started"):  # noqa: PT012
            for _ in range(2):
                found += pool.recv(timeout=20).sessions
        assert found == [one]
        assert len(pool.recv()) == 0
        monkeypatch.undo()
        assert text(one.step("on")) == "did on"
        assert text(two.step("on")) == "did on"


def test_a_send_that_fails_leaves_nothing_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    with lying_pool(Liar(lambda puppet: puppet.say(READY))) as pool:
        one, two = opened(pool, [0, 1])
        pool._engine._hosts.end(two.source.link)  # type: ignore[arg-type]  # it has one

        def broken(memory_mb: int) -> None:
            raise SandboxError("no worker can be started")

        monkeypatch.setattr(pool._engine._hosts, "start", broken)
        with pytest.raises(SandboxError, match="no worker can be started"):
            pool.send([one, two], ["a", "a"])
        assert len(pool.recv()) == 0
        monkeypatch.undo()
        assert [text(one.step("b")), text(two.step("b"))] == ["did b", "did b"]
