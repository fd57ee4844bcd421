"""The one adapter to TRL: `GRPOTrainer(rollout_func=...)` drives the loop, one dataset row a SPADE iteration.

TRL 1.16 knows one group size and centres rewards over it. Here the group is the whole generation batch, the "reward" is
the advantage that the loop computed, and a thin subclass puts exactly that advantage into the batch, renormalises
log-probabilities where a grammar left a choice, and leaves out columns that hold nothing but padding.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.models import unwrap_model_for_generation

from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.weights import Policy
from spade_loop.batch import BatchShape, check_batch, pad
from spade_loop.chat import ChatFormat
from spade_loop.completers import Sampler
from spade_loop.config import Config
from spade_loop.errors import BatchError, ModelError
from spade_loop.progress import Progress
from spade_loop.tensors import drop_padding_columns, grammar_logprobs, sort_by_length
from spade_loop.types import JsonRow, Sample

Collect = Callable[[Sampler, int], Sequence[Sample]]
"""(sampler over the current weights, iteration) -> samples of that iteration."""
Commit = Callable[[Path, "StepReport"], None]
"""(checkpoint directory, what the update did): commit the iteration that was just trained on."""


class LoopHooks(Protocol):
    """What the loop gives to the trainer."""

    def collect(self, sampler: Sampler, iteration: int) -> Sequence[Sample]:
        """Samples of an iteration, before padding."""

    def commit(self, checkpoint: Path, step: StepReport) -> None:
        """Take the checkpoint into the run directory and commit."""


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
            "logprob_gap": _finite(self.logprob_gap),
        }


class SpadeGRPOTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL ships no types
    """GRPOTrainer with our advantages, grammar-aware log-probabilities and no padding columns."""

    def __init__(
        self,
        *,
        hooks: LoopHooks,
        chat: ChatFormat,
        config: Config,
        progress: Progress,
        **kwargs: Any,
    ) -> None:
        self._hooks = hooks
        self._chat = chat
        self._config = config
        self._progress = progress
        self._shape = BatchShape.of(config)
        self._samples: list[Sample] = []
        self._rows: list[int] = []
        self._sampling: torch.Tensor | None = None
        self._trained: torch.Tensor | None = None
        self._fresh = False
        self._buffered_inputs: list[dict[str, Any]] | None = None
        self.step_report = StepReport()
        super().__init__(rollout_func=_rollout, reward_funcs=_advantage, **kwargs)
        if self.accelerator.num_processes != 1:
            raise ModelError(
                "spade-loop trains in one process for now: start it without a distributed launcher"
            )

    def collect(self) -> list[Sample]:
        """Run the loop's iteration with the current weights; its samples, padded to the recipe's rows."""
        iteration = int(self.state.global_step)
        torch.manual_seed(_torch_seed(self._config.seed, iteration))
        with unwrap_model_for_generation(self.model_wrapped, self.accelerator) as model:
            training = model.training
            model.eval()
            tokenizer = self.processing_class
            sampler = TransformersSampler(
                model, tokenizer, self._chat, temperature=self._config.trainer.temperature
            )
            samples = self._hooks.collect(sampler, iteration)
            model.train(training)
        rows = self._shape.total
        self._samples = pad(samples, rows, int(tokenizer.pad_token_id))
        check_batch(self._samples, rows)
        live = sum(s.advantage != 0.0 for s in samples)
        skipped = live < max(1.0, self._config.trainer.min_live_share * rows)
        self.step_report = StepReport(rows=len(samples), live_rows=live, skipped=skipped)
        return self._samples

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if out["completion_ids"].shape[0] != len(self._samples):
            raise BatchError("TRL returned another number of rows than the loop gave it")
        device = out["advantages"].device
        out["advantages"] = torch.tensor([s.advantage for s in self._samples], device=device)
        out["row"] = torch.arange(len(self._samples), device=device)
        self._fresh = True
        return out

    def _prepare_inputs(self, generation_batch: Any) -> Any:
        inputs = super()._prepare_inputs(generation_batch)
        if self._fresh and self._buffered_inputs is not None:
            # Rows of like length share a forward pass: the loss is a mean over rows, so the order is free.
            self._buffered_inputs = sort_by_length(self._buffered_inputs)
            inputs = self._buffered_inputs[0]
            self._fresh = False
            self._progress.phase("update", len(self._buffered_inputs))
        return inputs

    def _compute_loss(self, model: Any, inputs: dict[str, Any]) -> torch.Tensor:
        inputs = drop_padding_columns(inputs)
        self._rows = inputs["row"].tolist()
        self._sampling = inputs.get("sampling_per_token_logps")
        self._trained = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
        loss: torch.Tensor = super()._compute_loss(model, inputs)
        self._progress.advance(1, int(inputs["completion_mask"].sum()))
        return loss

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]:
        base = _base_model(self.accelerator.unwrap_model(model))
        with _last_hidden_state(base) as captured:
            logps, entropies, aux = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **kwargs
            )
        self._note_gap(logps.detach())
        return self._renormalise(base, logps, captured[-1]), entropies, aux

    def _renormalise(self, base: Any, logps: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        """Replace the log-probability of each grammar choice by the one among what the grammar allowed."""
        weight = base.get_output_embeddings().weight
        first = hidden.shape[1] - logps.shape[1]
        values, rows, columns = [], [], []
        for b, row in enumerate(self._rows):
            sample = self._samples[row]
            offset = (
                len(sample.prompt_ids) - 1
            )  # the prompt but its first token is carried in the completion
            for position, allowed in sample.completion.allowed.items():
                column = offset + position
                token = sample.completion.ids[position]
                state = hidden[b, first + column - 1]
                values.append(grammar_logprobs(state, weight, token, allowed, self.temperature))
                rows.append(b)
                columns.append(column)
        if not values:
            return logps
        index = (
            torch.tensor(rows, device=logps.device),
            torch.tensor(columns, device=logps.device),
        )
        return logps.index_put(index, torch.stack(values).to(logps.dtype))

    def _note_gap(self, logps: torch.Tensor) -> None:
        """How far sampler and trainer disagree; both sides without the grammar's mask."""
        if self._sampling is None or self._trained is None or not self._trained.any():
            return
        gap = (logps - self._sampling).abs()[self._trained]
        self.step_report.gaps.append(float(gap.mean()))


def _rollout(prompts: list[Any], trainer: SpadeGRPOTrainer) -> dict[str, Any]:
    """TRL's `rollout_func`: one SPADE iteration. A one-token prompt, the rest of it in the completion under mask 0.

    TRL pads to the longest prompt plus the longest completion; carried this way the width is the longest total.
    """
    samples = trainer.collect()
    if len(prompts) != len(samples):
        raise BatchError(f"TRL asked for {len(prompts)} rows, the recipe plans {len(samples)}")
    carried = [len(s.prompt_ids) - 1 for s in samples]
    return {
        "prompt_ids": [[s.prompt_ids[0]] for s in samples],
        "completion_ids": [[*s.prompt_ids[1:], *s.completion.ids] for s in samples],
        "logprobs": [
            [0.0] * n + list(s.completion.logprobs) for n, s in zip(carried, samples, strict=True)
        ],
        "env_mask": [
            [0] * n + list(s.completion.mask) for n, s in zip(carried, samples, strict=True)
        ],
        "advantage": [s.advantage for s in samples],
    }


def _advantage(completions: list[Any], advantage: list[float], **_: Any) -> list[float]:
    """TRL's reward function: the advantage that the loop computed, so that TRL's own log shows it."""
    del completions
    return advantage


def _torch_seed(seed: int, iteration: int) -> int:
    return (seed * 1_000_003 + iteration) % 2**63


def _base_model(model: Any) -> Any:
    """The Hugging Face model under LoRA, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@contextmanager
def _last_hidden_state(base: Any) -> Iterator[list[torch.Tensor]]:
    """Collects the backbone's last hidden state [B, T, H] of each forward pass inside the block."""
    captured: list[torch.Tensor] = []
    handle = base.base_model.register_forward_hook(
        lambda _m, _i, out: captured.append(out.last_hidden_state)
    )
    try:
        yield captured
    finally:
        handle.remove()


class _Committer(TrainerCallback):
    """Skips the optimiser step of a batch without signal, and commits after each save."""

    def __init__(self) -> None:
        self.trainer: SpadeGRPOTrainer | None = None

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Without gradients AdamW leaves weights and momentum alone; with zero gradients it would not."""
        if self.trainer is not None and self.trainer.step_report.skipped:
            self.trainer.model.zero_grad(set_to_none=True)

    def on_save(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Hand the checkpoint that was just written to the loop."""
        trainer = self.trainer
        if trainer is None:
            return
        logs: Mapping[str, Any] = state.log_history[-1] if state.log_history else {}
        trainer.step_report.loss = _finite(logs.get("loss"))
        trainer.step_report.grad_norm = _finite(logs.get("grad_norm"))
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        trainer._hooks.commit(checkpoint, trainer.step_report)


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _grpo_config(config: Config, scratch: Path, *, on_cpu: bool) -> GRPOConfig:
    shape = BatchShape.of(config)
    trainer = config.trainer
    return GRPOConfig(
        output_dir=str(scratch),
        per_device_train_batch_size=shape.rows_per_step,
        gradient_accumulation_steps=shape.total // shape.rows_per_step,
        num_generations=shape.total,
        max_steps=config.iterations,
        learning_rate=trainer.learning_rate,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=trainer.max_grad_norm,
        temperature=trainer.temperature,
        loss_type="grpo",
        scale_rewards="none",
        beta=0.0,
        epsilon=trainer.epsilon,
        epsilon_high=trainer.epsilon_high,
        seed=config.seed,
        use_cpu=on_cpu,
        # TRL turns both on by default; neither suits a small model on a CPU, and weights carry their own dtype.
        bf16=False,
        gradient_checkpointing=not on_cpu,
        save_strategy="steps",
        save_steps=1,
        logging_steps=1,
        logging_strategy="steps",
        report_to="none",
        disable_tqdm=True,
        ignore_data_skip=True,
        dataloader_pin_memory=False,
    )


def train(
    policy: Policy,
    hooks: LoopHooks,
    config: Config,
    *,
    scratch: Path,
    resume: Path | None,
    progress: Progress,
) -> None:
    """Run TRL's training loop to the recipe's last iteration. Every iteration calls `collect`, then `commit`."""
    peft_config = None
    if config.policy.lora_rank > 0:
        from peft import LoraConfig

        peft_config = LoraConfig(
            r=config.policy.lora_rank,
            lora_alpha=config.policy.lora_alpha,
            target_modules="all-linear",
            task_type="CAUSAL_LM",
        )
    on_cpu = policy.model.device.type == "cpu"
    committer = _Committer()
    with warnings.catch_warnings():
        # The surface is experimental: that is why TRL is pinned and used in this file alone.
        warnings.filterwarnings("ignore", message="You are using 'rollout_func'")
        trainer = SpadeGRPOTrainer(
            hooks=hooks,
            chat=ChatFormat(policy.tokenizer),
            config=config,
            progress=progress,
            model=policy.model,
            args=_grpo_config(config, scratch, on_cpu=on_cpu),
            train_dataset=Dataset.from_dict({"prompt": ["iteration"] * config.iterations}),
            processing_class=policy.tokenizer,
            peft_config=peft_config,
            callbacks=[committer],
        )
    # TRL's log describes advantages and padding rows; the run's own rows say what happened.
    trainer.remove_callback(PrinterCallback)
    committer.trainer = trainer
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
