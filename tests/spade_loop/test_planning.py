"""`spade-loop plan`: numbers by hand, and needs against what a run would refuse."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spade_loop.backends import weights
from spade_loop.backends.weights import check_gpu, has_gpu
from spade_loop.config import Config, PolicyConfig, from_mapping, load_config
from spade_loop.errors import ConfigError, ModelError
from spade_loop.inputs import new_run
from spade_loop.planning import as_text, make_plan
from spade_loop.planning.budget import budget_of
from spade_loop.planning.table import gib, short

GIB = 2**30


def lacks(config: Config, **how: Any) -> dict[str, str]:
    return {need.name: need.detail for need in make_plan(config, **how).lacks}


# --- designs, episodes, tokens ---


def test_a_budget_by_hand() -> None:
    config = load_config(
        "qwen3-4b",
        [
            "iterations=10",
            "schedule.regenerate_every=3",
            "schedule.designer_delay=2",
            "designer.candidates=12",
            "designer.best_of=2",
            "designer.repairs=1",
            "designer.max_tokens=100",
            "hints.max_tokens=7",
            "agent.environments=5",
            "agent.max_turns=4",
            "agent.turn_tokens=10",
            "agent.context=1000",
        ],
    )
    budget = budget_of(config)
    # Designs in 0, 3, 6, 9; those of 9 are due in 11, when there are only ten iterations.
    assert (budget.regenerations, budget.drain_steps, budget.steps) == (4, 1, 11)
    assert budget.design.replies == 12 * (2 + 1)
    assert budget.design.tokens_designs == 36 * 100
    assert (budget.design.hint_calls, budget.design.tokens_hints) == (10, 70)
    # Four seeds at most, four plays of each, in both arms; 4 turns of 10 tokens.
    assert budget.design.episodes_plain == budget.design.episodes_hinted == 5 * 4 * 4
    assert budget.design.tokens_episodes == 160 * 40
    assert (budget.replay.episodes_plain, budget.replay.episodes_hinted) == (5 * 2 * 4, 0)
    assert (budget.replay.replies, budget.replay.hint_calls) == (0, 0)
    assert budget.episodes_plain == 4 * 80 + 6 * 40
    assert budget.sampled == 4 * (3600 + 70 + 6400) + 6 * 1600
    # 12 designs of 2 draws of which one may be mended once, 40 episodes.
    assert (budget.trained_designer, budget.trained_agent) == (36 * 100, 40 * 40)
    assert budget.trained == 4 * 3600 + 10 * 1600


def test_an_episode_has_no_more_tokens_than_its_context() -> None:
    config = load_config("qwen3-4b")
    assert budget_of(config).trained_agent == 192 * 32768  # and not 25 turns of 8,192


@pytest.mark.parametrize(
    ("settings", "plain", "hinted", "placebo"),
    [
        (["agent.half_width=0"], 192, 192, 0),
        (["agent.max_seeds=7"], 384, 384, 0),
        (["agent.max_seeds=8"], 768, 768, 0),
        (["agent.max_seeds=8", "reward.paired=false"], 192, 192, 0),
        (["hints.placebo=true"], 384, 384, 384),
    ],
)
def test_seeds_that_are_played_to_measure_count(
    settings: list[str], plain: int, hinted: int, placebo: int
) -> None:
    step = budget_of(load_config("qwen3-4b", settings)).design
    assert (step.episodes_plain, step.episodes_hinted, step.episodes_placebo) == (
        plain,
        hinted,
        placebo,
    )


def test_hints_that_are_trained_are_rows_of_the_designer() -> None:
    config = load_config("qwen3-4b", ["hints.train=true"])
    assert budget_of(config).trained_designer == 24 * 16384 + 48 * 4096


# --- needs ---


def test_what_a_recipe_names_and_is_not_there_is_told_and_is_no_error(tmp_path: Path) -> None:
    config = load_config(
        "tiny",
        [
            "registry=/nowhere",
            "corpus.path=/nowhere.jsonl",
            "policy.model=/nope",
            "designer.families=['wired_lever']",
        ],
    )
    found = lacks(config)
    assert "did you mean 'wired_levers'" in found["dialect"]
    assert "/nowhere.jsonl" in found["corpus"]
    assert "/nope" in found["model"]
    assert "/nowhere" in found["registry"]


def test_the_key_of_an_endpoint_is_looked_for_and_never_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = Path(__file__).parents[2] / "spade_loop" / "recipes" / "tiny.toml"
    designer = (
        "designers=[{name='f', kind='endpoint', share=0.2, model='m', base_url='http://x/v1', "
        "api_key_env='SOME_KEY'}]"
    )
    monkeypatch.delenv("SOME_KEY", raising=False)
    config = load_config(str(path), [designer])
    assert lacks(config)["SOME_KEY"] == "this environment variable is not set"
    monkeypatch.setenv("SOME_KEY", "s3cret")
    plan = make_plan(config)
    assert "SOME_KEY" not in {need.name for need in plan.lacks}
    assert "SOME_KEY" in as_text(plan)
    assert "s3cret" not in as_text(plan) + json.dumps(plan.to_json())


def test_a_pool_that_is_too_small_is_told() -> None:
    assert "14 environments" in lacks(load_config("fixed-pool"))["registry"]
    assert "registry" not in lacks(load_config("fixed-pool", ["agent.environments=14"]))


def test_packages_are_told_with_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda *_: None)
    found = lacks(load_config("qwen3-4b"), processes=8, sharding="deepspeed_zero3")
    assert "pip install 'synthgym[vllm]'" in found["vllm"]
    assert "pip install 'synthgym[loop]'" in found["trl"]
    assert "pip install deepspeed" in found["deepspeed"]


def test_processes_that_would_have_nothing_to_train_on_are_told() -> None:
    assert "rows" not in lacks(load_config("tiny"), processes=8)
    assert "fewer than" in lacks(load_config("tiny"), processes=64)["rows"]
    text = as_text(make_plan(load_config("tiny"), processes=5))
    assert "8 for each of 5 processes, 3 of 40 padding" in text
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        make_plan(load_config("tiny"), processes=0)


def test_shards_are_refused_where_a_run_would_refuse_them() -> None:
    assert "blueprint" in lacks(load_config("tiny"), processes=2, sharding="fsdp2")["fsdp2"]
    assert "nothing to share" in lacks(load_config("qwen3-4b"), sharding="fsdp2")["fsdp2"]


# --- a GPU ---


def test_a_gpu_is_looked_for_in_dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    (tmp_path / "nvidiactl").touch()
    assert not has_gpu(tmp_path)
    (tmp_path / "nvidia3").touch()
    assert has_gpu(tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert has_gpu(tmp_path)
    for hidden in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
        assert not has_gpu(tmp_path)


@pytest.mark.parametrize(
    ("policy", "setting"),
    [
        (PolicyConfig(device="cuda"), "policy.device is cuda"),
        (PolicyConfig(backend="vllm-colocate"), "policy.backend is vllm-colocate"),
        (PolicyConfig(backend="vllm-server"), "policy.backend is vllm-server"),
    ],
)
def test_a_policy_that_needs_a_gpu_is_refused_without_one(
    policy: PolicyConfig, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "has_gpu", lambda: False)
    with pytest.raises(ModelError, match=f"{setting}, and this machine shows no GPU"):
        check_gpu(policy)
    check_gpu(PolicyConfig())
    monkeypatch.setattr(weights, "has_gpu", lambda: True)
    check_gpu(policy)


def test_a_recipe_for_gpus_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "has_gpu", lambda: False)
    with pytest.raises(ModelError, match=r"policy\.device is cuda.*run it where there is one"):
        new_run(load_config("qwen3-4b"), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
    assert "no GPU" in lacks(load_config("qwen3-4b"))["gpu"]


# --- how it is shown ---


def test_a_plan_needs_neither_torch_nor_a_network(tmp_path: Path) -> None:
    program = (
        "import sys, socket\n"
        "def refuse(*_, **__): raise RuntimeError('network')\n"
        "socket.socket.connect = refuse\n"
        "from spade_loop.config import load_config\n"
        "from spade_loop.planning import make_plan, as_text\n"
        "print(as_text(make_plan(load_config('qwen3-30b-a3b'))))\n"
        "print('torch' in sys.modules, 'transformers' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "False False"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.00k"),
        (12_345, "12.3k"),
        (123_456_789, "123M"),
        (4.5e9, "4.50G"),
    ],
)
def test_counts_have_three_digits(number: float, text: str) -> None:
    assert short(number) == text


def test_the_table_says_what_the_json_says() -> None:
    plan = make_plan(load_config("qwen3-4b"))
    text, data = as_text(plan), plan.to_json()
    memory = data["memory"]
    for key in ("weights", "gradients", "optimiser", "activations", "scoring", "update", "peak"):
        assert gib(memory[key]) in text, key
    assert short(data["run"]["run_at_most"]["sampled_tokens"]) in text
    assert "24 designer + 192 agent (24 environments x 2 seeds x 4 plays), padded to 216" in text
    assert "401, 1 of them for designs that wait" in text
    assert from_mapping(json.loads(json.dumps(data))["config"]) == plan.config
    assert f"{memory['peak'] / GIB:.2f} GiB" in text
