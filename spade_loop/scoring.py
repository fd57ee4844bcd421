"""What the trainer scores: advantages by token, and log-probabilities where a grammar left a choice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from spade_loop.tensors import grammar_logprobs
from spade_loop.types import Sample


def token_advantages(samples: Sequence[Sample], width: int) -> torch.Tensor:
    """Advantages [rows], or [rows, width] when the tokens of a row do not weigh the same.

    A row is its prompt but the first token, then its completion, then padding.
    """
    advantage = torch.tensor([s.advantage for s in samples])
    if not any(s.weights for s in samples):
        return advantage
    table = advantage[:, None].repeat(1, width)
    for row, sample in enumerate(samples):
        if sample.weights:
            start = len(sample.prompt_ids) - 1
            own = torch.tensor(sample.weights)
            table[row, start : start + len(own)] *= own
    return table


def renormalise(
    logps: torch.Tensor,
    hidden: torch.Tensor,
    embedding: torch.Tensor,
    samples: Sequence[Sample],
    temperature: float,
) -> torch.Tensor:
    """`logps` [B, T] with that of each grammar choice replaced by the one among what the grammar allowed.

    `hidden` is the last hidden state [B, first + T, H], `embedding` the output embedding [V, H].
    """
    first = hidden.shape[1] - logps.shape[1]
    values, rows, columns = [], [], []
    for b, sample in enumerate(samples):
        offset = len(sample.prompt_ids) - 1  # the prompt but its first token is in the completion
        for position, allowed in sample.completion.allowed.items():
            column, token = offset + position, sample.completion.ids[position]
            state = hidden[b, first + column - 1]
            values.append(grammar_logprobs(state, embedding, token, allowed, temperature))
            rows.append(b)
            columns.append(column)
    if not values:
        return logps
    index = (
        torch.tensor(rows, device=logps.device),
        torch.tensor(columns, device=logps.device),
    )
    return logps.index_put(index, torch.stack(values).to(logps.dtype))


def base_model(model: Any) -> Any:
    """The Hugging Face model under LoRA, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


@contextmanager
def last_hidden_state(base: Any) -> Iterator[list[torch.Tensor]]:
    """Collects the backbone's last hidden state [B, T, H] of each forward pass inside the block."""
    captured: list[torch.Tensor] = []
    handle = base.base_model.register_forward_hook(
        lambda _m, _i, out: captured.append(out.last_hidden_state)
    )
    try:
        yield captured
    finally:
        handle.remove()
