"""The blueprint families: loading them, the designer's schema, reading a blueprint, rendering, distance.

A blueprint is a small JSON object, `{"family": ..., <parameters>}`. It is rendered into the source of its family: the
one top-level literal `PARAMS = {...}` of `env.py` is replaced, the rest of the text stays, byte for byte.

To add a family: a folder `<name>/` with `env.py` (a complete environment whose `PARAMS` default is legal) and
`schema.json` (an object of enums, booleans and bounded integers, all required, `x-skill` one of the contract's skills:
of `TOOL_SKILLS` when the class is a `ToolEnv`).
The folder is then found by itself; `tests/spade_loop/test_families.py` says what else must hold. A folder anywhere else
is a family too: it is named by its path, with a slash in it.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from spade_loop.errors import BlueprintError, ConfigError
from synthgym.contract import SKILLS, TOOL_SKILLS
from synthgym.ids import did_you_mean

_ROOT: Final = Path(__file__).resolve().parent
_KEYS_OF_A_SCHEMA: Final = {
    "type",
    "additionalProperties",
    "properties",
    "required",
    "x-skill",
    "description",
}
_FAMILY: Final = "family"
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Family:
    """One family: a legal environment with a hole, and the schema of what fits the hole."""

    name: str
    source: str
    """Text of `env.py`; as it stands it is a legal environment."""
    schema: Mapping[str, Any]
    """JSON schema of the parameters, without the key `family`."""
    skill: str
    """The skill that it exercises, one of `synthgym.contract.SKILLS`, or of `TOOL_SKILLS` for a `ToolEnv`."""

    @property
    def has_tools(self) -> bool:
        """Whether its environments are acted in by tool calls, not by commands."""
        return self.skill in TOOL_SKILLS

    def choices(self) -> Mapping[str, tuple[Any, ...]]:
        """Every legal value of every parameter, in the order of the schema."""
        fields: Mapping[str, Mapping[str, Any]] = self.schema["properties"]
        return {name: _values(field) for name, field in fields.items()}

    def size(self) -> int:
        """How many different blueprints there are."""
        return int(np.prod([len(values) for values in self.choices().values()]))


@dataclass(frozen=True, slots=True)
class Blueprint:
    """What a designer wrote: a family and all its parameters, in the order of the schema."""

    family: str
    parameters: Mapping[str, Any]

    def to_json(self) -> str:
        """The JSON text that `parse_blueprint` reads, in the form that the grammar forces."""
        return json.dumps({_FAMILY: self.family, **self.parameters})


def load_families(names: Sequence[str] | None = None) -> tuple[Family, ...]:
    """The families in the order of `names`, or all bundled ones in alphabetical order.

    A name with a slash is the folder of a family of one's own, which is called after it. `ConfigError` for a name that
    does not exist, that comes twice or that is a bundled family's, and for a family whose files are malformed.
    """
    known = sorted(path.parent.name for path in _ROOT.glob("*/schema.json"))
    folders = [_folder(name, known) for name in (known if names is None else names)]
    wanted = [folder.name for folder in folders]
    if len(set(wanted)) != len(wanted):
        raise ConfigError(f"each family may be named once, got {', '.join(wanted)}")
    return tuple(_load(folder) for folder in folders)


def designer_schema(families: Sequence[Family]) -> dict[str, Any]:
    """JSON schema of a blueprint of any of `families`: `anyOf`, the family a constant and the first key."""
    return {"anyOf": [_with_family(family) for family in families]}


def parse_blueprint(text: str, families: Sequence[Family]) -> Blueprint:
    """Read a designer's JSON; `BlueprintError` says what was expected. Spaces around it are allowed, prose is not."""
    try:
        data = json.loads(text, object_pairs_hook=_object_once, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise BlueprintError(f"expected one JSON object, got {text[:80]!r}: {error}") from error
    if not isinstance(data, dict):
        raise BlueprintError(f"expected a JSON object, got {type(data).__name__}")
    family = _family_of(data.pop(_FAMILY, None), families)
    return Blueprint(family.name, _checked(data, family))


def render(blueprint: Blueprint, families: Sequence[Family]) -> str:
    """Source text of the blueprint: its family's `env.py` with the literal `PARAMS` replaced, all else untouched."""
    family = _family_of(blueprint.family, families)
    parameters = _checked(dict(blueprint.parameters), family)
    literal = _params_literal(family.name, family.source)
    lines = family.source.split("\n")
    first, last = literal.lineno - 1, (literal.end_lineno or literal.lineno) - 1
    # ast counts columns in UTF-8 bytes
    head = lines[first].encode()[: literal.col_offset].decode()
    tail = lines[last].encode()[literal.end_col_offset :].decode()
    new = head + repr(parameters) + tail
    return "\n".join([*lines[:first], new, *lines[last + 1 :]])


def parameter_vector(blueprint: Blueprint, families: Sequence[Family]) -> tuple[float, ...]:
    """Each parameter on [0, 1]: the index of its value over the largest index (booleans 0 or 1), in schema order.

    The novelty memory compares two blueprints of one family by the mean absolute difference of these.
    """
    family = _family_of(blueprint.family, families)
    parameters = _checked(dict(blueprint.parameters), family)
    return tuple(
        _index(values, parameters[name]) / max(len(values) - 1, 1)
        for name, values in family.choices().items()
    )


def random_blueprint(family: Family, rng: np.random.Generator) -> Blueprint:
    """A blueprint drawn uniformly from all of the family."""
    drawn = {
        name: values[int(rng.integers(len(values)))] for name, values in family.choices().items()
    }
    return Blueprint(family.name, drawn)


def _folder(name: str, known: Sequence[str]) -> Path:
    """Where a family lies: beside this module, or in the folder that is named."""
    if "/" not in name:
        if name not in known:
            raise ConfigError(
                f"unknown family {name!r}; the families are {', '.join(known)}{did_you_mean(name, known)}; "
                "or give the folder of one, with a slash in it"
            )
        return _ROOT / name
    folder = Path(name).expanduser().resolve()
    if folder.name in known and folder != _ROOT / folder.name:
        raise ConfigError(
            f"family {name}: {folder.name} is a bundled family; give the folder another name"
        )
    if not _NAME.fullmatch(folder.name):
        raise ConfigError(
            f"family {name}: a family is called after its folder, in lower case with _ between words, got "
            f"{folder.name!r}"
        )
    return folder


def _load(folder: Path) -> Family:
    name = folder.name
    try:
        source = (folder / "env.py").read_text(encoding="utf-8")
        schema = json.loads((folder / "schema.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"family {folder} cannot be read ({error}): expected a folder that holds env.py and schema.json"
        ) from error
    if not isinstance(schema, dict):
        raise ConfigError(f"{name}/schema.json: expected an object, got {type(schema).__name__}")
    _check_schema(name, schema)
    family = Family(name, source, MappingProxyType(schema), schema["x-skill"])
    try:
        _checked(ast.literal_eval(_params_literal(name, source)), family)
    except (BlueprintError, ValueError) as error:
        raise ConfigError(f"{name}/env.py: PARAMS must meet schema.json: {error}") from error
    return family


def _check_schema(name: str, schema: dict[str, Any]) -> None:
    """Refuse what the rest of this module does not read."""
    where = f"{name}/schema.json"
    unknown = sorted(set(schema) - _KEYS_OF_A_SCHEMA)
    if unknown:
        raise ConfigError(f"{where}: unknown keys {', '.join(unknown)}")
    if schema.get("type") != "object" or schema.get("additionalProperties") is not False:
        raise ConfigError(f"{where}: expected an object with additionalProperties false")
    properties = schema.get("properties")
    if not isinstance(properties, dict) or schema.get("required") != list(properties):
        raise ConfigError(f"{where}: `required` must list every property, in the same order")
    if _FAMILY in properties:
        raise ConfigError(f"{where}: the key {_FAMILY!r} is added by the designer's schema")
    if schema.get("x-skill") not in (*SKILLS, *TOOL_SKILLS):
        known = ", ".join((*SKILLS, *TOOL_SKILLS))
        raise ConfigError(f"{where}: x-skill must be one of {known}, got {schema.get('x-skill')!r}")
    for field, described in properties.items():
        if not _values(described):
            raise ConfigError(
                f"{where}: {field!r} must be an enum, a boolean, or an integer with minimum and maximum"
            )


def _values(field: Mapping[str, Any]) -> tuple[Any, ...]:
    """Legal values of one property, in order; empty for a form that is not part of our subset of JSON schema."""
    match field:
        case {"enum": [_, *_] as values}:
            return tuple(values)
        case {"const": value}:
            return (value,)
        case {"type": "boolean"}:
            return (False, True)
        case {"type": "integer", "minimum": int(low), "maximum": int(high)}:
            return tuple(range(low, high + 1))
        case _:
            return ()


def _with_family(family: Family) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {_FAMILY: {"const": family.name}, **family.schema["properties"]},
        "required": [_FAMILY, *family.schema["required"]],
    }


def _family_of(name: object, families: Sequence[Family]) -> Family:
    """The family of that name; `BlueprintError` when there is none."""
    for family in families:
        if family.name == name:
            return family
    known = [family.name for family in families]
    near = did_you_mean(name, known) if isinstance(name, str) else ""
    raise BlueprintError(f"`family` must be one of {', '.join(known)}; got {name!r}{near}")


def _checked(data: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """`data` in the order of the schema; `BlueprintError` unless it has exactly the keys and legal values."""
    choices = family.choices()
    _check_keys(data, choices, family.name)
    for name, values in choices.items():
        if _index(values, data[name]) < 0:
            legal = ", ".join(json.dumps(value) for value in values)
            raise BlueprintError(f"{family.name}.{name} must be one of {legal}; got {data[name]!r}")
    return {name: data[name] for name in choices}


def _check_keys(data: Mapping[str, Any], known: Iterable[str], family: str) -> None:
    names = list(known)
    missing = [name for name in names if name not in data]
    if missing:
        raise BlueprintError(f"{family} also needs {', '.join(missing)}")
    for name in data:
        if name not in names:
            near = did_you_mean(name, names)
            raise BlueprintError(f"{family} has no parameter {name!r}{near}")


def _index(values: Sequence[Any], value: object) -> int:
    """Where `value` stands; -1 when it does not. Types count: neither True nor 1.0 is 1."""
    for index, legal in enumerate(values):
        if type(legal) is type(value) and legal == value:
            return index
    return -1


def _params_literal(name: str, source: str) -> ast.Dict:
    """The dictionary of the only top-level `PARAMS = {...}`."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}/env.py is no Python: {error}") from error
    found = [
        node.value
        for node in body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "PARAMS" for target in node.targets)
    ]
    if len(found) != 1 or not isinstance(found[0], ast.Dict):
        raise ConfigError(f"{name}/env.py must have exactly one top-level literal PARAMS = {{...}}")
    return found[0]


def _object_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key that comes twice is an error, where `json` would keep the last."""
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a key comes twice")
    return data


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")
