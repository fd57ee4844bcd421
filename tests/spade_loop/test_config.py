"""Recipes: defaults, overrides, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from spade_loop.config import Config, from_mapping, load_config, recipes
from spade_loop.errors import ConfigError


def test_every_bundled_recipe_loads() -> None:
    assert "tiny" in recipes()
    for name in recipes():
        assert isinstance(load_config(name), Config)


def test_a_config_survives_json() -> None:
    config = load_config(
        "tiny", ["agent.seeds=3", "policy.model=some/model", "designer.families=[]"]
    )
    assert from_mapping(config.to_json()) == config
    assert (config.agent.seeds, config.policy.model) == (3, "some/model")


def test_a_recipe_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[agent]\nseeds = 7\n')
    assert load_config(str(path)).agent.seeds == 7


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["agent.seed=3"], r"unknown setting agent\.seed; did you mean 'seeds'\?"),
        (["agnet.seeds=3"], r"unknown setting agnet; did you mean 'agent'\?"),
        (["agent.seeds=three"], r"agent\.seeds: expected `int`, got `str`"),
        (["agent.seeds=0"], r"agent\.seeds must be at least 2, got 0"),
        (["agent.pool_share=1.5"], r"agent\.pool_share must lie in \[0, 1\]"),
        (["agent=3"], r"agent is a section"),
        (["agent.seeds"], r"--set takes dotted\.key=value"),
        (["seed.x=1", "seed=2", "seed.y=3"], r"seed is a setting, not a section"),
        (["reward.designer=regrets"], r"reward\.designer must be one of gated_regret"),
        (["designer.skills=['spatial']"], r"unknown skill 'spatial'"),
        (["designer.candidates=3"], r"designer\.candidates must give every skill at least 4"),
        (["policy.lora_rank=0"], r"designer\.initial_share needs LoRA"),
        (["policy.dtype=float16"], r"policy\.dtype must be one of .*, got 'float16'"),
        (["sandbox.require=ful"], r"must be one of none, .*got 'ful'.*did you mean 'full'"),
    ],
)
def test_a_wrong_setting_is_named_with_what_was_expected(
    overrides: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config("tiny", overrides)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("tny", r"no recipe 'tny'; did you mean 'tiny'\?"),
        ("absent.toml", r"absent\.toml does not exist"),
    ],
)
def test_a_recipe_that_is_not_there_is_named(recipe: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(recipe)


def test_a_recipe_that_is_not_toml_says_so(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("name = \n")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_config(str(path))


def test_only_reasons_that_speak_of_ease_can_be_allowed() -> None:
    config = load_config("tiny", ['validation.allowed=["few-instances"]'])
    assert config.validation.allowed == ("few-instances",)
    with pytest.raises(ConfigError, match="did you mean 'scraping-agent-wins'"):
        load_config("tiny", ['validation.allowed=["scraping-agent-win"]'])
    with pytest.raises(ConfigError, match="'not-deterministic' cannot be allowed"):
        load_config("tiny", ['validation.allowed=["not-deterministic"]'])
