"""`synthgym snapshot filter`: what a user wants of a snapshot, as a test of each environment."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from synthgym.cli.entries import open_place
from synthgym.cli.zones import zone_test
from synthgym.contract import SKILLS, TOOL_SKILLS
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean
from synthgym.registry import Snapshot
from synthgym.registry.algebra import select
from synthgym.registry.notes import METRICS
from synthgym.registry.packed import Packed
from synthgym.registry.strict import parse_json

_BOUND: Final = re.compile(
    r"([A-Za-z0-9_.-]+)(<=|>=|<|>|=)(-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)", re.ASCII
)
_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of `filter`."""

    skills: tuple[str, ...]
    licenses: tuple[str, ...]
    search: str
    where: tuple[str, ...]
    ids: Path | None
    drop: bool
    zones: tuple[str, ...] = ()
    model: str = ""


def run(
    place: str,
    out: Path,
    wanted: Wanted,
    name: str | None,
    release: str,
    layout: str | None,
) -> None:
    """Write the environments that fit."""
    snapshot = open_place(place)
    fits = _test(snapshot, wanted)
    made = select(
        out,
        snapshot,
        (lambda item: not fits(item)) if wanted.drop else fits,
        name=name or snapshot.name,
        version=release,
        layout=layout,
    )
    typer.echo(f"{len(made)} of {len(snapshot)} environments, {made.name} {made.version}")
    typer.echo(made.digest)


def _test(snapshot: Snapshot, wanted: Wanted) -> Callable[[Packed], bool]:
    words = wanted.search.casefold().split()
    bounds = [_bound(text) for text in wanted.where]
    digests = None if wanted.ids is None else _digests(snapshot, wanted.ids)
    _check_known(snapshot, wanted)
    in_zone = zone_test(snapshot, wanted.zones, wanted.model)

    def fits(item: Packed) -> bool:
        entry = item.entry
        return (
            (not wanted.skills or bool(set(wanted.skills) & set(entry.skills)))
            and (not wanted.licenses or entry.license in wanted.licenses)
            and all(word in f"{entry.name} {entry.title}".casefold() for word in words)
            and (digests is None or entry.digest in digests)
            and in_zone(item)
            and all(_holds(item, *bound) for bound in bounds)
        )

    return fits


def _check_known(snapshot: Snapshot, wanted: Wanted) -> None:
    """Raise `ConfigError` for a skill or license that nothing in the snapshot has: most likely misspelt."""
    if not (wanted.skills or wanted.licenses):
        return
    skills, licenses = {*SKILLS, *TOOL_SKILLS}, set[str]()
    for entry in snapshot:
        skills.update(entry.skills)
        licenses.add(entry.license)
    for what, asked, known in (
        ("skill", wanted.skills, skills),
        ("license", wanted.licenses, licenses),
    ):
        for text in asked:
            if text not in known:
                raise ConfigError(
                    f"no environment has the {what} {text!r}{did_you_mean(text, known)} "
                    f"(there are {', '.join(sorted(known))})"
                )


def _digests(snapshot: Snapshot, path: Path) -> set[str]:
    try:
        lines = path.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--ids names a text file of ids or digests: {error}") from error
    return {snapshot.entry(line).digest for line in lines}


def _bound(text: str) -> tuple[tuple[str, ...], str, float]:
    match = _BOUND.fullmatch(text.replace(" ", ""))
    if match is None:
        raise ConfigError(
            f"a bound is a metric, one of {' '.join(_OPERATORS)}, and a number, "
            f"as agents.random.solve_rate<0.1, got {text!r}"
        )
    return tuple(match[1].split(".")), match[2], float(match[3])


def _holds(item: Packed, path: tuple[str, ...], sign: str, bound: float) -> bool:
    """Whether a metric is there and within its bound: what was not measured does not fit."""
    value: Any = parse_json(item.notes.get(METRICS, b"{}"), f"{METRICS} of {item.entry.env_id}")
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return known and _OPERATORS[sign](value, bound)
