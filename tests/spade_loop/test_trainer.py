"""The adapter to TRL: our advantages, grammar-aware log-probabilities, steps without signal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spade_loop import trainer as adapter
from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.weights import Policy, load_policy
from spade_loop.batch import BatchShape, check_batch, pad
from spade_loop.chat import ChatFormat
from spade_loop.completers import Sampler
from spade_loop.config import Config, load_config
from spade_loop.errors import BatchError
from spade_loop.progress import Silent
from spade_loop.scoring import token_advantages
from spade_loop.tensors import drop_padding_columns, grammar_logprobs, sort_by_length
from spade_loop.trainer import Checkpoints, StepReport
from spade_loop.types import Completion, Message, Role, Sample
from spade_loop.world import Alone

pytestmark = pytest.mark.filterwarnings(
    # torch and TRL warn about their own dependencies here; none of it is ours to act on.
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore:.*pin_memory.*:UserWarning",
)
SCHEMA = {
    "type": "object",
    "properties": {"size": {"enum": [2, 3, 4]}, "theme": {"enum": ["lock", "farm", "ship"]}},
    "required": ["size", "theme"],
    "additionalProperties": False,
}
SMALL = [
    "policy.dtype=float32",
    "policy.lora_rank=4",
    "iterations=1",
    "designer.candidates=4",
    "designer.initial_share=0",
    "agent.environments=1",
    "agent.seeds=2",
    "agent.plays=2",
    "trainer.rows_per_step=4",
    "trainer.learning_rate=0.01",
]


class Hooks:
    """Hands out samples that a function makes with the real sampler, and remembers what was committed."""

    def __init__(self, make: Callable[[Sampler], Sequence[Sample]]) -> None:
        self._make = make
        self.reports: list[StepReport] = []
        self.checkpoints: list[list[str]] = []

    def collect(self, sampler: Sampler, iteration: int) -> Sequence[Sample]:
        assert iteration == len(self.reports)
        return self._make(sampler)

    def scalars(self) -> dict[str, float]:
        return {"collected": float(len(self.reports) + 1)}

    def commit(self, checkpoint: Path, step: StepReport) -> None:
        self.reports.append(step)
        self.checkpoints.append(sorted(p.name for p in checkpoint.iterdir()))


def sampled(sampler: Sampler, advantages: Sequence[float]) -> list[Sample]:
    """Designer rows under a grammar and agent rows of free text, half of each."""
    half = len(advantages) // 2
    prompt = sampler.chat.prompt([Message("user", "Design a lock.")])
    designs = sampler.open([prompt] * half, streams=_streams(half, 1)).generate(
        range(half), 40, SCHEMA
    )
    plays = sampler.open([prompt] * half, streams=_streams(half, 2)).generate(range(half), 6)
    completions = [designs[i] for i in range(half)] + [plays[i] for i in range(half)]
    roles = [Role.DESIGNER] * half + [Role.AGENT] * half
    return [
        Sample(role=r, group=str(r), prompt_ids=prompt, completion=c, reward=0.0, advantage=a)
        for r, c, a in zip(roles, completions, advantages, strict=True)
    ]


def _streams(rows: int, *seed: int) -> list[list[int]]:
    return [[*seed, row] for row in range(rows)]


def run(
    tiny_model: Path, tmp_path: Path, make: Callable[[Sampler], Sequence[Sample]], *extra: str
) -> tuple[Hooks, Policy, Config]:
    config = load_config("tiny", [*SMALL, f"policy.model={tiny_model}", *extra])
    policy = load_policy(config.policy)
    hooks = Hooks(make)
    adapter.train(
        policy,
        hooks,
        config,
        checkpoints=Checkpoints(tmp_path / "scratch"),
        progress=Silent(),
        world=Alone(),
    )
    return hooks, policy, config


def lora_weights(policy: Policy) -> dict[str, torch.Tensor]:
    return {n: p.detach().clone() for n, p in policy.model.named_parameters() if "lora_B" in n}


@given(st.integers(0, 5), st.sets(st.integers(0, 9), min_size=1, max_size=9), st.floats(0.5, 2.0))
def test_a_choice_is_scored_and_differentiated_like_a_masked_softmax(
    seed: int, allowed: set[int], temperature: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    weight = torch.randn(10, 6, generator=generator)
    hidden = torch.randn(6, generator=generator)
    token = min(allowed)
    ours = hidden.clone().requires_grad_()
    grammar_logprobs(ours, weight, token, sorted(allowed), temperature).backward()
    reference = hidden.clone().requires_grad_()
    logits = weight @ reference / temperature
    keep = torch.zeros(10, dtype=torch.bool)
    keep[list(allowed)] = True
    masked = torch.log_softmax(logits.masked_fill(~keep, -torch.inf), dim=0)[token]
    masked.backward()
    torch.testing.assert_close(ours.grad, reference.grad, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_trl_trains_on_our_advantages_and_scores_choices_among_what_was_allowed(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[list[int], torch.Tensor, torch.Tensor]] = []
    score = adapter.SpadeGRPOTrainer._get_per_token_logps_and_entropies
    kept: dict[str, Any] = {}
    temperature = load_config("tiny").trainer.temperature
    assert temperature != 1.0  # so that a place that forgets it shows

    def spy(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = score(self, *args, **kwargs)
        seen.append((list(self._rows), args[1], result[0].detach()))
        return result

    def make(sampler: Sampler) -> Sequence[Sample]:
        kept["samples"] = sampled(sampler, [0.5, -0.5, 1.0, -1.0, 0.2, -0.2, 0.3, -0.3])
        kept["model"] = sampler.model  # type: ignore[attr-defined]
        logprobs = []
        for s in kept["samples"]:
            ids = torch.tensor([[*s.prompt_ids, *s.completion.ids]])
            with torch.no_grad():
                logits = kept["model"](ids).logits[0].float()
            logprobs.append(torch.log_softmax(logits / temperature, dim=-1))
        kept["logprobs"] = logprobs
        return kept["samples"]

    monkeypatch.setattr(adapter.SpadeGRPOTrainer, "_get_per_token_logps_and_entropies", spy)
    hooks, policy, config = run(tiny_model, tmp_path, make)

    samples = kept["samples"]
    assert sorted(row for rows, _, _ in seen for row in rows) == list(
        range(BatchShape.of(config).total)
    )
    choices = 0
    for rows, _, logps in seen:
        for b, row in enumerate(rows):
            s, table = samples[row], kept["logprobs"][row]
            offset = len(s.prompt_ids) - 1
            for position, token in enumerate(s.completion.ids):
                expected = table[offset + position]
                if position in s.completion.allowed:
                    allowed = list(s.completion.allowed[position])
                    expected = expected - torch.logsumexp(expected[allowed], dim=0)
                    choices += 1
                elif not s.completion.mask[position]:
                    continue
                assert logps[b, offset + position].item() == pytest.approx(
                    expected[token].item(), abs=1e-3
                )
    assert choices >= 8
    report = hooks.reports[0]
    assert (report.rows, report.live_rows, report.skipped) == (8, 8, False)
    assert report.logprob_gap is not None
    assert report.logprob_gap < 1e-3
    assert report.grad_norm is not None
    assert report.grad_norm > 0
    assert any(w.abs().sum() > 0 for w in lora_weights(policy).values())
    assert "adapter_model.safetensors" in hooks.checkpoints[0]


@pytest.mark.slow
def test_a_batch_without_signal_leaves_the_weights_alone(tiny_model: Path, tmp_path: Path) -> None:
    hooks, policy, _ = run(tiny_model, tmp_path, lambda s: sampled(s, [0.0] * 8))
    assert hooks.reports[0].skipped
    assert all(w.abs().sum() == 0 for w in lora_weights(policy).values())


@pytest.mark.slow
def test_advantages_push_probabilities_their_way(tiny_model: Path, tmp_path: Path) -> None:
    kept: dict[str, Any] = {}

    def make(sampler: Sampler) -> Sequence[Sample]:
        samples = sampled(sampler, [0.0] * 4 + [1.0, 1.0, -1.0, -1.0])
        kept["samples"] = samples
        kept["before"] = [logprob(sampler.model, s) for s in samples]  # type: ignore[attr-defined]
        return samples

    def logprob(model: Any, s: Sample) -> float:
        ids = torch.tensor([[*s.prompt_ids, *s.completion.ids]])
        with torch.no_grad():
            table = torch.log_softmax(model(ids).logits[0].float(), dim=-1)
        start = len(s.prompt_ids)
        return sum(table[start + i - 1, t].item() for i, t in enumerate(s.completion.ids))

    _, policy, _ = run(tiny_model, tmp_path, make)
    policy.model.eval()
    after = [logprob(policy.model, s) for s in kept["samples"]]
    change = np.array(after) - np.array(kept["before"])
    assert change[4:6].sum() > change[6:].sum()


def row(**changes: Any) -> Sample:
    completion = Completion((3, 4), (-0.1, -0.2), (1, 1))
    sample = Sample(
        role=Role.AGENT,
        group="g",
        prompt_ids=(1,),
        completion=completion,
        reward=0.0,
        advantage=0.0,
    )
    return replace(sample, **changes)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row(prompt_ids=()), "no prompt"),
        (row(completion=Completion((), (), ())), "no prompt or no completion"),
        (row(completion=Completion((1,), (), (1,))), "differ in length"),
        (row(advantage=float("nan")), "not finite"),
        (row(completion=Completion((1,), (float("-inf"),), (1,))), "not finite"),
        (row(completion=Completion((1,), (0.0,), (0,), {0: (1, 2)})), "not trained on"),
    ],
)
def test_a_batch_that_would_train_wrongly_is_refused(bad: Sample, message: str) -> None:
    with pytest.raises(BatchError, match=message):
        check_batch([bad], 1)


def test_a_batch_has_the_rows_that_the_recipe_plans() -> None:
    with pytest.raises(BatchError, match="plans 3 rows, the batch has 1"):
        check_batch([row()], 3)
    check_batch(pad([row()], 3, 0), 3)


def test_sorting_and_trimming_lose_no_token() -> None:
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 0, 0]])
    ids = torch.arange(16).view(4, 4)
    chunks = [
        {"completion_ids": ids[:2], "completion_mask": mask[:2], "row": torch.tensor([0, 1])},
        {"completion_ids": ids[2:], "completion_mask": mask[2:], "row": torch.tensor([2, 3])},
    ]
    chunks = [c | {"num_items_in_batch": torch.tensor(9.0)} for c in chunks]
    ordered = [drop_padding_columns(c) for c in sort_by_length(chunks)]
    assert [c["row"].tolist() for c in ordered] == [[1, 2], [3, 0]]
    assert [c["completion_ids"].shape for c in ordered] == [(2, 2), (2, 3)]
    for chunk in ordered:
        for r, kept, m in zip(
            chunk["row"], chunk["completion_ids"], chunk["completion_mask"], strict=True
        ):
            assert kept[m.bool()].tolist() == ids[r][mask[r].bool()].tolist()


@pytest.mark.slow
def test_the_sampler_reports_the_probabilities_that_the_model_gives(
    model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    sampler = TransformersSampler(model, tokenizer, chat)
    prompts = [chat.prompt([Message("user", text)]) for text in ("a", "a longer question", "b")]
    dialogue = sampler.open(prompts, streams=_streams(3, 0, 3))
    first = dialogue.generate(range(3), 5)
    dialogue.drop([1])
    suffix = {i: chat.next_turn("go on", stopped=first[i].stopped) for i in (0, 2)}
    dialogue.feed(suffix)
    second = dialogue.generate([0, 2], 5)
    for i in (0, 2):
        ids = [*prompts[i], *first[i].ids, *suffix[i], *second[i].ids]
        with torch.no_grad():
            table = torch.log_softmax(model(torch.tensor([ids])).logits[0].float(), dim=-1)
        for start, completion in (
            (len(prompts[i]), first[i]),
            (len(ids) - len(second[i].ids), second[i]),
        ):
            for j, (token, logprob) in enumerate(
                zip(completion.ids, completion.logprobs, strict=True)
            ):
                assert logprob == pytest.approx(table[start + j - 1, token].item(), abs=1e-4)


@pytest.mark.slow
def test_the_same_seed_samples_the_same_tokens(
    model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    sampler = TransformersSampler(model, tokenizer, chat)
    prompt = chat.prompt([Message("user", "a")])
    draws = [
        sampler.open([prompt] * 2, streams=_streams(2, *seed)).generate(range(2), 8)
        for seed in ([1, 2], [1, 2], [1, 3])
    ]
    assert draws[0] == draws[1] != draws[2]


@pytest.mark.slow
def test_what_a_conversation_says_does_not_depend_on_the_others(
    model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    sampler = TransformersSampler(model, tokenizer, chat)
    prompts = [chat.prompt([Message("user", text)]) for text in ("a", "bb", "something longer")]
    streams = _streams(3, 7)
    together = sampler.open(prompts, streams=streams).generate(range(3), 12)
    for row in range(3):
        alone = sampler.open([prompts[row]], streams=[streams[row]]).generate([0], 12)
        assert alone[0].ids == together[row].ids


@pytest.mark.slow
def test_a_completion_is_scored_as_it_was_drawn_while_the_weights_stay(
    model: Any, tokenizer: Any, chat: ChatFormat
) -> None:
    sampler = TransformersSampler(model, tokenizer, chat, temperature=0.7)
    prompt = chat.prompt([Message("user", "Design a lock.")])
    for schema in (None, SCHEMA):
        drawn = sampler.open([prompt], streams=[[1]]).generate([0], 40, schema)[0]
        scored = sampler.score(prompt, drawn)
        assert scored == pytest.approx(drawn.drawn_logprobs(), abs=1e-4)
        assert any(scored)
        if schema is not None:
            assert set(drawn.chosen) == set(drawn.allowed) != set()


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 7, 64, 512])
def test_scores_do_not_depend_on_how_many_are_held_together(
    block: int, model: Any, tokenizer: Any, chat: ChatFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    sampler = TransformersSampler(model, tokenizer, chat)
    prompt = chat.prompt([Message("user", "Design a lock.")])
    drawn = sampler.open([prompt], streams=[[1]]).generate([0], 40)[0]
    with torch.no_grad():
        logits = model(torch.tensor([[*prompt, *drawn.ids]])).logits[0].float()
    table = torch.log_softmax(logits, dim=-1)[len(prompt) - 1 : -1]
    expected = [table[i, token].item() for i, token in enumerate(drawn.ids)]
    monkeypatch.setattr("spade_loop.backends.transformers.SCORED_AT_ONCE", block)
    assert sampler.score(prompt, drawn) == pytest.approx(expected, abs=1e-4)


def test_advantages_have_a_column_a_token_only_where_tokens_weigh_differently() -> None:
    plain = Sample(
        role=Role.AGENT,
        group="g",
        prompt_ids=(1, 2, 3),
        completion=Completion((4, 5), (0.0, 0.0), (1, 1)),
        reward=0.0,
        advantage=2.0,
    )
    late = replace(plain, prompt_ids=(1,), weights=(0.5, 0.0), advantage=-1.0)
    assert token_advantages([plain, plain], 4).tolist() == [2.0, 2.0]
    assert token_advantages([plain, late], 4).tolist() == [[2.0] * 4, [-0.5, 0.0, -1.0, -1.0]]
