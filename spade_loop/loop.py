"""SPADE, one iteration at a time: design, admit, play with and without hint, measure, reward.

`collect` reads like the paper. It changes nothing but the iteration it returns; `Loop.commit` makes that the state of
the run, after the optimiser step.
"""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from spade_loop.batch import RoleSummary, agent_samples, designer_samples, weigh
from spade_loop.completers import Sampler
from spade_loop.config import Config
from spade_loop.corpus import Corpus
from spade_loop.design.designer import Admission, Designer
from spade_loop.design.dialects import make_dialect
from spade_loop.episodes import Play, Player
from spade_loop.errors import BlueprintError
from spade_loop.families import Blueprint, load_families, parameter_vector
from spade_loop.library import Library
from spade_loop.measurement import Measured, fault_reproduces, measure
from spade_loop.progress import Progress
from spade_loop.rewards import cell_bonus, effective_cells
from spade_loop.rows import design_rows, episode_rows, metrics_row
from spade_loop.state import RunDirectory, RunState
from spade_loop.trainer import StepReport
from spade_loop.types import Arm, Candidate, JsonRow, Outcome, Role, Sample
from synthgym.memory import NoveltyMemory, load_embedder
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec

CELL_WINDOW = 10
"""Iterations over which the designer's spread over cells is judged."""
MIN_EFFECTIVE_CELLS = 4.0
ALARM_REGRET, ALARM_SOLVE_RATE = 0.4, 0.1
"""Mean regret above the first while the median solve rate is below the second: tasks that only the hint solves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """Everything that one iteration came to, before the optimiser step."""

    state: RunState
    library: Library
    memory: NoveltyMemory
    samples: list[Sample]
    admissions: list[Admission]
    measured: list[Measured]
    summaries: Mapping[Role, RoleSummary]
    alarms: tuple[str, ...]


class Loop:
    """A run in progress: what does not change, and the state that does."""

    def __init__(
        self,
        config: Config,
        directory: RunDirectory,
        library: Library,
        corpus: Corpus,
        pool: Pool,
        progress: Progress,
    ) -> None:
        self.config = config
        self.directory = directory
        self.progress = progress
        self.pool = pool
        self.designer = Designer(config, make_dialect(config.designer), corpus, config.policy.model)
        self.player = Player(config.agent, pool)
        self.embedder = load_embedder(config.novelty.embedder)
        self.state = directory.load_state()
        self.library = library
        self.memory = self._starting_memory()
        self._pending: Iteration | None = None
        self._started = time.monotonic()

    def _starting_memory(self) -> NoveltyMemory:
        """The memory of the last complete iteration, or one seeded from the starting snapshot."""
        latest = self.directory.latest
        if latest is not None:
            return NoveltyMemory.load(latest / "memory.npz", self.embedder)
        novelty = self.config.novelty
        memory = NoveltyMemory(
            self.embedder,
            strictness=novelty.strictness,
            family_quota=novelty.family_quota,
            window=novelty.window,
        )
        memory.seed(self.library.specs.values(), self.pool, with_behaviour=True)
        _describe_blueprints(memory, self.library)
        return memory

    def rng(self, iteration: int, purpose: str) -> np.random.Generator:
        """A stream of its own for each use, so that one use more or less never moves another."""
        return np.random.default_rng(self.stream(iteration, purpose))

    def stream(self, iteration: int, purpose: str) -> list[int]:
        """What a stream is derived from: run seed, iteration, purpose."""
        return [self.config.seed, iteration, zlib.crc32(purpose.encode())]

    def collect(self, sampler: Sampler, iteration: int) -> Sequence[Sample]:
        """Samples of one iteration; the rest of it waits for `commit`."""
        self._started = time.monotonic()
        self.progress.iteration(iteration, self.config.iterations)
        self._pending = collect(self, sampler, iteration)
        return self._pending.samples

    def commit(self, checkpoint: Path, step: StepReport) -> None:
        """Make the pending iteration the run's state, on disk and here."""
        pending = self._pending
        if pending is None:
            return
        state = replace(
            pending.state, skipped_steps=pending.state.skipped_steps + int(step.skipped)
        )
        index, version = state.iteration - 1, f"0.0.{state.iteration}"
        rows: dict[str, list[JsonRow]] = {
            "metrics": [
                metrics_row(index, pending.admissions, pending.measured, pending.summaries, step)
            ],
            "episodes": episode_rows(index, pending.measured),
            "designs": design_rows(index, pending.admissions, pending.measured),
            "timings": [
                {"iteration": index, "seconds": round(time.monotonic() - self._started, 3)}
            ],
        }
        with self.directory.commit(state, rows) as folder:
            checkpoint.rename(folder / "checkpoint")
            pending.memory.save(folder / "memory.npz")
            pending.library.write(folder / "snapshot", name=self.config.name, version=version)
        pending.library.write(
            self.directory.path / "snapshot", name=self.config.name, version=version
        )
        self.state, self.library, self.memory = state, pending.library, pending.memory
        for alarm in (*pending.alarms, *self._trainer_alarms(step)):
            self.progress.note(alarm)
        self._pending = None

    def _trainer_alarms(self, step: StepReport) -> tuple[str, ...]:
        limit = self.config.trainer.max_logprob_gap
        if step.logprob_gap is None or step.logprob_gap <= limit:
            return ()
        return (
            f"alarm: sampler and trainer disagree by {step.logprob_gap:.3f} nats about a trained token on average "
            f"(trainer.max_logprob_gap is {limit:g}): the update is off-policy",
        )


def _describe_blueprints(memory: NoveltyMemory, library: Library) -> None:
    """Give the memory the parameters of the blueprints that an earlier run left, or they would count as new again."""
    families = {family.name: family for family in load_families()}
    for record in tuple(memory):
        provenance = library.specs[record.digest].provenance
        if provenance.family not in families:
            continue
        try:
            vector = parameter_vector(
                Blueprint(provenance.family, provenance.parameters), [families[provenance.family]]
            )
        except BlueprintError:
            continue  # of a family that has changed since: its parameters cannot be compared
        memory.add(
            record.digest,
            replace(record.description, parameters=vector),
            name=record.name,
            skill=record.skill,
            iteration=record.iteration,
        )


def collect(loop: Loop, sampler: Sampler, iteration: int) -> Iteration:
    """Design, admit, play, measure, reward. Nothing of `loop` changes."""
    state, library, memory = loop.state, loop.library.copy(), loop.memory.copy()

    loop.progress.phase("design", loop.config.designer.candidates)
    assignments, cursor = loop.designer.assignments(
        iteration, state.cursor, library, memory, loop.rng(iteration, "assignments")
    )
    attempts = loop.designer.propose(sampler, assignments, loop.stream(iteration, "designs"))
    loop.progress.advance(len(attempts), sum(len(c.completion.ids) for c, _ in attempts))

    loop.progress.phase("admit", len(attempts))
    admissions = loop.designer.admit(attempts, memory, loop.pool, iteration)
    loop.progress.advance(len(admissions))
    admissions = [
        replace(a, candidate=library.add(a.candidate, a.report or {}, iteration))
        for a in admissions
    ]

    field = choose(loop, library, [a.candidate for a in admissions], iteration)
    measured = play(loop, sampler, field, iteration)
    for m in measured:
        library.record(m)
        memory.update(
            m.spec.digest,
            win_rate=m.regret.solve_rate,
            regret=m.regret.value,
            regret_se=m.regret.standard_error,
        )

    candidates = [a.candidate for a in admissions]
    rewards = designer_rewards(loop, candidates, measured, state)
    raw = designer_samples(candidates, rewards, loop.config) + agent_samples(measured)
    samples, summaries, rms = weigh(raw, loop.config, state.rms)
    next_state = replace(
        state,
        iteration=iteration + 1,
        cursor=cursor,
        records=tuple(library.records.values()),
        rms=rms,
        cells=(*state.cells, _cells(candidates))[-CELL_WINDOW:],
    )
    return Iteration(
        state=next_state,
        library=library,
        memory=memory,
        samples=samples,
        admissions=admissions,
        measured=measured,
        summaries=summaries,
        alarms=alarms(next_state, measured),
    )


def choose(
    loop: Loop, library: Library, candidates: Sequence[Candidate], iteration: int
) -> list[SynthEnvSpec]:
    """Environments to play: a share from the pool, the rest new; each fills in where the other falls short.

    An environment that is in quarantine is never among them. The same stream and library give the same choice.
    """
    agent = loop.config.agent
    rng = loop.rng(iteration, "environments")
    proposed = [c.spec.digest for c in candidates if c.spec is not None]
    pool = library.playable(exclude=proposed)
    usable = set(library.playable())
    new = [digest for digest in dict.fromkeys(proposed) if digest in usable]
    from_pool = min(round(agent.pool_share * agent.environments), len(pool))
    from_new = min(agent.environments - from_pool, len(new))
    from_pool = min(agent.environments - from_new, len(pool))
    picked_new = sorted(rng.choice(len(new), size=from_new, replace=False))
    picked_old = rng.choice(len(pool), size=from_pool, replace=False)
    return [
        library.specs[d] for d in [*(new[i] for i in picked_new), *(pool[i] for i in picked_old)]
    ]


def play(
    loop: Loop, sampler: Sampler, field: Sequence[SynthEnvSpec], iteration: int
) -> list[Measured]:
    """Play every environment on the same seeds in both arms, side by side, and measure it."""
    agent = loop.config.agent
    # Without replacement: a seed that came twice would be one seed with twice the plays.
    drawn = loop.rng(iteration, "seeds").choice(2**31, size=agent.seeds, replace=False)
    seeds = [int(s) for s in drawn]
    plays = [
        Play(spec, seed, index, arm)
        for spec in field
        for arm in Arm
        for seed in seeds
        for index in range(agent.plays)
    ]
    loop.progress.phase("play", len(plays))
    trajectories = loop.player.play(
        sampler, plays, seed=loop.stream(iteration, "episodes"), tick=loop.progress.advance
    )
    reproduces = partial(fault_reproduces, hint_level=agent.hint_level)
    block = agent.seeds * agent.plays
    arms = [trajectories[i : i + block] for i in range(0, len(trajectories), block)]
    return [
        measure(spec, plain, hinted, reproduces)
        for spec, plain, hinted in zip(field, arms[::2], arms[1::2], strict=True)
    ]


def designer_rewards(
    loop: Loop, candidates: Sequence[Candidate], measured: Sequence[Measured], state: RunState
) -> dict[int, float]:
    """Reward of each candidate that was played: regret as the recipe wants it, and the bonus for a rare cell."""
    by_digest = {m.spec.digest: m for m in measured}
    counts = Counter(cell for cells in state.cells for cell in cells)
    rewards = {}
    for i, candidate in enumerate(candidates):
        played = None if candidate.spec is None else by_digest.get(candidate.spec.digest)
        if played is not None:
            bonus = cell_bonus(
                counts[candidate.cell], counts.total(), loop.config.designer.cell_bonus
            )
            rewards[i] = played.designer_reward(loop.config.reward) + bonus
    return rewards


def alarms(state: RunState, measured: Sequence[Measured]) -> tuple[str, ...]:
    """What a person should look at."""
    found = []
    regrets = [m.regret for m in measured if m.measurable]
    if regrets:
        mean_regret = float(np.mean([r.value for r in regrets]))
        median_rate = float(np.median([r.solve_rate for r in regrets]))
        if mean_regret > ALARM_REGRET and median_rate < ALARM_SOLVE_RATE:
            found.append("alarm: regret is high while almost nothing is solved without its hint")
    counts = Counter(cell for cells in state.cells for cell in cells)
    if (
        len(state.cells) == CELL_WINDOW
        and effective_cells(list(counts.values())) < MIN_EFFECTIVE_CELLS
    ):
        found.append(
            f"alarm: designs of the last {CELL_WINDOW} iterations fall into fewer than four kinds"
        )
    return tuple(found)


def _cells(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    return tuple(c.cell for c in candidates if c.outcome is Outcome.ADMITTED)
