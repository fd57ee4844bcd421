"""Sampling with vLLM: the policy through the engine that TRL keeps up to date, designers in an engine of their own.

Every call sends the whole history of every row; the engine's prefix cache knows all of it but the last turn.

With a server, with tensor parallelism and with sleep mode TRL's `generate` is a collective, and cuts its results apart
as if every process had brought the same number of prompts. Before each call the processes therefore agree on the
largest number of rows, and those with fewer fill up. A process without rows has to take part all the same:
`keep_company` where a leader says when the model speaks, `wait_for_all` where every process follows its own episodes.
All rows of a call get the largest limit that a process asked for; a server refuses a history without room for it.

vLLM has one random stream an engine, seeded by TRL with the process's rank: equal streams do not give equal replies,
and a run is not repeatable to the byte as it is with transformers.
"""

from __future__ import annotations

import importlib
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch

from spade_loop.backends.weights import THINKING
from spade_loop.chat import ChatFormat
from spade_loop.completers import JsonSchema, Reply, Sampler
from spade_loop.errors import ConfigError, ContextError, MissingExtraError, ModelError
from spade_loop.types import Completion, Message

logger = logging.getLogger(__name__)
_TOO_LONG = re.compile(r"maximum model length|maximum context length", re.ASCII)
"""How the engine says that a prompt does not fit."""


@dataclass(frozen=True, slots=True)
class _Round:
    """What one process brings to a call, or the largest of what all of them bring."""

    rows: int = 0
    max_tokens: int = 0
    going: bool = True
    """Whether there is anything left to say after this call."""
    refused: bool = False


class VllmSampler:
    """Samples from the engine behind a trainer's `vllm_generation`, in TRL's colocate or server mode.

    At one temperature, without top-p, top-k or penalties: what is trained is what was sampled. `ConfigError` for an
    engine that would do otherwise. `scorer` gives the log-probabilities that an engine is not asked for.
    """

    def __init__(
        self,
        generation: Any,
        chat: ChatFormat,
        *,
        temperature: float,
        scorer: Sampler | None = None,
    ) -> None:
        _check_generation(generation, temperature)
        self.chat = chat
        self._generation = generation
        self._scorer = scorer
        collective = (
            generation.mode == "server"
            or generation.tensor_parallel_size > 1
            or generation.enable_sleep_mode  # weights are sent again before each call, by all
        )
        self._together = collective and generation.accelerator.num_processes > 1

    def open(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        streams: Sequence[Sequence[int]],
        initial: bool = False,
    ) -> VllmDialogue:
        """Conversations. The streams are not used, see above; `ModelError` when the initial model is asked for."""
        if len(streams) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts need as many streams, got {len(streams)}")
        if initial:
            raise ModelError(
                "the initial model is not at hand with vLLM, whose engine holds the trained weights alone: set "
                "designer.initial_share=0 or policy.backend=transformers"
            )
        if not all(prompts):
            raise ModelError("a conversation needs at least one token before the model can speak")
        return VllmDialogue(self, prompts)

    def score(self, prompt_ids: Sequence[int], completion: Completion) -> list[float]:
        """What `scorer` says; `ModelError` without one."""
        if self._scorer is None:
            raise ModelError(
                "log-probabilities of an earlier completion are not at hand with vLLM: set policy.backend=transformers"
            )
        return self._scorer.score(prompt_ids, completion)

    def keep_company(self) -> None:
        """Take part in one call of the other processes, with nothing to say."""
        if self._together:
            self._take_part([], 0, self._agree(_Round()))

    def wait_for_all(self) -> None:
        """Take part in the others' calls until every process waits here."""
        while self._together:
            agreed = self._agree(_Round(going=False))
            if not agreed.going:
                return
            self._take_part([], 0, agreed)

    def speak(self, prompts: Sequence[Sequence[int]], max_tokens: int) -> list[Completion]:
        """A completion of each prompt; a call of all processes where they have to call together."""
        agreed = self._agree(_Round(len(prompts), max_tokens))
        return self._take_part(prompts, max_tokens, agreed)

    def refuse(self) -> None:
        """Tell the processes that wait for this one that it does not speak; they raise `ModelError`."""
        self._agree(_Round(refused=True))

    def _agree(self, own: _Round) -> _Round:
        if not self._together:
            return own
        numbers = torch.tensor(
            [own.rows, own.max_tokens, own.going, own.refused],
            dtype=torch.int64,
            device=self._generation.accelerator.device,
        )
        torch.distributed.all_reduce(numbers, op=torch.distributed.ReduceOp.MAX)
        rows, max_tokens, going, refused = numbers.tolist()
        return _Round(rows, max_tokens, bool(going), bool(refused))

    def _take_part(
        self, prompts: Sequence[Sequence[int]], max_tokens: int, agreed: _Round
    ) -> list[Completion]:
        if agreed.refused:
            raise ModelError("another process refused to speak; its own output says why")
        if agreed.rows == 0:
            return []
        filling = [[self.chat.end_id]] * (agreed.rows - len(prompts))
        with self._settings(agreed.max_tokens):
            _, ids, logprobs, candidates = self._generation.generate(
                prompts=[*map(list, prompts), *filling], images=None, num_generations=1
            )
        if logprobs is None or candidates is None:
            raise ModelError(
                "vLLM returned no log-probabilities: start its server with --max-logprobs -1 "
                "--logprobs-mode processed_logprobs"
            )
        return [
            _completion(ids[i], logprobs[i], candidates[i], max_tokens, self.chat)
            for i in range(len(prompts))
        ]

    @contextmanager
    def _settings(self, max_tokens: int) -> Iterator[None]:
        """TRL reads both at each call, and has no argument for either."""
        generation = self._generation
        before = generation.max_completion_length, generation.generation_kwargs
        generation.max_completion_length = max_tokens
        generation.generation_kwargs = {"stop_token_ids": sorted(self.chat.stop_ids)}
        try:
            yield
        finally:
            generation.max_completion_length, generation.generation_kwargs = before


class VllmDialogue:
    """Conversations of a `VllmSampler`: the ids of each row, as they will be trained."""

    def __init__(self, sampler: VllmSampler, prompts: Sequence[Sequence[int]]) -> None:
        self._sampler = sampler
        self._ids = {row: list(prompt) for row, prompt in enumerate(prompts)}

    def generate(
        self, rows: Sequence[int], max_tokens: int, schema: JsonSchema | None = None
    ) -> dict[int, Completion]:
        """Let the model speak in `rows`, of which there may be none: this process then keeps the others company.

        `ConfigError` under a schema. TRL hands structured outputs to the engine, but what comes back is the
        log-probability under the grammar's mask alone, without what the mask allowed: no update could be computed.
        """
        if schema is not None:
            self._sampler.refuse()
            raise ConfigError(
                "designer.dialect=blueprint is sampled under a grammar, whose choices vLLM does not tell: set "
                "policy.backend=transformers, or a dialect without a grammar (program, edit)"
            )
        completions = self._sampler.speak([self._ids[row] for row in rows], max_tokens)
        for row, completion in zip(rows, completions, strict=True):
            self._ids[row] += completion.ids
        return dict(zip(rows, completions, strict=True))

    def feed(self, chunks: Mapping[int, Sequence[int]]) -> None:
        """Append ids; they reach the engine with the next call."""
        for row, ids in chunks.items():
            self._ids[row] += ids

    def drop(self, rows: Sequence[int]) -> None:
        """Forget rows."""
        for row in rows:
            self._ids.pop(row, None)


def _completion(
    ids: Sequence[int],
    logprobs: Sequence[Sequence[float | None]],
    candidates: Sequence[Sequence[int]],
    max_tokens: int,
    chat: ChatFormat,
) -> Completion:
    """A row of TRL's result; `logprobs` and `candidates` are [tokens, tokens looked at], the sampled one among them.

    Another process may have asked for more tokens: what goes beyond `max_tokens` was not asked for here.
    """
    kept = tuple(ids[:max_tokens])
    values = []
    for position, token in enumerate(kept):
        found = dict(zip(candidates[position], logprobs[position], strict=True)).get(token)
        if found is None:
            raise ModelError(
                f"vLLM gave no log-probability to token {token} at position {position} of a reply: a value that is not "
                "a number means that the weights have diverged; stop, and resume from an earlier checkpoint"
            )
        values.append(float(found))
    stopped = bool(kept) and kept[-1] in chat.stop_ids
    return Completion(kept, tuple(values), (1,) * len(kept), stopped=stopped)


def _check_generation(generation: Any, temperature: float) -> None:
    """`ConfigError` for what would make the engine sample otherwise than the trainer scores."""
    wanted: dict[str, tuple[object, ...]] = {
        "temperature": (temperature,),
        "top_p": (1.0,),
        "top_k": (0, -1, None),
        "min_p": (0.0, None),
        "repetition_penalty": (1.0,),
        "structured_outputs_regex": (None,),
        "generation_kwargs": ({}, None),
    }
    for name, allowed in wanted.items():
        found = getattr(generation, name)
        if found not in allowed:
            raise ConfigError(
                f"the vLLM engine samples with {name}={found!r}, expected {allowed[0]!r}: what is trained has to be "
                "what was sampled"
            )
    if generation.logprobs is None:
        raise ConfigError("the vLLM engine returns no log-probabilities: set logprobs=0 or more")
    if generation.mode == "server" and generation.accelerator.is_main_process:
        mode = generation.vllm_client.get_server_info()["model_config"]["logprobs_mode"]
        if mode != "processed_logprobs":
            raise ConfigError(
                f"the vLLM server runs with --logprobs-mode {mode}, whose values are not those at the temperature: "
                "start it with --logprobs-mode processed_logprobs"
            )
    if generation.enable_sleep_mode:
        logger.warning(
            "vLLM's sleep mode discards the weights after every turn and has them sent again before the next"
        )


class VllmWriter:
    """A frozen model in an engine of its own, beside the policy or instead of it. A `Writer`.

    Chats become ids as the policy's do, not by `LLM.chat`: text of a corpus cannot spell the template's tokens.
    """

    concurrent = False

    def __init__(
        self,
        model: str,
        *,
        name: str = "",
        revision: str = "",
        thinking: Literal["template", "on", "off"] = "template",
        **engine: Any,
    ) -> None:
        """Load `model`, a directory or a Hugging Face id.

        `engine` goes to `vllm.LLM`, whose share of the GPU (`gpu_memory_utilization`, 0.9) leaves room for little else.
        `MissingExtraError` without vLLM, `ModelError` when it cannot load the model.
        """
        try:
            vllm: Any = importlib.import_module("vllm")
        except ImportError as error:
            raise MissingExtraError(
                "designers in vLLM need it: pip install 'synthgym[vllm]'"
            ) from error
        from transformers import AutoTokenizer

        self.name = name or model
        self._vllm = vllm
        try:
            tokenizer = AutoTokenizer.from_pretrained(model, revision=revision or None)
            self._llm = vllm.LLM(model=model, revision=revision or None, **engine)
        except (OSError, ValueError, RuntimeError) as error:
            raise ModelError(
                f"vLLM cannot load the designer {self.name!r} from {model}. Give a directory that holds config.json or "
                f"a Hugging Face id, and leave it room on the GPU. Cause: {error}"
            ) from error
        self._chat = ChatFormat(tokenizer, thinking=THINKING[thinking])

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
        """One reply to each chat, in order, each with a seed of its own.

        `ModelError` when the engine fails, `ContextError` when it says that a chat is too long for the model.
        """
        prompts = [{"prompt_token_ids": list(self._chat.prompt(chat))} for chat in chats]
        shape = {"max_tokens": max_tokens, "temperature": temperature}
        # The engine's word for "no top-k" differs between versions: it is left out.
        shape |= {"top_p": top_p} | ({"top_k": top_k} if top_k > 0 else {})
        params = [self._params(seed, schema, shape) for seed in seeds]
        if len(params) != len(prompts):
            raise ValueError(f"{len(prompts)} chats need as many seeds, got {len(params)}")
        try:
            outputs = self._llm.generate(prompts, sampling_params=params, use_tqdm=False)
        except (ValueError, RuntimeError) as error:
            told = f"the model {self.name!r} did not answer: {error}"
            raise (ContextError if _TOO_LONG.search(str(error)) else ModelError)(told) from error
        replies = [output.outputs[0] for output in outputs]
        return [
            Reply(
                self._chat.reply(r.token_ids),
                len(r.token_ids),
                r.finish_reason == "stop",
                len(prompt["prompt_token_ids"]),
            )
            for r, prompt in zip(replies, prompts, strict=True)
        ]

    def close(self) -> None:
        """Nothing is open: the engine goes with this object."""

    def _params(self, seed: int, schema: JsonSchema | None, shape: Mapping[str, Any]) -> Any:
        structured = None
        if schema is not None:
            sampling: Any = importlib.import_module("vllm.sampling_params")
            structured = sampling.StructuredOutputsParams(json=dict(schema))
        return self._vllm.SamplingParams(
            **shape,
            seed=seed % 2**63,
            stop_token_ids=sorted(self._chat.stop_ids),
            structured_outputs=structured,
        )
