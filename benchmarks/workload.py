"""What is played in the benchmarks: the sources, the actions, and the seeds of every reset.

All of it is fixed, so that contestants of any kind play the same episodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from gymnasium.utils.seeding import np_random

FIRST_SEED: Final = 1000
_FOLDER: Final = Path(__file__).parent / "workloads"
_MAX_SEED: Final = 2**31
"""Autoreset seeds are drawn below this, as `SynthVectorEnv` draws its own."""
_DRAWN_AT_ONCE: Final = 64
_ACTIONS: Final = 997
"""Different actions of a workload; a prime, so that episodes do not fall into step."""
_TICKS: Final = 97
"""Different vector steps of a script; after them it starts again."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One environment in as many variants as there are sources."""

    name: str
    sources: tuple[str, ...]
    """Contract-1 sources that differ in one constant, and so in their digests."""
    entry: str
    max_turns: int
    max_chars: int
    """No observation is longer."""
    actions: tuple[str, ...]

    def script(self, num_envs: int) -> list[list[str]]:
        """Vector steps, each with one action an environment; played over and over."""
        actions, size = self.actions, len(self.actions)
        return [
            [actions[(tick + 31 * env) % size] for env in range(num_envs)] for tick in range(_TICKS)
        ]


@dataclass(frozen=True, slots=True)
class Cast:
    """Who plays: `num_envs` environments, divided over the sources in blocks of equal size."""

    workload: Workload
    num_envs: int

    def source(self, env: int) -> int:
        """Index of the source that environment plays."""
        return env * len(self.workload.sources) // self.num_envs

    def first_seeds(self) -> list[int]:
        """Seed of the first reset of each environment."""
        return [FIRST_SEED + env for env in range(self.num_envs)]

    def later_seeds(self) -> list[Iterator[int]]:
        """Seeds of the resets after the first, as `SynthVectorEnv` draws them."""
        return [_draws(seed) for seed in self.first_seeds()]


def _draws(seed: int) -> Iterator[int]:
    rng = np_random(seed)[0]
    while True:
        yield from rng.integers(_MAX_SEED, size=_DRAWN_AT_ONCE).tolist()


def _light_actions(rng: Random) -> list[str]:
    phrases = ("My next guess is [{}]", "Let me try [{}].", "I would say [ {} ]", "[{}]")
    return [rng.choice(phrases).format(rng.randint(1, 1000)) for _ in range(_ACTIONS)]


def _heavy_actions(rng: Random) -> list[str]:
    words = ("north", "south", "west", "east", "East.", "go north", "wait")
    return [rng.choice(words) for _ in range(_ACTIONS)]


def load(name: str, sources: int) -> Workload:
    """Workload `light` or `heavy` with that many variants."""
    make_actions, constant, max_chars = {
        "light": (_light_actions, "HIGHEST", 224),
        "heavy": (_heavy_actions, "DEPOT", 1664),
    }[name]
    text = (_FOLDER / f"{name}.py").read_text(encoding="utf-8")
    found = re.search(rf"^{constant} = (\d+)$", text, re.MULTILINE)
    if found is None:
        raise ValueError(f"workloads/{name}.py has no line '{constant} = <number>'")
    head, base, tail = text[: found.start(1)], int(found.group(1)), text[found.end(1) :]
    env_class = load_class(text)
    return Workload(
        name=name,
        sources=tuple(f"{head}{base + variant}{tail}" for variant in range(sources)),
        entry=env_class.__name__,
        max_turns=env_class.max_turns,
        max_chars=max_chars,
        actions=tuple(make_actions(Random(0))),
    )


def load_class(source: str) -> Any:
    """The environment class of one of our own sources, as plain Python in this process."""
    namespace: dict[str, Any] = {"__name__": "workload"}
    exec(compile(source, "<workload>", "exec"), namespace)  # noqa: S102 (our own source)
    (found,) = (value for key, value in namespace.items() if key.endswith("Env"))
    return found
