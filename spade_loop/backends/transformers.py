"""The sampler over a Hugging Face model: one KV cache across all turns, ids never re-tokenised."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from transformers import LlamaForCausalLM

from spade_loop.backends.cache import roomy_cache
from spade_loop.backends.grammar import Grammar, GrammarCompiler
from spade_loop.chat import ChatFormat
from spade_loop.completers import SCORED_AT_ONCE, JsonSchema
from spade_loop.errors import ModelError
from spade_loop.types import Completion

# transformers 5.24 renamed `past_key_values`; the old name warns there and is the only one before.
_CACHE_ARGUMENT = (
    "cache"
    if "cache" in inspect.signature(LlamaForCausalLM.forward).parameters
    else "past_key_values"
)


class TransformersSampler:
    """Samples from `model` at one temperature, without top-p or top-k: what is trained is what was sampled."""

    def __init__(
        self, model: Any, tokenizer: Any, chat: ChatFormat, *, temperature: float = 1.0
    ) -> None:
        self.model = model
        self.chat = chat
        self.temperature = temperature
        self.cut: Callable[[torch.Tensor], torch.Tensor] | None = None
        """Takes unlikely tokens out of log-probabilities [rows, vocabulary]; for frozen weights alone."""
        self.pad_id: int = tokenizer.pad_token_id
        self.grammars = GrammarCompiler(tokenizer, model.config.get_text_config().vocab_size)

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> TransformersDialogue:
        """Conversations, each with a random stream of its own.

        `initial` talks to the base model under its adapter, as it was before training; `ModelError` without LoRA.
        """
        if initial and not hasattr(self.model, "disable_adapter"):
            raise ModelError(
                "the initial model is only at hand under LoRA: set policy.lora_rank above 0"
            )
        generators = [np.random.default_rng(list(stream)) for stream in streams]
        return TransformersDialogue(self, prompts, generators, initial)

    @torch.no_grad()
    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        """Log-probabilities [tokens] of a completion under the current weights, as they would be drawn now."""
        scored: list[float] = []
        for logits in self._next_logits([*prompt_ids, *completion.ids[:-1]], len(completion.ids)):
            logprobs = torch.log_softmax(logits / self.temperature, dim=-1)
            for own in logprobs:
                i = len(scored)
                allowed = completion.allowed.get(i)
                total = 0.0 if allowed is None else float(own[list(allowed)].logsumexp(0))
                log_p = float(own[completion.ids[i]]) - total
                scored.append(log_p if completion.mask[i] else 0.0)
        return scored

    def _next_logits(self, ids: Sequence[int], last: int) -> Iterator[torch.Tensor]:
        """Next-token logits [block, vocabulary] after each of the `last` ids at the end, block by block.

        All at once they would be the largest thing in memory: 37 GiB after a long design.
        """
        cache = roomy_cache(self.model.config)
        for start in range(0, len(ids), SCORED_AT_ONCE):
            block = torch.tensor([ids[start : start + SCORED_AT_ONCE]], device=self.model.device)
            stop = start + block.shape[1]
            wanted = min(block.shape[1], last - (len(ids) - stop))
            output = self.model(
                input_ids=block,
                attention_mask=torch.ones(1, stop, dtype=torch.long, device=block.device),
                position_ids=torch.arange(start, stop, device=block.device)[None],
                use_cache=True,
                logits_to_keep=max(wanted, 1),
                **{_CACHE_ARGUMENT: cache},
            )
            if wanted > 0:
                yield output.logits[0, -wanted:].float()


class TransformersDialogue:
    """Conversations in one left-padded batch with one cache. A row's last token is fed with the next chunk."""

    def __init__(
        self,
        sampler: TransformersSampler,
        prompts: Sequence[Sequence[int]],
        generators: Sequence[np.random.Generator],
        initial: bool,
    ) -> None:
        self._sampler = sampler
        self._generators = list(generators)
        self._initial = initial
        self._index = {row: i for i, row in enumerate(range(len(prompts)))}
        self._pending: dict[int, list[int]] = {row: list(p) for row, p in enumerate(prompts)}
        device = sampler.model.device
        self._cache = roomy_cache(sampler.model.config)
        self._mask = torch.zeros(0, 0, dtype=torch.long, device=device)
        self._length = torch.zeros(0, dtype=torch.long, device=device)
        self._logits: torch.Tensor | None = None

    def feed(self, chunks: Mapping[int, Sequence[int]]) -> None:
        """Append ids; they reach the model together with the next generation."""
        for row, ids in chunks.items():
            self._pending[row] += ids

    def drop(self, rows: Sequence[int]) -> None:
        """Take rows out of the batch and of the cache."""
        gone = set(rows)
        if not gone:
            return
        kept = [row for row in self._index if row not in gone]
        for row in gone:
            self._pending.pop(row, None)
        if kept and self._logits is not None:
            self._select([self._index[row] for row in kept])
        self._index = {row: i for i, row in enumerate(kept)}

    @torch.no_grad()
    def generate(
        self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
    ) -> dict[int, Completion]:
        """Let the model speak in `rows` until each stops, or has `max_tokens` tokens."""
        grammar = None if schema is None else self._sampler.grammars.compile(schema)
        drafts = {row: _Draft(self._sampler, grammar, max_tokens) for row in rows}
        for row, draft in drafts.items():
            self._pending[row] += draft.force()
        active = [row for row, draft in drafts.items() if not draft.done]
        with self._model_context():
            while active:
                logits = self._forward()
                for row, token in zip(active, self._sample(logits, drafts, active), strict=True):
                    # The ids just added wait in `_pending` for the next forward pass.
                    self._pending[row] += drafts[row].add(*token)
                active = [row for row in active if not drafts[row].done]
        return {row: draft.completion() for row, draft in drafts.items()}

    def _model_context(self) -> AbstractContextManager[Any]:
        if self._initial:
            context: AbstractContextManager[Any] = self._sampler.model.disable_adapter()
            return context
        return nullcontext()

    def _forward(self) -> torch.Tensor:
        """Feed what is pending and return the next-token logits [rows, vocabulary] in float32."""
        chunks = [self._pending[row] for row in self._index]
        if self._logits is None:
            logits = self._prefill(chunks)
        elif any(chunks):
            logits = self._feed(chunks)
        else:
            logits = self._logits
        for chunk in chunks:
            chunk.clear()
        return logits

    def _prefill(self, chunks: Sequence[Sequence[int]]) -> torch.Tensor:
        """Feed the prompts: equal ones once, and what all have in common once."""
        if not all(chunks):
            raise ModelError("a conversation needs at least one token before the model can speak")
        unique = list(dict.fromkeys(tuple(chunk) for chunk in chunks))
        shared = _common_prefix(unique)
        if shared and len(unique) > 1:
            self._start(1)
            self._feed([unique[0][:shared]])
            self._select([0] * len(unique))
            self._feed([prompt[shared:] for prompt in unique])
        else:
            self._start(len(unique))
            self._feed(unique)
        place = {prompt: i for i, prompt in enumerate(unique)}
        return self._select([place[tuple(chunk)] for chunk in chunks])

    def _start(self, batch: int) -> None:
        self._mask = self._mask.new_zeros(batch, 0)
        self._length = self._length.new_zeros(batch)

    def _select(self, indices: Sequence[int]) -> torch.Tensor:
        """Make the batch consist of these of its rows, in this order, repeated where they are."""
        assert self._logits is not None
        select = torch.tensor(list(indices), device=self._mask.device)
        self._cache.batch_select_indices(select)
        self._mask, self._length = self._mask[select], self._length[select]
        self._logits = self._logits[select]
        return self._logits

    def _feed(self, chunks: Sequence[Sequence[int]]) -> torch.Tensor:
        """Append a chunk to each row, left-padded to one width; rows with an empty chunk keep their logits."""
        width = max(map(len, chunks))
        device = self._mask.device
        ids = torch.full((len(chunks), width), self._sampler.pad_id, device=device)
        new = torch.zeros(len(chunks), width, dtype=torch.long, device=device)
        for i, chunk in enumerate(chunks):
            if chunk:
                ids[i, width - len(chunk) :] = torch.tensor(chunk, device=device)
                new[i, width - len(chunk) :] = 1
        positions = (self._length[:, None] + new.cumsum(1) - 1).clamp(min=0)
        self._mask = torch.cat([self._mask, new], dim=1)
        self._length = self._length + new.sum(1)
        output = self._sampler.model(
            input_ids=ids,
            attention_mask=self._mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{_CACHE_ARGUMENT: self._cache},
        )
        fresh = output.logits[:, -1].float()
        self._logits = (
            fresh if self._logits is None else torch.where(new.any(1)[:, None], fresh, self._logits)
        )
        return self._logits

    def _sample(
        self, logits: torch.Tensor, drafts: Mapping[int, _Draft], active: Sequence[int]
    ) -> list[tuple[int, float, tuple[int, ...], float]]:
        """For each active row: token, its log-probability, what the grammar allowed, the log-probability among that."""
        index = torch.tensor([self._index[row] for row in active], device=logits.device)
        logprobs = torch.log_softmax(logits[index] / self._sampler.temperature, dim=-1)
        allowed = [drafts[row].allowed() for row in active]
        masked = logprobs.clone()
        for i, ids in enumerate(allowed):
            if ids is not None:
                keep = torch.zeros(masked.shape[1], dtype=torch.bool, device=masked.device)
                keep[torch.from_numpy(ids).to(masked.device)] = True
                masked[i].masked_fill_(~keep, -torch.inf)
        if self._sampler.cut is not None:
            masked = self._sampler.cut(masked)
        uniform = [float(self._generators[row].random()) for row in active]
        tokens = _draw(torch.softmax(masked, dim=-1), uniform)
        free = logprobs.gather(1, tokens)[:, 0].tolist()
        drawn = torch.log_softmax(masked, dim=-1).gather(1, tokens)[:, 0].tolist()
        return [
            (token, logprob, () if ids is None else tuple(ids.tolist()), among)
            for token, logprob, ids, among in zip(
                tokens[:, 0].tolist(), free, allowed, drawn, strict=True
            )
        ]


class _Draft:
    """A completion as it grows."""

    def __init__(
        self, sampler: TransformersSampler, grammar: Grammar | None, max_tokens: int
    ) -> None:
        self._chat = sampler.chat
        self._matcher = None if grammar is None else grammar.matcher()
        self._max_tokens = max_tokens
        self._ids: list[int] = []
        self._logprobs: list[float] = []
        self._mask: list[int] = []
        self._allowed: dict[int, tuple[int, ...]] = {}
        self._chosen: dict[int, float] = {}
        self._stopped = False

    @property
    def done(self) -> bool:
        return self._stopped or len(self._ids) >= self._max_tokens

    def allowed(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        return None if self._matcher is None else self._matcher.allowed()

    def add(self, token: int, logprob: float, allowed: tuple[int, ...], among: float) -> list[int]:
        """Take a sampled token; return the ids that now have to be fed, forced ones included."""
        start = len(self._ids)
        choice = self._matcher is None or len(allowed) > 1
        if self._matcher is not None and choice:
            self._allowed[start] = allowed
            self._chosen[start] = among
        self._append(token, logprob if choice else 0.0, trained=choice)
        if self._matcher is not None:
            self._matcher.accept(token)
        if token in self._chat.stop_ids:
            self._stopped = True
        return self._ids[start:] + self.force()

    def force(self) -> list[int]:
        """Append what the grammar leaves no choice about, and return it."""
        if self._matcher is None or self.done:
            return []
        forced = self._matcher.forced(self._chat)[: self._max_tokens - len(self._ids)]
        for token in forced:
            self._append(token, 0.0, trained=False)
            self._stopped = self._stopped or token in self._chat.stop_ids
        return forced

    def _append(self, token: int, logprob: float, *, trained: bool) -> None:
        self._ids.append(token)
        self._logprobs.append(logprob)
        self._mask.append(int(trained))

    def completion(self) -> Completion:
        return Completion(
            tuple(self._ids),
            tuple(self._logprobs),
            tuple(self._mask),
            dict(self._allowed),
            dict(self._chosen),
            self._stopped,
        )


def _common_prefix(prompts: Sequence[Sequence[int]]) -> int:
    """Tokens that all prompts begin with; every prompt keeps at least one of its own."""
    shortest = min(map(len, prompts)) - 1
    first = prompts[0]
    for length in range(shortest):
        if any(prompt[length] != first[length] for prompt in prompts):
            return length
    return shortest


def _draw(probabilities: torch.Tensor, uniform: Sequence[float]) -> torch.Tensor:
    """One index a row [rows, 1] by inversion of that row's number in [0, 1)."""
    cumulative = probabilities.double().cumsum(dim=-1)
    numbers = torch.tensor(uniform, dtype=torch.float64, device=probabilities.device)[:, None]
    # Strictly below the total, so that rounding never leads beyond the last entry with a probability.
    below = numbers * (1.0 - 2.0**-52) * cumulative[:, -1:]
    return torch.searchsorted(cumulative, below, right=True)
