"""An episode is the same however it is played: alone, in a batch, or through the end of its worker."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pool_sources import (
    ACTIONS,
    children_of,
    eventually,
    game,
    kill_worker,
    observe,
    plain,
    running,
    text,
    told,
    walk,
    worker_pid,
)

from synthgym.sandbox import EnvFault, FaultKind, Pool, ResetResult, Session
from synthgym.spec import Limits

pytestmark = pytest.mark.timeout(60)
LIMITS = Limits(memory_mb=64, step_seconds=10.0, reset_seconds=10.0, load_seconds=10.0)
SEEDS = st.integers(0, 40)
EPISODE = st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=12)
Told = tuple[object, ...]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=8, max_strikes=1_000_000) as shared:
        yield shared


@pytest.fixture(scope="module")
def small() -> Iterator[Pool]:
    with Pool(max_workers=2) as shared:
        yield shared


def alone(pool: Pool, variant: int, seed: int, actions: list[str]) -> list[Told]:
    """What an episode tells that nothing disturbs."""
    with pool.open(game(variant=variant), LIMITS) as session:
        return [told(session.reset(seed)), *(told(session.step(action)) for action in actions)]


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=SEEDS, actions=EPISODE, kills=st.sets(st.integers(0, 11)), noticed=st.booleans())
def test_an_episode_whose_worker_was_killed_goes_on_as_if_nothing_had_been(
    pool: Pool, seed: int, actions: list[str], kills: set[int], noticed: bool
) -> None:
    expected = alone(pool, 0, seed, actions)
    with pool.open(game(), LIMITS) as session:
        found = [told(session.reset(seed))]
        for turn, action in enumerate(actions):
            if turn in kills and session.source.link is not None:  # none after a broken reset
                pid = worker_pid(session)
                kill_worker(session)
                if noticed:
                    assert eventually(lambda: not running(pid))  # noqa: B023
            found.append(told(session.step(action)))
        assert found == expected


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    episodes=st.lists(st.tuples(SEEDS, EPISODE), min_size=2, max_size=5),
    seed=st.integers(0, 1 << 32),
)
def test_a_kill_between_two_batches_changes_no_episode(
    pool: Pool, episodes: list[tuple[int, list[str]]], seed: int
) -> None:
    order = random.Random(seed)
    expected = [alone(pool, row % 2, *episode) for row, episode in enumerate(episodes)]
    sessions = [pool.open(game(variant=row % 2), LIMITS) for row in range(len(episodes))]
    firsts = pool.reset_many(
        [(session, seed) for session, (seed, _) in zip(sessions, episodes, strict=True)]
    )
    found = [[told(first)] for first in firsts]
    turns = max(len(actions) for _, actions in episodes)
    for turn in range(turns):
        hosted = [session for session in sessions if session.source.link is not None]
        if hosted and order.random() < 0.5:
            kill_worker(order.choice(hosted))
        rows = [row for row, (_, actions) in enumerate(episodes) if turn < len(actions)]
        results = pool.step_many([(sessions[row], episodes[row][1][turn]) for row in rows])
        for row, result in zip(rows, results, strict=True):
            found[row].append(told(result))
    for session in sessions:
        session.close()
    assert found == expected


def interleaved(
    pool: Pool,
    sessions: list[Session],
    episodes: list[tuple[int, list[str]]],
    order: random.Random,
) -> list[list[Told]]:
    """Play episodes in a random order, by all the ways that there are."""
    found: list[list[Told]] = [[] for _ in sessions]
    row_of = {id(session): row for row, session in enumerate(sessions)}
    sent: set[int] = set()

    def receive() -> None:
        batch = pool.recv()
        assert len(batch) > 0
        for position, session in enumerate(batch.sessions):
            row = row_of[id(session)]
            assert row in sent
            sent.discard(row)
            fault = batch.faults.get(position)
            found[row].append(
                (fault.kind, fault.call)
                if fault is not None
                else (
                    batch.observations[position],
                    batch.rewards[position],
                    batch.terminated[position],
                    batch.truncated[position],
                    dict(batch.infos.get(position, {})),
                )
            )

    while True:
        ready = [
            row
            for row, (_, actions) in enumerate(episodes)
            if row not in sent and len(found[row]) <= len(actions)
        ]
        if not ready:
            if not sent:
                return found
            receive()
            continue
        chosen = order.sample(ready, order.randint(1, len(ready)))
        fresh = [row for row in chosen if not found[row]]
        going = [row for row in chosen if found[row]]
        if going and order.random() < 0.5:
            actions = [episodes[row][1][len(found[row]) - 1] for row in going]
            pool.send([sessions[row] for row in going], actions)
            sent.update(going)
            going = []
        stepped, reset = pool.play(
            steps=(
                [sessions[row] for row in going],
                [episodes[row][1][len(found[row]) - 1] for row in going],
            ),
            resets=([sessions[row] for row in fresh], [episodes[row][0] for row in fresh]),
        )
        for position, row in enumerate(going):
            fault = stepped.faults.get(position)
            found[row].append(
                (fault.kind, fault.call)
                if fault is not None
                else (
                    stepped.observations[position],
                    stepped.rewards[position],
                    stepped.terminated[position],
                    stepped.truncated[position],
                    dict(stepped.infos.get(position, {})),
                )
            )
        for position, row in enumerate(fresh):
            fault = reset.faults.get(position)
            info = dict(reset.infos.get(position, {}))
            found[row].append(
                (fault.kind, fault.call)
                if fault is not None
                else (reset.observations[position], info)
            )
        while sent and order.random() < 0.5:
            receive()


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    episodes=st.lists(
        st.tuples(SEEDS, st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=5)),
        min_size=2,
        max_size=6,
    ),
    seed=st.integers(0, 1 << 32),
)
def test_serial_and_batched_and_sent_give_the_same_episodes(
    small: Pool, episodes: list[tuple[int, list[str]]], seed: int
) -> None:
    """Three sources and two workers, so that sessions make room for each other as well."""
    expected = [alone(small, row % 3, *episode) for row, episode in enumerate(episodes)]
    sessions = [small.open(game(variant=row % 3), LIMITS) for row in range(len(episodes))]
    assert interleaved(small, sessions, episodes, random.Random(seed)) == expected
    for session in sessions:
        session.close()


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    actions=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=24),
    seeds=st.lists(st.integers(0, 30), min_size=24, max_size=24),
    shuffle=st.integers(0, 1 << 32),
)
def test_every_value_of_a_batch_lands_in_its_row_whatever_fails(
    pool: Pool, actions: list[str], seeds: list[int], shuffle: int
) -> None:
    count = len(actions)
    sessions = [pool.open(game(variant=row % 3), LIMITS) for row in range(count)]
    random.Random(shuffle).shuffle(sessions)
    _, resets = pool.play(resets=(sessions, seeds[:count]))
    steps, _ = pool.play(steps=(sessions, actions))
    for row, (seed, action) in enumerate(zip(seeds, actions, strict=False)):
        broken = seed % 10 == 9
        assert (row in resets.faults) == broken
        assert (row in resets.infos) == (not broken and seed % 2 == 1)
        assert resets.observations[row].startswith("" if broken else f"game {seed} ")
        assert (resets.rewards[row], resets.flags[row]) == (0.0, 0)
        failed = broken or action in ("fail", "wrong")
        assert (row in steps.faults) == failed
        assert (row in steps.infos) == (not failed and action == "info")
        if failed:
            assert (steps.observations[row], steps.rewards[row], steps.flags[row]) == ("", 0.0, 0)
            call = "reset" if broken else "step"
            kind = FaultKind.BAD_VALUE if action == "wrong" and not broken else FaultKind.ERROR
            assert (steps.faults[row].kind, steps.faults[row].call) == (kind, call)
        else:
            assert steps.observations[row].startswith(
                f"{action} {len(action)} {steps.rewards[row]} "
            )
            assert (steps.terminated[row], steps.truncated[row]) == (
                action == "win",
                action == "cut",
            )
            if action == "info":
                assert steps.infos[row] == {"roll": steps.rewards[row], "action": "info"}
    for session in sessions:
        session.close()


def test_a_log_that_is_larger_than_a_frame_is_replayed(pool: Pool) -> None:
    actions = [f"{turn} " + "好" * 4000 for turn in range(90)]  # 1.1 MB
    expected = alone(pool, 0, 1, actions)
    with pool.open(game(), LIMITS) as session:
        found = [told(session.reset(1)), *(told(session.step(action)) for action in actions[:-1])]
        kill_worker(session)
        assert [*found, told(session.step(actions[-1]))] == expected


def test_only_the_episodes_of_the_killed_worker_are_replayed(pool: Pool) -> None:
    sessions = [pool.open(game(variant=row % 2), LIMITS) for row in range(6)]
    expected = [alone(pool, row % 2, row, ["go", "info", "win"]) for row in range(6)]
    firsts = pool.reset_many([(session, row) for row, session in enumerate(sessions)])
    found = [[told(first)] for first in firsts]
    homes = [session.home for session in sessions]
    pids = [worker_pid(session) for session in sessions]
    for turn, action in enumerate(["go", "info", "win"]):
        if turn == 1:
            kill_worker(sessions[0])
        for seen, result in zip(
            found, pool.step_many([(session, action) for session in sessions]), strict=True
        ):
            seen.append(told(result))
    assert found == expected
    for row, session in enumerate(sessions):
        assert (session.home is homes[row]) == (row % 2 == 1)
        assert (worker_pid(session) == pids[row]) == (row % 2 == 1)
        session.close()


def test_a_worker_killed_in_the_middle_of_a_batch_costs_its_own_episodes_nothing() -> None:
    with Pool() as pool:
        limits = Limits(memory_mb=64, step_seconds=60.0)
        sessions = [pool.open(walk(variant=row % 2), limits) for row in range(6)]
        actions = ["a", "a", "slow", "a", "a", "a"]
        expected = []
        for row, action in enumerate(actions):
            with pool.open(walk(variant=row % 2), limits) as other:
                expected.append([told(other.reset(row)), told(other.step(action))])
        firsts = pool.reset_many([(session, row) for row, session in enumerate(sessions)])
        homes = [session.home for session in sessions]
        pool.send(sessions, actions)
        batch = pool.recv()  # the fast worker
        kill_worker(sessions[2])
        rows = {id(session): row for row, session in enumerate(sessions)}
        seen: dict[int, str] = {}
        while True:
            for session, observation in zip(batch.sessions, batch.observations, strict=True):
                seen[rows[id(session)]] = observation
            assert not batch.faults
            if len(seen) == 6:
                break
            batch = pool.recv()
        assert [[told(first), seen[row]] for row, first in enumerate(firsts)] == [
            [first, second[0]] for first, second in expected
        ]
        for row, session in enumerate(sessions):
            assert (session.home is homes[row]) == (row % 2 == 1)


def test_a_dead_worker_is_replaced_while_another_one_is_still_busy(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were asked on the short way, which goes on for as long as the busy one takes."""
    monkeypatch.setattr("synthgym.sandbox.express.SECONDS", 5.0)
    dead, busy = (pool.open(walk(variant=row), LIMITS) for row in range(2))
    expected = [
        [told(item.reset(row)), told(item.step("slow"))] for row, item in enumerate((dead, busy))
    ]
    firsts = pool.reset_many([(dead, 0), (busy, 1)])
    pid = worker_pid(dead)
    kill_worker(dead)
    assert eventually(lambda: not running(pid))
    results = pool.step_many([(dead, "slow"), (busy, "slow")])
    assert [[told(one), told(two)] for one, two in zip(firsts, results, strict=True)] == expected
    dead.close()
    busy.close()


def test_a_session_that_cannot_be_replayed_is_broken_until_it_is_reset(pool: Pool) -> None:
    with pool.open(game(), LIMITS) as one, pool.open(game(), LIMITS) as two:
        pool.reset_many([(one, 1), (two, 2)])
        pool.step_many([(one, "go"), (two, "go")])
        one.observation += "!"  # as if the first run had shown something else
        kill_worker(one)
        batch, _ = pool.play(steps=([one, two], ["info", "info"]))
        assert list(batch.faults) == [0]
        assert (batch.observations[0], batch.rewards[0], batch.flags[0]) == ("", 0.0, 0)
        assert list(batch.infos) == [1]
        assert isinstance(one.step("go"), EnvFault)
        assert isinstance(one.reset(1), ResetResult)
        assert not isinstance(one.step("go"), EnvFault)


def test_a_session_whose_worker_was_killed_comes_back_with_the_same_observations(
    pool: Pool,
) -> None:
    session = pool.open(walk(variant=90), LIMITS)
    expected = observe(session, 6, ["a"])
    session.step("raise")
    expected.append(text(session.step("b")))
    found = observe(session, 6, ["a"])
    session.step("raise")
    kill_worker(session)
    assert [*found, text(session.step("b"))] == expected
    session.close()


def test_an_evicted_session_comes_back_with_the_same_observations() -> None:
    with Pool(max_workers=2) as small:
        sessions = [small.open(walk(variant=number), LIMITS) for number in range(5)]
        expected = [observe(item, 1, ["a", "b", "c"]) for item in sessions]
        found = [observe(item, 1, []) for item in sessions]
        for action in ("a", "b"):
            for item, seen in zip(sessions, found, strict=True):
                seen.append(text(item.step(action)))
        steps = small.step_many([(item, "c") for item in sessions])
        for result, seen in zip(steps, found, strict=True):
            seen.append(text(result))
        assert found == expected
        assert len(children_of(small)) <= 2


def test_a_replay_that_gives_other_observations_is_a_fault(pool: Pool) -> None:
    step = "return str(id(self)) + str([object() for _ in range(3)]), 0.0, False, False, {}"
    with pool.open(plain(step=step), LIMITS) as opened:
        opened.reset(0)
        for _ in range(3):
            opened.step("go")
        opened.paid += 1.0  # as if the first run had shown something else
        kill_worker(opened)
        fault = opened.step("go")
        assert isinstance(fault, EnvFault)
        assert "replay" in fault.detail
        assert opened.step("go") == fault
        assert isinstance(opened.reset(0), ResetResult)
