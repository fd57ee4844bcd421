"""A source that breaks its workers again and again is given up, and nobody else pays for it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from pool_sources import GAME, LIMITS, children_of, kinds, plain, text, walk

from synthgym.sandbox import EnvFault, FaultKind, Pool, ResetResult
from synthgym.sandbox.source import Source
from synthgym.spec import EnvRecord, Limits

pytestmark = pytest.mark.timeout(60)
QUICK = Limits(
    step_seconds=0.2, reset_seconds=1.0, load_seconds=2.0, hint_seconds=0.2, memory_mb=64
)


@pytest.fixture
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as made:
        yield made


@pytest.fixture
def starts(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The pids of all workers that were ever started."""
    hosts = pool._engine._hosts
    found: list[int] = []
    start = hosts.start

    def counted(memory_mb: int) -> object:
        link = start(memory_mb)
        found.append(link.pid)
        return link

    monkeypatch.setattr(hosts, "start", counted)
    return found


def test_a_source_that_hangs_three_times_is_given_up_without_another_worker(
    pool: Pool, starts: list[int]
) -> None:
    with pool.open(walk(), QUICK) as bad, pool.open(walk(variant=1), LIMITS) as good:
        pool.reset_many([(bad, 1), (good, 1)])
        assert kinds(*(bad.step("loop") for _ in range(3))) == [FaultKind.TIMEOUT] * 3
        assert len(starts) == 4
        assert bad.source.link is None
        assert len(children_of(pool)) == 1
        began = time.monotonic()
        faults = [bad.step("go"), bad.reset(1), bad.hint(1), bad.solution(1), bad.reset(2)]
        assert time.monotonic() - began < 0.1
        assert set(faults) == {bad.source.quarantine}
        assert isinstance(faults[0], EnvFault)
        assert "quarantined after 3 breaches" in faults[0].detail
        # Another session of it is no way around.
        with pool.open(walk(), QUICK) as again:
            assert again.reset(1) == bad.source.quarantine
        assert len(starts) == 4
        assert text(good.step("go"))


def test_the_rest_of_a_batch_is_not_asked_of_another_worker_when_the_source_is_given_up(
    pool: Pool, starts: list[int]
) -> None:
    sessions = [pool.open(walk(), QUICK) for _ in range(6)]
    pool.reset_many([(session, 1) for session in sessions])
    results = pool.step_many([(session, "loop") for session in sessions])
    assert kinds(*results) == [FaultKind.TIMEOUT] * 6
    details = [result.detail for result in results if isinstance(result, EnvFault)]
    assert ["quarantined" in detail for detail in details] == [False] * 3 + [True] * 3
    assert len(starts) == 3


@pytest.mark.parametrize(
    ("actions", "strikes"),
    [
        (["loop"], 1),
        (["bomb"], 1),
        (["loop", "bomb"], 2),
        (["raise", "huge", "raise", "huge"], 0),
    ],
)
def test_every_breach_is_one_strike_and_an_error_is_none(
    pool: Pool, actions: list[str], strikes: int
) -> None:
    with pool.open(walk(), QUICK) as session:
        session.reset(1)
        for action in actions:
            assert isinstance(session.step(action), EnvFault)
        assert session.source.strikes == strikes
        assert session.source.quarantine is None


def test_a_breach_in_every_call_counts() -> None:
    """Load, reset, hint: whatever costs a worker its life."""
    with Pool(max_strikes=2) as pool:
        check_breaches(pool)


def check_breaches(pool: Pool) -> None:
    limits = Limits(load_seconds=0.2, reset_seconds=0.2, hint_seconds=0.1, memory_mb=64)
    for record, call in (
        (plain(module="forever()"), "load"),
        (plain(init="forever()"), "reset"),
        (plain(reset="x = [bytearray(1_000_000) for _ in range(1000)]"), "reset"),
    ):
        with pool.open(record, limits) as session:
            faults = [session.reset(seed) for seed in range(3)]
            assert isinstance(faults[2], EnvFault)
            assert faults[2].call == call
            assert "quarantined after 2 breaches" in faults[2].detail
    with pool.open(walk(variant=9), QUICK) as session:
        session.reset(1)
        for seed in range(2):
            assert kinds(session.hint(seed, level=1)) == [FaultKind.TIMEOUT]
        assert session.source.quarantine is not None


def test_a_hint_that_uses_up_the_memory_is_a_strike(pool: Pool) -> None:
    source = (
        GAME + "\n    def hint(self):\n        return [bytearray(1_000_000) for _ in range(1000)]\n"
    )
    record = EnvRecord(source=source, entry="GameEnv", max_turns=100)
    with pool.open(record, LIMITS) as session:
        session.reset(1)
        for seed in range(3):
            assert kinds(session.hint(seed)) == [FaultKind.MEMORY]
        assert session.source.quarantine is not None


@pytest.mark.parametrize("allowed", [1, 2])
def test_the_number_of_strikes_can_be_chosen(allowed: int) -> None:
    with Pool(max_strikes=allowed) as pool, pool.open(walk(), QUICK) as session:
        session.reset(1)
        for strike in range(1, allowed + 1):
            assert session.source.quarantine is None
            session.step("loop")
            assert session.source.strikes == strike
        assert session.source.quarantine is not None


def test_a_source_that_misbehaves_once_in_many_calls_is_kept() -> None:
    """10,000 answers make up for a strike."""
    with Pool(max_strikes=2) as pool:
        looping = plain(step='if action == "loop": forever()')
        sessions = [pool.open(looping, QUICK) for _ in range(100)]
        one = sessions[0]

        def play(calls: int) -> None:
            pool.reset_many([(session, 1) for session in sessions])
            for _ in range(calls // len(sessions)):
                pool.step_many([(session, "go") for session in sessions])

        for _ in range(3):
            play(10_200)
            assert kinds(one.step("loop")) == [FaultKind.TIMEOUT]
        assert one.source.quarantine is None
        play(9_000)
        assert kinds(one.step("loop")) == [FaultKind.TIMEOUT]
        assert one.source.quarantine is not None


def test_strikes_belong_to_the_record_and_its_limits(pool: Pool) -> None:
    with pool.open(walk(), QUICK) as bad, pool.open(walk(), LIMITS) as other:
        pool.reset_many([(bad, 1), (other, 1)])
        for _ in range(3):
            bad.step("loop")
        assert bad.source.quarantine is not None
        assert text(other.step("go"))
        assert other.source.strikes == 0


def test_strikes_are_forgotten_with_the_last_session(pool: Pool) -> None:
    with pool.open(walk(), QUICK) as bad:
        bad.reset(1)
        for _ in range(3):
            bad.step("loop")
        assert bad.source.quarantine is not None
    with pool.open(walk(), QUICK) as again:
        assert isinstance(again.reset(1), ResetResult)


def test_a_strike_counts_anew_after_many_answers() -> None:
    source = Source(walk(), LIMITS, 2)
    breach = EnvFault(FaultKind.CRASH, "step", "x" * 500)
    source.strike(EnvFault(FaultKind.ERROR, "step"))
    source.strike(EnvFault(FaultKind.LOST, "step"))
    assert source.strikes == 0
    source.strike(breach)
    source.answered = 10_001
    source.strike(breach)
    assert (source.strikes, source.quarantine) == (1, None)
    source.answered = 10_000
    source.strike(breach)
    assert source.quarantine is not None
    assert len(source.quarantine.detail) == 500
