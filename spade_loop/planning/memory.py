"""Memory of one process, in bytes, by formulas that are written out: an estimate before anything is loaded.

What is counted is what this version does with TRL 1.16: no master weights of 32 bits except under DeepSpeed, the two
moments of AdamW in the type of the weights that they belong to, adapters of LoRA in float32 (but under ZeRO-3),
checkpointing of activations on GPUs alone, an output layer that is scored in tiles. Not counted: fragmentation, the
CUDA context (about half a GiB), buffers of collectives, and the engine of vLLM, which takes the share of the GPU that
it is told to.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ceil
from pathlib import Path
from typing import Final, Literal

from spade_loop.backends.weights import has_gpu
from spade_loop.batch import BatchShape, proposals
from spade_loop.completers import SCORED_AT_ONCE
from spade_loop.config import Config, PolicyConfig
from spade_loop.planning.budget import budget_of
from spade_loop.planning.shapes import ModelShape
from spade_loop.types import INITIAL, POLICY, JsonRow

Sharding = Literal["none", "fsdp2", "deepspeed_zero3"]
"""What is shared out among processes besides rows: nothing, or weights, gradients and optimiser."""
SHARDINGS: Final[tuple[Sharding, ...]] = ("none", "fsdp2", "deepspeed_zero3")
INSTRUCTIONS: Final = {"blueprint": 400, "program": 4000, "edit": 4000}
"""Tokens of the designer's prompt beside its document, roughly, by dialect."""
TOKENS_A_WORD: Final = 1.5
TILE: Final = 4096 * 32768
"""Logits that TRL 1.16 holds at once while it scores (tokens by vocabulary)."""
DRAW: Final = 36
"""Bytes for each logit of a draw: five arrays of float32 and two of float64 (transformers sampler)."""
SCORE: Final = 12
"""Bytes for each logit of a design that waited, beside the model's own: three arrays of float32."""
BFLOAT16_STEP: Final = 2.0**-8
"""Half the distance of neighbours in bfloat16, relative to the lower end of their binade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes of the largest process, by what they go into."""

    parameters: int
    """Of the model; a count, as the next."""
    trainable: int
    weights: int
    """Of the model and its adapter, while it trains."""
    gradients: int
    optimiser: int
    """AdamW's moments, and master weights where there are any."""
    reference: int
    """A second model for the KL term; LoRA needs none."""
    activations: int
    output_layer: int
    """Tiles of logits, and gradients in float32 of what goes in and of its weights."""
    whole_weights: int
    """Of the model while it samples: the shards of all processes."""
    kv_cache: int
    """Of the sampler; none where vLLM samples."""
    draws: int
    """Logits of one token of every conversation."""
    scoring: int
    """Logits of a design that waited; none without a delay."""
    all_logits: int
    """What the logits of one forward pass would need in float32, were they held at once. Not part of any sum."""

    @property
    def _resident(self) -> int:
        return self.optimiser + self.reference

    @property
    def update(self) -> int:
        """At most during an update."""
        work = self.activations + self.output_layer
        return self.weights + self.gradients + self._resident + work

    @property
    def sampling(self) -> int:
        """At most while the model speaks, gradients already dropped."""
        return self.whole_weights + self._resident + max(self.kv_cache + self.draws, self.scoring)

    @property
    def peak(self) -> int:
        """The larger of both."""
        return max(self.update, self.sampling)

    def to_json(self) -> JsonRow:
        """Plain data."""
        row = {f.name: getattr(self, f.name) for f in fields(self)}
        return row | {"update": self.update, "sampling": self.sampling, "peak": self.peak}


def memory_of(
    config: Config, shape: ModelShape, *, processes: int = 1, sharding: Sharding = "none"
) -> Memory:
    """Bytes that the largest of `processes` needs for a recipe and a model."""
    policy = config.policy
    on_gpu = runs_on_gpu(policy)
    size = bytes_of(policy, on_gpu=on_gpu)
    zero3 = sharding == "deepspeed_zero3"
    if zero3:
        size = 2  # the accelerate file asks DeepSpeed for bfloat16
    parts = 1 if sharding == "none" else processes
    adapter = policy.lora_rank * shape.lora_width
    trainable = adapter or shape.parameters
    train_size = size if zero3 or not adapter else 4
    weights = shape.parameters * size + adapter * train_size
    # DDP's reducer keeps its buckets beside the gradients.
    copies = 2 if sharding == "none" and processes > 1 else 1
    states = 12 if zero3 else 2 * train_size
    kl = config.trainer.beta > 0 and not adapter
    local = policy.backend == "transformers"
    rows, width = config.trainer.rows_per_step, widest_row(config)
    return Memory(
        parameters=shape.parameters,
        trainable=trainable,
        weights=ceil(weights / parts),
        gradients=ceil(trainable * train_size / parts) * copies,
        optimiser=ceil(trainable * states / parts),
        reference=ceil(shape.parameters * size / parts) if kl else 0,
        activations=rows * width * _activations(shape, checkpointing=on_gpu) * size,
        output_layer=_output_layer(shape, rows * width, size, trains_head=not adapter),
        whole_weights=weights if local else ceil(weights / parts),
        kv_cache=_cached_tokens(config, processes) * shape.kv_numbers * size if local else 0,
        draws=_conversations(config, processes) * shape.vocabulary * DRAW if local else 0,
        scoring=_scored(config) * shape.vocabulary * (SCORE + size),
        all_logits=rows * width * shape.vocabulary * 4,
    )


def runs_on_gpu(policy: PolicyConfig) -> bool:
    """Where the policy will be: what it says, or what this machine shows."""
    return policy.device == "cuda" or (policy.device == "auto" and has_gpu())


def bytes_of(policy: PolicyConfig, *, on_gpu: bool) -> int:
    """Bytes of a weight as it is loaded."""
    if policy.dtype == "auto":
        return 2 if on_gpu or _computes_bfloat16() else 4
    return 4 if policy.dtype == "float32" else 2


def vanishing(config: Config, sharding: Sharding) -> float:
    """Size of weights above which AdamW's steps are rounded away; infinity where none is.

    A step is about as large as the learning rate. Added to a number of bfloat16 it is lost when it is less than half
    the distance to that number's neighbour.
    """
    policy = config.policy
    full = policy.lora_rank == 0 and bytes_of(policy, on_gpu=runs_on_gpu(policy)) == 2
    if not full or sharding == "deepspeed_zero3":
        return float("inf")
    return config.trainer.learning_rate / BFLOAT16_STEP


def design_context(config: Config) -> int:
    """Tokens of a design with its prompt, roughly at most; 0 when the policy designs nothing."""
    counts = proposals(config)
    if counts[POLICY] + counts[INITIAL] == 0:
        return 0
    designer, corpus = config.designer, config.corpus
    words = corpus.words * corpus.use
    return designer.max_tokens + INSTRUCTIONS[designer.dialect] + ceil(TOKENS_A_WORD * words)


def widest_row(config: Config) -> int:
    """Tokens of the longest row that may be trained on: all rows of a step can be as wide."""
    designs = design_context(config) if BatchShape.of(config).designer else 0
    return max(config.agent.context, designs)


def _activations(shape: ModelShape, *, checkpointing: bool) -> int:
    """Numbers for each token: the input of each layer, and what one layer, or without checkpointing each, computes.

    Of a layer: two norms keep three times the hidden size each, attention four times its queries and its keys, a gated
    MLP four times its width.
    """
    layer = (
        6 * shape.hidden + 4 * (shape.heads + shape.kv_heads) * shape.head_dim + 4 * shape.mlp_width
    )
    return shape.layers * shape.hidden + layer if checkpointing else shape.layers * layer


def _output_layer(shape: ModelShape, tokens: int, size: int, *, trains_head: bool) -> int:
    tile = min(TILE, tokens * shape.vocabulary) * size
    head = shape.vocabulary * shape.hidden * 4 * trains_head
    return tile + head + tokens * shape.hidden * (4 + size)


def _conversations(config: Config, processes: int) -> int:
    """Rows of one process that speak at once at most: episodes, or designs."""
    counts = proposals(config)
    designs = (counts[POLICY] + counts[INITIAL]) * config.designer.best_of
    episodes = min(config.agent.batch_rows, budget_of(config).design.episodes)
    return ceil(max(designs, episodes) / processes)


def _cached_tokens(config: Config, processes: int) -> int:
    """Tokens whose keys and values one process holds at most."""
    counts = proposals(config)
    designs = (counts[POLICY] + counts[INITIAL]) * config.designer.best_of
    episodes = min(config.agent.batch_rows, budget_of(config).design.episodes)
    return max(
        ceil(designs / processes) * design_context(config),
        ceil(episodes / processes) * config.agent.context,
    )


def _scored(config: Config) -> int:
    """Tokens of a delayed design that are scored at once."""
    delayed = config.schedule.designer_delay > 0 and BatchShape.of(config).designer > 0
    return min(config.designer.max_tokens, SCORED_AT_ONCE) * delayed


def _computes_bfloat16(path: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the CPU does, as torch will find; without asking torch."""
    try:
        return "avx512_bf16" in path.read_text(encoding="utf-8").split()
    except OSError:
        return False
