"""The training batch of one iteration: rows of both roles with their advantages, a fixed number of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spade_loop.config import Config
from spade_loop.errors import BatchError
from spade_loop.measurement import Measured
from spade_loop.rewards import (
    agent_advantages,
    designer_advantages,
    role_scale,
    update_rms,
)
from spade_loop.types import Candidate, Completion, JsonRow, Outcome, Role, Sample


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Rows that a recipe plans; what is missing is padded, so that every iteration has the same number."""

    designer: int
    agent: int
    rows_per_step: int

    @property
    def total(self) -> int:
        """Rows in all, a multiple of `rows_per_step`."""
        rows = self.designer + self.agent
        return -(-rows // self.rows_per_step) * self.rows_per_step

    @classmethod
    def of(cls, config: Config) -> BatchShape:
        """What a config plans."""
        agent = config.agent
        designs = config.designer.candidates - initial_proposals(config)
        return cls(
            designs, agent.environments * agent.seeds * agent.plays, config.trainer.rows_per_step
        )


def initial_proposals(config: Config) -> int:
    """Proposals that come from the initial designer: at least one when the share is positive."""
    share = config.designer.initial_share * config.designer.candidates
    # 0.07 * 100 is a little more than 7 in binary fractions, and means 7.
    return 0 if share == 0.0 else max(1, math.ceil(share - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSummary:
    """What one role brings to a batch; a row of `metrics.jsonl`."""

    rows: int
    live_rows: int
    """Rows with an advantage other than zero."""
    trained_tokens: int
    """Tokens of live rows that carry a gradient."""
    abs_advantage: float
    """Sum of |advantage| over the rows, after centring and weighting."""
    reward_mean: float
    reward_std: float
    zero_variance_groups: int
    rms: float

    def to_json(self) -> JsonRow:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


def designer_samples(
    candidates: Sequence[Candidate], rewards: Mapping[int, float], config: Config
) -> list[Sample]:
    """A row for each trained attempt. `rewards` holds the measured reward of candidate i; others are NaN.

    Baselines are taken over all attempts of a skill, those of the initial designer included.
    """
    samples: list[Sample] = []
    for skill in dict.fromkeys(c.skill for c in candidates):
        group = [(i, c) for i, c in enumerate(candidates) if c.skill == skill]
        valid_N = np.asarray([float(c.outcome is Outcome.ADMITTED) for _, c in group])
        reward_N = np.asarray([rewards.get(i, float("nan")) for i, _ in group])
        advantage_N = designer_advantages(valid_N, reward_N, config.reward.valid_weight)
        earned_N = config.reward.valid_weight * valid_N + np.nan_to_num(reward_N)
        samples += [
            Sample(
                role=Role.DESIGNER,
                group=f"designer:{skill}",
                prompt_ids=c.prompt_ids,
                completion=c.completion,
                reward=float(earned),
                advantage=float(advantage),
            )
            for (_, c), advantage, earned in zip(group, advantage_N, earned_N, strict=True)
            if not c.initial and c.completion.ids
        ]
    return samples


def agent_samples(measured: Sequence[Measured]) -> list[Sample]:
    """A row for each plain episode in which the agent had a turn; seeds that a fault dropped bring none."""
    samples: list[Sample] = []
    for m in measured:
        return_N = m.return_SK.ravel()
        advantage_N = agent_advantages(m.return_SK[None])[0].ravel()
        samples += [
            Sample(
                role=Role.AGENT,
                group=f"agent:{m.spec.digest}",
                prompt_ids=t.prompt_ids,
                completion=t.completion,
                reward=float(earned),
                advantage=float(advantage),
            )
            for t, earned, advantage in zip(m.plain, return_N, advantage_N, strict=True)
            if t.completion.ids and not math.isnan(earned)
        ]
    return samples


def weigh(
    samples: Sequence[Sample], config: Config, rms: Mapping[str, float]
) -> tuple[list[Sample], dict[Role, RoleSummary], dict[str, float]]:
    """Samples with role weights folded into their advantages, a summary of each role, and the running RMS after."""
    shape = BatchShape.of(config)
    planned = {Role.DESIGNER: shape.designer, Role.AGENT: shape.agent}
    weights = {Role.DESIGNER: config.reward.designer_weight, Role.AGENT: config.reward.agent_weight}
    weighed: list[Sample] = []
    summaries: dict[Role, RoleSummary] = {}
    new_rms: dict[str, float] = {}
    for role in Role:
        own = [s for s in samples if s.role is role]
        new_rms[role] = update_rms(rms.get(role), np.asarray([s.advantage for s in own]))
        # A recipe may plan no row for a role: all designs may come from the initial designer.
        scale = role_scale(weights[role], shape.total, max(planned[role], 1), new_rms[role])
        own = [replace(s, advantage=s.advantage * scale) for s in own]
        summaries[role] = _summary(own, new_rms[role])
        weighed += own
    return weighed, summaries, new_rms


def _summary(samples: Sequence[Sample], rms: float) -> RoleSummary:
    rewards = np.asarray([s.reward for s in samples] or [0.0])
    live = [s for s in samples if s.advantage != 0.0]
    groups = {s.group for s in samples}
    return RoleSummary(
        rows=len(samples),
        live_rows=len(live),
        trained_tokens=sum(s.trained_tokens for s in live),
        abs_advantage=float(sum(abs(s.advantage) for s in samples)),
        reward_mean=float(rewards.mean()),
        reward_std=float(rewards.std()),
        zero_variance_groups=len(groups - {s.group for s in live}),
        rms=rms,
    )


def pad(samples: Sequence[Sample], rows: int, pad_id: int) -> list[Sample]:
    """`rows` rows: the samples that carry an advantage, and one-token rows without gradient for all others.

    Without a KL term and an entropy bonus a row with advantage zero adds nothing to the loss but its share of the
    mean, which a padding row has too: the gradient is the same and the forward pass is saved.
    """
    filler = Sample(
        role=Role.AGENT,
        group="pad",
        prompt_ids=(pad_id,),
        completion=Completion((pad_id,), (0.0,), (0,)),
        reward=0.0,
        advantage=0.0,
    )
    live = [s for s in samples if s.advantage != 0.0]
    return [*live, *[filler] * (rows - len(live))]


def check_batch(samples: Sequence[Sample], rows: int) -> None:
    """Refuse a batch that TRL would train on wrongly or crash on; `BatchError` is a defect of ours."""
    if len(samples) != rows:
        raise BatchError(f"the recipe plans {rows} rows, the batch has {len(samples)}")
    for i, sample in enumerate(samples):
        c = sample.completion
        if not sample.prompt_ids or not c.ids:
            raise BatchError(f"row {i} ({sample.group}) has no prompt or no completion")
        if not len(c.ids) == len(c.mask) == len(c.logprobs):
            raise BatchError(
                f"row {i} ({sample.group}): ids, mask and log-probabilities differ in length"
            )
        if not math.isfinite(sample.advantage) or not all(map(math.isfinite, c.logprobs)):
            raise BatchError(f"row {i} ({sample.group}) holds a number that is not finite")
        if any(not c.mask[position] for position in c.allowed):
            raise BatchError(f"row {i} ({sample.group}): a grammar's choice is not trained on")
