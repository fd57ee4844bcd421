"""Sessions in a pool: faults are values, instances come back by replay."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from pool_sources import (
    LIMITS,
    WALK,
    kill_worker,
    kinds,
    observe,
    plain,
    running,
    text,
    walk,
    worker_pid,
)

from synthgym.errors import ConfigError, ResetNeeded, SandboxError
from synthgym.sandbox import (
    EnvFault,
    FaultKind,
    Loaded,
    Origin,
    Pool,
    ResetResult,
    Session,
    StepResult,
)
from synthgym.spec import EnvRecord, Limits


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4) as shared:
        yield shared


@pytest.fixture
def session(pool: Pool) -> Iterator[Session]:
    with pool.open(walk(), LIMITS) as opened:
        yield opened


def test_a_session_loads_resets_steps_and_tells_hint_and_solution(session: Session) -> None:
    assert session.load() == Loaded(
        "WalkEnv", 50, "A walk that only its seed and the actions decide.", ("random",), True, True
    )
    first = session.reset(3)
    assert isinstance(first, ResetResult)
    assert first.info == {"seed": 3}
    start = first.observation.removeprefix("at ")
    assert text(session.step("go")).startswith(f"go [{start}, ")
    assert session.hint(3) == f"level 2 from {start}"
    assert session.hint(3, level=3) == f"level 3 from {start}"
    assert session.solution(3) == ("go",) * (int(start) + 1)


def test_the_same_seed_and_actions_give_the_same_bytes_in_another_worker(pool: Pool) -> None:
    with pool.open(walk(), LIMITS) as one, Pool() as other, other.open(walk(), LIMITS) as two:
        assert observe(one, 5, ["a", "b"]) == observe(two, 5, ["a", "b"])


def test_sessions_of_one_source_share_a_worker_but_no_random_stream(pool: Pool) -> None:
    with pool.open(walk(), LIMITS) as one, pool.open(walk(), LIMITS) as two:
        expected = observe(one, 7, ["a", "b"])
        one.reset(7)
        two.reset(8)
        assert worker_pid(one) == worker_pid(two)
        found = [text(one.step("a"))]
        two.step("x")
        two.reset(9)
        found.append(text(one.step("b")))
        assert found == expected[1:]


def test_sources_and_limits_have_workers_of_their_own(pool: Pool) -> None:
    other_limits = Limits(memory_mb=65)
    with (
        pool.open(walk(), LIMITS) as one,
        pool.open(walk(variant=1), LIMITS) as two,
        pool.open(walk(), other_limits) as three,
    ):
        for item in (one, two, three):
            item.reset(0)
        assert len({worker_pid(item) for item in (one, two, three)}) == 3


def test_keyword_arguments_of_the_record_reach_the_class(pool: Pool) -> None:
    record = EnvRecord(source=WALK, entry="WalkEnv", max_turns=50, kwargs={"top": 0})
    with pool.open(record, LIMITS) as opened:
        assert observe(opened, 1, []) == ["at 0"]


def test_a_batch_is_answered_in_the_order_of_its_calls(pool: Pool) -> None:
    with pool.open(walk(), LIMITS) as alone:
        expected = [observe(alone, seed, ["go"]) for seed in range(40)]
    sessions = [pool.open(walk(variant=seed % 3), LIMITS) for seed in range(40)]
    firsts = pool.reset_many([(item, seed) for seed, item in enumerate(sessions)])
    steps = pool.step_many([(item, "go") for item in sessions])
    assert [isinstance(item, ResetResult) and item.observation for item in firsts] == [
        first for first, _ in expected
    ]
    assert [text(item) for item in steps] == [second for _, second in expected]
    for item in sessions:
        item.close()


def test_a_batch_larger_than_a_frame_is_answered(pool: Pool) -> None:
    sessions = [pool.open(walk(), LIMITS) for _ in range(80)]
    pool.reset_many([(item, 1) for item in sessions])
    action = "好" * 4096
    results = pool.step_many([(item, action) for item in sessions])
    assert {text(item)[:4096] for item in results} == {action}
    for item in sessions:
        item.close()


def test_an_action_is_cut_and_lone_surrogates_are_replaced(session: Session) -> None:
    session.reset(0)
    assert text(session.step("y" * 5000)).startswith("y" * 4096 + " [")
    assert text(session.step("\ud800!")).startswith("?! [")


# --- what hangs, grows or dies ---


@pytest.mark.parametrize(
    ("record", "call"),
    [
        (plain(module="forever()"), "load"),
        (plain(init="forever()"), "reset"),
        (plain(reset="forever()"), "reset"),
        (plain(reset="import itertools; sum(itertools.count())"), "reset"),
    ],
    ids=["module", "init", "reset", "C loop"],
)
def test_a_loop_is_a_timeout_of_its_own_call(pool: Pool, record: EnvRecord, call: str) -> None:
    limits = Limits(load_seconds=0.2, reset_seconds=0.2)
    with pool.open(record, limits) as looping, pool.open(walk(), LIMITS) as fine:
        began = time.monotonic()
        fault = looping.reset(1)
        assert isinstance(fault, EnvFault)
        assert (fault.kind, fault.call) == (FaultKind.TIMEOUT, call)
        assert time.monotonic() - began < 5
        assert looping.step("go") == fault
        assert observe(fine, 1, ["go"])


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        ("loop", FaultKind.TIMEOUT),
        ("bomb", FaultKind.MEMORY),
        ("huge", FaultKind.BAD_VALUE),
        ("raise", FaultKind.ERROR),
    ],
)
def test_a_step_that_fails_is_a_fault_and_the_episode_goes_on(
    session: Session, action: str, kind: FaultKind
) -> None:
    expected = observe(session, 4, ["a", "b"])
    found = observe(session, 4, ["a"])
    fault = session.step(action)
    assert isinstance(fault, EnvFault)
    assert (fault.kind, fault.call) == (kind, "step")
    assert [*found, text(session.step("b"))] == expected


def test_a_loop_in_hint_is_a_timeout_and_the_session_goes_on(pool: Pool) -> None:
    limits = Limits(reset_seconds=0.1, hint_seconds=0.1)
    with pool.open(walk(), limits) as opened:
        expected = observe(opened, 2, ["a"])
        opened.reset(2)
        fault = opened.hint(2, level=1)
        assert isinstance(fault, EnvFault)
        assert (fault.kind, fault.call) == (FaultKind.TIMEOUT, "hint")
        assert text(opened.step("a")) == expected[1]


def test_a_worker_that_dies_in_a_call_is_a_crash(session: Session) -> None:
    expected = observe(session, 4, ["a", "b"])
    session.reset(4)
    session.step("a")
    killer = threading.Timer(0.1, os.kill, (worker_pid(session), signal.SIGSEGV))
    killer.start()
    fault = session.step("loop")
    killer.join()
    assert isinstance(fault, EnvFault)
    assert (fault.kind, fault.origin) == (FaultKind.CRASH, Origin.ENVIRONMENT)
    assert "SIGSEGV" in fault.detail
    assert text(session.step("b")) == expected[2]


def test_a_worker_that_is_killed_from_outside_costs_nobody_anything(pool: Pool) -> None:
    limits = Limits(step_seconds=20.0)
    with pool.open(walk(), limits) as one, pool.open(walk(), limits) as two:
        expected = [observe(item, 4, ["a", "slow"]) for item in (one, two)]
        pool.reset_many([(one, 4), (two, 4)])
        pool.step_many([(one, "a"), (two, "a")])
        killer = threading.Timer(0.1, kill_worker, (one,))
        killer.start()
        results = pool.step_many([(one, "slow"), (two, "slow")])
        killer.join()
        assert [text(item) for item in results] == [seen[2] for seen in expected]


def test_a_worker_that_is_killed_again_and_again_is_a_fault_of_the_infrastructure(
    session: Session,
) -> None:
    session.reset(4)
    done = threading.Event()

    def kill_on() -> None:
        while not done.wait(0.05):
            if session.source.link is not None:
                with contextlib.suppress(ProcessLookupError):
                    kill_worker(session)

    killer = threading.Thread(target=kill_on)
    killer.start()
    fault = session.step("loop")
    done.set()
    killer.join()
    assert isinstance(fault, EnvFault)
    assert (fault.kind, fault.origin) == (FaultKind.LOST, Origin.INFRASTRUCTURE)


def test_deep_recursion_in_c_is_a_fault_and_the_pool_goes_on(pool: Pool, session: Session) -> None:
    deep = "x = None\n        for _ in range(2_000_000):\n            x = (x,)\n        str(x)"
    with pool.open(plain(step=deep), Limits(step_seconds=3.0)) as opened:
        opened.reset(0)
        assert isinstance(opened.step("go"), EnvFault)
    assert observe(session, 1, ["a"])


def test_only_the_guilty_call_of_a_batch_is_a_fault(pool: Pool) -> None:
    sessions = [pool.open(walk(), LIMITS) for _ in range(6)]
    expected = [observe(item, seed, ["a", "b", "c"]) for seed, item in enumerate(sessions)]
    pool.reset_many([(item, seed) for seed, item in enumerate(sessions)])
    pool.step_many([(item, "a") for item in sessions])
    actions = ["b", "b", "loop", "b", "bomb", "b"]
    began = time.monotonic()
    results = pool.step_many(list(zip(sessions, actions, strict=True)))
    assert time.monotonic() - began < 5
    assert kinds(*results) == [None, None, FaultKind.TIMEOUT, None, FaultKind.MEMORY, None]
    after = pool.step_many([(item, "c") for item in sessions])
    assert not any(isinstance(item, EnvFault) for item in after)
    for number in (0, 1, 3, 5):
        assert text(results[number]) == expected[number][2]
        assert text(after[number]) == expected[number][3]
    for item in sessions:
        item.close()


def test_an_episode_has_a_budget_of_time(pool: Pool) -> None:
    limits = Limits(step_seconds=0.3, episode_seconds=0.4)
    with pool.open(walk(), limits) as opened:
        opened.reset(0)
        assert kinds(opened.step("loop"), opened.step("loop")) == [FaultKind.TIMEOUT] * 2
        began = time.monotonic()
        spent = opened.step("a")
        assert isinstance(spent, EnvFault)
        assert "episode" in spent.detail
        assert time.monotonic() - began < 0.2
        assert observe(opened, 0, ["a"])


def test_an_interrupted_call_leaves_a_session_that_goes_on(pool: Pool) -> None:
    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    with pool.open(walk(), Limits(step_seconds=20.0)) as opened:
        expected = observe(opened, 4, ["a", "b"])
        opened.reset(4)
        opened.step("a")
        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            opened.step("loop")
        signal.signal(signal.SIGALRM, before)
        assert text(opened.step("b")) == expected[2]


# --- our own mistakes ---


@pytest.mark.parametrize(
    ("record", "detail"),
    [
        (EnvRecord(source="import os", entry="AEnv", max_turns=5), "line 1"),
        (EnvRecord(source=WALK, entry="OtherEnv", max_turns=5), "OtherEnv"),
        (EnvRecord(source=WALK, entry="WalkEnv", max_turns=5, base="spade/1"), "spade/1"),
        (
            EnvRecord(source=WALK, entry="WalkEnv", max_turns=5, kwargs={"a": "x" * 70_000}),
            "keyword arguments",
        ),
    ],
    ids=["policy", "entry", "base", "kwargs"],
)
def test_a_source_that_is_not_run_is_refused_by_every_call(
    pool: Pool, record: EnvRecord, detail: str
) -> None:
    with pool.open(record, LIMITS) as opened:
        fault = opened.load()
        assert isinstance(fault, EnvFault)
        assert (fault.kind, fault.call) == (FaultKind.REFUSED, "load")
        assert detail in fault.detail
        assert opened.reset(0) == opened.step("go") == opened.hint(0) == fault
        assert opened.source.quarantine is None


@pytest.mark.parametrize("seed", [-1, 1 << 63, True, 1.0, "1"])
def test_a_seed_must_be_an_int_in_range(session: Session, seed: int) -> None:
    for call in (session.reset, session.hint, session.solution):
        with pytest.raises(ConfigError, match="seed"):
            call(seed)


@pytest.mark.parametrize(
    ("misuse", "error"),
    [
        (lambda pool, session: session.step("go"), ResetNeeded),
        (lambda pool, session: pool.step_many([(session, "go")]), ResetNeeded),
        (lambda pool, session: session.hint(0, level=4), ConfigError),
        (lambda pool, session: pool.reset_many([(session, 0), (session, 1)]), ConfigError),
        (lambda pool, session: Pool(max_workers=0), ConfigError),
    ],
)
def test_misuse_raises(
    session: Session, pool: Pool, misuse: Callable[[Pool, Session], object], error: type[Exception]
) -> None:
    with pytest.raises(error):
        misuse(pool, session)


def test_a_step_needs_a_str(session: Session) -> None:
    session.reset(0)
    with pytest.raises(ConfigError, match="got int"):
        session.step(1)  # type: ignore[arg-type]


def test_closing_twice_is_fine_and_afterwards_there_is_nothing_to_use() -> None:
    pool = Pool()
    session = pool.open(walk(), LIMITS)
    session.reset(0)
    pid = worker_pid(session)
    pool.close()
    pool.close()
    assert not running(pid)
    with pytest.raises(SandboxError, match="closed"):
        session.step("go")
    with pytest.raises(SandboxError, match="closed"):
        pool.open(walk(), LIMITS)
    session.close()
    session.close()
    with pytest.raises(SandboxError, match="closed"):
        session.reset(0)


def test_a_session_of_another_pool_is_refused(pool: Pool) -> None:
    with Pool() as other, other.open(walk(), LIMITS) as session:
        session.reset(1)
        with pytest.raises(ConfigError, match="pool that opened it"):
            pool.step_many([(session, "a")])
        assert isinstance(session.step("a"), StepResult)
