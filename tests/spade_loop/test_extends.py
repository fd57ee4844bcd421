"""`extends`: a recipe says what differs from another one."""

from __future__ import annotations

import copy
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.config import from_mapping, load_config
from spade_loop.config.loading import _merge
from spade_loop.errors import ConfigError

KEYS = st.sampled_from("abc")
LEAVES = st.one_of(st.integers(), st.lists(st.integers(), max_size=2))
TREES: st.SearchStrategy[dict[str, Any]] = st.recursive(
    st.dictionaries(KEYS, LEAVES, max_size=3),
    lambda inner: st.dictionaries(KEYS, st.one_of(LEAVES, inner), max_size=3),
    max_leaves=12,
)


def paths(tree: dict[str, Any], at: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Everything that is no table, by where it stands."""
    found: dict[tuple[str, ...], Any] = {}
    for key, value in tree.items():
        found |= paths(value, (*at, key)) if isinstance(value, dict) else {(*at, key): value}
    return found


@given(TREES, TREES)
def test_what_is_above_wins_and_what_it_does_not_name_stays(
    below: dict[str, Any], above: dict[str, Any]
) -> None:
    before = copy.deepcopy((below, above))
    merged = paths(_merge(below, above))
    assert (below, above) == before
    upper, lower = paths(above), paths(below)
    assert {path: merged[path] for path in upper} == upper
    for path, value in merged.items():
        if path not in upper:
            assert lower[path] == value
    for path in lower.keys() - merged.keys():
        # Only a setting that became a table, or a table that became a setting, is gone.
        assert any(path[: len(p)] == p or p[: len(path)] == path for p in upper) or _emptied(
            above, path
        )


def _emptied(tree: Any, path: tuple[str, ...]) -> bool:
    """Whether `tree` has a table where `path` leads."""
    for key in path:
        if not isinstance(tree, dict) or key not in tree:
            return False
        tree = tree[key]
    return isinstance(tree, dict)


@given(TREES, TREES, TREES)
def test_a_chain_is_merged_from_the_bottom_and_nothing_is_said_twice(
    a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]
) -> None:
    assert _merge(a, a) == a
    assert _merge({}, a) == _merge(a, {}) == a
    chain = _merge(_merge(a, b), c)
    upper = {**paths(b), **paths(c)}
    for path, value in paths(chain).items():
        assert value == (paths(c).get(path) if path in paths(c) else upper.get(path, value))


def write(folder: Path, **recipes: str) -> None:
    for name, text in recipes.items():
        (folder / f"{name}.toml").write_text(text)


def test_tables_are_merged_lists_replaced_and_overrides_come_last(tmp_path: Path) -> None:
    write(
        tmp_path,
        base='name = "base"\niterations = 7\n[agent]\nseeds = 5\nplays = 3\n[reward.blend]\nlow = 0.3\n'
        '[designer]\nskills = ["optimisation", "causal-inference"]\n',
        middle='extends = "base.toml"\n[agent]\nplays = 6\n[designer]\nskills = ["optimisation"]\n',
        top='extends = "middle.toml"\nname = "top"\n[agent]\nmax_turns = 9\n[reward.blend]\nhigh = 0.7\n',
    )
    config = load_config(str(tmp_path / "top.toml"), ["agent.seeds=8", "reward.blend.low=0.1"])
    agent, blend = config.agent, config.reward.blend
    assert (config.name, config.iterations) == ("top", 7)
    assert (agent.seeds, agent.plays, agent.max_turns) == (8, 6, 9)
    assert (blend.low, blend.high) == (0.1, 0.7)
    assert config.designer.skills == ("optimisation",)


def test_the_config_of_a_run_is_the_merged_one(tmp_path: Path) -> None:
    write(tmp_path, mine='extends = "two-skills"\n[agent]\nplays = 8\n')
    config = load_config(str(tmp_path / "mine.toml"))
    plain = json.loads(json.dumps(config.to_json()))
    assert "extends" not in plain
    assert from_mapping(plain) == config
    assert plain["agent"]["plays"] == 8
    assert plain["iterations"] == 400


def test_a_path_begins_at_the_recipe_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inner").mkdir()
    write(tmp_path, base="iterations = 9\n")
    write(tmp_path / "inner", mine='extends = "../base.toml"\n')
    monkeypatch.chdir(tmp_path / "inner")
    assert load_config("mine.toml").iterations == 9
    monkeypatch.chdir(tmp_path)
    assert load_config("inner/mine.toml").iterations == 9


def test_another_base_can_be_set(tmp_path: Path) -> None:
    large = load_config("no-memory", ["extends=qwen3-30b-a3b", "iterations=5"])
    assert large.policy == load_config("qwen3-30b-a3b").policy
    assert (large.name, large.iterations) == ("no-memory", 5)
    assert (large.designer.exemplars, large.designer.warnings) == (0, 0)
    assert load_config("no-memory", ["iterations=5", "extends=qwen3-30b-a3b"]) == large


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'extends = "qwen3-4B"',
            r"mine\.toml: extends: no recipe 'qwen3-4B'; did you mean 'qwen3-4b'",
        ),
        ('extends = "absent.toml"', r"absent\.toml does not exist"),
        ('extends = "mine.toml"', r"in a circle: mine -> mine"),
        ('extends = "other.toml"', r"in a circle: mine -> other -> mine"),
        ("extends = 3", r"extends must be the name of a recipe .*got 3"),
        ('extends = ""', r"extends must be the name of a recipe .*got ''"),
        ('extends = "tiny"\n[agent]\nextends = "tiny"', r"unknown setting agent\.extends"),
        (
            'extends = "tiny"\n[agent]\nseed = 2',
            r"unknown setting agent\.seed; did you mean 'seeds'",
        ),
        ('extends = "tiny"\nagent = 3', r"agent is a section"),
    ],
)
def test_a_wrong_base_is_named(text: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, mine=text, other='extends = "mine.toml"')
    with pytest.raises(ConfigError, match=message):
        load_config(str(tmp_path / "mine.toml"))


def test_a_circle_by_an_override_is_found() -> None:
    with pytest.raises(ConfigError, match="in a circle: tiny -> tiny"):
        load_config("tiny", ["extends=tiny"])


def test_merging_keeps_what_a_recipe_says_itself() -> None:
    path = Path(__file__).parents[2] / "spade_loop" / "recipes" / "rlve-4b.toml"
    said = paths(tomllib.loads(path.read_text()))
    del said[("extends",)]
    config = json.loads(json.dumps(load_config("rlve-4b").to_json()))
    for at, value in said.items():
        found = config
        for key in at:
            found = found[key]
        assert found == value, at
