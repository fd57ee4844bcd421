"""Designers that are not trained: random blueprints, and random edits of high regret (ACCEL, arXiv 2203.01302)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from spade_loop import families as catalogue
from spade_loop.curriculum.choice import Held, digests
from spade_loop.errors import BlueprintError, ConfigError
from spade_loop.families import Blueprint, Family, parse_blueprint

PARENT_SHARE: Final = 0.25
"""Share of the measured environments, those of the highest regret, that are edited."""


def pick_parents(
    held: Sequence[Held], k: int, rng: np.random.Generator, *, share: float = PARENT_SHARE
) -> list[str]:
    """`k` digests to edit, drawn with replacement and uniformly from the top `share` by regret.

    At least one environment is in the top, and ties at its edge go by digest. Only what was measured can be a parent;
    empty when nothing was. `ConfigError` when `share` is not in (0, 1].
    """
    if not 0.0 < share <= 1.0:
        raise ConfigError(f"the share of parents must lie in (0, 1], got {share:g}")
    digests(held, k)
    ranked = sorted(
        (-h.regret, h.digest) for h in held if h.regret is not None and math.isfinite(h.regret)
    )
    if not ranked:
        return []
    # 0.07 * 100 is a little more than 7 in binary fractions, and means 7.
    top = ranked[: max(1, math.ceil(share * len(ranked) - 1e-9))]
    return [top[i][1] for i in rng.integers(len(top), size=k)]


def random_blueprint(families: Sequence[Family], rng: np.random.Generator) -> Blueprint:
    """A family, uniformly, and each of its parameters, uniformly: the designer that knows nothing.

    `ConfigError` without families.
    """
    if not families:
        raise ConfigError("a random blueprint needs at least one family, got none")
    return catalogue.random_blueprint(families[int(rng.integers(len(families)))], rng)


def mutate(
    blueprint: Blueprint, families: Sequence[Family], rng: np.random.Generator, *, edits: int = 1
) -> Blueprint:
    """The blueprint with `edits` of its parameters changed: legal, and different in exactly these.

    Which parameters is uniform over those that have another value. One whose values are all numbers moves to the next
    value below or above, in the order of the schema; any other takes another value, uniformly. Should a family have
    fewer such parameters than `edits`, all of them change. `BlueprintError` for a blueprint that is not legal,
    `ConfigError` when nothing in it can change or `edits` is below 1.
    """
    if edits < 1:
        raise ConfigError(f"a mutation makes at least 1 edit, got {edits}")
    legal = parse_blueprint(blueprint.to_json(), families)
    family = next(f for f in families if f.name == legal.family)
    choices = family.choices()
    free = [name for name, values in choices.items() if len(values) > 1]
    if not free:
        raise ConfigError(f"no parameter of {family.name} has another value: it has one blueprint")
    edited = rng.choice(len(free), size=min(edits, len(free)), replace=False)
    changed = {free[i]: _moved(choices[free[i]], legal.parameters[free[i]], rng) for i in edited}
    return Blueprint(family.name, {**legal.parameters, **changed})


def blueprint_of(
    family: str, parameters: Mapping[str, Any], families: Sequence[Family]
) -> Blueprint | None:
    """The blueprint that a held environment was rendered from, as its provenance tells it; None when it is none."""
    if family not in [f.name for f in families]:
        return None
    try:
        return parse_blueprint(Blueprint(family, dict(parameters)).to_json(), families)
    except BlueprintError:
        return None  # of a family that has changed since


def _moved(values: Sequence[Any], value: object, rng: np.random.Generator) -> object:
    """Another of `values`: a neighbour when all are numbers, else any."""
    here = next(i for i, v in enumerate(values) if type(v) is type(value) and v == value)
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        others = [i for i in (here - 1, here + 1) if 0 <= i < len(values)]
    else:
        others = [i for i in range(len(values)) if i != here]
    return values[others[int(rng.integers(len(others)))]]
