"""The bundled recipes: every number of the released code that has a setting here, and what differs by design."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from pages import read, table

from spade_loop.batch import BatchShape
from spade_loop.config import Config, load_config, recipes
from spade_loop.curriculum import Replay
from spade_loop.curriculum.rlve import DEFAULT_ENVIRONMENTS
from spade_loop.planning import as_text, make_plan
from spade_loop.planning.budget import budget_of, seeds_at_most
from spade_loop.planning.needs import Need
from spade_loop.rewards import BLEND_LATE_PHASE, BlendParameters
from spade_loop.schedule import Schedule
from synthgym.contract import SKILLS, TOOL_SKILLS

INSTRUCT_4B = "Qwen/Qwen3-4B-Instruct-2507"
THINKING_8B = "Qwen/Qwen3-8B"
INSTRUCT_30B = "Qwen/Qwen3-30B-A3B-Instruct-2507"
COLUMNS = [
    "model",
    "iterations",
    "environments",
    "agent_rows",
    "regenerate",
    "delay",
    "hint_tokens",
    "skills",
    "active",
    "design_tokens",
    "turn_tokens",
    "context",
    "turns",
    "thinking",
    "kl",
    "corpus_words",
]
# The rows of the released launchers (spade-rl/spade at 9b2b813).
GAMES_4B = (
    INSTRUCT_4B, 400, 24, 192, 4, 4, 4096, 6, 3, 16384, 8192, 32768, 25, False, 0.0, 6000
)  # fmt: skip
GAMES_8B = (
    THINKING_8B, 400, 24, 192, 4, 4, 4096, 6, 3, 20000, 8192, 32768, 25, True, 0.005, 6000
)  # fmt: skip
GAMES_30B = (INSTRUCT_30B, *GAMES_4B[1:])
NEMOTRON = ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", *GAMES_4B[1:])
TOOLS_8B = (
    THINKING_8B, 400, 24, 192, 8, 8, 2048, 6, 6, 20000, 8192, 32768, 25, True, 0.005, 4000
)  # fmt: skip
TOOLS_30B = (
    INSTRUCT_30B, 400, 24, 192, 8, 8, 2048, 6, 6, 16384, 8192, 32768, 25, False, 0.005, 4000
)  # fmt: skip
# Six skills at a time there: two or three designs of each, where at least four are asked for here.
TOOLS_4B = (
    INSTRUCT_4B, 500, 16, 256, 32, 32, 512, 6, 4, 16384, 8192, 32768, 25, False, 0.005, 4000
)  # fmt: skip
RELEASED: dict[str, tuple[Any, ...]] = {
    "qwen3-4b": GAMES_4B,
    "qwen3-8b": GAMES_8B,
    "qwen3-30b-a3b": GAMES_30B,
    "reference-games-4b": GAMES_4B,
    "reference-games-8b": GAMES_8B,
    "reference-games-30b-a3b": GAMES_30B,
    "nemotron-30b-a3b": NEMOTRON,
    "tools-qwen3-4b": TOOLS_4B,
    "tools-qwen3-8b": TOOLS_8B,
    "tools-qwen3-30b-a3b": TOOLS_30B,
}
ABLATIONS = {
    "frozen-designer": {"designer.train", "designers", "schedule.designer_delay"},
    "no-corpus": {"corpus.use"},
    "no-memory": {"designer.exemplars", "designer.warnings"},
    "no-novelty-gate": {"novelty.gate"},
    "no-designer-training": {"designer.train", "schedule.designer_delay"},
    "two-skills": {"designer.skills", "designer.skills_per_iteration"},
    "solve-rate": {"reward.designer"},
    "learning-potential": {"reward.designer"},
    "plain-regret": {"reward.designer"},
    "unpaired-regret": {"reward.paired", "agent.half_width"},
}
"""What each of them changes of qwen3-4b."""
POOLS = ("fixed-pool", "plr", "robust-plr", "rlve-4b")
NAMES = sorted(recipes())


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in data.items():
        nested = isinstance(value, dict) and value
        found |= flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return found


def numbers(config: Config) -> tuple[Any, ...]:
    designer, agent, schedule = config.designer, config.agent, config.schedule
    return (
        config.policy.model,
        config.iterations,
        agent.environments,
        BatchShape.of(config).agent,
        schedule.regenerate_every,
        schedule.designer_delay,
        config.hints.max_tokens,
        len(designer.skills),
        designer.skills_per_iteration,
        designer.max_tokens,
        agent.turn_tokens,
        agent.context,
        agent.max_turns,
        config.policy.thinking == "on",
        config.trainer.beta,
        config.corpus.words,
    )


@pytest.mark.parametrize("name", RELEASED)
def test_a_recipe_has_the_numbers_of_the_released_one(name: str) -> None:
    config = load_config(name)
    assert dict(zip(COLUMNS, numbers(config), strict=True)) == dict(
        zip(COLUMNS, RELEASED[name], strict=True)
    )
    trainer, designer = config.trainer, config.designer
    assert (trainer.learning_rate, trainer.weight_decay) == (1e-6, 0.1)
    assert (trainer.adam_beta1, trainer.adam_beta2) == (0.9, 0.98)
    assert (trainer.epsilon, trainer.epsilon_high, trainer.max_ratio) == (0.2, 0.28, 2.0)
    assert trainer.temperature == 0.6
    assert (config.policy.lora_rank, designer.initial_share) == (0, 0.0)
    assert (designer.candidates, designer.exemplars, designer.warnings) == (
        config.agent.environments,
        2,
        1,
    )
    assert set(designer.skills) == set(TOOL_SKILLS if "tools" in name else SKILLS)
    assert designer.dialect == "program"
    assert config.hints.source == "designer"
    assert not config.hints.train


@pytest.mark.parametrize("name", ["qwen3-4b", "tools-qwen3-8b", "tools-qwen3-4b"])
def test_both_arms_are_measured_on_sixteen_plays(name: str) -> None:
    config = load_config(name)
    assert seeds_at_most(config) * config.agent.plays == 16
    assert config.reward.paired


def test_the_reference_recipes_pay_as_the_released_code() -> None:
    for name in ("reference-games-4b", "reference-games-8b", "reference-games-30b-a3b"):
        config = load_config(name)
        reward = config.reward
        assert (reward.reference, reward.designer, config.agent.score) == (
            True,
            "blend",
            "reference",
        )
        assert reward.blend == BlendParameters()
        assert (reward.learning.fast, reward.learning.slow) == (0.98, 0.85)
        assert reward.learning.update_first
        assert (reward.repaired_factor, reward.fault_floor) == (0.0, -0.5)
        assert not reward.paired
        assert not config.novelty.gate
        assert config.designer.cell_bonus == 0.0
    late = load_config("reference-games-4b-late")
    assert (late.reward.blend, late.agent.context) == (BLEND_LATE_PHASE, 49152)


def test_the_reference_recipe_has_the_sums_of_the_released_run() -> None:
    """100 regenerations of 24 games; 76,800 plays in 400 iterations; the designer's multiplier is 32."""
    config = load_config("reference-games-4b")
    budget = budget_of(config)
    assert (budget.regenerations, budget.designs, budget.episodes_plain) == (100, 2400, 76_800)
    assert budget.episodes_hinted == 100 * 24 * 8  # 38,400 there: sixteen of each game
    shape = BatchShape.of(config)
    assert shape.agent / shape.designer * config.schedule.regenerate_every == 32


def changed(name: str, base: str) -> set[str]:
    old, new = (flat(load_config(n).to_json()) for n in (base, name))
    return {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)} - {"name"}


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_changes_what_it_is_called_after_and_nothing_else(name: str) -> None:
    assert changed(name, "qwen3-4b") == ABLATIONS[name]


def test_the_pools_play_without_a_designer() -> None:
    for name in POOLS:
        config = load_config(name)
        assert (config.designer.candidates, config.agent.pool_share) == (0, 1.0)
        assert BatchShape.of(config).designer == 0
        assert Schedule.of(config).steps == config.iterations == 400
    fixed, rlve = load_config("fixed-pool"), load_config("rlve-4b")
    assert (fixed.seed, fixed.curriculum.choice) == (42, "without-replacement")
    assert BatchShape.of(fixed).agent == 192
    assert BatchShape.of(rlve).agent == 256
    assert rlve.curriculum.rlve == DEFAULT_ENVIRONMENTS
    assert (rlve.curriculum.choice, rlve.curriculum.attempts) == ("sliding-window", 128)
    assert (rlve.curriculum.hardest, rlve.trainer.temperature) == (20, 1.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plr", Replay(score="l1_advantage")),
        ("robust-plr", Replay.robust_plr("positive_advantage")),
        ("accel", Replay.accel("positive_advantage")),
    ],
)
def test_replay_has_the_values_of_its_paper(name: str, expected: Replay) -> None:
    settings = load_config(name).curriculum
    assert settings.choice == "replay"
    for key in ("score", "temperature", "staleness", "replay_probability", "robust"):
        assert getattr(settings, key) == getattr(expected, key), key


@pytest.mark.parametrize("name", ["random-designer", "accel", "frozen-designer"])
def test_another_designer_writes_everything(name: str) -> None:
    config = load_config(name)
    (other,) = config.designers
    assert other.share == 1.0
    assert BatchShape.of(config).designer == 0
    frozen = other.kind == "transformers"
    assert frozen == (other.model == config.policy.model)
    assert frozen == (other.max_tokens == config.designer.max_tokens)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_called_after_its_file_and_can_be_planned(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spade_loop.planning.needs.check_gpu", lambda _: None)
    config = load_config(name)
    assert config.name == name
    sharding = "deepspeed_zero3" if "30b" in name else "none"
    processes = 8 if "30b" in name else 1
    plan = make_plan(config, processes=processes, sharding=sharding)
    assert plan.memory is not None
    assert "recipe  " in as_text(plan)
    # Beside what is not installed here: a pool of one's own.
    packages = {"vllm", "deepspeed", "rlve", "xgrammar", "peft", "trl", "torch", "accelerate"}
    own_pool = {"registry"} if name in POOLS and name != "rlve-4b" else set()
    assert {need.name for need in plan.lacks} - packages - {"transformers"} == own_pool


@pytest.mark.parametrize("name", [n for n in NAMES if n != "tiny"])
def test_eight_processes_share_the_rows_without_padding(name: str) -> None:
    shape = BatchShape.of(load_config(name))
    assert shape.designer + shape.agent == shape.shared(8)


def test_every_recipe_begins_with_a_line_about_it() -> None:
    for name, path in recipes().items():
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert re.fullmatch(r"# [A-Z].{20,140}\.", first), name


def test_the_table_of_recipes_is_that_of_the_files() -> None:
    lines = {
        name: path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ").removesuffix(".")
        for name, path in recipes().items()
    }
    assert table("docs/recipes.md", "recipes") == lines
    assert list(table("docs/recipes.md", "recipes")) == sorted(lines)


def test_the_page_names_no_setting_that_there_is_not() -> None:
    known = set(flat(Config().to_json())) | {"extends"}
    sections = {key.partition(".")[0] for key in known if "." in key}
    for span in re.findall(r"`((?:[a-z]+\.)+[a-z_]+)(?:=[^`]*)?`", read("docs/recipes.md")):
        if span.partition(".")[0] in sections and not span.endswith((".toml", ".yaml")):
            assert span in known, span


def test_a_need_is_plain_data() -> None:
    assert [f.name for f in dataclasses.fields(Need)] == ["name", "met", "detail"]
