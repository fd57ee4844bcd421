"""Where the policy samples: in the trainer's own model, or in the vLLM that TRL keeps up to date."""

from __future__ import annotations

from typing import Any

from spade_loop.backends.transformers import TransformersSampler
from spade_loop.backends.vllm import VllmSampler
from spade_loop.chat import ChatFormat
from spade_loop.completers import Sampler
from spade_loop.config import Config


def make_sampler(
    config: Config, model: Any, tokenizer: Any, chat: ChatFormat, generation: Any
) -> Sampler:
    """A sampler over the current weights. `generation` is TRL's `vllm_generation`, and only asked of with vLLM.

    Log-probabilities of what was said earlier always come from the trainer's model.
    """
    temperature = config.trainer.temperature
    own = TransformersSampler(model, tokenizer, chat, temperature=temperature)
    if config.policy.backend == "transformers":
        return own
    return VllmSampler(generation, chat, temperature=temperature, scorer=own)


def engine_arguments(config: Config) -> dict[str, Any]:
    """What TRL's `GRPOConfig` is told of vLLM: nothing where the trainer's own model samples.

    TRL weighs each token by how the trainer's policy differs from the sampler's; the cap is that of delayed designs.
    Its default, a mask over whole sequences, would throw away most episodes of many turns.
    """
    policy = config.policy
    if policy.backend == "transformers":
        return {}
    arguments: dict[str, Any] = {
        "use_vllm": True,
        "vllm_mode": policy.backend.removeprefix("vllm-"),
        "vllm_importance_sampling_mode": "token_truncate",
        "vllm_importance_sampling_clip_max": config.trainer.max_ratio,
    }
    if policy.backend == "vllm-server":
        arguments["vllm_server_base_url"] = policy.vllm_server
    else:
        arguments["vllm_gpu_memory_utilization"] = policy.vllm_memory
    return arguments
