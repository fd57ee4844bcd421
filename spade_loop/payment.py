"""What the designer is paid: from the windows of its environments to the rows of its update."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from spade_loop.completers import Sampler
from spade_loop.config import Config
from spade_loop.hints import WrittenHint
from spade_loop.measurement import MIN_SEEDS, QUARANTINE_SHARE
from spade_loop.rewards import (
    Floats,
    Incidents,
    RewardSettings,
    Tracker,
    Window,
    designer_advantages,
    designer_reward,
    reference_designer_advantages,
    reference_multiplier,
    update_trackers,
)
from spade_loop.schedule import Attempt, Waiting
from spade_loop.types import JsonRow, Role, Sample
from spade_loop.windows import Visit, fault_share, visits_since, window_of

Windows = Mapping[str, Sequence[Visit]]
"""What was measured of each environment, by digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """One attempt, when it is trained on."""

    attempt: Attempt
    reward: float
    """For what was measured of it; NaN when nothing was."""
    total: float
    """With what being valid is worth."""
    advantage: float
    """Before the role's weight."""
    window: Window | None
    iteration: int = 0
    """In which it was designed."""
    weights: tuple[float, ...] = ()
    effective: float | None = None
    """Effective share of its tokens, when it was delayed."""
    dropped: bool = False
    """The policy has moved too far since."""

    def sample(self) -> Sample:
        """Its row of the batch."""
        return Sample(
            role=Role.DESIGNER,
            group=self.attempt.group,
            prompt_ids=self.attempt.prompt_ids,
            completion=self.attempt.completion,
            reward=self.total,
            advantage=self.advantage,
            weights=self.weights,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """The designs that a step pays for, and what was noticed on the way."""

    paid: tuple[Paid, ...] = ()
    delayed: int = 0
    """Rows whose tokens were weighed, because the policy has moved since they were sampled."""
    dropped: int = 0
    """Rows that were dropped because it had moved too far."""
    effective: float | None = None
    """Mean effective share of the tokens of the delayed rows."""
    trackers: Mapping[str, Tracker]
    """Mean returns of each skill, for the reward `learning_potential`."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """A row for each attempt that may be trained on."""
        return tuple(p.sample() for p in self.paid if p.attempt.trained and not p.dropped)

    def to_json(self) -> JsonRow:
        """A part of the iteration's row in `metrics.jsonl`."""
        return {"delayed": self.delayed, "dropped": self.dropped, "effective": self.effective}


def earned(
    attempt: Attempt,
    windows: Windows,
    config: Config,
    trackers: Mapping[str, Tracker],
) -> float:
    """What one attempt is paid; NaN when nothing was measured of it."""
    visits = windows.get(attempt.digest, ())
    if not attempt.digest or not visits:
        return math.nan
    window = window_of(visits, attempt.skill)
    if config.schedule.regret == "matched":
        window = replace(window, regret=window.matched)
    faults = fault_share(visits)
    if window.regret.seeds < MIN_SEEDS:
        return config.reward.fault_floor if faults > QUARANTINE_SHARE else math.nan
    incidents = Incidents(
        fault_share=faults,
        # The released code pays for a step that hung the floor, whatever else was measured.
        step_timeout=config.reward.reference and any(v.hung for v in visits),
        repaired=attempt.repaired,
    )
    settings = reward_settings(config, trackers)
    return designer_reward(config.reward.designer, window, incidents, settings) + attempt.bonus


def reward_settings(config: Config, trackers: Mapping[str, Tracker]) -> RewardSettings:
    """What a recipe says about the designer's reward."""
    reward = config.reward
    return RewardSettings(
        gate=reward.gate,
        floored=reward.floored or reward.reference,
        estimator="means" if reward.reference else "paired",
        blend=reward.blend,
        learning=reward.learning,
        trackers=trackers,
        fault_floor=reward.fault_floor,
        repaired_factor=reward.repaired_factor,
    )


def pay(
    due: Sequence[Waiting],
    windows: Windows,
    trackers: Mapping[str, Tracker],
    config: Config,
    sampler: Sampler,
    step: int,
) -> Payment:
    """Rows of the attempts that are due in this step, centred within their groups."""
    learning = config.reward.learning
    paid: list[Paid] = []
    for waiting in due:
        # The gate forgets, or is off: the same environment may have been designed and played before.
        own_windows = visits_since(windows, waiting.iteration)
        played = [
            window_of(own_windows[a.digest], a.skill)
            for a in waiting.attempts
            if a.digest in own_windows
        ]
        after = update_trackers(trackers, played, learning)
        baseline = after if learning.update_first else trackers
        trackers = after
        own = settle(waiting.attempts, own_windows, config, baseline)
        if step > waiting.iteration:
            own = [_weighed(p, sampler, config) for p in own]
        paid += [replace(p, iteration=waiting.iteration) for p in own]
    shares = [p.effective for p in paid if p.effective is not None]
    return Payment(
        paid=tuple(paid),
        delayed=len(shares),
        dropped=sum(p.dropped for p in paid),
        effective=float(np.mean(shares)) if shares else None,
        trackers=trackers,
    )


def settle(
    attempts: Sequence[Attempt],
    windows: Windows,
    config: Config,
    trackers: Mapping[str, Tracker],
) -> list[Paid]:
    """What each attempt is paid, in order.

    Baselines are taken over all attempts of a group, those of other designers included.
    """
    paid: dict[int, Paid] = {}
    weight = 0.0 if config.reward.reference else config.reward.valid_weight
    for group in dict.fromkeys(a.group for a in attempts):
        places = [i for i, a in enumerate(attempts) if a.group == group]
        valid_N = np.asarray([float(attempts[i].valid) for i in places])
        reward_N = np.asarray([earned(attempts[i], windows, config, trackers) for i in places])
        advantage_N = _advantages(valid_N, reward_N, config)
        total_N = weight * valid_N + np.nan_to_num(reward_N)
        for i, reward, total, advantage in zip(places, reward_N, total_N, advantage_N, strict=True):
            visits = windows.get(attempts[i].digest, ())
            paid[i] = Paid(
                attempt=attempts[i],
                reward=float(reward),
                total=float(total),
                advantage=float(advantage),
                window=window_of(visits, attempts[i].skill) if visits else None,
            )
    return [paid[i] for i in range(len(attempts))]


def _advantages(valid_N: Floats, reward_N: Floats, config: Config) -> Floats:
    """The designer's advantages of one group, as the recipe centres them."""
    if not config.reward.reference:
        return designer_advantages(valid_N, reward_N, config.reward.valid_weight)
    agent = config.agent
    multiplier = reference_multiplier(
        agent.environments * agent.seeds * agent.plays,
        config.designer.candidates,
        config.schedule.regenerate_every,
    )
    return reference_designer_advantages(reward_N, multiplier)


def hint_samples(written: Sequence[WrittenHint], windows: Windows, config: Config) -> list[Sample]:
    """A row for each call that wrote a hint: paid the regret that it brought, and for being usable at all."""
    if not written:
        return []
    valid_N = np.asarray([float(not w.refused) for w in written])
    regret_N = np.asarray([math.nan if w.refused else _regret(w.digest, windows) for w in written])
    advantage_N = designer_advantages(valid_N, regret_N, config.reward.valid_weight)
    earned_N = config.reward.valid_weight * valid_N + np.nan_to_num(regret_N)
    return [
        Sample(
            role=Role.DESIGNER,
            group="hint",
            prompt_ids=w.prompt_ids,
            completion=w.completion,
            reward=float(reward),
            advantage=float(advantage),
        )
        for w, advantage, reward in zip(written, advantage_N, earned_N, strict=True)
        if w.completion.ids
    ]


def _regret(digest: str, windows: Windows) -> float:
    visits = windows.get(digest, ())
    return window_of(visits, "").matched.value if visits else math.nan


def _weighed(paid: Paid, sampler: Sampler, config: Config) -> Paid:
    """A delayed attempt with the weights of its tokens; where the update weighs them itself, with their share alone."""
    if not paid.attempt.trained or paid.advantage == 0.0:
        return paid
    weights = _weights(paid.sample(), sampler, config.trainer.max_ratio)
    share = effective_share(weights, paid.attempt.completion.mask)
    # With vLLM, TRL weighs every token by how the trainer's policy differs from the sampler's, with the same cap.
    folded = tuple(weights) if config.policy.backend == "transformers" else ()
    return replace(
        paid, weights=folded, effective=share, dropped=share < config.trainer.min_effective
    )


def _weights(sample: Sample, sampler: Sampler, cap: float) -> list[float]:
    """min(cap, pi_now / pi_sampler) of each token; 0 where nothing is trained."""
    then = sample.completion.drawn_logprobs()
    now = sampler.score(sample.prompt_ids, sample.completion)
    return [
        min(cap, math.exp(min(n - t, 50.0))) if m else 0.0
        for n, t, m in zip(now, then, sample.completion.mask, strict=True)
    ]


def effective_share(weights: Sequence[float], mask: Sequence[int]) -> float:
    """(sum w)^2 / (n sum w^2) over the n trained tokens: 1 when all weigh the same, 1/n when one has it all."""
    own = np.asarray([w for w, m in zip(weights, mask, strict=True) if m], dtype=np.float64)
    total = float(np.square(own).sum())
    return float(own.sum() ** 2 / (own.size * total)) if total > 0.0 else 0.0
