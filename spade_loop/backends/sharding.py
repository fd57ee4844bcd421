"""Sampling from weights that training holds in shards: FSDP 2 here, DeepSpeed through TRL.

A forward pass of a sharded model gathers its weights from all ranks, so ranks that speak different numbers of tokens
would wait for each other for ever. While the model samples every rank therefore holds all of the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn
from torch.distributed.fsdp import FSDPModule

from spade_loop.config import Config
from spade_loop.errors import ModelError
from spade_loop.world import World


def check_processes(accelerator: Any, world: World, config: Config) -> None:
    """`ModelError` when accelerate has other processes than the run, or holds weights in shards that cannot sample."""
    if accelerator.num_processes != world.size:
        raise ModelError(
            f"accelerate knows of {accelerator.num_processes} processes and the run of {world.size}: "
            "start all of them with one launcher, torchrun or `accelerate launch`"
        )
    fsdp, deepspeed = _fsdp(accelerator), accelerator.state.deepspeed_plugin
    if fsdp is not None and fsdp.fsdp_version != 2:
        raise ModelError(
            "FSDP of version 1 gathers weights in every forward pass, which ranks that sample cannot take part in: set "
            "fsdp_version to 2 in the accelerate config"
        )
    sharded = fsdp is not None or (deepspeed is not None and deepspeed.zero_stage == 3)
    if sharded and config.designer.dialect == "blueprint":
        raise ModelError(
            "designer.dialect is blueprint, whose grammar's choices are scored against the whole output embedding: "
            "with weights in shards (FSDP, ZeRO-3) take program or edit, or train with DDP (docs/scaling.md)"
        )


@contextmanager
def whole_weights(model: Any, accelerator: Any) -> Iterator[None]:
    """All weights of `model` on every rank, where FSDP 2 shards them; nothing happens elsewhere.

    Every rank has to enter and to leave it. No gradient may be computed inside. Left with an exception it restores
    nothing: the other ranks may be gone.
    """
    fsdp = _fsdp(accelerator)
    if fsdp is None:
        yield
        return
    sharded = [module for module in model.modules() if isinstance(module, FSDPModule)]
    layers = _resharded(model)
    for module in layers:
        module.set_reshard_after_forward(False, recurse=False)
    for module in sharded:
        module.unshard()
    yield
    for module in layers:
        module.set_reshard_after_forward(bool(fsdp.reshard_after_forward), recurse=False)
    for module in sharded:
        module.reshard()


def _fsdp(accelerator: Any) -> Any:
    """The FSDP plugin of a run; accelerate has the attribute only where it was launched for GPUs."""
    return getattr(accelerator.state, "fsdp_plugin", None)


def _resharded(model: Any) -> list[FSDPModule]:
    """The modules that accelerate shards anew after their forward pass.

    Those are the repeated layers, and embeddings that the output does not share. The root, the last norm and the output
    embedding stay whole until the backward pass, which TRL's own forward pass relies on.
    """
    candidates = [
        child for module in model.modules() if isinstance(module, nn.ModuleList) for child in module
    ]
    embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    if embedding.weight is not output.weight:
        candidates.append(embedding)
    return [module for module in candidates if isinstance(module, FSDPModule)]
