from __future__ import annotations

import ast
import copy
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spade_loop.errors import BlueprintError, ConfigError
from spade_loop.families import (
    Blueprint,
    Family,
    designer_schema,
    load_families,
    parameter_vector,
    parse_blueprint,
    random_blueprint,
    render,
)
from spade_loop.families import catalogue as catalogue_module
from synthgym.contract import SKILLS, TOOL_SKILLS

FAMILIES = load_families()
EASIEST = {
    family.name: Blueprint(family.name, {k: v[0] for k, v in family.choices().items()})
    for family in FAMILIES
}
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def sample(family: Family, count: int = 12) -> list[Blueprint]:
    rng = np.random.default_rng([7, len(family.name)])
    return [random_blueprint(family, rng) for _ in range(count)]


# families


def test_there_is_one_family_for_each_skill_of_games() -> None:
    assert sorted(f.skill for f in FAMILIES if not f.has_tools) == sorted(SKILLS)


def test_families_with_tools_exercise_different_skills_of_tool_use() -> None:
    skills = sorted(family.skill for family in FAMILIES if family.has_tools)
    documented = (Path(__file__).parents[2] / "docs" / "spade.md").read_text(encoding="utf-8")
    assert len(set(skills)) == len(skills) == 4
    assert set(skills) <= set(TOOL_SKILLS)
    assert f"with tools ({', '.join(f'`{skill}`' for skill in skills)})" in documented


@each_family
def test_a_family_has_tools_when_its_class_is_a_tool_env(family: Family) -> None:
    assert family.has_tools == ("(ToolEnv):" in family.source)


@each_family
def test_a_family_has_at_least_200_blueprints(family: Family) -> None:
    assert family.size() >= 200
    assert 3 <= len(family.choices()) <= 6


@each_family
def test_every_value_of_a_parameter_is_short(family: Family) -> None:
    for values in family.choices().values():
        assert all(
            type(v) is bool or (type(v) is int and 0 <= v <= 9) or v.isalpha() for v in values
        )


def test_families_come_in_the_order_asked_for() -> None:
    names = ["wired_levers", "best_trade"]
    assert [family.name for family in load_families(names)] == names


def test_an_unknown_family_is_named_with_its_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'best_trade'"):
        load_families(["best_trades"])


def test_a_family_named_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="once"):
        load_families(["best_trade", "best_trade"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"additionalProperties": True}, "additionalProperties"),
        ({"required": ["theme"]}, "required"),
        ({"x-skill": "juggling"}, "x-skill"),
        ({"properties": {"theme": {"type": "string"}}, "required": ["theme"]}, "enum"),
        ({"properties": {"family": {"const": 1}}, "required": ["family"]}, "family"),
        ({"minProperties": 1}, "unknown keys"),
    ],
)
def test_a_malformed_schema_is_refused(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], message: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "env.py").write_text(FAMILIES[0].source)
    (folder / "schema.json").write_text(json.dumps(dict(FAMILIES[0].schema) | change))
    monkeypatch.setattr(catalogue_module, "_ROOT", tmp_path)
    with pytest.raises(ConfigError, match=message):
        load_families()


@pytest.mark.parametrize("params", ['{"theme": "nowhere"}', "dict(a=1)", "{}\nPARAMS = {}"])
def test_params_that_do_not_fit_the_schema_are_refused(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, params: str
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "env.py").write_text(f"PARAMS = {params}\n")
    (folder / "schema.json").write_text(json.dumps(dict(FAMILIES[0].schema)))
    monkeypatch.setattr(catalogue_module, "_ROOT", tmp_path)
    with pytest.raises(ConfigError, match="PARAMS"):
        load_families()


# blueprints


def test_the_designer_schema_offers_each_family_as_a_constant_first() -> None:
    schema = designer_schema(FAMILIES)
    for family, branch in zip(FAMILIES, schema["anyOf"], strict=True):
        assert branch["properties"]["family"] == {"const": family.name}
        assert list(branch["properties"]) == branch["required"] == ["family", *family.choices()]
        assert branch["additionalProperties"] is False


def test_the_grammar_accepts_blueprints_and_nothing_else() -> None:
    xgrammar = pytest.importorskip("xgrammar")
    letters = xgrammar.TokenizerInfo([chr(code) for code in range(32, 127)] + ["</s>"])
    compiler = xgrammar.GrammarCompiler(letters)
    schema = json.dumps(designer_schema(FAMILIES))
    grammar = compiler.compile_json_schema(schema, any_whitespace=False)
    for family in FAMILIES:
        for blueprint in sample(family, 3):
            matcher = xgrammar.GrammarMatcher(grammar, terminate_without_stop_token=True)
            assert matcher.accept_string(blueprint.to_json())
            assert matcher.is_terminated()
    other = EASIEST["best_trade"].to_json().replace("best_trade", "wired_levers")
    assert not xgrammar.GrammarMatcher(grammar).accept_string(other)


@each_family
def test_a_blueprint_survives_its_json(family: Family) -> None:
    for blueprint in sample(family):
        assert parse_blueprint(blueprint.to_json(), FAMILIES) == blueprint


def test_the_order_of_the_keys_does_not_matter_to_the_parser() -> None:
    blueprint = EASIEST["best_trade"]
    data = json.loads(blueprint.to_json())
    parsed = parse_blueprint(json.dumps(dict(reversed(data.items()))), FAMILIES)
    assert list(parsed.parameters) == list(blueprint.parameters)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"best_trade"', '"best_trad"', "did you mean 'best_trade'"),
        ('"best_trade"', "7", "`family` must be one of"),
        ('"rule": "tip"', '"rule": "worst"', 'must be one of "tip", "most"'),
        ('"choices": 2', '"choices": 9', "must be one of 2, 3, 4"),
        ('"choices": 2', '"choices": 2.0', "must be one of 2, 3, 4"),
        ('"choices": 2', '"choices": "2"', "must be one of 2, 3, 4"),
        ('"choices": 2', '"choice": 2', "also needs choices"),
        ('"choices": 2', '"choices": 2, "chioces": 2', "did you mean 'choices'"),
        ('"choices": 2', '"choices": 2, "choices": 3', "twice"),
        ('"choices": 2', '"choices": NaN', "not JSON"),
        ("{", "Here it is: {", "expected one JSON object"),
        ("}", "} {}", "expected one JSON object"),
        ("}", "", "expected one JSON object"),
    ],
)
def test_a_wrong_blueprint_is_refused_with_what_was_expected(
    old: str, new: str, message: str
) -> None:
    text = EASIEST["best_trade"].to_json()
    assert old in text
    with pytest.raises(BlueprintError, match=message):
        parse_blueprint(text.replace(old, new), FAMILIES)


@pytest.mark.parametrize("text", ["", "[]", "null", '"best_trade"', "{}", "[" * 100_000])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(BlueprintError):
        parse_blueprint(text, FAMILIES)


def test_true_is_not_one() -> None:
    text = EASIEST["wired_levers"].to_json().replace('"wiring": 1', '"wiring": true')
    with pytest.raises(BlueprintError, match="wiring"):
        parse_blueprint(text, FAMILIES)


@settings(max_examples=40)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_other_json_is_refused_and_never_raises_anything_else(value: object) -> None:
    with pytest.raises(BlueprintError):
        parse_blueprint(json.dumps(value), FAMILIES)


@settings(max_examples=40)
@given(st.text())
def test_other_text_is_refused_and_never_raises_anything_else(text: str) -> None:
    with pytest.raises(BlueprintError):
        parse_blueprint(text, FAMILIES)


def test_a_blueprint_of_a_family_that_is_not_offered_is_refused() -> None:
    with pytest.raises(BlueprintError, match="wired_levers"):
        render(EASIEST["best_trade"], load_families(["wired_levers"]))


def test_random_blueprints_are_reproducible_and_reach_every_value() -> None:
    for family in FAMILIES:
        assert sample(family) == sample(family)
        drawn = sample(family, 200)
        for name, values in family.choices().items():
            assert {blueprint.parameters[name] for blueprint in drawn} == set(values)


def test_a_blueprint_can_be_copied() -> None:
    blueprint = sample(FAMILIES[0], 1)[0]
    assert copy.deepcopy(blueprint) == blueprint


# distance


@each_family
def test_a_parameter_vector_lies_in_the_unit_cube_and_tells_blueprints_apart(
    family: Family,
) -> None:
    blueprints = sample(family, 60)
    vectors = [parameter_vector(blueprint, FAMILIES) for blueprint in blueprints]
    assert all(0.0 <= value <= 1.0 for vector in vectors for value in vector)
    assert len(set(vectors)) == len({blueprint.to_json() for blueprint in blueprints})


def test_the_first_and_last_values_are_0_and_1() -> None:
    last = {name: values[-1] for name, values in FAMILIES[0].choices().items()}
    assert set(parameter_vector(Blueprint(FAMILIES[0].name, last), FAMILIES)) == {1.0}
    assert set(parameter_vector(EASIEST[FAMILIES[0].name], FAMILIES)) == {0.0}


# rendering


@each_family
def test_rendering_changes_the_literal_and_nothing_else(family: Family) -> None:
    before, rest = family.source.split("\nPARAMS = ")
    after = rest.split("}", 1)[1]
    for blueprint in sample(family, 3):
        source = render(blueprint, FAMILIES)
        assert source == f"{before}\nPARAMS = {dict(blueprint.parameters)!r}{after}"


def test_rendering_counts_columns_in_characters_and_keeps_odd_line_breaks() -> None:
    family = FAMILIES[0]
    params = repr(dict(EASIEST[family.name].parameters))
    source = f'"""é\x0c\u2028"""\nä = "é"; PARAMS = {params}; é = "ü"  # ö\nx = 1\n'
    odd = Family(family.name, source, family.schema, family.skill)
    last = {name: values[-1] for name, values in family.choices().items()}
    assert render(Blueprint(family.name, last), [odd]) == source.replace(params, repr(last))


def test_rendering_gives_the_same_bytes_in_another_process() -> None:
    code = (
        "import hashlib, numpy as np\n"
        "from spade_loop.families import *\n"
        "f = load_families(['best_trade', 'rolling_belt']); rng = np.random.default_rng(3)\n"
        "t = ''.join(render(random_blueprint(x, rng), f) for x in f)\n"
        "print(hashlib.sha256(t.encode()).hexdigest())"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(runs) == 1


@each_family
def test_the_parameters_are_the_only_part_that_differs(family: Family) -> None:
    trees = {
        ast.dump(ast.parse(source.replace(repr(dict(blueprint.parameters)), "{}")))
        for blueprint in sample(family, 5)
        for source in [render(blueprint, FAMILIES)]
    }
    assert len(trees) == 1
