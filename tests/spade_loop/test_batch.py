"""The training batch: rows, baselines, role weights, padding, summaries."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from spade_loop.batch import (
    BatchShape,
    agent_samples,
    pad,
    proposals,
    weigh,
)
from spade_loop.config import Config, load_config
from spade_loop.measurement import Arms, Measured, measure
from spade_loop.types import (
    INITIAL,
    POLICY,
    Arm,
    Completion,
    Role,
    Sample,
    StopReason,
    Trajectory,
)
from synthgym.spec import EnvRecord, SynthEnvSpec

SPEC = SynthEnvSpec(record=EnvRecord(source="", entry="AnEnv", max_turns=4), name="An")
NAN = float("nan")


def config(*overrides: str) -> Config:
    return load_config("tiny", overrides)


def trajectory(seed: int, earned: float, arm: Arm, ids: tuple[int, ...] = (5, 6)) -> Trajectory:
    return Trajectory(
        digest=SPEC.digest,
        seed=seed,
        play=0,
        arm=arm,
        prompt_ids=(4,),
        completion=Completion(ids, (0.0,) * len(ids), (1,) * len(ids)),
        turns=(),
        episode_return=max(earned, 0.0),
        success=earned == 1.0,
        stop=StopReason.FAULT if math.isnan(earned) else StopReason.FAILURE,
    )


def sample(advantage: float, role: Role = Role.AGENT, group: str = "g") -> Sample:
    return Sample(
        role=role,
        group=group,
        prompt_ids=(1, 2),
        completion=Completion((3, 4, 5), (0.0,) * 3, (1, 0, 1)),
        reward=advantage,
        advantage=advantage,
    )


def agent_rows(table: Sequence[Sequence[float]], *, reference: bool = False) -> list[Sample]:
    """Rows of one environment whose plain arm earned `table`, seed by seed."""
    arms = [
        tuple(trajectory(s, earned, arm) for s, row in enumerate(table) for earned in row)
        for arm in (Arm.PLAIN, Arm.HINTED)
    ]
    return agent_samples([measured_of(*arms)], reference=reference)


def measured_of(
    plain: Sequence[Trajectory], hinted: Sequence[Trajectory], trained_seeds: int | None = None
) -> Measured:
    arms = Arms(plain=tuple(plain), hinted=tuple(hinted))
    return measure(SPEC, arms, lambda _s, _t: False, iteration=0, trained_seeds=trained_seeds)


def test_a_recipe_fixes_the_number_of_rows() -> None:
    shape = BatchShape.of(config("designer.candidates=6", "trainer.rows_per_step=8"))
    assert (shape.designer, shape.agent) == (5, 32)
    assert shape.total == 40


@pytest.mark.parametrize(
    ("share", "candidates", "expected"),
    [(0.0, 6, 0), (0.15, 6, 1), (0.01, 6, 1), (0.1, 10, 1), (0.07, 100, 7), (1.0, 6, 6)],
)
def test_initial_proposals_are_a_share_rounded_up(
    share: float, candidates: int, expected: int
) -> None:
    made = config(f"designer.candidates={candidates}", f"designer.initial_share={share}")
    assert proposals(made) == {POLICY: candidates - expected, INITIAL: expected}


def test_other_designers_have_their_share_and_the_policy_the_rest() -> None:
    others = (
        "designers=[{name='a', kind='random', share=0.3}, {name='b', kind='random', share=0.01}]"
    )
    made = config("designer.candidates=12", "designer.initial_share=0.15", others)
    assert proposals(made) == {POLICY: 5, INITIAL: 2, "a": 4, "b": 1}
    shape = BatchShape.of(made)
    assert shape.designer == 5


@pytest.mark.parametrize(
    ("settings", "rows"),
    [
        (["designer.repairs=2"], 15),
        (["designer.best_of=3"], 15),
        (["designer.best_of=2", "designer.repairs=1"], 15),
        (["designer.train=false"], 0),
        (["hints.train=true", "hints.source=designer"], 13),
        (["designer.candidates=0"], 0),
    ],
)
def test_the_rows_of_the_designer(settings: list[str], rows: int) -> None:
    assert BatchShape.of(config(*settings)).designer == rows


def test_agents_are_compared_within_their_environment() -> None:
    rows = agent_rows([[1.0, 0.0], [0.0, 0.0]])
    assert [r.advantage for r in rows] == pytest.approx([1.0, -1 / 3, -1 / 3, -1 / 3])
    assert {r.role for r in rows} == {Role.AGENT}
    assert [r.reward for r in rows] == [1.0, 0.0, 0.0, 0.0]


def test_with_four_plays_agents_are_compared_within_their_seed() -> None:
    rows = agent_rows([[1.0, 1.0, 0.0, 0.0], [0.0] * 4])
    assert [r.advantage for r in rows] == pytest.approx([0.5, 0.5, -0.5, -0.5] + [0.0] * 4)


def test_a_seed_that_a_fault_dropped_brings_no_row() -> None:
    rows = agent_rows([[1.0, 0.0], [NAN, 1.0], [0.0, 0.0]])
    assert [r.reward for r in rows] == [1.0, 0.0, 0.0, 0.0]
    assert agent_rows([[NAN, 0.0], [NAN, 1.0]]) == []


def test_an_episode_without_a_turn_brings_no_row() -> None:
    plain = [trajectory(0, 0.0, Arm.PLAIN, ids=()), trajectory(1, 1.0, Arm.PLAIN)]
    hinted = [trajectory(0, 0.0, Arm.HINTED), trajectory(1, 1.0, Arm.HINTED)]
    assert len(agent_samples([measured_of(plain, hinted)])) == 1


def test_seeds_that_were_only_played_to_measure_bring_no_row() -> None:
    plain = [trajectory(seed, float(seed == 0), Arm.PLAIN) for seed in range(4)]
    hinted = [trajectory(seed, 1.0, Arm.HINTED) for seed in range(4)]
    rows = agent_samples([measured_of(plain, hinted, trained_seeds=2)])
    assert [r.reward for r in rows] == [1.0, 0.0]
    assert [r.advantage for r in rows] == pytest.approx([1.0, -1.0])


def test_the_reference_scales_by_the_deviation_of_the_environment() -> None:
    rows = agent_rows([[1.0, 0.0], [0.0, 0.0]], reference=True)
    deviation = math.sqrt(0.25 * 0.75)
    assert [r.advantage for r in rows] == pytest.approx(
        [0.75 / deviation, *[-0.25 / deviation] * 3], rel=1e-6
    )


def test_roles_are_weighed_by_rows_planned_and_by_their_rms() -> None:
    made = config("trainer.rows_per_step=1")
    shape = BatchShape.of(made)
    samples = [sample(0.5, Role.DESIGNER), sample(-0.5, Role.DESIGNER), sample(0.2), sample(-0.2)]
    weighed, summaries, rms = weigh(samples, made, {})
    assert rms == pytest.approx({"designer": 0.5, "agent": 0.2})
    expected = 0.3 * shape.total / shape.designer
    assert weighed[0].advantage == pytest.approx(expected)
    assert weighed[2].advantage == pytest.approx(0.7 * shape.total / shape.agent)
    assert summaries[Role.DESIGNER].abs_advantage == pytest.approx(2 * expected)
    # Next time the running value moves by a tenth: sqrt(0.9 * 0.25 + 0.1 * 1.0).
    _, _, later = weigh([sample(1.0, Role.DESIGNER)], made, rms)
    assert later["designer"] == pytest.approx(math.sqrt(0.9 * 0.25 + 0.1))
    assert later["agent"] == rms["agent"]


def test_a_recipe_whose_designs_are_all_the_initial_designers_trains_the_agent_alone() -> None:
    made = config("designer.initial_share=1")
    assert BatchShape.of(made).designer == 0
    weighed, summaries, _ = weigh([sample(0.5), sample(-0.5)], made, {})
    assert summaries[Role.DESIGNER].rows == 0
    assert all(math.isfinite(s.advantage) for s in weighed)


def test_a_summary_counts_trained_tokens_of_live_rows_and_groups_without_variance() -> None:
    samples = [
        sample(0.5, group="a"),
        sample(-0.5, group="a"),
        sample(0.0, group="b"),
        sample(0.0, group="b"),
    ]
    _, summaries, _ = weigh(samples, config(), {})
    agent = summaries[Role.AGENT]
    assert (agent.rows, agent.live_rows, agent.trained_tokens) == (4, 2, 4)
    assert agent.zero_variance_groups == 1
    assert agent.reward_mean == 0.0
    designer = summaries[Role.DESIGNER].to_json()
    assert (designer["rows"], designer["trained_tokens"], designer["abs_advantage"]) == (0, 0, 0.0)


def test_padding_keeps_live_rows_in_order_and_the_number_of_rows() -> None:
    samples = [sample(0.0), sample(0.5, group="x"), sample(0.0), sample(-0.1, group="y")]
    rows = pad(samples, 6, pad_id=9)
    assert [r.group for r in rows] == ["x", "y"] + ["pad"] * 4
    assert all(r.completion.mask == (0,) and r.prompt_ids == (9,) for r in rows[2:])
    assert pad([], 2, 9) == [rows[-1]] * 2


def test_a_loss_with_a_kl_term_keeps_the_rows_without_advantage() -> None:
    rows = pad([sample(0.0), sample(0.5)], 3, 9, keep_all=True)
    assert [r.group for r in rows] == ["g", "g", "pad"]


def grpo_gradient(samples: Sequence[Sample]) -> torch.Tensor:
    """The gradient of TRL's `grpo` loss without KL and entropy, on a bigram model of 12 tokens."""
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(12, 12, generator=generator, dtype=torch.float64).requires_grad_()
    losses = []
    for s in samples:
        ids = torch.tensor([*s.prompt_ids, *s.completion.ids])
        logps = torch.log_softmax(weight[ids[:-1]], dim=-1).gather(1, ids[1:, None])[:, 0]
        logps = logps[-len(s.completion.ids) :]
        ratio = torch.exp(logps - logps.detach())
        loss = -torch.min(ratio * s.advantage, ratio.clamp(0.8, 1.28) * s.advantage)
        mask = torch.tensor(s.completion.mask)
        losses.append((loss * mask).sum() / mask.sum().clamp(min=1))
    torch.stack(losses).mean().backward()
    assert weight.grad is not None
    return weight.grad


def test_padding_in_place_of_rows_without_advantage_leaves_the_gradient_as_it_is() -> None:
    rng = np.random.default_rng(0)
    samples = []
    for advantage in (0.5, 0.0, -0.3, 0.0, 0.0, 1.1):
        ids = tuple(int(i) for i in rng.integers(0, 12, size=int(rng.integers(2, 7))))
        mask = (*(int(i) for i in rng.integers(0, 2, size=len(ids) - 1)), 1)
        samples.append(
            Sample(
                role=Role.AGENT,
                group="g",
                prompt_ids=(1, 2),
                completion=Completion(ids, (0.0,) * len(ids), mask),
                reward=0.0,
                advantage=advantage,
            )
        )
    expected = grpo_gradient(samples)
    assert expected.abs().max() > 0.01
    torch.testing.assert_close(grpo_gradient(pad(samples, 6, pad_id=0)), expected)
    # Fewer rows would weigh the others more: the number is part of the gradient.
    live = [s for s in samples if s.advantage]
    assert not torch.allclose(grpo_gradient(live), expected)
