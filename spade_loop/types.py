"""The nouns of the loop, without torch: messages, completions, trajectories, candidates, samples.

Token lists and their masks run in parallel: `mask[i]` is 1 where the model chose `ids[i]` and may be trained on it, 0
where the environment, the template or the grammar put it there.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from synthgym.sandbox import EnvFault
from synthgym.spec import SynthEnvSpec

JsonRow = dict[str, Any]


class Role(StrEnum):
    """The two roles that the one model plays."""

    DESIGNER = "designer"
    AGENT = "agent"


class Arm(StrEnum):
    """Whether an episode was played with the hint. Only plain episodes are trained on."""

    PLAIN = "plain"
    HINTED = "hinted"
    PLACEBO = "placebo"
    """With a text in the hint's place that is as long and says nothing."""


class StopReason(StrEnum):
    """Why an episode ended."""

    SUCCESS = "success"
    """The goal was reached."""
    FAILURE = "failure"
    """The environment terminated short of the goal."""
    TURNS = "turns"
    """The turns ran out: the environment's, or the recipe's."""
    CONTEXT = "context"
    """The next turn would not have fitted into the context."""
    FAULT = "fault"
    """The environment failed; nothing of this episode is charged to the agent."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model generated in one go, token by token."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    """Log-probability of each token under the sampler, at its temperature, without any grammar mask."""
    mask: tuple[int, ...]
    allowed: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """For each position at which a grammar left a choice: the token ids it allowed."""
    chosen: Mapping[int, float] = field(default_factory=dict)
    """For the same positions: the log-probability of the token among what the grammar allowed."""
    stopped: bool = True
    """False when the token limit cut it."""

    def drawn_logprobs(self) -> list[float]:
        """Log-probability of each token as it was drawn: a grammar's choices among what it allowed; 0 where masked."""
        return [
            self.chosen.get(i, logprob) if self.mask[i] else 0.0
            for i, logprob in enumerate(self.logprobs)
        ]


NOTHING = Completion((), (), ())
"""What the policy said where it said nothing."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One exchange, as text, for people and for the report."""

    observation: str
    reply: str
    action: str
    status: str
    reward: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One episode, token-exact: the ids that were sampled are the ids that are trained on."""

    digest: str
    seed: int
    play: int
    """Index among the plays of this seed."""
    arm: Arm
    prompt_ids: tuple[int, ...]
    completion: Completion
    turns: tuple[Turn, ...]
    episode_return: float
    success: bool
    stop: StopReason
    fault: EnvFault | None = None

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that reached the environment, in order."""
        return tuple(turn.action for turn in self.turns if turn.status == "ok")


class Outcome(StrEnum):
    """What became of a designer's attempt."""

    ADMITTED = "admitted"
    UNPARSED = "unparsed"
    """The reply held no source, edit or specification."""
    REFUSED = "refused"
    """Validation found a fault."""
    DUPLICATE = "duplicate"
    """The memory holds one like it."""
    SURPASSED = "surpassed"
    """Sound and new, but another draw for the same design was kept."""

    @property
    def valid(self) -> bool:
        """Whether the design could have been played."""
        return self in (Outcome.ADMITTED, Outcome.SURPASSED)


POLICY = "policy"
"""Author of the designs that are trained on."""
INITIAL = "initial"
"""Author of proposals from the model before training: exploration, played and never trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A designer's attempt, before and after admission."""

    skill: str
    document_id: str
    document_license: str
    prompt_ids: tuple[int, ...]
    completion: Completion
    """Empty when another designer wrote the reply."""
    reply: str
    author: str = POLICY
    """Which designer: `POLICY`, `INITIAL`, or the name of another."""
    slot: int = 0
    """Which of the iteration's designs this is an attempt at."""
    draw: int = 0
    """Which of the replies drawn for it."""
    attempt: int = 0
    """0 for the first reply, n for the n-th repair of it."""
    spec: SynthEnvSpec | None = None
    title: str = ""
    """What its author calls it; empty when the reply could not be read."""
    cell: str = ""
    """What kind of design it is, for the exploration bonus: family or skill."""
    outcome: Outcome = Outcome.UNPARSED
    reasons: tuple[str, ...] = ()
    """Reason codes of validation, or of the memory, or what was wrong with the reply."""
    detail: str = ""

    @property
    def trained(self) -> bool:
        """Whether the policy wrote it, and so may be trained on it."""
        return self.author == POLICY and bool(self.completion.ids)

    def settled(self, outcome: Outcome, *reasons: str, detail: str = "") -> Candidate:
        """This attempt with its outcome."""
        return replace(self, outcome=outcome, reasons=reasons, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One row of a training batch."""

    role: Role
    group: str
    prompt_ids: tuple[int, ...]
    completion: Completion
    reward: float
    advantage: float
    """Already centred within its group and weighted for its role."""
    weights: tuple[float, ...] = ()
    """Importance weight of each token of the completion; empty when the policy that sampled it is trained on it."""
    rehearsed: bool = False
    """A demonstration, which nobody sampled: it is trained on, and counted apart from what the roles bring."""

    @property
    def trained_tokens(self) -> int:
        """Tokens that carry a gradient."""
        return sum(self.completion.mask)


@dataclass(slots=True)
class StepReport:
    """What one optimiser step did."""

    rows: int = 0
    live_rows: int = 0
    skipped: bool = False
    """Too few rows had an advantage: the weights were left alone."""
    loss: float | None = None
    grad_norm: float | None = None
    gaps: list[float] = field(default_factory=list)
    """Mean |sampler - trainer| log-probability over the trained tokens of each forward pass."""

    @property
    def logprob_gap(self) -> float | None:
        """Mean over the forward passes; None when nothing was trained on."""
        return sum(self.gaps) / len(self.gaps) if self.gaps else None

    def to_json(self) -> JsonRow:
        """A part of the iteration's row in `metrics.jsonl`."""
        return {
            "rows": self.rows,
            "live_rows": self.live_rows,
            "skipped": self.skipped,
            "loss": self.loss,
            "grad_norm": self.grad_norm,
            "logprob_gap": finite(self.logprob_gap),
        }


def finite(value: Any) -> float | None:
    """The number, or None for what is none: JSON has no NaN."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
