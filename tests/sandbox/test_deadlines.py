"""What stops a source: the time of each call, of an episode, and a level of isolation not reached."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest
from liars import READY, Liar, Puppet, lying_pool
from pool_sources import (
    LIMITS,
    in_threads,
    kinds,
    observe,
    plain,
    walk,
)

from synthgym.errors import ConfigError, SandboxError
from synthgym.sandbox import EnvFault, FaultKind, IsolationReport, Layer, Pool
from synthgym.spec import Limits

pytestmark = pytest.mark.timeout(60)
PATIENT = Limits(step_seconds=20.0, reset_seconds=20.0, memory_mb=64)


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=8) as shared:
        yield shared


# --- deadlines ---


def test_each_row_of_a_batch_has_its_own_time(pool: Pool) -> None:
    """Six rows of a third of the limit are legal together, and only the one that hangs is late."""
    step = """if action == "long":
            x = 0
            for _ in range(10_000_000):
                x += 1
        if action == "hang":
            forever()"""
    probe = pool.open(plain(step=step), PATIENT)
    probe.reset(0)
    began = time.monotonic()
    probe.step("long")
    took = time.monotonic() - began
    # A machine may turn three times slower, or faster, between the probe and the batch.
    limit = max(1.0, 1.6 * took)
    rounds = int(10_000_000 * 0.3 * limit / took)
    sessions = [
        pool.open(
            plain(step=step.replace("10_000_000", str(rounds))),
            Limits(step_seconds=limit, memory_mb=64),
        )
        for _ in range(8)
    ]
    pool.reset_many([(item, 0) for item in sessions])
    began = time.monotonic()
    results = pool.step_many(list(zip(sessions, [*["long"] * 6, "hang", "go"], strict=True)))
    took = time.monotonic() - began
    assert kinds(*results) == [*[None] * 6, FaultKind.TIMEOUT, None]
    assert took > 1.5 * limit
    for item in [probe, *sessions]:
        item.close()


@pytest.mark.parametrize(
    ("record", "limits", "call"),
    [
        (plain(module="forever()"), Limits(load_seconds=0.4), "load"),
        (plain(init="forever()"), Limits(reset_seconds=0.4), "reset"),
        (plain(step="forever()"), Limits(step_seconds=0.4), "step"),
        (walk(), Limits(reset_seconds=0.2, hint_seconds=0.2), "hint"),
        (
            plain(step="pass", extra="def solution(self):\n        forever()"),
            Limits(reset_seconds=0.2, solution_seconds=0.2),
            "solution",
        ),
    ],
    ids=["load", "reset", "step", "hint", "solution"],
)
def test_a_fault_arrives_soon_after_its_limit(
    pool: Pool, record: object, limits: Limits, call: str
) -> None:
    with pool.open(record, limits) as session:  # type: ignore[arg-type]  # a record
        if call not in ("load", "reset"):
            session.reset(1)
        calls: dict[str, Callable[[], object]] = {
            "load": session.load,
            "reset": lambda: session.reset(1),
            "step": lambda: session.step("go"),
            "hint": lambda: session.hint(1, level=1),
            "solution": lambda: session.solution(1),
        }
        if call != "load":
            session.load()
        began = time.monotonic()
        fault = calls[call]()
        took = time.monotonic() - began
        assert isinstance(fault, EnvFault)
        assert (fault.kind, fault.call) == (FaultKind.TIMEOUT, call)
        assert 0.4 <= took < 0.4 + 0.5


def test_an_episode_has_no_more_time_than_its_budget_over_many_steps(pool: Pool) -> None:
    limits = Limits(step_seconds=5.0, episode_seconds=0.6, memory_mb=64)
    step = "x = 0\n        for _ in range(3_000_000):\n            x += 1"
    with pool.open(plain(step=step), limits) as session:
        session.reset(1)
        began = time.monotonic()
        results: list[object] = []
        while not results or not isinstance(results[-1], EnvFault):
            results.append(session.step("go"))
        took = time.monotonic() - began
        assert kinds(results[-1]) == [FaultKind.TIMEOUT]
        assert 0.4 < took < 0.6 + 0.8
        assert isinstance(session.step("go"), EnvFault)
        session.reset(1)
        assert not isinstance(session.step("go"), EnvFault)


# --- isolation ---


def test_nothing_runs_below_the_level_that_is_required() -> None:
    asked: list[object] = []

    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        asked.extend(puppet.ops())

    liar = Liar(script)
    with lying_pool(liar, require="full") as pool:
        sessions = [pool.open(walk(variant=row), LIMITS) for row in range(2)]
        for call in (
            lambda: sessions[0].reset(1),
            lambda: sessions[0].load(),
            lambda: sessions[1].hint(1),
            lambda: pool.reset_many([(item, 1) for item in sessions]),
        ):
            with pytest.raises(SandboxError, match="'full' is required"):
                call()
        found = in_threads(*(lambda item=item: item.reset(1) for item in sessions))
        assert all(isinstance(item, SandboxError) for item in found)
    assert asked == []
    assert not liar.unreaped()


def test_a_level_that_is_reached_is_no_hindrance() -> None:
    with lying_pool(Liar(lambda puppet: puppet.say(READY)), require="none") as pool:
        with pool.open(walk(), LIMITS) as session:
            assert observe(session, 1, ["a"]) == ["start 1", "did a"]
        assert pool.isolation() == IsolationReport("none", (Layer("memory", True, ""),))


def test_an_unknown_level_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="unknown isolation level"):
        Pool(require="ful")  # type: ignore[arg-type]
