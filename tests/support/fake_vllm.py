"""Stand-ins for vLLM, which needs a GPU: none of this is a model, and none of it shows that vLLM itself works.

`generation()` is TRL's own `VLLMGeneration` with its own `generate`; only what it hands its calls to is replaced: the
client of a server, or the `LLM` of colocate mode. Both answer by a rule that a test can compute, with the shapes that
TRL's code returns: ids that follow from the ids sent, log-probabilities that follow from the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

from torch import nn
from trl.generation import vllm_generation as trl_module

Rule = Callable[[Sequence[int], int], list[int]]
"""(prompt ids, max_tokens) -> ids of the reply."""


def logprob_of(token: int, position: int) -> float:
    """The log-probability that the stand-ins give a token at a position of its reply."""
    return -0.5 - token / 1000 - position / 8


class Client:
    """In place of `trl.generation.vllm_client.VLLMClient`: answers as a server would, and remembers what was asked."""

    def __init__(self, rule: Rule, mode: str = "processed_logprobs") -> None:
        self.calls: list[dict[str, Any]] = []
        self._rule = rule
        self._mode = mode

    def get_server_info(self) -> dict[str, Any]:
        return {"model_config": {"logprobs_mode": self._mode}}

    def generate(
        self, prompts: list[list[int]], features: Any = None, **params: Any
    ) -> dict[str, Any]:
        self.calls.append({"prompts": prompts, **params})
        ids = [self._rule(prompt, params["max_tokens"]) for prompt in prompts]
        # Another candidate ranks above the sampled one: the sampled one has to be looked up, not taken first.
        return {
            "prompt_ids": prompts,
            "completion_ids": ids,
            "logprobs": [[[-0.1, logprob_of(t, i)] for i, t in enumerate(row)] for row in ids],
            "logprob_token_ids": [[[t + 1, t] for t in row] for row in ids],
        }


class Params:
    """In place of `vllm.SamplingParams`."""

    def __init__(self, **params: Any) -> None:
        self.__dict__.update(params)


class Engine:
    """In place of `vllm.LLM`: `generate` returns request outputs as TRL and our writer read them."""

    def __init__(self, rule: Rule, **arguments: Any) -> None:
        self.arguments = arguments
        self.calls: list[tuple[list[Any], Any]] = []
        self._rule = rule

    def generate(
        self, prompts: list[Any], *, sampling_params: Any, use_tqdm: bool
    ) -> list[SimpleNamespace]:
        self.calls.append((prompts, sampling_params))
        params = (
            sampling_params
            if isinstance(sampling_params, list)
            else [sampling_params] * len(prompts)
        )
        return [
            self._output(prompt["prompt_token_ids"], p)
            for prompt, p in zip(prompts, params, strict=True)
        ]

    def _output(self, prompt: list[int], params: Any) -> SimpleNamespace:
        ids = self._rule(prompt, params.max_tokens)
        stopped = bool(ids) and ids[-1] in params.stop_token_ids
        logprobs = [
            {t: SimpleNamespace(logprob=logprob_of(t, i), rank=1)} for i, t in enumerate(ids)
        ]
        said = SimpleNamespace(
            token_ids=ids, logprobs=logprobs, finish_reason="stop" if stopped else "length"
        )
        return SimpleNamespace(prompt_token_ids=prompt, outputs=[said])


def module(rule: Rule) -> tuple[ModuleType, ModuleType, list[Engine]]:
    """Modules `vllm` and `vllm.sampling_params` with the names that the writer uses, and the engines it makes."""
    made: list[Engine] = []

    def make(**arguments: Any) -> Engine:
        made.append(Engine(rule, **arguments))
        return made[-1]

    vllm, sampling = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    vllm.LLM = make  # type: ignore[attr-defined]
    vllm.SamplingParams = Params  # type: ignore[attr-defined]
    sampling.StructuredOutputsParams = Params  # type: ignore[attr-defined]
    return vllm, sampling, made


def generation(client: Client | None, engine: Engine | None = None, **settings: Any) -> Any:
    """TRL's object as its trainer sets it up, in server mode with a client, in colocate mode with an engine."""
    made = object.__new__(trl_module.VLLMGeneration)
    made.mode = "server" if engine is None else "colocate"
    made.accelerator = SimpleNamespace(
        num_processes=1, process_index=0, is_main_process=True, device="cpu"
    )
    made.model = nn.Identity()
    made.vllm_client, made.llm = client, engine
    made.temperature, made.top_p, made.top_k, made.min_p = 1.0, 1.0, 0, None
    made.repetition_penalty, made.max_completion_length, made.logprobs = 1.0, 256, 0
    made.structured_outputs_regex, made.generation_kwargs = None, {}
    made.tensor_parallel_size, made.enable_sleep_mode = 1, False
    for name, value in settings.items():
        assert hasattr(made, name)
        setattr(made, name, value)
    return made
