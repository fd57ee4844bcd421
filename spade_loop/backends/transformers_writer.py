"""A frozen model on this machine, through transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import torch
from transformers import LogitsProcessorList, TopKLogitsWarper, TopPLogitsWarper

from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.weights import load_policy
from spade_loop.completers import JsonSchema, Reply
from spade_loop.config import PolicyConfig
from spade_loop.errors import ContextError
from spade_loop.types import Message

GREEDY: Final = 1e-4
"""The lowest temperature: at it the likeliest token is drawn, where logits differ at all."""


class TransformersWriter:
    """A `Writer` that answers with frozen weights. A reply depends on its chat and its seed, not on its neighbours."""

    concurrent = False

    def __init__(
        self,
        model: str,
        *,
        name: str = "",
        revision: str = "",
        dtype: Literal["auto", "float32", "bfloat16"] = "auto",
        thinking: Literal["template", "on", "off"] = "template",
        batch_rows: int = 16,
    ) -> None:
        """Load `model`: a bundled name, a directory, or a Hugging Face id.

        `batch_rows` chats are answered at once. `ModelError` when it is not there, or its chat template is of no use.
        """
        self.name = name or model
        self._batch_rows = batch_rows
        policy = load_policy(
            PolicyConfig(
                model=model,
                revision=revision,
                dtype=dtype,
                thinking=thinking,
                lora_rank=0,
            )
        )
        policy.model.requires_grad_(False).eval()
        self._sampler = TransformersSampler(policy.model, policy.tokenizer, policy.chat)
        config = policy.model.config.get_text_config()
        self._positions: int | None = getattr(config, "max_position_embeddings", None)

    def write(  # noqa: PLR0913 -- how a reply is drawn, all by name
        self,
        chats: Sequence[Sequence[Message]],
        *,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[int],
        schema: JsonSchema | None = None,
        top_p: float = 1.0,
        top_k: int = 0,
    ) -> list[Reply]:
        """One reply to each chat, in order. `ContextError` when a chat with its reply is longer than the context."""
        if len(seeds) != len(chats):
            raise ValueError(f"{len(chats)} chats need as many seeds, got {len(seeds)}")
        prompts = [self._sampler.chat.prompt(chat) for chat in chats]
        longest = max(map(len, prompts), default=0) + max_tokens
        if self._positions is not None and longest > self._positions:
            raise ContextError(
                f"the model {self.name!r} has a context of {self._positions} tokens, and a chat with its reply may "
                f"have {longest}: lower its max_tokens, or corpus.words for a designer"
            )
        self._sampler.temperature = max(temperature, GREEDY)
        self._sampler.cut = _cut(top_p, top_k)
        replies: list[Reply] = []
        for start in range(0, len(prompts), self._batch_rows):
            batch = slice(start, start + self._batch_rows)
            replies += self._answer(prompts[batch], seeds[batch], max_tokens, schema)
        return replies

    def _answer(
        self,
        prompts: Sequence[Sequence[int]],
        seeds: Sequence[int],
        max_tokens: int,
        schema: JsonSchema | None,
    ) -> list[Reply]:
        dialogue = self._sampler.open(prompts, streams=[[seed] for seed in seeds])
        completions = dialogue.generate(range(len(prompts)), max_tokens, schema)
        chat = self._sampler.chat
        return [
            Reply(chat.reply(c.ids), len(c.ids), c.stopped, len(prompts[row]))
            for row, c in ((row, completions[row]) for row in range(len(prompts)))
        ]

    def close(self) -> None:
        """Nothing is open: the weights go with this object."""


def _cut(top_p: float, top_k: int) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """What leaves out unlikely tokens: first all but the `top_k` likeliest, then those beyond a mass of `top_p`."""
    warpers = LogitsProcessorList()
    if top_k > 0:
        warpers.append(TopKLogitsWarper(top_k))
    if top_p < 1.0:
        warpers.append(TopPLogitsWarper(top_p))
    if not warpers:
        return None
    # Neither looks at the ids so far.
    return lambda logprobs: warpers(torch.LongTensor(), logprobs)
