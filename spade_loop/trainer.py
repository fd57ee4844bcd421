"""The one adapter to TRL: `GRPOTrainer(rollout_func=...)` drives the loop, one dataset row a SPADE iteration.

TRL 1.16 knows one group size and centres rewards over it. Here the group is the whole generation batch, the "reward" is
the advantage that the loop computed, and a thin subclass puts exactly that advantage into the batch, renormalises
log-probabilities where a grammar left a choice, and leaves out columns that hold nothing but padding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.models import unwrap_model_for_generation

from spade_loop.backends.distributed import follow, leading
from spade_loop.backends.sampling import engine_arguments, make_sampler
from spade_loop.backends.sharding import check_processes, whole_weights
from spade_loop.backends.weights import Policy
from spade_loop.batch import BatchShape, check_batch, deal, pad, spread
from spade_loop.chat import ChatFormat
from spade_loop.completers import Sampler
from spade_loop.config import Config, PolicyConfig
from spade_loop.errors import BatchError
from spade_loop.progress import Progress
from spade_loop.schedule import Schedule
from spade_loop.scoring import base_model, last_hidden_state, renormalise, token_advantages
from spade_loop.tensors import (
    check_inputs,
    check_logprobs,
    drop_padding_columns,
    sort_by_length,
)
from spade_loop.types import Sample, StepReport, finite
from spade_loop.world import World, agree

Collect = Callable[[Sampler, int], Sequence[Sample]]
"""(sampler over the current weights, step) -> samples of that step."""
Commit = Callable[[Path | None, "StepReport"], None]
"""(checkpoint directory, what the update did): go on from the iteration that was just trained on, and commit it."""


class LoopHooks(Protocol):
    """What the loop gives to the trainer."""

    def collect(self, sampler: Sampler, step: int) -> Sequence[Sample]:
        """Samples of a step, before padding."""

    def scalars(self) -> Mapping[str, float]:
        """What a tracker is told of the step that was just collected, by name."""

    def commit(self, checkpoint: Path | None, step: StepReport) -> None:
        """Take the checkpoint into the run directory and commit; without one go on, and commit later."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Where TRL writes a checkpoint before it is committed, and the one to go on from."""

    scratch: Path
    resume: Path | None = None


class SpadeGRPOTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL ships no types
    """GRPOTrainer with our advantages, grammar-aware log-probabilities and no padding columns."""

    def __init__(
        self,
        *,
        hooks: LoopHooks | None,
        chat: ChatFormat,
        config: Config,
        progress: Progress,
        world: World,
        **kwargs: Any,
    ) -> None:
        self._hooks = hooks
        self._world = world
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
        check_processes(self.accelerator, world, config)

    def collect(self) -> list[Sample]:
        """Run the loop's step with the current weights: on the leader, with the others' help. This rank's rows."""
        step = int(self.state.global_step)
        torch.manual_seed(_torch_seed(self._config.seed, step))
        batch = None
        with self._sampling_model() as model:
            generation = getattr(self, "vllm_generation", None)
            local = make_sampler(self._config, model, self.processing_class, self._chat, generation)
            if self._hooks is None:
                follow(local, self._world)
            else:
                with leading(local, self._world) as sampler:
                    batch = self._batch(self._hooks, self._hooks.collect(sampler, step))
        samples, self.step_report = self._world.broadcast(batch)
        self._samples = deal(samples, self._world.size)[self._world.rank]
        return self._samples

    @contextmanager
    def _sampling_model(self) -> Iterator[Any]:
        """The model without wrappers, all of its weights at hand, in evaluation mode."""
        gather = self.args.ds3_gather_for_generation
        with (
            unwrap_model_for_generation(self.model_wrapped, self.accelerator, gather) as model,
            whole_weights(model, self.accelerator),
        ):
            training = model.training
            model.eval()
            yield model
            model.train(training)

    def _batch(
        self, hooks: LoopHooks, samples: Sequence[Sample]
    ) -> tuple[list[Sample], StepReport]:
        """The rows of all ranks, and whether they are worth a step."""
        for name, value in hooks.scalars().items():
            self._metrics["train"][f"spade/{name}"].append(value)
        trainer, planned = self._config.trainer, self._shape.total
        rows, pad_id = self._shape.shared(self._world.size), int(self.processing_class.pad_token_id)
        batch = spread(pad(samples, rows, pad_id, keep_all=trainer.beta > 0), planned)
        check_batch(batch, rows)
        own = [s for s in samples if not s.rehearsed]  # a demonstration is no signal of the roles
        live = sum(s.advantage != 0.0 for s in own)
        needed = max(1.0, trainer.min_live_share * (planned - self._shape.rehearsal))
        # DeepSpeed steps by itself and cannot be held back.
        skipped = live < needed and not self.is_deepspeed_enabled
        return batch, StepReport(rows=len(own), live_rows=live, skipped=skipped)

    def commit(self, state: Any, *, saved: bool) -> None:
        """Hand the step, and the checkpoint if one was just written, to the loop, while the other ranks wait."""
        report, hooks = self.step_report, self._hooks
        # Who answers has written its part of the checkpoint.
        report.gaps = [gap for gaps in self._world.gather(report.gaps) for gap in gaps]
        logs: Mapping[str, Any] = state.log_history[-1] if state.log_history else {}
        report.loss, report.grad_norm = finite(logs.get("loss")), finite(logs.get("grad_norm"))
        written = Path(self.args.output_dir) / f"checkpoint-{state.global_step}"

        def take() -> None:
            if hooks is not None:
                hooks.commit(written if saved else None, report)

        agree(self._world, take)

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        self._rows = []  # what is scored in there is the reference model's, of which no grammar knows
        out: dict[str, Any] = super()._generate_and_score_completions(inputs)
        if out["completion_ids"].shape[0] != len(self._samples):
            raise BatchError("TRL returned another number of rows than the loop gave it")
        device = out["advantages"].device
        out["advantages"] = token_advantages(self._samples, out["completion_ids"].shape[1]).to(
            device
        )
        out["row"] = torch.arange(len(self._samples), device=device)
        model = base_model(self.accelerator.unwrap_model(self.model))
        check_inputs(
            out,
            vocab_size=model.get_input_embeddings().num_embeddings,
            positions=getattr(model.config, "max_position_embeddings", None),
        )
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
        if not self._rows:
            return super()._get_per_token_logps_and_entropies(  # type: ignore[no-any-return]
                model, input_ids, attention_mask, logits_to_keep, **kwargs
            )
        base = base_model(self.accelerator.unwrap_model(model))
        with last_hidden_state(base) as captured:
            logps, entropies, aux = super()._get_per_token_logps_and_entropies(
                model, input_ids, attention_mask, logits_to_keep, **kwargs
            )
        if self._trained is not None:
            check_logprobs(logps, self._trained, self._rows)
        self._note_gap(logps.detach())
        samples = [self._samples[row] for row in self._rows]
        embedding = base.get_output_embeddings().weight
        logps = renormalise(logps, captured[-1], embedding, samples, self.temperature)
        return logps, entropies, aux

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


class _Committer(TrainerCallback):
    """Skips the optimiser step of a batch without signal, and hands each step to the loop once it is over."""

    def __init__(self) -> None:
        self.trainer: SpadeGRPOTrainer | None = None
        self._handed = -1
        """The last step that the loop was told of."""

    def on_pre_optimizer_step(self, *_: Any, **__: Any) -> None:
        """Without gradients AdamW leaves weights and momentum alone; with zero gradients it would not."""
        if self.trainer is not None and self.trainer.step_report.skipped:
            self.trainer.model.zero_grad(set_to_none=True)

    def on_log(self, args: Any, state: Any, control: Any, *_: Any, **__: Any) -> None:
        """Go on from a step that is not saved; its loss is known now. The log at the end of training is of no step."""
        del args
        if not control.should_save:
            self._hand(state, saved=False)

    def on_save(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Commit the iteration whose checkpoint was just written."""
        del args
        self._hand(state, saved=True)

    def _hand(self, state: Any, *, saved: bool) -> None:
        if self.trainer is not None and state.global_step != self._handed:
            self._handed = state.global_step
            self.trainer.commit(state, saved=saved)


def _grpo_config(config: Config, scratch: Path, ranks: int, *, on_cpu: bool) -> GRPOConfig:
    shape = BatchShape.of(config)
    trainer, rows = config.trainer, shape.shared(ranks)
    return GRPOConfig(
        output_dir=str(scratch),
        per_device_train_batch_size=shape.rows_per_step,
        gradient_accumulation_steps=rows // (shape.rows_per_step * ranks),
        num_generations=rows,
        max_steps=Schedule.of(config).steps,
        learning_rate=trainer.learning_rate,
        lr_scheduler_type="constant",
        weight_decay=trainer.weight_decay,
        adam_beta1=trainer.adam_beta1,
        adam_beta2=trainer.adam_beta2,
        max_grad_norm=trainer.max_grad_norm,
        temperature=trainer.temperature,
        loss_type="grpo",
        scale_rewards="none",
        beta=trainer.beta * rows / shape.total,  # as `spread` does with advantages
        epsilon=trainer.epsilon,
        epsilon_high=trainer.epsilon_high,
        seed=config.seed,
        use_cpu=on_cpu,
        # TRL turns both on by default; neither suits a small model on a CPU, and weights carry their own dtype.
        bf16=False,
        gradient_checkpointing=not on_cpu,
        save_strategy="steps",
        save_steps=config.commit_every,
        logging_steps=1,
        logging_strategy="steps",
        report_to=list(trainer.report_to) or "none",
        disable_tqdm=True,
        ignore_data_skip=True,
        dataloader_pin_memory=False,
        ddp_find_unused_parameters=False,  # there are none, and looking for them costs time
        **engine_arguments(config),
    )


def adapter(policy: PolicyConfig) -> Any:
    """The LoRA that a policy is trained through, as PEFT's config; None where all weights are trained."""
    if policy.lora_rank == 0:
        return None
    from peft import LoraConfig

    return LoraConfig(
        r=policy.lora_rank,
        lora_alpha=policy.lora_alpha,
        target_modules="all-linear",
        task_type="CAUSAL_LM",
    )


def train(
    policy: Policy,
    hooks: LoopHooks | None,
    config: Config,
    *,
    checkpoints: Checkpoints,
    progress: Progress,
    world: World,
) -> None:
    """Run TRL's training loop to the schedule's last step. Every step calls `collect`, then `commit`.

    Every rank of `world` calls this with the same model, config and checkpoints; the leader alone has hooks.
    """
    on_cpu = policy.model.device.type == "cpu"
    committer = _Committer()
    with warnings.catch_warnings():
        # The surface is experimental: that is why TRL is pinned and used in this file alone.
        warnings.filterwarnings("ignore", message="You are using 'rollout_func'")
        trainer = SpadeGRPOTrainer(
            hooks=hooks,
            chat=policy.chat,
            config=config,
            progress=progress,
            world=world,
            model=policy.model,
            args=_grpo_config(config, checkpoints.scratch, world.size, on_cpu=on_cpu),
            train_dataset=Dataset.from_dict({"prompt": ["step"] * Schedule.of(config).steps}),
            processing_class=policy.tokenizer,
            peft_config=adapter(config.policy),
            callbacks=[committer],
        )
    # TRL's log describes advantages and padding rows; the run's own rows say what happened.
    trainer.remove_callback(PrinterCallback)
    committer.trainer = trainer
    resume = checkpoints.resume
    trainer.train(resume_from_checkpoint=None if resume is None else str(resume))
