"""Two ranks train as one does: equal gradients, one commit an iteration, one end for all."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranks import torchrun

from spade_loop import trainer as adapter
from spade_loop.backends.weights import load_policy
from spade_loop.batch import BatchShape, deal, pad, spread
from spade_loop.completers import Sampler
from spade_loop.config import load_config
from spade_loop.errors import BatchError
from spade_loop.progress import Silent
from spade_loop.trainer import Checkpoints, StepReport
from spade_loop.types import Completion, Message, Role, Sample
from spade_loop.world import Alone, World, joined

SETTINGS = [
    "policy.dtype=float32",
    "policy.lora_rank=4",
    "iterations=3",
    "designer.candidates=4",
    "designer.initial_share=0",
    "agent.environments=1",
    "agent.seeds=2",
    "agent.plays=2",
    # 8 rows in steps of 3: one rank trains on 9 rows, two ranks on 12.
    "trainer.rows_per_step=3",
    "trainer.learning_rate=0.01",
    "trainer.max_grad_norm=1000",
    "trainer.beta=0.1",
    "designer.dialect=program",  # a blueprint has no KL term; the replayed rows have a grammar's choices all the same
]
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*pin_memory.*:UserWarning"
)


# --- who trains on what ---


def row(length: int, advantage: float = 1.0) -> Sample:
    completion = Completion((1,) * length, (-0.5,) * length, (1,) * length)
    return Sample(
        role=Role.AGENT,
        group="g",
        prompt_ids=(1,),
        completion=completion,
        reward=0.0,
        advantage=advantage,
    )


@pytest.mark.parametrize(
    ("rows", "step", "ranks", "expected"),
    [(8, 3, 1, 9), (8, 3, 2, 12), (8, 2, 2, 8), (8, 4, 3, 12), (1, 4, 8, 32)],
)
def test_every_rank_has_whole_steps(rows: int, step: int, ranks: int, expected: int) -> None:
    shape = BatchShape(rows - 1, 1, step)
    assert shape.shared(ranks) == expected
    assert shape.total == shape.shared(1)


def test_rows_are_dealt_so_that_ranks_have_as_much_to_do() -> None:
    samples = [row(length) for length in (9, 1, 8, 2, 7, 3, 30, 1)]
    lengths = [[len(s.completion.ids) for s in own] for own in deal(samples, 2)]
    # The k-th shortest row of one rank is about as long as that of the other; a rank's rows stay in their order.
    assert lengths == [[9, 1, 2, 7], [8, 3, 30, 1]]
    assert deal(samples, 1) == [samples]
    with pytest.raises(BatchError, match="8 rows cannot be shared out among 3"):
        deal(samples, 3)


def test_more_padding_does_not_change_the_mean() -> None:
    samples = [row(3, 0.5), row(2, -1.5)]
    means = []
    for rows in (4, 6, 12):
        batch = spread(pad(samples, rows, 0, keep_all=False), 4)
        assert len(batch) == rows
        means.append(np.mean([s.advantage for s in batch]))
    assert means == pytest.approx([-0.25] * 3)


# --- replayed completions ---


def replayed(step: int, vocabulary: int) -> list[Sample]:
    """Rows of all lengths: free text, one with importance weights, two under a grammar; none is live in step 2."""
    rng = np.random.default_rng([step, 5])
    samples = []
    for number in range(8):
        prompt = tuple(rng.integers(2, vocabulary, size=3 + 5 * number).tolist())
        ids = tuple(rng.integers(2, vocabulary, size=2 + number).tolist())
        allowed = {1: tuple(sorted({ids[1], 7, 11}))} if number in (1, 6) else {}
        completion = Completion(
            ids,
            (-2.0,) * len(ids),
            (0,) + (1,) * (len(ids) - 1),
            allowed,
            dict.fromkeys(allowed, -1.0),
        )
        sample = replace(row(1), prompt_ids=prompt, completion=completion)
        weights = (0.5,) * len(ids) if number == 3 else ()
        advantage = 0.0 if step == 2 else float(rng.normal())
        samples.append(replace(sample, weights=weights, advantage=advantage))
    return samples


class Replay:
    """The loop's side: fixed samples, and a few words from the sampler."""

    def __init__(self, vocabulary: int) -> None:
        self._vocabulary = vocabulary
        self.said: list[list[int]] = []
        self.reports: list[StepReport] = []

    def collect(self, sampler: Sampler, step: int) -> Sequence[Sample]:
        prompts = [sampler.chat.prompt([Message("user", text)]) for text in ("a", "b", "see")]
        dialogue = sampler.open(prompts, streams=[[step, i] for i in range(3)])
        self.said += [list(c.ids) for c in dialogue.generate(range(3), 6).values()]
        return replayed(step, self._vocabulary)

    def scalars(self) -> Mapping[str, float]:
        return {}

    def commit(self, checkpoint: Path, step: StepReport) -> None:
        assert (checkpoint / "adapter_model.safetensors").is_file()
        self.reports.append(step)


def train(tiny_model: str, out: Path, world: World) -> dict[str, Any]:
    """Train three steps; gradients by step and name, and what the loop saw."""
    config = load_config("tiny", [*SETTINGS, f"policy.model={tiny_model}"])
    policy = load_policy(config.policy)
    hooks = None if world.rank else Replay(len(policy.tokenizer))
    gradients: list[dict[str, torch.Tensor]] = []
    step = adapter._Committer.on_pre_optimizer_step

    def spy(self: Any, *args: Any, **kwargs: Any) -> None:
        step(self, *args, **kwargs)
        found = {n: p.grad for n, p in policy.model.named_parameters() if p.grad is not None}
        gradients.append({n: g.detach().clone() for n, g in found.items()})

    adapter._Committer.on_pre_optimizer_step = spy  # type: ignore[method-assign]
    try:
        adapter.train(
            policy,
            hooks,
            config,
            checkpoints=Checkpoints(out / "scratch"),
            progress=Silent(),
            world=world,
        )
    finally:
        adapter._Committer.on_pre_optimizer_step = step  # type: ignore[method-assign]
    weights = {n: p.detach() for n, p in policy.model.named_parameters() if p.requires_grad}
    told: dict[str, Any] = {"gradients": gradients, "weights": weights}
    if hooks is not None:
        told |= {"said": hooks.said, "reports": [r.to_json() for r in hooks.reports]}
    return told


@pytest.mark.slow
def test_two_ranks_compute_the_gradients_of_one(tiny_model: Path, tmp_path: Path) -> None:
    done = torchrun([__file__, str(tiny_model), str(tmp_path)], seconds=200)
    assert done.returncode == 0, done.stderr
    ranks = [torch.load(tmp_path / f"{rank}.pt") for rank in range(2)]
    one = train(str(tiny_model), tmp_path / "one", Alone())

    largest = 0.0
    for number, (mine, other) in enumerate(
        zip(one["gradients"], ranks[0]["gradients"], strict=True)
    ):
        assert set(mine) == set(other)
        assert bool(mine) == (number < 2)  # the third batch has no signal, and no gradient
        for name, gradient in mine.items():
            largest = max(largest, float((gradient - other[name]).abs().max()))
    assert max(float(g.abs().max()) for g in one["gradients"][0].values()) > 1e-2
    print(f"largest difference of a gradient: {largest:.2e}")
    assert largest < 1e-5

    for name, weight in ranks[0]["weights"].items():
        assert torch.equal(weight, ranks[1]["weights"][name])
    assert ranks[0]["said"] == one["said"]
    for mine, other in zip(one["reports"], ranks[0]["reports"], strict=True):
        for key in ("rows", "live_rows", "skipped"):
            assert mine[key] == other[key]
        assert mine["loss"] == pytest.approx(other["loss"], abs=1e-5)
        assert mine["grad_norm"] == pytest.approx(other["grad_norm"], abs=1e-4)
        assert (mine["logprob_gap"] is None) == (other["logprob_gap"] is None)
    assert [r["skipped"] for r in one["reports"]] == [False, False, True]


def _in_a_process(model_path: str, out: Path) -> None:
    with joined() as world:
        torch.save(train(model_path, out, world), out / f"{world.rank}.pt")


if __name__ == "__main__":
    _in_a_process(sys.argv[1], Path(sys.argv[2]))
