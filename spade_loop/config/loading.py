"""Recipes: TOML files, overrides, plain data, each turned into a config.

`--set dotted.key=value` overrides one setting. A misspelt key is refused with the nearest name, a wrong type with the
type that was expected.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from spade_loop.config.settings import Config, OtherDesigner
from spade_loop.errors import ConfigError
from synthgym.ids import did_you_mean


def recipes() -> dict[str, Path]:
    """Bundled recipes by name."""
    folder = Path(str(resources.files("spade_loop").joinpath("recipes")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_config(recipe: str = "tiny", overrides: Sequence[str] = ()) -> Config:
    """The config of a bundled recipe or of a TOML file, with `dotted.key=value` overrides applied in order."""
    data = _read_recipe(recipe)
    for override in overrides:
        _apply(data, override)
    return from_mapping(data)


def from_mapping(data: Mapping[str, Any]) -> Config:
    """A config from nested plain data. `ConfigError` names the dotted key that is wrong."""
    _refuse_unknown(data, Config, "")
    try:
        return msgspec.convert(data, Config)
    except msgspec.ValidationError as error:
        cause = error.__cause__
        if isinstance(cause, ConfigError):
            raise cause from error
        raise ConfigError(_dotted(str(error))) from error


def _read_recipe(recipe: str) -> dict[str, Any]:
    known = recipes()
    path = Path(recipe) if recipe.endswith(".toml") else known.get(recipe)
    if path is None:
        raise ConfigError(
            f"no recipe {recipe!r}{did_you_mean(recipe, known)} "
            f"(bundled: {', '.join(known)}; or give a path that ends in .toml)"
        )
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"recipe file {path} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe file {path} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"recipe file {path} is not valid TOML: {error}") from error


def _apply(data: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set takes dotted.key=value, got {override!r}")
    *parents, last = key.strip().split(".")
    target = data
    for parent in parents:
        target = target.setdefault(parent, {})
        if not isinstance(target, dict):
            raise ConfigError(f"{key.strip()}: {parent} is a setting, not a section")
    target[last] = _value(text.strip())


def _value(text: str) -> Any:
    """TOML when it parses as TOML (numbers, booleans, lists, quoted strings), plain text otherwise."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _refuse_unknown(data: Mapping[str, Any], cls: type, prefix: str) -> None:
    hints = get_type_hints(cls)
    names = [f.name for f in dataclasses.fields(cls)]
    for key, value in data.items():
        if key not in names:
            section = prefix.removesuffix(".") or "a recipe"
            raise ConfigError(
                f"unknown setting {prefix}{key}{did_you_mean(key, names)} ({section} has: {', '.join(names)})"
            )
        if dataclasses.is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise ConfigError(
                    f"{prefix}{key} is a section, expected [{prefix}{key}], got {value!r}"
                )
            _refuse_unknown(value, hints[key], f"{prefix}{key}.")
        elif hints[key] == tuple[OtherDesigner, ...] and isinstance(value, list):
            for number, item in enumerate(value):
                _refuse_unknown(item, OtherDesigner, f"{prefix}{key}[{number}].")
        elif get_origin(hints[key]) is Literal and value not in get_args(hints[key]):
            choices = get_args(hints[key])
            raise ConfigError(
                f"{prefix}{key} must be one of {', '.join(choices)}, got {value!r}"
                f"{did_you_mean(str(value), choices)}"
            )


def _dotted(message: str) -> str:
    """Msgspec says "Expected `int`, got `str` - at `$.agent.seeds`"; ours starts with the dotted key."""
    text, _, where = message.partition(" - at `$.")
    key = where.removesuffix("`")
    return f"{key}: {text[0].lower()}{text[1:]}" if key else text
