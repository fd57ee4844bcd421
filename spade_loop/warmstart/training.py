"""The update of a warm start: TRL's `SFTTrainer` over rows that are token ids already."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import SFTConfig, SFTTrainer

from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.weights import Policy
from spade_loop.config import Config
from spade_loop.demonstrations import Encoded
from spade_loop.progress import Progress
from spade_loop.trainer import adapter
from spade_loop.types import Role
from spade_loop.warmstart.settings import WarmStart

IGNORED: Final = -100
"""Label of a token without a gradient, as transformers has it."""
SAVES: Final = 0.25
"""Share of the steps after which a checkpoint is written that an interrupted warm start goes on from."""
STATE: Final = "trainer_state.json"
"""What transformers writes last into a checkpoint."""


def losses(
    policy: Policy, model: Any, rows: Sequence[Encoded], progress: Progress
) -> dict[str, float]:
    """Mean cross entropy of a reply's token in nats, by role, every token weighing the same.

    `model` may be a later state of the policy's. A role without rows is left out.
    """
    scorer = TransformersSampler(model, policy.tokenizer, policy.chat, temperature=1.0)
    total: dict[Role, float] = {}
    count: dict[Role, int] = {}
    training = model.training
    model.eval()
    for row in rows:
        role = row.demonstration.role
        # Where the mask is 0 the score is 0.
        total[role] = total.get(role, 0.0) - sum(scorer.score(row.prompt_ids, row.completion))
        count[role] = count.get(role, 0) + sum(row.completion.mask)
        progress.advance(1, sum(row.completion.mask))
    model.train(training)
    return {str(role): total[role] / count[role] for role in Role if role in total}


def dataset_of(rows: Sequence[Encoded]) -> Dataset:
    """Rows as TRL takes them: ids, and a label for each that has a gradient."""
    ids = [[*row.prompt_ids, *row.completion.ids] for row in rows]
    labels = [
        [IGNORED] * len(row.prompt_ids)
        + [
            i if own else IGNORED
            for i, own in zip(row.completion.ids, row.completion.mask, strict=True)
        ]
        for row in rows
    ]
    return Dataset.from_dict({"input_ids": ids, "labels": labels})


def fine_tune(
    policy: Policy,
    rows: Sequence[Encoded],
    config: Config,
    settings: WarmStart,
    *,
    scratch: Path,
    progress: Progress,
) -> Any:
    """The model, trained on `rows`; its adapter, if it has one, merged into weights of the dtype that was loaded.

    The loss is that of SFT: the mean over all trained tokens of a step. `scratch` holds checkpoints; the newest
    whole one is gone on from.
    """
    on_cpu = policy.model.device.type == "cpu"
    dtype = policy.model.dtype
    trainer = SFTTrainer(
        model=policy.model,
        args=_sft_config(config, settings, scratch, on_cpu=on_cpu),
        train_dataset=dataset_of(rows),
        processing_class=policy.tokenizer,
        peft_config=adapter(config.policy),
        callbacks=[_Told(progress)],
    )
    trainer.remove_callback(PrinterCallback)
    newest = newest_checkpoint(scratch)
    trainer.train(resume_from_checkpoint=None if newest is None else str(newest))
    model = trainer.accelerator.unwrap_model(trainer.model)
    if config.policy.lora_rank > 0:
        # What the adapter adds is small beside the weights: it is added in full precision and rounded once.
        model = model.float().merge_and_unload().to(dtype)
    return model


def newest_checkpoint(scratch: Path) -> Path | None:
    """The newest checkpoint that was written to its end; None without one."""
    found = [path for path in scratch.glob("checkpoint-*") if (path / STATE).is_file()]
    return max(found, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _sft_config(config: Config, settings: WarmStart, scratch: Path, *, on_cpu: bool) -> SFTConfig:
    trainer = config.trainer
    together = min(trainer.rows_per_step, settings.batch)
    return SFTConfig(
        output_dir=str(scratch),
        per_device_train_batch_size=together,
        gradient_accumulation_steps=-(-settings.batch // together),
        num_train_epochs=settings.epochs,
        learning_rate=settings.rate(config.policy.lora_rank),
        lr_scheduler_type="linear",
        weight_decay=trainer.weight_decay,
        adam_beta1=trainer.adam_beta1,
        adam_beta2=trainer.adam_beta2,
        max_grad_norm=trainer.max_grad_norm,
        max_length=None,  # every row was cut to what a run has room for
        dataset_kwargs={"skip_prepare_dataset": True},  # ids and labels are ours
        seed=settings.seed,
        use_cpu=on_cpu,
        # TRL turns both on by default; neither suits a small model on a CPU, and weights carry their own dtype.
        bf16=False,
        gradient_checkpointing=not on_cpu,
        save_strategy="steps",
        save_steps=SAVES,
        save_total_limit=2,
        logging_strategy="steps",
        logging_steps=1,
        report_to=list(trainer.report_to) or "none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )


class _Told(TrainerCallback):
    """Tells a display how far the training is."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def on_train_begin(self, args: Any, state: Any, *_: Any, **__: Any) -> None:
        """Steps that are left."""
        del args
        self._progress.phase("fine-tune", max(1, state.max_steps - state.global_step))

    def on_step_end(self, *_: Any, **__: Any) -> None:
        """One more."""
        self._progress.advance(1)
