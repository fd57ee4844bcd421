"""SPADE, one iteration at a time: design, admit, play with and without hint, measure, reward.

`collect` reads like the paper. It changes nothing but the iteration it returns; `Loop.commit` makes that the state of
the run, after the optimiser step.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np

from spade_loop.alarms import alarms
from spade_loop.batch import RoleSummary, agent_samples, weigh
from spade_loop.completers import Sampler, Writer
from spade_loop.config import Config
from spade_loop.corpus import Corpus
from spade_loop.curriculum import Curriculum, curriculum_from_json
from spade_loop.design.admission import Admission, Admitter, shown_specs
from spade_loop.design.assignments import Briefing
from spade_loop.design.authors import Authors
from spade_loop.design.designer import Designer
from spade_loop.design.dialects import make_dialect
from spade_loop.episodes import Player
from spade_loop.errors import RunStateError
from spade_loop.field import Field, choose, make_curriculum, observe, plays_hints, trains_on
from spade_loop.hints import HintWriter, WrittenHint
from spade_loop.library import Library, note_measured
from spade_loop.measurement import Measured, seen
from spade_loop.payment import Payment, hint_samples, pay
from spade_loop.progress import Progress
from spade_loop.rehearsal import NOTHING_REHEARSED, Rehearsal, Rehearsed
from spade_loop.rewards import CELL_WINDOW, cell_bonus
from spade_loop.rows import (
    Reported,
    design_rows,
    episode_rows,
    hint_rows,
    metrics_row,
    payment_rows,
    scalars,
    timings_row,
)
from spade_loop.schedule import Attempt, Schedule, Waiting
from spade_loop.state import KEPT_REJECTIONS, Rejection, RunDirectory, RunState
from spade_loop.timing import Clock, TimedSampler
from spade_loop.types import NOTHING, JsonRow, Outcome, Role, Sample, StepReport
from spade_loop.windows import visits_since
from synthgym.memory import NoveltyMemory, load_embedder
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec
from synthgym.validation import check_hint

QUEUE = "queue.msgpack"
"""Designs that wait to be trained on, in an iteration's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """Everything that one step came to, before the optimiser moved."""

    state: RunState
    library: Library
    memory: NoveltyMemory
    queue: tuple[Waiting, ...]
    samples: list[Sample]
    admissions: list[Admission]
    hints: list[WrittenHint]
    measured: list[Measured]
    payment: Payment
    summaries: Mapping[Role, RoleSummary]
    rehearsed: Rehearsed
    alarms: tuple[str, ...]


class Loop:
    """A run in progress: what does not change, and the state that does."""

    def __init__(  # noqa: PLR0913 -- what a run is made of
        self,
        config: Config,
        directory: RunDirectory,
        library: Library,
        corpus: Corpus,
        pool: Pool,
        progress: Progress,
        writers: Mapping[str, Writer] | None = None,
        rehearsal: Rehearsal | None = None,
    ) -> None:
        """`writers` are the recipe's other designers by name, `rehearsal` the demonstrations of every update."""
        self.config = config
        self.directory = directory
        self.progress = progress
        self.pool = pool
        self.rehearsal = rehearsal
        self.clock = Clock()
        self.schedule = Schedule.of(config)
        self.dialect = dialect = make_dialect(config.designer)
        self.briefing = Briefing(config, corpus)
        self.designer = Designer(
            config,
            dialect,
            Admitter(config, dialect, pool),
            Authors(config, dialect, writers or {}),
        )
        self.hint_writer = HintWriter(config.hints.max_tokens, self._check_hint)
        player = Player(config.agent, pool, hint_level=config.hints.level)
        self.field = Field(config, player, progress)
        self.embedder = load_embedder(config.novelty.embedder)
        self.state = directory.load_state()
        self.library = library
        self.memory = self._starting_memory()
        self.queue = self._waiting()
        self._pending: Iteration | None = None
        self._unwritten: dict[str, list[JsonRow]] = {}
        """Rows of the iterations since the last commit."""

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
        if self.config.designer.candidates == 0:
            return memory  # nothing will be compared with it
        held = [*self.library.specs.values(), *shown_specs(self.dialect, self.pool)]
        memory.seed(held, self.pool, with_behaviour=True)
        self.library.describe_blueprints(memory, self.config.designer.families)
        return memory

    def _waiting(self) -> tuple[Waiting, ...]:
        """The designs that waited when the run was interrupted."""
        latest = self.directory.latest
        if latest is None:
            return ()
        try:
            data = (latest / QUEUE).read_bytes()
            return msgspec.msgpack.decode(data, type=tuple[Waiting, ...])
        except (OSError, msgspec.MsgspecError) as error:
            raise RunStateError(f"{latest / QUEUE} cannot be read: {error}") from error

    def _check_hint(self, spec: SynthEnvSpec, hint: str) -> str:
        found = check_hint(spec.record, hint, pool=self.pool, limits=spec.limits)
        return "; ".join(str(finding) for finding in found)

    def curriculum(self, state: RunState) -> Curriculum:
        """How environments are chosen from the pool, as the run's state knows it."""
        if not state.curriculum:
            return make_curriculum(self.config, self.library)
        return curriculum_from_json(state.curriculum)

    def rng(self, step: int, purpose: str) -> np.random.Generator:
        """A stream of its own for each use, so that one use more or less never moves another."""
        return np.random.default_rng(self.stream(step, purpose))

    def stream(self, step: int, purpose: str) -> list[int]:
        """What a stream is derived from: run seed, step, purpose."""
        return [self.config.seed, step, zlib.crc32(purpose.encode())]

    def collect(self, sampler: Sampler, step: int) -> Sequence[Sample]:
        """Samples of one step; the rest of it waits for `commit`."""
        with self.clock.part("loop"):
            self.progress.iteration(step, self.schedule.steps)
            self._pending = collect(self, TimedSampler(sampler, self.clock), step)
        return self._pending.samples

    def scalars(self) -> Mapping[str, float]:
        """The numbers of the pending step that a tracker shows, by name."""
        pending = self._pending
        if pending is None:
            return {}
        found = scalars(pending.admissions, pending.measured, pending.summaries)
        return found | pending.rehearsed.scalars()

    def commit(self, checkpoint: Path | None, step: StepReport) -> None:
        """Make the pending iteration the run's state, here, and with its checkpoint on disk too.

        Without one it is written with the next that has one (`commit_every`).
        """
        pending = self._pending
        if pending is None:
            return
        with self.clock.part("commit"):
            self._go_on(pending, step)
            if checkpoint is not None:
                self._write(checkpoint)
        for alarm in (*pending.alarms, *self._trainer_alarms(step)):
            self.progress.note(alarm)
        self._pending = None

    def _go_on(self, pending: Iteration, step: StepReport) -> None:
        """Go on from the pending iteration, and keep its rows."""
        self.state = replace(
            pending.state, skipped_steps=pending.state.skipped_steps + int(step.skipped)
        )
        self.library, self.memory, self.queue = pending.library, pending.memory, pending.queue
        index = self.state.iteration - 1
        parts: dict[str, Reported] = {
            "payment": pending.payment,
            "rehearsal": pending.rehearsed,
            "update": step,
        }
        rows: dict[str, list[JsonRow]] = {
            "metrics": [
                metrics_row(index, pending.admissions, pending.measured, pending.summaries, parts)
            ],
            "episodes": episode_rows(index, pending.measured),
            "designs": design_rows(index, pending.admissions, pending.measured),
            "hints": hint_rows(index, pending.hints),
            "payments": payment_rows(index, pending.payment),
            "timings": [timings_row(index, self.clock.take())],
        }
        for kind, own in rows.items():
            self._unwritten.setdefault(kind, []).extend(own)

    def _write(self, checkpoint: Path) -> None:
        """Commit everything since the last commit."""
        name, version = self.config.name, f"0.0.{self.state.iteration}"
        with self.directory.commit(self.state, self._unwritten) as folder:
            checkpoint.rename(folder / "checkpoint")
            self.memory.save(folder / "memory.npz")
            (folder / QUEUE).write_bytes(msgspec.msgpack.encode(self.queue))
            self.library.write(folder / "snapshot", name=name, version=version)
        self.library.write(self.directory.path / "snapshot", name=name, version=version)
        self._unwritten = {}

    def _trainer_alarms(self, step: StepReport) -> tuple[str, ...]:
        limit = self.config.trainer.max_logprob_gap
        if step.logprob_gap is None or step.logprob_gap <= limit:
            return ()
        return (
            f"alarm: sampler and trainer disagree by {step.logprob_gap:.3f} nats about a trained token on average "
            f"(trainer.max_logprob_gap is {limit:g}): the update is off-policy",
        )


def collect(loop: Loop, sampler: Sampler, step: int) -> Iteration:
    """Design, admit, play, measure, reward. Nothing of `loop` changes."""
    state, library, memory = loop.state, loop.library.copy(), loop.memory.copy()
    queue, curriculum = loop.queue, loop.curriculum(state)
    admissions: list[Admission] = []
    hints: list[WrittenHint] = []
    measured: list[Measured] = []
    regenerates = loop.schedule.regenerates(step)

    if regenerates:
        state, admissions = design(loop, sampler, state, library, memory, step)
        proposed = [a.candidate.spec.digest for a in admissions if a.candidate.spec is not None]
        current = choose(loop.config, library, curriculum, proposed, loop.rng(step, "environments"))
        state = replace(state, current=tuple(current))
        if loop.config.hints.source == "designer":
            hints = write_hints(loop, sampler, library, list(dict.fromkeys(current)), step)
        if loop.schedule.designs:
            queue = (*queue, waiting(loop, admissions, step))

    if loop.schedule.plays(step):
        with loop.clock.part("play"):
            measured = loop.field.play(
                sampler,
                [library.specs[digest] for digest in library.fit(state.current)],
                iteration=step,
                hinted=plays_hints(loop.config, regenerates=regenerates),
                streams=lambda purpose: loop.stream(step, purpose),
            )
        note_measured(library, memory, measured)

    windows = seen(state.windows, measured)
    due, queue = loop.schedule.release(queue, step)
    payment = pay(due, windows, state.trackers, loop.config, sampler, step)
    reference = loop.config.reward.reference
    played = [m for m in measured if trains_on(curriculum, m.spec.digest)]
    curriculum = observe(
        curriculum, measured, step
    )  # afterwards: what was just played is no replay
    trained = [*payment.samples, *agent_samples(played, reference=reference)]
    if loop.config.hints.train:
        trained += hint_samples(hints, windows, loop.config)
    samples, summaries, rms = weigh(trained, loop.config, state.rms)
    rehearsed = rehearse(loop, sampler, step)
    kept = {a.digest for w in queue for a in w.attempts} | set(state.current)
    oldest = min([w.iteration for w in queue], default=step)
    needed = visits_since(windows, min(oldest, loop.schedule.field_since(step)))
    state = replace(
        state,
        iteration=step + 1,
        records=tuple(library.records.values()),
        rms=rms,
        trackers=dict(payment.trackers),
        curriculum=curriculum.to_json(),
        rehearsal="" if loop.rehearsal is None else loop.rehearsal.digest,
        windows={digest: visits for digest, visits in needed.items() if digest in kept},
    )
    return Iteration(
        state=state,
        library=library,
        memory=memory,
        queue=queue,
        samples=[*samples, *rehearsed.samples],
        admissions=admissions,
        hints=hints,
        measured=measured,
        payment=payment,
        summaries=summaries,
        rehearsed=rehearsed,
        alarms=alarms(state, measured),
    )


def design(
    loop: Loop,
    sampler: Sampler,
    state: RunState,
    library: Library,
    memory: NoveltyMemory,
    step: int,
) -> tuple[RunState, list[Admission]]:
    """Ask for the environments of this regeneration; what is admitted enters library and memory."""
    with loop.clock.part("design"):
        loop.progress.phase("design", loop.config.designer.candidates)
        assignments, cursor = loop.briefing.draw(
            step, state.cursor, library, memory, state.rejections, loop.rng(step, "assignments")
        )
        made = loop.designer.design(
            sampler, assignments, memory, step, loop.stream(step, "designs")
        )
        admissions = [
            replace(a, candidate=library.add(a.candidate, a.report or {}, step)) for a in made
        ]
        loop.progress.advance(
            loop.config.designer.candidates, sum(len(a.candidate.completion.ids) for a in made)
        )
    refused = [a.candidate for a in admissions if not a.candidate.outcome.valid]
    rejections = (
        *state.rejections,
        *(Rejection(skill=c.skill, title=c.title, reasons=c.reasons) for c in refused),
    )
    cells = tuple(a.candidate.cell for a in admissions if a.candidate.outcome is Outcome.ADMITTED)
    after = replace(
        state,
        cursor=cursor,
        cells=(*state.cells, cells)[-CELL_WINDOW:],
        rejections=rejections[-KEPT_REJECTIONS:],
    )
    return after, admissions


def write_hints(
    loop: Loop, sampler: Sampler, library: Library, digests: Sequence[str], step: int
) -> list[WrittenHint]:
    """Let the model write the hints of the environments that have none of its own yet."""
    with loop.clock.part("hints"):
        wanting = [library.specs[d] for d in digests if library.specs[d].hint is None]
        written = loop.hint_writer.write(sampler, wanting, loop.stream(step, "hints"))
    for hint in written:
        if not hint.refused:
            library.annotate(hint.digest, hint.text)
    return written


def rehearse(loop: Loop, sampler: Sampler, step: int) -> Rehearsed:
    """Demonstrations for this step, from a stream of their own."""
    if loop.rehearsal is None:
        return NOTHING_REHEARSED
    with loop.clock.part("rehearsal"):
        return loop.rehearsal.draw(sampler, loop.rng(step, "rehearsal"))


def waiting(loop: Loop, admissions: Sequence[Admission], step: int) -> Waiting:
    """The attempts of a regeneration, as far as their training needs them."""
    earlier = Counter(cell for cells in loop.state.cells for cell in cells)
    alpha = loop.config.designer.cell_bonus
    attempts = [
        Attempt(
            index=i,
            skill=c.skill,
            group=f"designer:{c.skill}",
            trained=c.trained,
            valid=c.outcome.valid,
            digest="" if c.spec is None else c.spec.digest,
            bonus=cell_bonus(earlier[c.cell], earlier.total(), alpha),
            repaired=c.attempt > 0,
            prompt_ids=c.prompt_ids if c.trained else (),
            completion=c.completion if c.trained else NOTHING,
        )
        for i, c in enumerate(a.candidate for a in admissions)
    ]
    return Waiting(iteration=step, attempts=tuple(attempts))
