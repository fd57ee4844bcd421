"""A frozen model on this machine as a designer, through transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.weights import load_policy
from spade_loop.completers import JsonSchema, Reply
from spade_loop.config import PolicyConfig
from spade_loop.errors import ModelError
from spade_loop.types import Message

GREEDY: Final = 1e-4
"""The lowest temperature: at it the likeliest token is drawn, where logits differ at all."""


class TransformersWriter:
    """A `Writer` that answers with frozen weights. A reply depends on its chat and its seed, not on its neighbours."""

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

    def write(
        self,
        chats: Sequence[Sequence[Message]],
        *,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[int],
        schema: JsonSchema | None = None,
    ) -> list[Reply]:
        """One reply to each chat, in order. `ModelError` when a chat with its reply is longer than the context."""
        if len(seeds) != len(chats):
            raise ValueError(f"{len(chats)} chats need as many seeds, got {len(seeds)}")
        prompts = [self._sampler.chat.prompt(chat) for chat in chats]
        longest = max(map(len, prompts), default=0) + max_tokens
        if self._positions is not None and longest > self._positions:
            raise ModelError(
                f"the designer {self.name!r} has a context of {self._positions} tokens, and a chat with its reply may "
                f"have {longest}: lower its max_tokens or corpus.words"
            )
        self._sampler.temperature = max(temperature, GREEDY)
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
            Reply(chat.reply(c.ids), len(c.ids), c.stopped)
            for c in (completions[row] for row in range(len(prompts)))
        ]
