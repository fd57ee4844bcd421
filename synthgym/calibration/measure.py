"""Measuring an environment with agents that know no language."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Final

from synthgym.agents import Agent, null, random_words, scraping, scripted
from synthgym.calibration.episodes import LANES, Part, Table
from synthgym.calibration.scores import Outcome, Score
from synthgym.calibration.search import DEFAULT_BUDGET, Search, Tried
from synthgym.envs.episode import Episode
from synthgym.envs.synth_env import check_playable
from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean
from synthgym.sandbox import Pool, default_pool
from synthgym.sandbox.results import EnvFault
from synthgym.spec import SynthEnvSpec

AGENTS: Final = ("null", "random", "scraper", "search", "witness")
"""Agents by name, in the order in which they are shown."""
_SEARCHES: Final = 16
"""Instances that are searched together; each holds the states that it has seen."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the agents came to in one environment."""

    env_id: str
    digest: str
    scores: tuple[Score, ...]

    def score(self, agent: str) -> Score:
        """That of one agent; `KeyError` when it was not among them."""
        return {score.agent: score for score in self.scores}[agent]

    def to_json(self) -> dict[str, Any]:
        """What stands under `agents` in the metrics of a spec: the score of each agent by its name."""
        return {score.agent: score.to_json() for score in self.scores}


def calibrate(
    spec: SynthEnvSpec,
    *,
    episodes: int = 100,
    agents: Sequence[str] = AGENTS,
    pool: Pool | None = None,
    search_budget: int = DEFAULT_BUDGET,
    first_seed: int = 0,
) -> Calibration:
    """Play `episodes` instances with each agent, one episode each: solve rates, returns, turns.

    The instances are those of the seeds from `first_seed` on. The same arguments give the same figures
    wherever and how often it is asked. What the environment itself gets wrong is counted as a fault
    and neither as won nor as lost. `search_budget` is in steps an instance. `SandboxError` when
    workers were lost for reasons that are not the environment's.
    """
    check_playable(spec)
    check_settings(agents, episodes=episodes, search_budget=search_budget)
    pool = pool if pool is not None else default_pool()
    seeds = range(first_seed, first_seed + episodes)
    scores = []
    for name in agents:
        # A table for each: strikes of one agent against the source are not held against the next.
        with Table(spec, pool) as table:
            if name == "search":
                outcomes = _search_outcomes(table, seeds, search_budget)
            elif name == "witness":
                outcomes = _witness_outcomes(table, seeds)
            else:
                parts = [Part(seed, agent_of(name, seed)) for seed in seeds]
                outcomes = [_outcome(episode) for episode in table.play(parts)]
        settings = {"budget": search_budget} if name == "search" else {}
        scores.append(
            Score.of(
                name,
                outcomes,
                settings=settings,
                first_seed=first_seed,
                version=version("synthgym"),
            )
        )
    return Calibration(spec.env_id, spec.digest, tuple(scores))


def check_settings(agents: Sequence[str], *, episodes: int, search_budget: int) -> None:
    """Raise `ConfigError` when a setting of `calibrate` is wrong."""
    for name in agents:
        if name not in AGENTS:
            raise ConfigError(
                f"unknown agent {name!r}{did_you_mean(name, AGENTS)}; there are {', '.join(AGENTS)}"
            )
    if not agents or len(set(agents)) < len(agents):
        raise ConfigError(f"expected agents, each once, got {', '.join(agents) or 'none'}")
    for what, value in (("episodes", episodes), ("search_budget", search_budget)):
        if value < 1:
            raise ConfigError(f"{what} must be at least 1, got {value}")


def agent_of(name: str, seed: int, own_seed: int = 0) -> Agent:
    """The agent of that name, for one episode of the instance of `seed`.

    An environment is free to seed `random.Random` with the instance's seed. An agent that did the same
    would draw what the environment drew, so its seed is another one.
    """
    if name == "null":
        return null()
    mixed = hashlib.sha256(f"{name} {own_seed} {seed}".encode()).digest()
    return _CHOOSING[name](int.from_bytes(mixed[:8], "big"))


_CHOOSING: Final[Mapping[str, Callable[[int], Agent]]] = {
    "random": random_words,
    "scraper": scraping,
}


def _search_outcomes(table: Table, seeds: Sequence[int], budget: int) -> list[Outcome]:
    """What the search of each instance comes to; its episode is the plan that it found."""
    outcomes: list[Outcome] = []
    for start in range(0, len(seeds), _SEARCHES):
        group = seeds[start : start + _SEARCHES]
        begun = table.play([Part(seed, scripted(())) for seed in group])
        searches = [
            None if e.fault is not None else Search(e.observation, budget=budget) for e in begun
        ]
        _search_together(table, {e.seed: s for e, s in zip(begun, searches, strict=True) if s})
        outcomes += [_found(search) for search in searches]
    return outcomes


def _search_together(table: Table, searches: Mapping[int, Search]) -> None:
    """Bring searches, by their seed, to their end: each plan is a reset and its actions."""
    live = list(searches.items())
    while live:
        share = LANES // len(live)
        asked = [(seed, search, search.tries(share)) for seed, search in live]
        parts = [Part(seed, scripted(plan)) for seed, _, plans in asked for plan in plans]
        ends = iter(table.play(parts))
        for _, search, plans in asked:
            for plan in plans:
                search.take(plan, _tried(next(ends)))
        live = [(seed, search) for seed, search, plans in asked if plans]


def _tried(episode: Episode) -> Tried:
    return Tried(
        episode.observation,
        episode.paid,
        won=episode.success,
        done=episode.done,
        failed=episode.fault is not None,
    )


def _witness_outcomes(table: Table, seeds: Sequence[int]) -> list[Outcome]:
    """What playing `solution()` comes to; an instance that gives none is a fault."""
    given = [(seed, table.solution(seed)) for seed in seeds]
    plans = {seed: plan for seed, plan in given if not isinstance(plan, EnvFault)}
    ends = iter(table.play([Part(seed, scripted(plan)) for seed, plan in plans.items()]))
    return [_outcome(next(ends)) if seed in plans else _FAULT for seed in seeds]


_FAULT: Final = Outcome(won=False, paid=0.0, turns=0, fault=True)


def _outcome(episode: Episode) -> Outcome:
    if episode.fault is not None:
        return _FAULT
    return Outcome(episode.success, episode.paid, episode.turn)


def _found(search: Search | None) -> Outcome:
    if search is None or search.failed:
        return _FAULT
    return Outcome(search.won, search.paid, len(search.plan), undecided=search.undecided)
