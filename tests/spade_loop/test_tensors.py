"""What a batch must be before it is trained on, and which row is named when it is not."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from spade_loop.errors import BatchError
from spade_loop.tensors import check_inputs, check_logprobs

VOCABULARY, POSITIONS = 50, 7


def batch(**changes: Any) -> dict[str, Any]:
    """Two rows as TRL lays them out: prompts padded at the left, completions at the right."""
    good = {
        "prompt_ids": torch.tensor([[0, 3], [4, 5]]),
        "prompt_mask": torch.tensor([[0, 1], [1, 1]]),
        "completion_ids": torch.tensor([[6, 7, 8, 9, 10], [11, 12, 0, 0, 0]]),
        "completion_mask": torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]),
        "tool_mask": torch.tensor([[1, 0, 1, 1, 1], [1, 1, 0, 0, 0]]),
        "sampling_per_token_logps": torch.full((2, 5), -0.5),
        "advantages": torch.tensor([1.0, -1.0]),
        "num_items_in_batch": torch.tensor(7),
    }
    return good | changes


def changed(key: str, row: int, column: int, value: float) -> dict[str, Any]:
    made = batch()
    made[key][row, column] = value
    return made


def check(inputs: dict[str, Any]) -> None:
    check_inputs(inputs, vocab_size=VOCABULARY, positions=POSITIONS)


@pytest.mark.parametrize(
    "inputs",
    [
        batch(),
        batch(tool_mask=None, sampling_per_token_logps=None),
        batch(advantages=torch.ones(2, 5)),
        batch(old_per_token_logps=torch.zeros(2, 5)),
        batch(importance_sampling_ratio=torch.ones(2, 1)),
        batch(importance_sampling_ratio=torch.ones(2, 5)),
        # What is not trained on may be anything: the environment's tokens, and padding.
        changed("sampling_per_token_logps", 0, 1, float("nan")),
        changed("sampling_per_token_logps", 1, 4, float("inf")),
        changed("sampling_per_token_logps", 0, 0, 1e-4),
    ],
)
def test_a_batch_that_can_be_trained_on_passes(inputs: dict[str, Any]) -> None:
    check(inputs)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (changed("completion_ids", 0, 2, 50), r"row 0: token 2 of the completion .*50 tokens: 50"),
        (changed("prompt_ids", 1, 0, -1), r"row 1: token 0 of the prompt is not an id .*: -1"),
        (changed("completion_mask", 1, 1, 2), r"row 1: token 1 of the completion has a mask .*: 2"),
        (changed("sampling_per_token_logps", 1, 1, float("nan")), r"row 1: token 1 .*finite: nan"),
        (changed("sampling_per_token_logps", 0, 4, float("-inf")), r"row 0: token 4 .*: -inf"),
        (changed("sampling_per_token_logps", 0, 4, 0.1), r"row 0: token 4 .*above 0: 0\.1"),
        (batch(old_per_token_logps=torch.full((2, 5), torch.inf)), r"row 0: .*old_per_token_logps"),
        (
            batch(importance_sampling_ratio=torch.tensor([[1.0], [torch.nan]])),
            r"row 1: token 0 has an importance ratio that is not finite",
        ),
        (batch(advantages=torch.tensor([1.0, torch.nan])), r"row 1: .*advantage .*not finite: nan"),
        (batch(advantages=torch.ones(2, 4)), r"advantages has shape \(2, 4\), its ids \(2, 5\)"),
        (batch(advantages=torch.ones(3)), r"advantages has shape \(3,\)"),
        (batch(tool_mask=torch.ones(2, 4)), r"tool_mask has shape \(2, 4\), its ids \(2, 5\)"),
        (batch(prompt_mask=torch.ones(2, 3)), r"prompt_mask has shape \(2, 3\), its ids \(2, 2\)"),
        (
            batch(prompt_ids=torch.ones(1, 2), prompt_mask=torch.ones(1, 2)),
            r"1 prompts and 2 completions",
        ),
        (changed("prompt_mask", 0, 0, 1), None),
    ],
)
def test_what_is_wrong_is_named_with_its_row(inputs: dict[str, Any], message: str | None) -> None:
    if message is None:  # seven tokens still fit
        check(inputs)
        message = (
            r"row 0: prompt and completion have 7 tokens, the model has 6 positions.*agent\.context"
        )
        with pytest.raises(BatchError, match=message):
            check_inputs(inputs, vocab_size=VOCABULARY, positions=6)
        check_inputs(inputs, vocab_size=VOCABULARY, positions=None)
        return
    with pytest.raises(BatchError, match=message):
        check(inputs)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_diverged_weights_are_told_by_the_number_of_the_row(value: float) -> None:
    logps, trained = torch.full((2, 3), -1.0), torch.ones(2, 3)
    logps[1, 2] = value
    with pytest.raises(BatchError, match=rf"row 9: .*token 2 .*{value}.*learning_rate"):
        check_logprobs(logps, trained, [4, 9])
    trained[1, 2] = 0
    check_logprobs(logps, trained, [4, 9])
