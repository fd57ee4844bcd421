"""Sources that share a worker: one trust domain, and still one fault is one source's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pool_sources import (
    LIMITS,
    children_of,
    in_threads,
    kill_worker,
    kinds,
    observe,
    plain,
    running,
    text,
    walk,
    worker_pid,
)

from synthgym.sandbox import EnvFault, Pool
from synthgym.spec import Limits

pytestmark = pytest.mark.timeout(60)
PATIENT = Limits(step_seconds=20.0, reset_seconds=20.0, memory_mb=64)


@pytest.fixture
def shared() -> Iterator[Pool]:
    with Pool(sources_per_worker=4) as made:
        yield made


def test_siblings_share_a_process_and_no_others_do(shared: Pool) -> None:
    sessions = [shared.open(walk(variant=row), LIMITS) for row in range(6)]
    other_limits = shared.open(walk(), Limits(memory_mb=65))
    shared.reset_many([(item, 1) for item in [*sessions, other_limits]])
    pids = [worker_pid(item) for item in sessions]
    assert len(set(pids[:4])) == 1
    assert len(set(pids[4:])) == 1
    assert len({pids[0], pids[4], worker_pid(other_limits)}) == 3
    results = shared.step_many([(item, "a") for item in sessions])
    assert len({text(item) for item in results}) == 1


@pytest.mark.parametrize("action", ["loop", "bomb"])
def test_the_end_of_a_shared_worker_replays_the_siblings(shared: Pool, action: str) -> None:
    sessions = [shared.open(walk(variant=row), LIMITS) for row in range(4)]
    expected = [observe(item, row, ["a", "b"]) for row, item in enumerate(sessions)]
    found = [observe(item, row, ["a"]) for row, item in enumerate(sessions)]
    actions = ["b", action, "b", "b"]
    results = shared.step_many(list(zip(sessions, actions, strict=True)))
    assert [isinstance(item, EnvFault) for item in results] == [False, True, False, False]
    for row in (0, 2, 3):
        assert [*found[row], text(results[row])] == expected[row]
        assert sessions[row].source.strikes == 0
    assert sessions[1].source.strikes == 1
    assert [*found[1], text(sessions[1].step("b"))] == expected[1]
    assert len(children_of(shared)) == 1


def test_siblings_that_load_slowly_all_come_back(shared: Pool) -> None:
    """Each is loaded anew, in turn; none is forgotten while another one loads."""
    slow = "sum(range(5_000_000))"
    records = [plain(module=f"{slow}\nV = {row}") for row in range(4)]
    sessions = [shared.open(record, Limits(memory_mb=64)) for record in records]
    shared.reset_many([(item, 1) for item in sessions])
    kill_worker(sessions[0])
    results = in_threads(*(lambda item=item: item.step("go") for item in sessions))
    assert kinds(*results) == [None] * 4
    kill_worker(sessions[0])
    assert kinds(*shared.step_many([(item, "go") for item in sessions])) == [None] * 4


def test_a_shared_worker_ends_after_its_last_source(shared: Pool) -> None:
    sessions = [shared.open(walk(variant=row), LIMITS) for row in range(4)]
    shared.reset_many([(item, 1) for item in sessions])
    pid = worker_pid(sessions[0])
    for item in sessions[:3]:
        item.close()
        assert running(pid)
    assert text(sessions[3].step("a"))
    sessions[3].close()
    assert not running(pid)


def test_a_worker_with_places_left_waits_for_the_next_source(shared: Pool) -> None:
    seen = []
    for row in range(6):
        with shared.open(walk(variant=row), LIMITS) as item:
            assert observe(item, 1, ["a"])
            seen.append(worker_pid(item))
    assert len(set(seen[:4])) == 1
    assert len(set(seen)) == 2


def test_a_source_that_is_closed_beside_a_busy_sibling_costs_it_nothing(shared: Pool) -> None:
    one, two = (shared.open(walk(variant=row), PATIENT) for row in range(2))
    expected = observe(one, 1, ["slow", "a"])
    shared.reset_many([(one, 1), (two, 1)])
    shared.send([one], ["slow"])
    two.close()
    batch = shared.recv()
    assert batch.observations == expected[1:2]
    assert text(one.step("a")) == expected[2]
