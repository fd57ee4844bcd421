"""Rehearsal: how many rows, with which weight, and that their gradient is that of a supervised loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_loop import trainer as adapter
from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.weights import load_policy
from spade_loop.batch import BatchShape, check_batch, pad, weigh
from spade_loop.chat import ChatFormat
from spade_loop.completers import Sampler, ScriptedSampler
from spade_loop.config import Config, load_config
from spade_loop.demonstrations import Demonstration, Demonstrations, Room, encode
from spade_loop.errors import ConfigError
from spade_loop.progress import Silent
from spade_loop.rehearsal import NOTHING_REHEARSED, Rehearsal
from spade_loop.trainer import Checkpoints, StepReport
from spade_loop.types import Completion, Message, Role, Sample
from spade_loop.world import Alone

SMALL = [
    "policy.dtype=float32",
    "policy.lora_rank=4",
    "iterations=1",
    "designer.candidates=4",
    "designer.initial_share=0",
    "agent.environments=1",
    "agent.seeds=2",
    "agent.plays=2",
    "agent.turn_tokens=30",
    "agent.context=400",
    "trainer.rows_per_step=3",
    "trainer.temperature=1.0",
    "trainer.max_grad_norm=1e9",
    "rehearsal.rows=rows.jsonl",
    "rehearsal.share=0.3",
]


def config(*changed: str) -> Config:
    return load_config("tiny", [*SMALL, *changed])


def demonstration(number: int, *, replies: int = 1, **changes: Any) -> Demonstration:
    said = [Message("assistant", f"\\boxed{{{number}}}")]
    for turn in range(1, replies):
        said += [Message("user", f"Turn {turn}."), Message("assistant", f"{number} again" * turn)]
    made = Demonstration(
        role=Role.AGENT, prompt=(Message("user", f"Say {number}."),), completion=tuple(said)
    )
    return replace(made, **changes)


ROWS = Demonstrations(tuple(demonstration(n, replies=1 + n % 3) for n in range(6)), "sha256:x")


@pytest.fixture
def scripted(chat: ChatFormat) -> ScriptedSampler:
    return ScriptedSampler(chat, lambda _row, _turn, _text: "", chat.end_id)


# --- how many, and how heavy ---


def test_a_share_of_the_rows_is_planned_and_the_batch_has_room_for_it() -> None:
    without, shape = BatchShape.of(config("rehearsal.rows=")), BatchShape.of(config())
    assert (without.rehearsal, without.planned, without.total) == (0, 8, 9)
    # 0.3 of 4 designs and 4 plays
    assert (shape.rehearsal, shape.planned, shape.total) == (2, 10, 12)
    assert BatchShape.of(config("rehearsal.share=0.01")).rehearsal == 1
    assert BatchShape.of(config("rehearsal.share=0")).rehearsal == 0
    assert load_config("tiny").rehearsal.share == 0.1
    assert BatchShape.of(load_config("tiny")).rehearsal == 0


def test_rows_are_drawn_from_the_stream_alone_and_none_comes_twice(
    chat: ChatFormat, scripted: ScriptedSampler
) -> None:
    made = Rehearsal(ROWS, chat, config("rehearsal.share=0.5"))
    drawn = [made.draw(scripted, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({s.completion.ids for s in drawn[0].samples}) == len(drawn[0].samples) == 4
    many = Rehearsal(ROWS, chat, config("rehearsal.share=1"))
    assert len(many.draw(scripted, np.random.default_rng(1)).samples) == 8  # of six


def test_neither_held_out_rows_nor_those_without_room_are_rehearsed(chat: ChatFormat) -> None:
    held_out = demonstration(1, split="held-out")
    long = demonstration(2, completion=(Message("assistant", "long " * 200),))
    made = Rehearsal(Demonstrations((held_out, long, demonstration(3)), ""), chat, config())
    assert len(made) == 1
    with pytest.raises(ConfigError, match=r"rows\.jsonl has no row of the split `train`"):
        Rehearsal(Demonstrations((held_out, long), ""), chat, config())


def test_tokens_are_counted_apart_and_the_batch_passes_the_checks(
    chat: ChatFormat, scripted: ScriptedSampler
) -> None:
    made = config()
    drawn = Rehearsal(ROWS, chat, made).draw(scripted, np.random.default_rng(0))
    assert drawn.to_json() == {
        "rows": 2,
        "trained_tokens": sum(sum(s.completion.mask) for s in drawn.samples),
        "loss": 0.0,  # the scripted sampler gives every token the probability 1
    }
    assert all(s.rehearsed and s.advantage > 0 for s in drawn.samples)
    shape = BatchShape.of(made)
    check_batch(pad(drawn.samples, shape.total, 0), shape.total)
    assert NOTHING_REHEARSED.to_json() == {"rows": 0, "trained_tokens": 0, "loss": None}
    assert NOTHING_REHEARSED.scalars() == {}


def test_the_weight_of_a_role_stays_what_it_is_beside_rehearsal() -> None:
    """A role's part of the loss is sum(A' * ...) / N: it must not depend on how many rows rehearse."""
    samples = [_plain(0.5), _plain(-0.5)]
    for changed in ((), ("rehearsal.rows=",)):
        made = config(*changed)
        weighed, summaries, rms = weigh(samples, made, {})
        part = [s.advantage / BatchShape.of(made).total for s in weighed]
        assert part == pytest.approx([0.7 / 4, -0.7 / 4])
        assert rms["agent"] == pytest.approx(0.5)
        assert summaries[Role.AGENT].rows == 2


def _plain(advantage: float) -> Sample:
    return Sample(
        role=Role.AGENT,
        group="g",
        prompt_ids=(1,),
        completion=Completion((3, 4), (-0.1, -0.2), (1, 1)),
        reward=0.0,
        advantage=advantage,
    )


# --- the gradient ---


def cross_entropy(weight: torch.Tensor, samples: Sequence[Sample]) -> torch.Tensor:
    """Mean over rows of the mean cross entropy of their trained tokens, on a bigram model."""
    losses = []
    for s in samples:
        ids = torch.tensor([*s.prompt_ids, *s.completion.ids])
        labels = torch.tensor(
            [-100] * (len(s.prompt_ids) - 1)
            + [i if m else -100 for i, m in zip(s.completion.ids, s.completion.mask, strict=True)]
        )
        losses.append(torch.nn.functional.cross_entropy(weight[ids[:-1]], labels))
    return torch.stack(losses).mean()


def grpo(weight: torch.Tensor, samples: Sequence[Sample]) -> torch.Tensor:
    """TRL's `grpo` loss without KL and entropy, on a bigram model."""
    losses = []
    for s in samples:
        ids = torch.tensor([*s.prompt_ids, *s.completion.ids])
        logps = torch.log_softmax(weight[ids[:-1]], dim=-1).gather(1, ids[1:, None])[:, 0]
        logps = logps[-len(s.completion.ids) :]
        ratio = torch.exp(logps - logps.detach())
        loss = -torch.min(ratio * s.advantage, ratio.clamp(0.8, 1.28) * s.advantage)
        mask = torch.tensor(s.completion.mask)
        losses.append((loss * mask).sum() / mask.sum().clamp(min=1))
    return torch.stack(losses).mean()


@settings(deadline=None, max_examples=20)
@given(share=st.floats(0.01, 1.0), rows_per_step=st.integers(1, 7), seed=st.integers(0, 9))
def test_whatever_the_numbers_the_gradient_is_share_times_that_of_the_cross_entropy(
    share: float, rows_per_step: int, seed: int, chat: ChatFormat
) -> None:
    made = config(f"rehearsal.share={share}", f"trainer.rows_per_step={rows_per_step}")
    sampler = ScriptedSampler(chat, lambda _row, _turn, _text: "", chat.end_id)
    drawn = Rehearsal(ROWS, chat, made).draw(sampler, np.random.default_rng(seed)).samples
    generator = torch.Generator().manual_seed(seed)
    size = 1 + max(max(*s.prompt_ids, *s.completion.ids) for s in drawn)
    weights = [
        torch.randn(size, size, generator=generator.manual_seed(seed), dtype=torch.float64)
        for _ in range(2)
    ]
    ours, theirs = (w.requires_grad_() for w in weights)
    grpo(ours, pad(drawn, BatchShape.of(made).total, 0)).backward()
    (share * cross_entropy(theirs, drawn)).backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


class Hooks:
    """Hands out what a function draws with the real sampler."""

    def __init__(self, make: Any) -> None:
        self._make = make
        self.reports: list[StepReport] = []

    def collect(self, sampler: Sampler, iteration: int) -> Sequence[Sample]:
        del iteration
        samples: Sequence[Sample] = self._make(sampler)
        return samples

    def scalars(self) -> dict[str, float]:
        return {}

    def commit(self, checkpoint: Path, step: StepReport) -> None:
        del checkpoint
        self.reports.append(step)


def trained(
    tiny_model: Path, tmp_path: Path, make: Any
) -> tuple[Hooks, dict[str, torch.Tensor], Any]:
    """One update by TRL; the gradients at its end, by parameter."""
    made = config(f"policy.model={tiny_model}")
    policy = load_policy(made.policy)
    gradients: dict[str, torch.Tensor] = {}

    class Spy(adapter._Committer):
        def on_pre_optimizer_step(self, *args: Any, **kwargs: Any) -> None:
            for name, parameter in self.trainer.model.named_parameters():  # type: ignore[union-attr]
                if parameter.grad is not None:
                    gradients[name] = parameter.grad.detach().clone()
            super().on_pre_optimizer_step(*args, **kwargs)

    hooks = Hooks(make(policy, made))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(adapter, "_Committer", Spy)
        adapter.train(
            policy,
            hooks,
            made,
            checkpoints=Checkpoints(tmp_path / "scratch"),
            progress=Silent(),
            world=Alone(),
        )
    return hooks, gradients, policy


warned = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*pin_memory.*:UserWarning"
)


@warned
@pytest.mark.slow
def test_trl_gives_rehearsed_rows_the_gradient_of_a_supervised_loss(
    tiny_model: Path, tmp_path: Path
) -> None:
    kept: dict[str, Any] = {}

    def make(policy: Any, made: Config) -> Any:
        rehearsal = Rehearsal(ROWS, policy.chat, made)

        def collect(sampler: Sampler) -> list[Sample]:
            drawn = rehearsal.draw(sampler, np.random.default_rng(5))
            model = sampler.model  # type: ignore[attr-defined]
            kept["loss"] = drawn.loss
            kept["expected"] = _supervised(model, drawn.samples, made.rehearsal.share)
            # A live row, or the step would be skipped; its weight is as good as none.
            return [replace(_plain(1e-12), prompt_ids=(5,)), *drawn.samples]

        return collect

    hooks, gradients, _ = trained(tiny_model, tmp_path, make)
    report = hooks.reports[0]
    assert (report.rows, report.live_rows, report.skipped) == (1, 1, False)
    expected, loss = kept["expected"]
    assert kept["loss"] == pytest.approx(loss, abs=1e-4)
    assert set(gradients) == set(expected)
    assert max(g.abs().max() for g in expected.values()) > 1e-3
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, atol=1e-6, rtol=1e-3)
    # The rows were scored with the current weights: sampler and trainer agree.
    assert report.logprob_gap is not None


def _supervised(
    model: Any, samples: Sequence[Sample], share: float
) -> tuple[dict[str, torch.Tensor], float]:
    """(gradients of share * cross entropy by parameter, the cross entropy), by autograd on the model itself."""
    losses = []
    with torch.enable_grad():
        for s in samples:
            ids = torch.tensor([[*s.prompt_ids, *s.completion.ids]])
            logits = model(ids).logits[0, len(s.prompt_ids) - 1 : -1]
            labels = torch.tensor(
                [i if m else -100 for i, m in zip(s.completion.ids, s.completion.mask, strict=True)]
            )
            losses.append(torch.nn.functional.cross_entropy(logits, labels))
        loss = torch.stack(losses).mean()
        named = {n: p for n, p in model.named_parameters() if p.requires_grad}
        found = torch.autograd.grad(share * loss, list(named.values()), allow_unused=True)
    return {n: g for n, g in zip(named, found, strict=True) if g is not None}, float(loss.detach())


@warned
@pytest.mark.slow
def test_without_a_signal_of_the_roles_demonstrations_alone_make_no_step(
    tiny_model: Path, tmp_path: Path
) -> None:
    def make(policy: Any, made: Config) -> Any:
        rehearsal = Rehearsal(ROWS, policy.chat, made)
        return lambda sampler: rehearsal.draw(sampler, np.random.default_rng(0)).samples

    hooks, _, policy = trained(tiny_model, tmp_path, make)
    assert hooks.reports[0].skipped
    assert hooks.reports[0].live_rows == 0
    moved = [p for n, p in policy.model.named_parameters() if "lora_B" in n]
    assert moved
    assert all(not p.detach().any() for p in moved)


@pytest.mark.slow
def test_rows_are_scored_by_the_current_weights(
    model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    sampler = TransformersSampler(model, tokenizer, chat)
    drawn = Rehearsal(ROWS, chat, config()).draw(sampler, np.random.default_rng(1))
    encoded = [encode(chat, row, Room.of(config(), Role.AGENT)) for row in ROWS.rows]
    known = {e.completion.ids: e for e in encoded if e is not None}
    losses = []
    for s in drawn.samples:
        assert known[s.completion.ids].prompt_ids == s.prompt_ids
        with torch.no_grad():
            logits = model(torch.tensor([[*s.prompt_ids, *s.completion.ids]])).logits[0].float()
        table = torch.log_softmax(logits, dim=-1)[len(s.prompt_ids) - 1 : -1]
        own = [
            table[i, token].item()
            for i, (token, m) in enumerate(zip(s.completion.ids, s.completion.mask, strict=True))
            if m
        ]
        losses.append(-sum(own) / len(own))
    assert drawn.loss == pytest.approx(np.mean(losses), abs=1e-4)
    assert drawn.scalars() == {"rehearsal/loss": drawn.loss}
    assert math.isfinite(drawn.loss or math.nan)
