"""Sampling while FSDP holds the weights in shards: two real ranks, on CPUs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from ranks import torchrun

from spade_loop.backends.sharding import check_processes, whole_weights
from spade_loop.config import load_config
from spade_loop.errors import ModelError
from spade_loop.world import Alone


def logits_of(model: Any) -> list[float]:
    with torch.no_grad():
        return model(torch.arange(1, 9)[None]).logits[0, -1].tolist()


def gradients_of(model: Any) -> dict[str, float]:
    """Norm of the gradient of each weight, for a loss that is the same on every rank."""
    model.zero_grad()
    ids = torch.arange(3, 20)[None]
    model(ids, labels=ids).loss.backward()
    grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    whole = {n: g.full_tensor() if hasattr(g, "full_tensor") else g for n, g in grads.items()}
    return {n: float(g.norm()) for n, g in whole.items()}


def accelerator(processes: int = 1, *, fsdp: int = 0, zero: int = 0) -> Any:
    """What we read of accelerate's `Accelerator`; it has no `fsdp_plugin` where nothing was launched for GPUs."""
    plugin = SimpleNamespace(fsdp_version=fsdp, reshard_after_forward=True)
    deepspeed = SimpleNamespace(zero_stage=zero) if zero else None
    state = SimpleNamespace(deepspeed_plugin=deepspeed, **({"fsdp_plugin": plugin} if fsdp else {}))
    return SimpleNamespace(num_processes=processes, state=state)


@pytest.mark.parametrize(
    ("there", "dialect", "message"),
    [
        (accelerator(), "blueprint", None),
        (accelerator(fsdp=2), "program", None),
        (accelerator(zero=3), "edit", None),
        (accelerator(zero=2), "blueprint", None),
        (accelerator(fsdp=2), "blueprint", "take program or edit, or train with DDP"),
        (accelerator(zero=3), "blueprint", "take program or edit, or train with DDP"),
        (accelerator(fsdp=1), "program", "set fsdp_version to 2"),
        (accelerator(2), "program", "accelerate knows of 2 processes and the run of 1"),
    ],
)
def test_what_cannot_sample_or_score_is_refused(
    there: Any, dialect: str, message: str | None
) -> None:
    config = load_config("tiny", [f"designer.dialect={dialect}"])
    if message is None:
        check_processes(there, Alone(), config)
        return
    with pytest.raises(ModelError, match=message):
        check_processes(there, Alone(), config)


def test_a_model_that_is_not_sharded_is_left_alone(model: Any) -> None:
    before = logits_of(model)
    for there in (accelerator(), accelerator(fsdp=2)):
        with whole_weights(model, there):
            assert logits_of(model) == before


@pytest.mark.slow
def test_ranks_that_speak_differently_long_do_not_wait_for_each_other(
    tiny_model: Path, tmp_path: Path, model: Any
) -> None:
    done = torchrun([__file__, str(tiny_model), str(tmp_path)], seconds=150)
    assert done.returncode == 0, done.stderr
    for rank in range(2):
        told = json.loads((tmp_path / f"{rank}.json").read_text())
        for logits in told["logits"]:
            assert logits == pytest.approx(logits_of(model), abs=1e-4)
        # Where a weight lies before, while and after the model samples, and that training goes on as before.
        assert told["sharded"] == [True, False, True]
        expected = gradients_of(model)
        assert set(told["before"]) == set(expected)
        for when in ("before", "after"):
            assert told[when] == pytest.approx(expected, rel=1e-3, abs=1e-6)


def _in_a_process(model_path: str, out: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor
    from transformers import AutoModelForCausalLM

    from spade_loop.world import joined

    with joined() as world:
        model = AutoModelForCausalLM.from_pretrained(model_path)
        mesh = init_device_mesh("cpu", (world.size,))
        for layer in model.model.layers:  # as accelerate shards a model whose embeddings are tied
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        tail = [model.model.norm, model.model.embed_tokens, model.lm_head]
        fully_shard(tail, mesh=mesh, reshard_after_forward=False)
        fully_shard(model, mesh=mesh)

        def sharded() -> bool:
            return isinstance(model.model.layers[0].mlp.up_proj.weight, DTensor)

        told: dict[str, Any] = {"before": gradients_of(model), "logits": [], "sharded": [sharded()]}
        with whole_weights(model, accelerator(fsdp=2)):
            told["logits"] += [logits_of(model) for _ in range(1 + 3 * world.rank)]
            told["sharded"].append(sharded())
        told["sharded"].append(sharded())
        told["after"] = gradients_of(model)
        told["logits"].append(logits_of(model))
        (out / f"{world.rank}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    _in_a_process(sys.argv[1], Path(sys.argv[2]))
