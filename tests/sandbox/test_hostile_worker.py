"""A pool whose workers lie: every lie is a fault of its source, and costs nobody else anything."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from liars import READY, Puppet, against, honest, lying_once, pool_of, step_rows
from pool_sources import kinds, text

from synthgym.sandbox import EnvFault, FaultKind, ResetResult, express
from synthgym.sandbox.protocol import (
    MAX_CODE,
    Compile,
    Compiled,
    Done,
    Drop,
    Failed,
    Hint,
    HintDone,
    Load,
    LoadDone,
    Op,
    Replay,
    Replayed,
    Reply,
    Resets,
    Rows,
    Solution,
    SolutionDone,
    Steps,
    encode,
    frame,
)

pytestmark = pytest.mark.timeout(60)
Lie = Callable[[Op], list[Reply | bytes]]


@pytest.fixture(autouse=True, params=["short way", "long way"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A lone call of idle workers has a way of its own, which believes no more than the other."""
    if request.param == "long way":
        monkeypatch.setattr(express, "plan", lambda tasks: None)
    return str(request.param)


def raw(op: Op, *fields: object) -> bytes:
    """A frame of rows, of whatever is given."""
    return frame(encode([4, op.id, *fields]))


def rows(op: Op, **changes: object) -> bytes:
    """What an honest worker answers to steps, with some columns exchanged."""
    assert isinstance(op, Steps)
    good = step_rows(op)
    names = ("observations", "rewards", "flags", "infos", "failures")
    return raw(op, *(changes.get(name, getattr(good, name)) for name in names))


STEP_LIES: dict[str, Lie] = {
    "garbage": lambda op: [b"\0\0\0\1\xc1"],
    "no frame": lambda op: [b"\xff" * 100],
    "ready again": lambda op: [READY],
    "a failure of the whole": lambda op: [Failed(op.id, "error", "")],
    "no memory for the whole": lambda op: [Failed(op.id, "timeout", "x" * 100_000)],
    "an unknown kind": lambda op: [Failed(op.id, "x" * 100_000, "")],
    "another answer": lambda op: [Replayed(op.id, "x", 0.0)],
    "done": lambda op: [Done(op.id)],
    "another id": lambda op: [Rows(op.id + 1, [""], [0.0], b"\0", {}, {})],
    "the id before": lambda op: [Rows(op.id - 1, [""], [0.0], b"\0", {}, {})],
    "rows of a load": lambda op: [LoadDone(op.id, "WalkEnv", 5, "", False, False)],
    "no row": lambda op: [Rows(op.id, [], [], b"", {}, {})],
    "a row too many": lambda op: [Rows(op.id, ["x"] * 4, [1.0] * 4, bytes(4), {}, {})],
    "short columns": lambda op: [rows(op, flags=b"\0")],
    "infinite": lambda op: [rows(op, rewards=[1.0, float("inf"), 1.0])],
    "not a number": lambda op: [rows(op, rewards=[1.0, 1.0, float("nan")])],
    "flags": lambda op: [rows(op, flags=b"\0\x80\0")],
    "info of no row": lambda op: [rows(op, infos={3: "{}"})],
    "info before the first row": lambda op: [rows(op, infos={-1: '{"a":1}'})],
    "info that is no object": lambda op: [rows(op, infos={0: '{"a":1}', 1: "[1]"})],
    "info that is no JSON": lambda op: [rows(op, infos={0: '{"a":1}', 2: '{"a"'})],
    "info without an end": lambda op: [rows(op, infos={0: "{}", 2: '{"a":' + "[" * 100_000})],
    "failure of no row": lambda op: [rows(op, failures={3: ("error", "")})],
    "failure before the first row": lambda op: [rows(op, failures={-1: ("error", "")})],
    "failure of another kind": lambda op: [rows(op, failures={0: ("lost", "")})],
    "an observation above the limit": lambda op: [rows(op, observations=["a", "b", "x" * 70_000])],
    "rewards that cancel out": lambda op: [rows(op, rewards=[float("inf"), float("-inf"), 0.0])],
    "a part and garbage": lambda op: [
        Rows(op.id, ["did a"], [0.5], b"\0", {0: '{"row":"a"}'}, {}),
        b"\0\0\0\1\xc1",
    ],
    "a part and more rows than are left": lambda op: [
        Rows(op.id, ["did a"], [0.5], b"\0", {0: '{"row":"a"}'}, {}),
        rows(op),
    ],
}


@pytest.mark.parametrize("name", STEP_LIES)
def test_a_lie_about_a_batch_costs_one_row_and_the_others_are_asked_again(name: str) -> None:
    with against(lying_once(Steps, STEP_LIES[name])) as (liar, sessions):
        pool = pool_of(sessions[0])
        pool.reset_many([(session, 1) for session in sessions])
        began = time.monotonic()
        batch, _ = pool.play(steps=(sessions, ["a", "b", "c"]))
        assert time.monotonic() - began < 3
        (guilty,) = batch.faults
        assert batch.faults[guilty].kind is FaultKind.PROTOCOL
        assert len(batch.faults[guilty].detail) <= 500
        for row, action in enumerate("abc"):
            fine = row != guilty
            assert batch.observations[row] == (f"did {action}" if fine else "")
            assert batch.rewards[row] == (0.5 if fine else 0.0)
            assert batch.flags[row] == 0
            assert batch.infos.get(row) == ({"row": action} if fine else None)
        assert sessions[0].source.strikes == 1
        assert len(liar.puppets) == 2
        # The next worker is honest, and so is the replay of what the liar did not spoil.
        assert kinds(*pool.step_many([(session, "d") for session in sessions])) == [None] * 3


RESET_LIES: dict[str, Lie] = {
    "garbage": lambda op: [b"\0\0\0\1\xc1"],
    "a failure of the whole": lambda op: [Failed(op.id, "bad_value", "")],
    "rewards": lambda op: [Rows(op.id, [""] * 3, [0.0, 1.0, 0.0], bytes(3), {}, {})],
    "flags": lambda op: [Rows(op.id, [""] * 3, [0.0] * 3, b"\0\0\1", {}, {})],
    "a row too many": lambda op: [Rows(op.id, ["x"] * 4, [0.0] * 4, bytes(4), {}, {})],
    "info that is no JSON": lambda op: [Rows(op.id, ["x"] * 3, [0.0] * 3, bytes(3), {1: ""}, {})],
    "not a number": lambda op: [raw(op, ["x"] * 3, [0.0, float("nan"), 0.0], bytes(3), {}, {})],
    "another id": lambda op: [Rows(op.id - 1, ["x"] * 3, [0.0] * 3, bytes(3), {}, {})],
}


@pytest.mark.parametrize("name", RESET_LIES)
def test_a_lie_about_resets_costs_one_row(name: str) -> None:
    with against(lying_once(Resets, RESET_LIES[name], skip=1)) as (_, sessions):
        pool = pool_of(sessions[0])
        pool.reset_many([(session, 9) for session in sessions])
        _, batch = pool.play(resets=(sessions, [1, 2, 3]))
        (guilty,) = batch.faults
        assert batch.faults[guilty].kind is FaultKind.PROTOCOL
        expected = ["start 1", "start 2", "start 3"]
        expected[guilty] = ""
        assert batch.observations == expected
        assert batch.rewards == [0.0] * 3
        assert batch.flags == bytes(3)
        assert batch.infos == {}
        assert sessions[guilty].step("go") == batch.faults[guilty]
        assert isinstance(sessions[guilty].reset(5), ResetResult)


def test_a_row_that_failed_says_nothing_else_whatever_came_with_it() -> None:
    def lie(op: Op) -> list[Reply | bytes]:
        return [rows(op, failures={1: ("error", "x" * 100_000)}, flags=b"\1\2\0")]

    with against(lying_once(Steps, lie)) as (_, sessions):
        pool = pool_of(sessions[0])
        pool.reset_many([(session, 1) for session in sessions])
        batch, _ = pool.play(steps=(sessions, ["a", "b", "c"]))
        assert list(batch.faults) == [1]
        assert len(batch.faults[1].detail) <= 500
        assert batch.observations == ["did a", "", "did c"]
        assert batch.rewards == [0.5, 0.0, 0.5]
        assert batch.flags == b"\1\0\0"
        assert set(batch.infos) == {0, 2}


LOAD_LIES: dict[str, tuple[type[Op], Lie]] = {
    "garbage": (Load, lambda op: [b"\0\0\0\1\xc1"]),
    "another id": (Load, lambda op: [LoadDone(op.id + 1, "WalkEnv", 50, "", True, True)]),
    "rows": (Load, lambda op: [Rows(op.id, ["x"], [0.0], b"\0", {}, {})]),
    "an answer and another": (Load, lambda op: [honest(op), honest(op)]),
    "an answer and garbage": (Load, lambda op: [honest(op), b"\0\0\0\1\xc1"]),
    "another class": (Load, lambda op: [LoadDone(op.id, "OtherEnv", 50, "", True, True)]),
    "no turns": (Load, lambda op: [LoadDone(op.id, "WalkEnv", -1, "", True, True)]),
    "many turns": (Load, lambda op: [LoadDone(op.id, "WalkEnv", 1 << 60, "", True, True)]),
    "the parent's kind": (Load, lambda op: [Failed(op.id, "crash", "")]),
    "a load for a compile": (Compile, lambda op: [LoadDone(op.id, "WalkEnv", 5, "", True, True)]),
    "code above the cap": (
        Compile,
        lambda op: [Compiled(op.id, bytes(MAX_CODE + 1), [], "", [])],
    ),
    "violations and code": (Compile, lambda op: [Compiled(op.id, b"x", [], "", [(1, "no")])]),
}


@pytest.mark.parametrize("name", LOAD_LIES)
def test_a_source_whose_load_is_forged_again_and_again_is_given_up(name: str) -> None:
    kind, lie = LOAD_LIES[name]
    with against(lying_once(kind, *[lie] * 9), count=1) as (liar, (session,)):
        faults = [session.reset(1) for _ in range(4)]
        assert set(kinds(*faults)) == {FaultKind.PROTOCOL}
        assert session.source.quarantine is not None
        assert len(liar.puppets) == 3
        assert session.reset(1) == session.source.quarantine


@pytest.mark.parametrize("name", LOAD_LIES)
def test_a_source_whose_load_was_forged_once_is_loaded_by_the_next_worker(name: str) -> None:
    kind, lie = LOAD_LIES[name]
    with against(lying_once(kind, lie), count=1) as (_, (session,)):
        first, second = session.reset(1), session.reset(1)
        if isinstance(first, EnvFault):
            assert first.kind is FaultKind.PROTOCOL
        assert isinstance(second, ResetResult), second
        assert session.source.strikes == 1


def test_a_failure_of_a_load_is_cut() -> None:
    lie = lambda op: [Failed(op.id, "error", "x" * 100_000)]  # noqa: E731
    with against(lying_once(Load, lie), count=1) as (_, (session,)):
        fault = session.load()
        assert isinstance(fault, EnvFault)
        assert (fault.kind, fault.detail) == (FaultKind.ERROR, "x" * 500)


TEXT_LIES: dict[str, tuple[type[Op], Lie]] = {
    "a solution for a hint": (Hint, lambda op: [SolutionDone(op.id, ["x"])]),
    "a hint for a solution": (Solution, lambda op: [HintDone(op.id, "x")]),
    "garbage for a hint": (Hint, lambda op: [b"\0\0\0\1\xc1"]),
    "two hints": (Hint, lambda op: [b"\0\0\0\0"]),
    "a number for a hint": (Hint, lambda op: [frame(encode([6, op.id, 1]))]),
    "a text for a solution": (Solution, lambda op: [frame(encode([7, op.id, "x"]))]),
}


@pytest.mark.parametrize("name", TEXT_LIES)
def test_a_forged_hint_or_solution_is_a_fault_of_that_call_alone(name: str) -> None:
    kind, lie = TEXT_LIES[name]
    with against(lying_once(kind, lie), count=1) as (_, (session,)):
        session.reset(1)
        call = session.hint if kind is Hint else session.solution
        fault = call(1)
        assert isinstance(fault, EnvFault)
        assert (fault.kind, fault.call) == (
            FaultKind.PROTOCOL,
            "hint" if kind is Hint else "solution",
        )
        assert not isinstance(call(1), EnvFault)
        assert text(session.step("go")) == "did go"


REPLAY_LIES: dict[str, Lie] = {
    "garbage": lambda op: [b"\0\0\0\1\xc1"],
    "rows": lambda op: [Rows(op.id, ["x"], [0.0], b"\0", {}, {})],
    "the parent's kind": lambda op: [Failed(op.id, "lost", "")],
}


@pytest.mark.parametrize("name", REPLAY_LIES)
def test_a_forged_replay_is_a_fault_of_its_session(name: str) -> None:
    def script(puppet: Puppet) -> None:
        if puppet.number == 0:  # honest, and killed from outside
            puppet.say(READY)
            for op in puppet.ops():
                if isinstance(op, Steps) and op.actions == ["die"]:
                    puppet.end()
                    return
                puppet.say(honest(op))
        lying_once(Replay, lambda op: [], REPLAY_LIES[name])(puppet)

    with against(script, count=1) as (_, (session,)):
        session.reset(1)
        session.step("a")
        fault = session.step("die")
        assert isinstance(fault, EnvFault)
        assert fault.kind is FaultKind.PROTOCOL
        assert "replay" in fault.detail
        assert session.step("go") == fault
        assert isinstance(session.reset(1), ResetResult)


@pytest.mark.parametrize(
    "lie", [Replayed(0, "another place", 0.5), Replayed(0, "did a", 0.25), Replayed(0, "", 1e308)]
)
def test_a_replay_that_ends_elsewhere_is_a_fault_of_its_session(lie: Replayed) -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            if isinstance(op, Replay):
                puppet.say(Replayed(op.id, lie.observation, lie.paid))
            elif isinstance(op, Steps) and op.actions == ["die"] and puppet.number == 0:
                puppet.end()
            else:
                puppet.say(honest(op))

    with against(script, count=1) as (_, (session,)):
        session.reset(1)
        session.step("a")
        batch, _ = pool_of(session).play(steps=([session], ["die"]))
        assert batch.faults[0].kind is FaultKind.ERROR
        assert "replay" in batch.faults[0].detail
        assert (batch.observations, batch.rewards, batch.infos) == ([""], [0.0], {})


def test_what_is_said_between_two_calls_is_a_strike_and_costs_no_call() -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            puppet.say(honest(op))
            if isinstance(op, Resets | Steps | Replay):
                puppet.say(Done(7))

    with against(script, count=1) as (liar, (session,)):
        results = [session.reset(1), *(session.step("go") for _ in range(6))]
        faults = [item for item in results if isinstance(item, EnvFault)]
        assert set(kinds(*faults)) <= {FaultKind.PROTOCOL}
        assert session.source.quarantine is not None
        assert len(liar.puppets) == 3


def test_a_worker_that_never_answers_a_drop_is_no_hindrance() -> None:
    def script(puppet: Puppet) -> None:
        puppet.say(READY)
        for op in puppet.ops():
            puppet.say(Failed(op.id, "nonsense", "") if isinstance(op, Drop) else honest(op))

    with against(script, count=2) as (_, (one, two)):
        pool_of(one).reset_many([(one, 1), (two, 2)])
        two.close()
        batch, _ = pool_of(one).play(steps=([one], ["a"]))
        assert kinds(*batch.faults.values()) in ([], [FaultKind.PROTOCOL])
