"""What every curriculum answers to: which held environments to play next, given what came of the last ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, ClassVar, Protocol, Self, TypeVar

import msgspec
import numpy as np

from spade_loop.errors import ConfigError, RunStateError
from spade_loop.types import JsonRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """One environment that may be played, with what is known of it."""

    digest: str
    skill: str
    iteration: int
    """When it was admitted; -1 for one of the starting snapshot."""
    regret: float | None = None
    """When it was last measured; None before that."""
    solve_rate: float | None = None
    """Over all plain episodes; None before the first."""
    episodes: int = 0
    """Plain episodes so far."""


class Curriculum(Protocol):
    """A rule that chooses environments. A value: what it learns is another curriculum."""

    kind: ClassVar[str]
    """Its name in `CURRICULA` and in the state of a run."""

    @property
    def score(self) -> str:
        """Which of `SCORES` it is to be shown."""

    def choose(self, held: Sequence[Held], k: int, rng: np.random.Generator) -> list[str]:
        """At most `k` distinct digests of `held`; fewer when it has no more to offer.

        The order of `held` does not matter, and the same curriculum, environments and generator choose the same.
        `ConfigError` when a digest comes twice or `k` is negative.
        """

    def observe(self, digest: str, score: float, iteration: int) -> Self:
        """The curriculum after an environment was played; NaN for a play that could not be measured."""

    def to_json(self) -> JsonRow:
        """Plain data that `curriculum_from_json` rebuilds an equal curriculum from."""

    @classmethod
    def from_json(cls, data: JsonRow) -> Self:
        """Inverse of `to_json`; `RunStateError` says what is wrong with the data."""


State = TypeVar("State")


def digests(held: Iterable[Held], k: int) -> list[str]:
    """The digests, sorted; `ConfigError` when one comes twice or `k` is negative."""
    if k < 0:
        raise ConfigError(f"expected to choose at least 0 environments, got {k}")
    found = sorted(h.digest for h in held)
    for one, following in pairwise(found):
        if one == following:
            raise ConfigError(f"each environment may be held once, {one} comes twice")
    return found


def write_state(kind: str, state: object) -> JsonRow:
    """A curriculum as plain data, its kind first."""
    plain: dict[str, Any] = msgspec.to_builtins(state)
    return {"kind": kind, **plain}


def read_state(kind: str, cls: type[State], data: JsonRow) -> State:
    """A curriculum from what `write_state` wrote; nothing may be missing, unknown or of another type."""
    where = f"the state of curriculum {kind!r}"
    if not isinstance(data, Mapping):
        raise RunStateError(f"{where} must be an object, got {type(data).__name__}")
    if data.get("kind") != kind:
        raise RunStateError(f"{where} must have that kind, got {data.get('kind')!r}")
    expected = {"kind", *(f.name for f in fields(cls))}  # type: ignore[arg-type]
    if set(data) != expected:
        wrong = ", ".join(sorted(set(data) ^ expected))
        raise RunStateError(
            f"{where}: fields that are missing or unknown: {wrong}; another version wrote it"
        )
    try:
        return msgspec.convert({k: v for k, v in data.items() if k != "kind"}, cls)
    except msgspec.ValidationError as error:
        raise RunStateError(f"{where} cannot be read: {error}") from error
