"""What the trainer does to tensors: pure functions of torch, without TRL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from spade_loop.errors import BatchError

_PER_TOKEN = (
    "completion_ids",
    "completion_mask",
    "tool_mask",
    "advantages",
    "sampling_per_token_logps",
    "old_per_token_logps",
    "ref_per_token_logps",
    "importance_sampling_ratio",
)


_LOGPROBS: Final = ("sampling_per_token_logps", "old_per_token_logps", "ref_per_token_logps")
_ROUNDING: Final = 1e-3
"""How far above 0 rounding may lift a log-probability."""


def grammar_logprobs(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    token: int,
    allowed: Sequence[int],
    temperature: float,
) -> torch.Tensor:
    """Log p(token) among `allowed` alone: the logits' log-softmax over those rows of the output embedding.

    `hidden` is the last hidden state [H] at the position before the token, `weight` the output embedding [V, H].
    """
    index = torch.tensor(list(allowed), device=weight.device)
    logits = (weight[index].float() @ hidden.float()) / temperature
    return logits[list(allowed).index(token)] - torch.logsumexp(logits, dim=0)


def sort_by_length(chunks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same rows in chunks of the same sizes, shortest first."""
    lengths = torch.cat([c["completion_mask"].sum(1) for c in chunks])
    order = torch.argsort(lengths, stable=True)
    sizes = [c["completion_mask"].shape[0] for c in chunks]
    out: list[dict[str, Any]] = [{} for _ in chunks]
    for key, value in chunks[0].items():
        if isinstance(value, torch.Tensor) and value.ndim > 0:
            merged = torch.cat([c[key] for c in chunks])[order]
            for chunk, part in zip(out, torch.split(merged, sizes), strict=True):
                chunk[key] = part
        else:
            for chunk, old in zip(out, chunks, strict=True):
                chunk[key] = old[key]
    return out


def drop_padding_columns(inputs: dict[str, Any]) -> dict[str, Any]:
    """`inputs` without the columns at the right in which no row of this chunk has a token."""
    mask = inputs["completion_mask"]
    width = int(mask.any(0).nonzero().max()) + 1
    total = mask.shape[1]
    out = dict(inputs)
    for key in _PER_TOKEN:
        value = inputs.get(key)
        # Advantages have a column a token only where tokens weigh differently.
        if isinstance(value, torch.Tensor) and value.ndim == 2 and value.shape[1] == total:
            out[key] = value[:, :width]
    return out


def check_inputs(inputs: Mapping[str, Any], *, vocab_size: int, positions: int | None) -> None:
    """Refuse what TRL made of a batch, before it is trained on; `BatchError` says what is wrong and in which row.

    `inputs` has `prompt_ids` [B, P] and `completion_ids` [B, C] with their masks; `tool_mask` and whatever there is of
    log-probabilities [B, C]; `advantages` [B] or [B, C]; `importance_sampling_ratio` [B, 1] or [B, C].
    `vocab_size` is that of the model's embedding, `positions` the longest sequence that it has positions for (None
    where that has no end).
    """
    _check_shapes(inputs)
    for part in ("prompt", "completion"):
        ids = inputs[f"{part}_ids"]
        bad = (ids < 0) | (ids >= vocab_size)
        _refuse(bad, f"of the {part} is not an id of the model's {vocab_size} tokens", ids)
        mask = inputs[f"{part}_mask"]
        _refuse((mask != 0) & (mask != 1), f"of the {part} has a mask other than 0 and 1", mask)
    length = inputs["prompt_mask"].sum(1) + inputs["completion_mask"].sum(1)
    if positions is not None and int(length.max()) > positions:
        row = int(length.argmax())
        raise BatchError(
            f"row {row}: prompt and completion have {int(length[row])} tokens, the model has {positions} positions: "
            "lower agent.context, or designer.max_tokens and corpus.words"
        )
    trained = inputs["completion_mask"].bool()
    if inputs.get("tool_mask") is not None:
        trained = trained & inputs["tool_mask"].bool()
    _check_values(inputs, trained)


def check_logprobs(logps: torch.Tensor, trained: torch.Tensor, rows: Sequence[int]) -> None:
    """Refuse log-probabilities [B, C] of the model in training that are not finite where they are trained on.

    `rows` are the numbers that the batch knows these rows by. `BatchError` says what to do.
    """
    bad = trained.bool() & ~torch.isfinite(logps)
    if bad.any():
        row, column = bad.nonzero()[0].tolist()
        raise BatchError(
            f"row {rows[row]}: the model gives token {column} of the completion the log-probability "
            f"{float(logps[row, column])}: its weights have diverged. Resume from an earlier checkpoint with a lower "
            "trainer.learning_rate"
        )


def _check_shapes(inputs: Mapping[str, Any]) -> None:
    wide = inputs["completion_ids"].shape
    expected = {"prompt_mask": inputs["prompt_ids"].shape, "completion_mask": wide}
    expected |= dict.fromkeys(("tool_mask", *_LOGPROBS), wide)
    advantages = inputs["advantages"].shape
    expected["advantages"] = wide if len(advantages) == 2 else wide[:1]
    for key, shape in expected.items():
        value = inputs.get(key)
        if value is not None and value.shape != shape:
            raise BatchError(
                f"{key} has shape {tuple(value.shape)}, its ids {tuple(shape)}: every token needs one value"
            )
    if inputs["prompt_ids"].shape[0] != wide[0]:
        raise BatchError(
            f"there are {inputs['prompt_ids'].shape[0]} prompts and {wide[0]} completions"
        )


def _check_values(inputs: Mapping[str, Any], trained: torch.Tensor) -> None:
    advantages = inputs["advantages"]
    per_token = advantages if advantages.ndim == 2 else advantages[:, None]
    _refuse(~torch.isfinite(per_token), "has an advantage that is not finite", per_token)
    for key in _LOGPROBS:
        value = inputs.get(key)
        if value is not None:
            _refuse(
                trained & ~torch.isfinite(value), f"has a value in {key} that is not finite", value
            )
    ratio = inputs.get("importance_sampling_ratio")
    if ratio is not None:
        ratio = ratio.expand(
            trained.shape
        )  # one for each row in the modes that weigh whole sequences
        _refuse(
            trained & ~torch.isfinite(ratio), "has an importance ratio that is not finite", ratio
        )
    sampled = inputs.get("sampling_per_token_logps")
    if sampled is not None:
        _refuse(trained & (sampled > _ROUNDING), "has a log-probability above 0", sampled)


def _refuse(bad: torch.Tensor, what: str, values: torch.Tensor) -> None:
    if bad.any():
        row, column = bad.nonzero()[0].tolist()
        raise BatchError(f"row {row}: token {column} {what}: {values[row, column].item()}")
