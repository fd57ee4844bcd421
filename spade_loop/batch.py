"""The training batch of one iteration: rows of both roles with their advantages, a fixed number of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spade_loop.config import Config
from spade_loop.errors import BatchError
from spade_loop.hints import TRIES
from spade_loop.measurement import Measured
from spade_loop.rewards import (
    agent_advantages,
    reference_agent_advantages,
    role_scale,
    update_rms,
)
from spade_loop.types import INITIAL, POLICY, Completion, JsonRow, Role, Sample


@dataclass(frozen=True, slots=True)
class BatchShape:
    """Rows that a recipe plans; what is missing is padded, so that every iteration has the same number."""

    designer: int
    agent: int
    rows_per_step: int
    rehearsal: int = 0
    """Demonstrations among them."""

    @property
    def planned(self) -> int:
        """Rows without padding."""
        return self.designer + self.agent + self.rehearsal

    @property
    def total(self) -> int:
        """Rows in all, a multiple of `rows_per_step`."""
        return self.shared(1)

    def shared(self, ranks: int) -> int:
        """Rows in all when `ranks` processes share them: a multiple of `rows_per_step` for each of them."""
        step = self.rows_per_step * ranks
        return -(-self.planned // step) * step

    @classmethod
    def of(cls, config: Config) -> BatchShape:
        """What a config plans."""
        designer, agent = config.designer, config.agent
        # Of several draws for a design one is mended.
        attempts = proposals(config)[POLICY] * (designer.best_of + designer.repairs)
        hints = agent.environments * TRIES if config.hints.train else 0
        designs = attempts * designer.train + hints
        plays = agent.environments * agent.seeds * agent.plays
        rehearsal = config.rehearsal
        rehearsed = _at_least_one(rehearsal.share * (designs + plays), up=False)
        return cls(designs, plays, config.trainer.rows_per_step, rehearsed if rehearsal.rows else 0)


def proposals(config: Config) -> dict[str, int]:
    """Designs of an iteration by author: the policy's, the initial designer's, those of each other designer.

    A share is rounded up for the initial designer and to the nearest for others, and is at least one design; the
    policy has the rest.
    """
    designs = config.designer.candidates
    counts = {POLICY: 0, INITIAL: _at_least_one(config.designer.initial_share * designs, up=True)}
    for other in config.designers:
        left = designs - sum(counts.values())
        counts[other.name] = min(_at_least_one(other.share * designs, up=False), left)
    counts[INITIAL] = min(counts[INITIAL], designs)
    counts[POLICY] = designs - sum(counts.values())
    return counts


def _at_least_one(share: float, *, up: bool) -> int:
    # 0.07 * 100 is a little more than 7 in binary fractions, and means 7.
    rounded = math.ceil(share - 1e-9) if up else math.floor(share + 0.5)
    return 0 if share == 0.0 else max(1, rounded)


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


def agent_samples(measured: Sequence[Measured], *, reference: bool = False) -> list[Sample]:
    """A row for each plain episode in which the agent had a turn; seeds that a fault dropped bring none.

    `reference` centres and scales as the released code of the paper does.
    """
    advantages = reference_agent_advantages if reference else agent_advantages
    samples: list[Sample] = []
    for m in measured:
        # Seeds beyond the recipe's were played to measure, and the plan has no rows for them.
        return_SK = m.return_SK[: m.trained_seeds]
        return_N = return_SK.ravel()
        advantage_N = advantages(return_SK[None])[0].ravel()
        samples += [
            Sample(
                role=Role.AGENT,
                group=f"agent:{m.spec.digest}",
                prompt_ids=t.prompt_ids,
                completion=t.completion,
                reward=float(earned),
                advantage=float(advantage),
            )
            for t, earned, advantage in zip(m.plain, return_N, advantage_N, strict=False)
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
        if config.reward.reference:
            scale = 1.0
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


def pad(
    samples: Sequence[Sample], rows: int, pad_id: int, *, keep_all: bool = False
) -> list[Sample]:
    """`rows` rows: the samples that carry an advantage, and one-token rows without gradient for all others.

    Without a KL term and an entropy bonus a row with advantage zero adds nothing to the loss but its share of the
    mean, which a padding row has too: the gradient is the same and the forward pass is saved. `keep_all` keeps such
    rows, for a loss with a KL term.
    """
    filler = Sample(
        role=Role.AGENT,
        group="pad",
        prompt_ids=(pad_id,),
        completion=Completion((pad_id,), (0.0,), (0,)),
        reward=0.0,
        advantage=0.0,
    )
    kept = [s for s in samples if keep_all or s.advantage != 0.0]
    return [*kept, *[filler] * (rows - len(kept))]


def spread(samples: Sequence[Sample], planned: int) -> list[Sample]:
    """Samples whose mean over all of them is what it would be over `planned` rows.

    More processes may need more padding; the sum that a mean of the loss stands for must not depend on it.
    """
    factor = len(samples) / planned
    return [replace(s, advantage=s.advantage * factor) for s in samples]


def deal(samples: Sequence[Sample], ranks: int) -> list[list[Sample]]:
    """The rows of each rank, as many for each and of like lengths: in the order of their length they go round."""
    if len(samples) % ranks:
        raise BatchError(f"{len(samples)} rows cannot be shared out among {ranks} processes")
    lengths = [len(s.prompt_ids) + len(s.completion.ids) for s in samples]
    order = sorted(range(len(samples)), key=lengths.__getitem__)
    return [[samples[i] for i in sorted(order[rank::ranks])] for rank in range(ranks)]


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
        if sample.weights and len(sample.weights) != len(c.ids):
            raise BatchError(f"row {i} ({sample.group}) has not a weight for each token")
        if (
            not all(map(math.isfinite, sample.weights))
            or not math.isfinite(sample.advantage)
            or not all(map(math.isfinite, c.logprobs))
        ):
            raise BatchError(f"row {i} ({sample.group}) holds a number that is not finite")
        if any(not c.mask[position] for position in c.allowed):
            raise BatchError(f"row {i} ({sample.group}): a grammar's choice is not trained on")
