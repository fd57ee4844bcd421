"""From the names and options of a command line to suites: the built-in ones and those of other packages."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from spade_loop.errors import ConfigError
from spade_loop.evaluation.suite import GROUP, Suite
from synthgym.ids import did_you_mean

Factory = Callable[..., Suite]
_HERE: Final = "spade_loop.evaluation.suites"
BUILT_IN: Final[Mapping[str, str]] = {
    "snapshot": f"{_HERE}.snapshot:SnapshotSuite",
    "reasoning-gym": f"{_HERE}.reasoning_gym:ReasoningGym",
    "rlve-gym": f"{_HERE}.rlve:Rlve",
    "aime-2025": f"{_HERE}.aime:aime_2025",
    "aime-2026": f"{_HERE}.aime:aime_2026",
    "gpqa-diamond": f"{_HERE}.gpqa:GpqaDiamond",
    "bfcl-multi-turn": f"{_HERE}.bfcl:suite",
    "acebench-agent": f"{_HERE}.acebench:suite",
    "livecodebench": f"{_HERE}.livecodebench:suite",
}
"""Where the factories of the suites of this package are; a module is imported when its suite is asked for."""
MAIN: Final = ":"
"""`NAME:VALUE` on a command line gives the factory's first parameter."""


def suite_names() -> tuple[str, ...]:
    """Names of all suites that are installed, sorted."""
    return tuple(sorted({*BUILT_IN, *_others()}))


def factory_of(name: str) -> Factory:
    """What makes the suite `name`. `ConfigError` for an unknown one and for an entry point that does not load."""
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].partition(":")
        made: Factory = getattr(importlib.import_module(module), attribute)
        return made
    others = _others()
    if name not in others:
        known = suite_names()
        raise ConfigError(
            f"no suite {name!r}{did_you_mean(name, known)} (there are: {', '.join(known)})"
        )
    try:
        found: Factory = others[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"the suite {name!r} is offered by {_offerer(others[name])}, which fails: {error}"
        ) from error
    if not callable(found):
        raise ConfigError(
            f"the suite {name!r} of {_offerer(others[name])} is no factory: expected something to call, got {found!r}"
        )
    return found


def open_suite(asked: str, options: Mapping[str, str], *, seed: int) -> Suite:
    """The suite that a command line asks for: `NAME` or `NAME:VALUE`, with options as texts.

    `ConfigError` names the option that is unknown, missing or of another type.
    """
    name, given, value = asked.partition(MAIN)
    factory = factory_of(name)
    settings = settings_of(factory)
    texts = dict(options)
    if given:
        if not settings:
            raise ConfigError(f"the suite {name!r} takes no options, got {asked!r}")
        texts.setdefault(next(iter(settings)), value)
    if "seed" in settings:
        texts.setdefault("seed", str(seed))
    for key in texts:
        if key not in settings:
            has = f"it has: {', '.join(settings)}" if settings else "it has none"
            raise ConfigError(
                f"the suite {name!r} has no option {key!r}{did_you_mean(key, settings)} ({has})"
            )
    values = {
        key: _typed(f"{name}: {key}", text, settings[key].annotation) for key, text in texts.items()
    }
    missing = [
        k for k, p in settings.items() if k not in values and p.default is inspect.Parameter.empty
    ]
    if missing:
        raise ConfigError(
            f"the suite {name!r} needs the option {missing[0]!r}: give --suite-option {missing[0]}=VALUE"
        )
    return factory(**values)


def settings_of(factory: Factory) -> dict[str, inspect.Parameter]:
    """The parameters of a factory that a command line may set, by name, their annotations resolved."""
    hints = get_type_hints(factory.__init__ if inspect.isclass(factory) else factory)
    return {
        name: parameter.replace(annotation=hints.get(name, str))
        for name, parameter in inspect.signature(factory).parameters.items()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    }


def options_for(asked: str, options: Sequence[str], *, alone: bool) -> dict[str, str]:
    """Those of `KEY=VALUE` and `SUITE.KEY=VALUE` that are for one suite.

    Without a suite's name an option is for the only suite there is; `ConfigError` when there are several.
    """
    name = asked.partition(MAIN)[0]
    chosen = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--suite-option takes KEY=VALUE or SUITE.KEY=VALUE, got {option!r}")
        owner, dot, inner = key.strip().partition(".")
        if not dot and not alone:
            raise ConfigError(
                f"--suite-option {option}: there are several suites, so say which: SUITE.{option}"
            )
        if not dot:
            chosen[owner] = value.strip()
        elif owner == name:
            chosen[inner] = value.strip()
    return chosen


def check_owners(asked: Sequence[str], options: Sequence[str]) -> None:
    """Refuse `SUITE.KEY=VALUE` for a suite that was not asked for, with `ConfigError`."""
    names = [one.partition(MAIN)[0] for one in asked]
    for option in options:
        owner, dot, _ = option.partition("=")[0].strip().partition(".")
        if dot and owner not in names:
            raise ConfigError(
                f"--suite-option {option}: the suite {owner!r} was not asked for{did_you_mean(owner, names)}"
            )


def _others() -> dict[str, EntryPoint]:
    """Entry points of other packages; a built-in name cannot be taken."""
    found = entry_points(group=GROUP)
    return {point.name: point for point in found if point.name not in BUILT_IN}


def _offerer(point: EntryPoint) -> str:
    return f"the package {point.dist.name}" if point.dist is not None else point.value


def _typed(where: str, text: str, annotation: Any) -> Any:
    """A text as what the annotation says. `ConfigError` says what was expected."""
    kinds = (
        get_args(annotation)
        if get_origin(annotation) in (Union, types.UnionType)
        else (annotation,)
    )
    if Path in kinds:
        return Path(text)
    if any(get_origin(kind) is tuple for kind in kinds):
        given: Any = [part.strip() for part in text.split(",") if part.strip()]
    else:
        given = text
    if str in kinds:
        return given
    try:
        return msgspec.convert(given, annotation, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {str(error).partition(' - at ')[0]}, got {text!r}") from error
