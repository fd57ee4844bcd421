"""Recipes: TOML files, overrides, plain data, each turned into a config.

`extends = "name"` at the top of a recipe lets it say only what differs from another one: tables are merged key by key,
everything else is replaced, lists too. `--set dotted.key=value` overrides one setting after that; `--set extends=name`
puts the recipe on another base. A misspelt key is refused with the nearest name, a wrong type with the type that was
expected.
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

EXTENDS = "extends"
"""Key of a recipe that names the one it builds on: a bundled name, or a path relative to the recipe's own folder."""


def recipes() -> dict[str, Path]:
    """Bundled recipes by name."""
    folder = Path(str(resources.files("spade_loop").joinpath("recipes")))
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_config(recipe: str = "tiny", overrides: Sequence[str] = ()) -> Config:
    """The config of a bundled recipe or of a TOML file, on top of what it extends, with overrides applied in order.

    `ConfigError` for a recipe or a base that does not exist, for recipes that extend each other in a circle, and for
    whatever is wrong with a setting.
    """
    # Which recipe is extended has to be known before anything is merged; all other overrides apply last.
    base: Any = None
    settings = []
    for override in overrides:
        key, _, text = override.partition("=")
        if key.strip() == EXTENDS:
            base = _value(text.strip())
        else:
            settings.append(override)
    data = _merged(recipe, Path(), base, ())
    for override in settings:
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


def _merged(recipe: str, folder: Path, base: Any, chain: tuple[Path, ...]) -> dict[str, Any]:
    """A recipe's data on top of what it extends.

    `folder` is where a relative path begins, `base` is extended in place of what the recipe says, `chain` are the
    recipes that extend this one.
    """
    path = _find(recipe, folder, chain)
    if path.resolve() in chain:
        circle = [*chain[chain.index(path.resolve()) :], path]
        raise ConfigError(
            f"recipes extend each other in a circle: {' -> '.join(p.stem for p in circle)}"
        )
    data = _read(path)
    said = data.pop(EXTENDS, None)
    wanted = said if base is None else base
    if wanted is None:
        return data
    if not isinstance(wanted, str) or not wanted:
        raise ConfigError(
            f"{EXTENDS} must be the name of a recipe or a path that ends in .toml, got {wanted!r}"
        )
    below = _merged(wanted, path.parent, None, (*chain, path.resolve()))
    return _merge(below, data)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """`above` on `below`: tables key by key, everything else replaced. Neither is changed."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = _merge(old, value)
        else:
            merged[key] = value
    return merged


def _find(recipe: str, folder: Path, chain: Sequence[Path]) -> Path:
    known = recipes()
    path = folder / Path(recipe) if recipe.endswith(".toml") else known.get(recipe)
    if path is None:
        by = f"{chain[-1]}: {EXTENDS}: " if chain else ""
        raise ConfigError(
            f"{by}no recipe {recipe!r}{did_you_mean(recipe, known)} "
            f"(bundled: {', '.join(known)}; or give a path that ends in .toml)"
        )
    return path


def _read(path: Path) -> dict[str, Any]:
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
