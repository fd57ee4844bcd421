"""From trajectories to numbers: pairing, dropped seeds, and whom a fault is charged to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from spade_loop.measurement import Arms, Measured, fault_reproduces, measure
from spade_loop.types import Arm, Completion, StopReason, Trajectory, Turn
from synthgym.sandbox import EnvFault, FaultKind
from synthgym.spec import EnvRecord, Limits, SynthEnvSpec

FAULTY = '''"""Does as it is told."""


class FaultyEnv:
    max_turns = 4

    def reset(self, seed):
        if seed == 13:
            raise ValueError("unlucky")
        return "Go.", {}

    def step(self, action):
        if action == "raise":
            raise ValueError("told to")
        if action == "hang":
            while True:
                pass
        return "On.", 0.0, False, False, {}

    def hint(self, level=2):
        if level == 3:
            raise ValueError("no such hint")
        return "Do not say raise."

    def solution(self):
        return ["a", "b"]
'''
SPEC = SynthEnvSpec(
    record=EnvRecord(source=FAULTY, entry="FaultyEnv", max_turns=4),
    name="Faulty",
    limits=Limits(step_seconds=0.2),
)


def trajectory(
    seed: int,
    play: int,
    arm: Arm,
    earned: float = 0.0,
    stop: StopReason = StopReason.FAILURE,
    actions: Sequence[str] = ("a",),
) -> Trajectory:
    return Trajectory(
        digest=SPEC.digest,
        seed=seed,
        play=play,
        arm=arm,
        prompt_ids=(1, 2),
        completion=Completion((3,), (0.0,), (1,)),
        turns=tuple(Turn("o", "r", action, "ok", 0.0) for action in actions),
        episode_return=earned,
        success=earned == 1.0,
        stop=StopReason.SUCCESS if earned == 1.0 else stop,
    )


def arm_of(arm: Arm, table: Sequence[Sequence[float]]) -> list[Trajectory]:
    """Seed by seed; a negative return stands for a fault."""
    return [
        trajectory(
            seed, k, arm, max(earned, 0.0), StopReason.FAULT if earned < 0 else StopReason.FAILURE
        )
        for seed, row in enumerate(table, start=100)
        for k, earned in enumerate(row)
    ]


def measured(
    plain: Sequence[Sequence[float]], hinted: Sequence[Sequence[float]], *, blamed: bool = True
) -> Measured:
    return of_arms(arm_of(Arm.PLAIN, plain), arm_of(Arm.HINTED, hinted), blamed=blamed)


def of_arms(
    plain: Sequence[Trajectory],
    hinted: Sequence[Trajectory],
    *,
    blamed: bool = True,
    paired: bool = True,
) -> Measured:
    arms = Arms(plain=tuple(plain), hinted=tuple(hinted))
    return measure(SPEC, arms, lambda _s, _t: blamed, iteration=7, paired=paired)


def test_regret_pairs_the_arms_seed_by_seed() -> None:
    m = measured([[0, 0], [1, 1], [0.5, 0]], [[1, 0], [1, 1], [1, 1]])
    assert m.seeds == (100, 101, 102)
    assert m.return_SK.tolist() == [[0, 0], [1, 1], [0.5, 0]]
    assert m.regret.value == pytest.approx((0.5 + 0.0 + 0.75) / 3)
    assert m.regret.solve_rate == pytest.approx(2 / 6)
    assert m.regret.hinted_solve_rate == pytest.approx(5 / 6)
    assert m.regret.seeds == 3


@pytest.mark.parametrize("arm", [Arm.PLAIN, Arm.HINTED])
def test_a_fault_in_one_arm_drops_its_seed_in_both(arm: Arm) -> None:
    tables = {Arm.PLAIN: [[0, 0], [1, 1], [0, 0]], Arm.HINTED: [[1, 1], [1, 1], [1, 1]]}
    tables[arm][1] = [1, -1]
    m = measured(tables[Arm.PLAIN], tables[Arm.HINTED])
    assert [math.isnan(x) for x in m.return_SK.ravel()] == [False] * 2 + [True] * 2 + [False] * 2
    assert m.regret.seeds == 2
    assert m.regret.value == 1.0
    assert m.regret.solve_rate == 0.0  # the won play of the dropped seed counts nowhere
    assert m.fault_share == pytest.approx(1 / 12)


def test_an_observation_that_fills_the_context_is_not_charged_to_the_agent() -> None:
    hinted = arm_of(Arm.HINTED, [[1], [1], [1]])
    hinted[1] = trajectory(101, 0, Arm.HINTED, 0.0, StopReason.CONTEXT, actions=())
    m = of_arms(arm_of(Arm.PLAIN, [[0], [0], [0]]), hinted)
    assert (m.regret.seeds, m.regret.value, m.fault_share) == (2, 1.0, 0.0)
    # One that was cut after a turn was the agent's own.
    hinted[1] = trajectory(101, 0, Arm.HINTED, 0.0, StopReason.CONTEXT)
    m = of_arms(arm_of(Arm.PLAIN, [[0], [0], [0]]), hinted)
    assert m.regret.seeds == 3


def test_a_fault_that_does_not_come_again_costs_the_seed_and_nothing_else() -> None:
    m = measured([[0, 0], [1, -1], [0, 1]], [[1, 1], [1, 1], [1, 1]], blamed=False)
    assert (m.fault_share, m.quarantined, m.regret.seeds) == (0.0, False, 2)


@pytest.mark.parametrize(("faults", "quarantined"), [(2, False), (3, True)])
def test_more_than_a_quarter_of_faulty_plays_is_quarantine(faults: int, quarantined: bool) -> None:
    plain = [[-1.0] if i < faults else [0.0] for i in range(4)]
    m = measured(plain, [[1]] * 4)
    assert m.fault_share == faults / 8
    assert m.quarantined is quarantined


def test_the_interval_holds_the_regret_and_needs_pairs() -> None:
    m = measured([[0, 0], [1, 1], [0.5, 0]], [[1, 0], [1, 1], [1, 1]])
    assert m.interval is not None
    assert m.interval.low <= m.regret.value <= m.interval.high
    plain, hinted = arm_of(Arm.PLAIN, [[0], [0]]), arm_of(Arm.HINTED, [[1], [1]])
    assert of_arms(plain, hinted, paired=False).interval is None
    assert of_arms(plain, []).interval is None


def test_unpaired_arms_drop_their_seeds_apart() -> None:
    plain = arm_of(Arm.PLAIN, [[0], [-1], [0], [0]])
    hinted = [replace(t, seed=t.seed + 1000) for t in arm_of(Arm.HINTED, [[1], [1], [1], [-1]])]
    m = of_arms(plain, hinted, paired=False)
    assert (m.regret.value, m.regret.seeds) == (1.0, 3)


def test_an_iteration_without_hints_knows_the_solve_rate_alone() -> None:
    m = of_arms(arm_of(Arm.PLAIN, [[1], [0]]), [])
    assert not m.measurable
    assert (m.regret.solve_rate, m.regret.seeds) == (0.5, 2)
    assert m.visit.hinted == ()


def test_a_visit_says_the_same_as_plain_data() -> None:
    m = measured([[0, 0], [1, -1], [0.5, 0]], [[1, 0], [1, 1], [1, 1]])
    assert m.visit.regret() == m.regret
    assert (m.visit.iteration, m.visit.plays, m.visit.faults) == (7, 12, 1.0)
    assert not m.visit.hung
    slow = replace(
        arm_of(Arm.PLAIN, [[-1]])[0], fault=EnvFault(FaultKind.TIMEOUT, "step", "too long")
    )
    assert of_arms([slow], arm_of(Arm.HINTED, [[1]])).visit.hung
    assert not of_arms([slow], arm_of(Arm.HINTED, [[1]]), blamed=False).visit.hung


def test_equal_plays_of_a_seed_are_replayed_once() -> None:
    asked: list[Trajectory] = []

    def reproduces(_spec: SynthEnvSpec, t: Trajectory) -> bool:
        asked.append(t)
        return t.seed == 100

    plain = arm_of(Arm.PLAIN, [[-1, -1], [-1, -1], [0, 0]])
    plain[3] = trajectory(101, 1, Arm.PLAIN, 0.0, StopReason.FAULT, actions=("b",))
    arms = Arms(plain=tuple(plain), hinted=tuple(arm_of(Arm.HINTED, [[0, 0]] * 3)))
    m = measure(SPEC, arms, reproduces, iteration=0)
    assert [(t.seed, t.actions) for t in asked] == [(100, ("a",)), (101, ("a",)), (101, ("b",))]
    assert m.fault_share == pytest.approx(2 / 12)


@pytest.mark.parametrize(
    ("seed", "arm", "level", "actions", "again"),
    [
        (1, Arm.PLAIN, 2, ("a", "raise"), True),
        (1, Arm.PLAIN, 2, ("a", "hang"), True),
        (13, Arm.PLAIN, 2, (), True),
        (1, Arm.HINTED, 3, (), True),
        (1, Arm.PLAIN, 3, ("a", "b"), False),
        (1, Arm.HINTED, 2, ("a", "b", "c", "d"), False),
        (1, Arm.PLAIN, 2, (), False),
    ],
)
def test_a_fault_is_the_environments_when_it_comes_again_in_a_fresh_worker(
    seed: int, arm: Arm, level: int, actions: tuple[str, ...], again: bool
) -> None:
    t = trajectory(seed, 0, arm, 0.0, StopReason.FAULT, actions)
    assert fault_reproduces(SPEC, t, level) is again
