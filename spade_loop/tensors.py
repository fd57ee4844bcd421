"""What the trainer does to tensors: pure functions of torch, without TRL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


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
    per_token = ("completion_ids", "completion_mask", "tool_mask", "sampling_per_token_logps")
    return {k: v[:, :width] if k in per_token and v is not None else v for k, v in inputs.items()}
