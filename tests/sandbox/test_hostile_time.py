"""A worker that plays for time is stopped in time, and other sources do not notice."""

from __future__ import annotations

import time

import pytest
from liars import LIMITS, READY, Puppet, against, honest, pool_of
from pool_sources import WALK, kinds

from synthgym.sandbox import FaultKind, express
from synthgym.sandbox.protocol import Resets, Steps
from synthgym.spec import EnvRecord

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True, params=["short way", "long way"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lone call of idle workers has a way of its own, which believes no more than the other."""
    if request.param == "long way":
        monkeypatch.setattr(express, "plan", lambda tasks: None)
    return str(request.param)


def test_a_worker_that_counts_and_never_answers_is_stopped_in_time() -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            if isinstance(op, Steps):
                value = 0
                while not puppet.killed.wait(0.005):
                    value += 1
                    puppet.count(value)
                return
            puppet.say(honest(op))

    with against(script, count=3, max_strikes=1) as (liar, sessions):
        pool = pool_of(sessions[0])
        pool.reset_many([(session, 1) for session in sessions])
        began = time.monotonic()
        results = pool.step_many([(session, "go") for session in sessions])
        assert time.monotonic() - began < 3 * (0.3 + 0.2) + 1
        assert kinds(*results) == [FaultKind.TIMEOUT] * 3
        assert len(liar.puppets) == 1


def test_an_answer_a_byte_at_a_time_is_stopped_in_time() -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            if isinstance(op, Steps):
                puppet.say((1 << 20).to_bytes(4, "big"))
                while not puppet.killed.wait(0.002):
                    puppet.say(b"x")
                return
            puppet.say(honest(op))

    with against(script, count=1, max_strikes=1) as (_, (session,)):
        session.reset(1)
        began = time.monotonic()
        assert kinds(session.step("go")) == [FaultKind.TIMEOUT]
        assert time.monotonic() - began < 0.3 + 0.5


def test_a_worker_that_does_not_read_is_stopped_in_time() -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            puppet.say(honest(op))
            if isinstance(op, Resets):
                puppet.killed.wait(30)
                return

    with against(script, count=200, max_strikes=1) as (_, sessions):
        pool = pool_of(sessions[0])
        pool.reset_many([(session, 1) for session in sessions])
        began = time.monotonic()
        results = pool.step_many([(session, "好" * 4096) for session in sessions])
        assert set(kinds(*results)) == {FaultKind.TIMEOUT}
        assert time.monotonic() - began < 0.3 + 0.7


def test_a_liar_does_not_disturb_another_source() -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            lying = isinstance(op, Steps) and "lie" in op.actions
            puppet.say(b"\0\0\0\0" if lying else honest(op))

    other = EnvRecord(source=WALK + "\n# other\n", entry="WalkEnv", max_turns=50)
    with against(script, count=1) as (liar, (session,)):
        pool = pool_of(session)
        fine = pool.open(other, LIMITS)
        pool.reset_many([(session, 1), (fine, 1)])
        home = fine.home
        for _ in range(4):
            results = pool.step_many([(session, "lie"), (fine, "go")])
            assert kinds(*results) == [FaultKind.PROTOCOL, None]
        assert fine.home is home
        assert session.source.quarantine is not None
        assert len(liar.puppets) == 4
