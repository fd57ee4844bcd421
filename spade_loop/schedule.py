"""When environments are designed anew, and when their designer is trained: an exact queue, nothing lost at the end.

A design of iteration i is trained on in step i + delay, with everything that was measured of it by then. Designs that
are still waiting when the last iteration is over are trained on in steps of their own, one for each iteration that
designed, in order: the run has `iterations` iterations and `drain_steps` steps after them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spade_loop.config import Config
from spade_loop.types import NOTHING, Completion


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a design, as far as its training needs it."""

    index: int = 0
    """Among the attempts of its iteration."""
    skill: str
    group: str
    """Attempts of one group are compared with each other."""
    trained: bool
    valid: bool
    digest: str = ""
    """Of the environment that is played; empty when none is."""
    bonus: float = 0.0
    """Exploration bonus, fixed when the design was made."""
    repaired: bool = False
    """Whether an earlier attempt at the same design was refused."""
    prompt_ids: tuple[int, ...] = ()
    completion: Completion = NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The attempts of one iteration, until they are trained on."""

    iteration: int
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Schedule:
    """The clock of a run: which steps design, which play, which designs a step trains on."""

    iterations: int
    regenerate_every: int
    delay: int
    designs: bool
    """Whether anything is designed at all, and trained on."""

    @classmethod
    def of(cls, config: Config) -> Schedule:
        """What a recipe asks for."""
        trained = config.designer.candidates > 0 and config.designer.train
        schedule = config.schedule
        return cls(config.iterations, schedule.regenerate_every, schedule.designer_delay, trained)

    def regenerates(self, iteration: int) -> bool:
        """Whether environments are designed in this iteration; the others play the same field again."""
        return iteration < self.iterations and iteration % self.regenerate_every == 0

    def field_since(self, step: int) -> int:
        """The iteration that designed what is played in a step."""
        last = min(step, self.iterations - 1)
        return last - last % self.regenerate_every

    def plays(self, step: int) -> bool:
        """Whether a step is an iteration, or only trains on what still waits."""
        return step < self.iterations

    @property
    def drain_steps(self) -> int:
        """Steps after the last iteration: one for each iteration whose designs are due after it."""
        if not self.designs:
            return 0
        designing = range(0, self.iterations, self.regenerate_every)
        return sum(iteration + self.delay >= self.iterations for iteration in designing)

    @property
    def steps(self) -> int:
        """Optimiser steps of the whole run."""
        return self.iterations + self.drain_steps

    def release(
        self, queue: Sequence[Waiting], step: int
    ) -> tuple[tuple[Waiting, ...], tuple[Waiting, ...]]:
        """(what is trained on in `step`, what goes on waiting).

        Never more than the designs of one iteration: iterations differ, and so do the steps in which they are due.
        """
        ripe = tuple(w for w in queue if w.iteration + self.delay <= step)
        due = ripe if self.plays(step) else tuple(queue[:1])
        return due, tuple(w for w in queue if w not in due)
