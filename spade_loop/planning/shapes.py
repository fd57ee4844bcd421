"""Shapes of language models: what of them decides about memory, from facts of their config.json.

The table holds what the bundled recipes name, so that a plan needs neither weights nor a network. The numbers of
parameters are computed, not copied: that they come out as published is what the tests compare.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spade_loop.backends.weights import BUNDLED
from spade_loop.errors import ModelError

DENSE: Final = ("llama", "mistral", "qwen2", "qwen3")
"""`model_type`s with attention and a gated MLP in every layer."""
_QK_NORM: Final = ("qwen3", "qwen3_moe")

Facts = Mapping[str, Any]
"""A config.json."""

_QWEN3: Final = {"num_attention_heads": 32, "head_dim": 128, "vocab_size": 151936}
# Qwen: config.json of each model as quoted in public copies (akougkas/warpio-cli, warpio-docs/ai-docs/model_cards, for
# 4B) and the launch scripts of slime, the trainer of the reference (zyzshishui/slime, scripts/models). SmolLM2:
# config.json of the bundled weights. Nemotron: config.json as quoted in public tests of converters, equal to NVIDIA's
# provider for Megatron; its Mamba layers are counted by formulas of ours, of which we are less sure.
KNOWN: Final[dict[str, Facts]] = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": {
        "model_type": "llama",
        "num_hidden_layers": 30,
        "hidden_size": 576,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "intermediate_size": 1536,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    },
    "Qwen/Qwen3-4B-Instruct-2507": {
        **_QWEN3,
        "model_type": "qwen3",
        "num_hidden_layers": 36,
        "hidden_size": 2560,
        "num_key_value_heads": 8,
        "intermediate_size": 9728,
        "tie_word_embeddings": True,
    },
    "Qwen/Qwen3-8B": {
        **_QWEN3,
        "model_type": "qwen3",
        "num_hidden_layers": 36,
        "hidden_size": 4096,
        "num_key_value_heads": 8,
        "intermediate_size": 12288,
        "tie_word_embeddings": False,
    },
    "Qwen/Qwen3-30B-A3B-Instruct-2507": {
        **_QWEN3,
        "model_type": "qwen3_moe",
        "num_hidden_layers": 48,
        "hidden_size": 2048,
        "num_key_value_heads": 4,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "tie_word_embeddings": False,
    },
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": {
        "model_type": "nemotron_h",
        "num_hidden_layers": 52,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        "hidden_size": 2688,
        "num_attention_heads": 32,
        "num_key_value_heads": 2,
        "head_dim": 128,
        "mamba_num_heads": 64,
        "mamba_head_dim": 64,
        "ssm_state_size": 128,
        "n_groups": 8,
        "conv_kernel": 4,
        "intermediate_size": 1856,
        "moe_intermediate_size": 1856,
        "moe_shared_expert_intermediate_size": 3712,
        "n_routed_experts": 128,
        "num_experts_per_tok": 6,
        "vocab_size": 131072,
        "tie_word_embeddings": False,
    },
}
"""By Hugging Face id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """What a plan has to know of a model."""

    layers: int
    attention_layers: int
    """Layers that keep keys and values."""
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp_width: int
    """Width of the MLPs that a token passes in one layer: that of all its active experts together, shared ones too."""
    vocabulary: int
    tied: bool
    """Whether the output layer is the embedding."""
    parameters: int
    active: int
    """Parameters that one token passes, both embeddings counted."""
    lora_width: int
    """Sum of inputs and outputs over all linear layers but the output layer: an adapter of rank r has r times as many
    parameters. Experts are no linear layers in transformers, and PEFT leaves them alone."""
    sure: bool = True
    """False where a part of the model is counted by a formula of ours."""

    @property
    def kv_numbers(self) -> int:
        """Numbers that the cache holds for one token."""
        return 2 * self.attention_layers * self.kv_heads * self.head_dim


def shape_of(model: str) -> ModelShape | None:
    """The shape of a bundled name, a directory with config.json, or a Hugging Face id of the table; else None.

    `ModelError` when a directory's config.json cannot be read, or lacks what its `model_type` has.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        path = folder / "config.json"
        try:
            return shape_from_config(_read(path))
        except (KeyError, TypeError, AttributeError) as error:
            raise ModelError(
                f"policy.model: {path} is not the config.json of a model: {error}"
            ) from error
    bundled = BUNDLED.get(model)
    facts = KNOWN.get(model if bundled is None else bundled.hub_id)
    return None if facts is None else shape_from_config(facts)


def shape_from_config(facts: Facts) -> ModelShape | None:
    """The shape that a config.json describes; None for a `model_type` whose parts are not known here."""
    facts = facts.get("text_config", facts)
    kind = facts.get("model_type")
    if kind in DENSE:
        return _dense(facts)
    if kind == "qwen3_moe":
        return _mixture(facts)
    return _hybrid(facts) if kind == "nemotron_h" and "hybrid_override_pattern" in facts else None


def _read(path: Path) -> Facts:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelError(f"policy.model: {path} cannot be read: {error}") from error
    if not isinstance(facts, dict):
        raise ModelError(f"policy.model: {path} must hold an object, got {type(facts).__name__}")
    return facts


@dataclass(frozen=True, slots=True)
class _Attention:
    """The attention of one layer."""

    heads: int
    kv_heads: int
    head_dim: int
    width: int
    """Inputs plus outputs of its four matrices."""
    weights: int

    @classmethod
    def of(cls, facts: Facts) -> _Attention:
        hidden, heads = facts["hidden_size"], facts["num_attention_heads"]
        kv_heads = facts.get("num_key_value_heads") or heads
        head_dim = facts.get("head_dim") or hidden // heads
        queries, keys = heads * head_dim, kv_heads * head_dim
        weights = 2 * hidden * queries + 2 * hidden * keys
        if facts["model_type"] == "qwen2" or facts.get("attention_bias"):
            weights += queries + 2 * keys
        if facts["model_type"] in _QK_NORM:
            weights += 2 * head_dim
        return cls(heads, kv_heads, head_dim, 4 * hidden + 2 * queries + 2 * keys, weights)


def _embeddings(facts: Facts) -> int:
    """Of both ends, and the last norm."""
    hidden = int(facts["hidden_size"])
    ends = 1 if facts.get("tie_word_embeddings") else 2
    return ends * int(facts["vocab_size"]) * hidden + hidden


def _common(facts: Facts, attention: _Attention) -> dict[str, Any]:
    return {
        "layers": facts["num_hidden_layers"],
        "hidden": facts["hidden_size"],
        "heads": attention.heads,
        "kv_heads": attention.kv_heads,
        "head_dim": attention.head_dim,
        "vocabulary": facts["vocab_size"],
        "tied": bool(facts.get("tie_word_embeddings")),
    }


def _dense(facts: Facts) -> ModelShape:
    attention = _Attention.of(facts)
    hidden, width, layers = (
        facts["hidden_size"],
        facts["intermediate_size"],
        facts["num_hidden_layers"],
    )
    layer = attention.weights + 3 * hidden * width + 2 * hidden
    parameters = layers * layer + _embeddings(facts)
    return ModelShape(
        **_common(facts, attention),
        attention_layers=layers,
        mlp_width=width,
        parameters=parameters,
        active=parameters,
        lora_width=layers * (attention.width + 3 * (hidden + width)),
    )


def _mixture(facts: Facts) -> ModelShape:
    attention = _Attention.of(facts)
    hidden, layers = facts["hidden_size"], facts["num_hidden_layers"]
    expert = 3 * hidden * facts["moe_intermediate_size"]
    experts, active = facts["num_experts"], facts["num_experts_per_tok"]
    rest = attention.weights + hidden * experts + 2 * hidden
    return ModelShape(
        **_common(facts, attention),
        attention_layers=layers,
        mlp_width=active * facts["moe_intermediate_size"],
        parameters=layers * (rest + experts * expert) + _embeddings(facts),
        active=layers * (rest + active * expert) + _embeddings(facts),
        lora_width=layers * attention.width,
    )


def _hybrid(facts: Facts) -> ModelShape:
    """Nemotron-H: each layer is Mamba (M), attention (*) or a mixture of experts (E), with one norm."""
    attention = _Attention.of(facts)
    hidden, pattern = facts["hidden_size"], facts["hybrid_override_pattern"]
    mambas, mixtures, attentions = (pattern.count(kind) for kind in "ME*")
    heads, state = facts["mamba_num_heads"], facts["n_groups"] * facts["ssm_state_size"]
    inner = heads * facts["mamba_head_dim"]
    entering = 2 * inner + 2 * state + heads
    convolution = (inner + 2 * state) * (facts["conv_kernel"] + 1)
    mamba = hidden * (entering + inner) + convolution + 3 * heads + inner
    expert = 2 * hidden * facts["moe_intermediate_size"]
    shared = facts["moe_shared_expert_intermediate_size"]
    experts, active = facts["n_routed_experts"], facts["num_experts_per_tok"]
    rest = (
        mambas * mamba
        + attentions * attention.weights
        + mixtures * (2 * hidden * shared + hidden * experts + experts)
        + len(pattern) * hidden
        + _embeddings(facts)
    )
    linear = (
        mambas * (2 * hidden + entering + inner)
        + attentions * attention.width
        + mixtures * 2 * (hidden + shared)
    )
    return ModelShape(
        **_common(facts, attention),
        attention_layers=attentions,
        mlp_width=active * facts["moe_intermediate_size"] + shared,
        parameters=rest + mixtures * experts * expert,
        active=rest + mixtures * active * expert,
        lora_width=linear,
        sure=False,
    )
