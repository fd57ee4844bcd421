"""The measurement: both arms on the same seeds, look by look, until every regret is known well enough."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol

import numpy as np

from spade_loop.field import asked_once, distinct_seeds
from spade_loop.gap.episodes import Book, EpisodePlayer, Piece, Played, episode_row
from spade_loop.gap.results import Result, make_result
from spade_loop.gap.settings import GapSettings
from spade_loop.gap.subjects import Subject
from spade_loop.journal import Journal
from spade_loop.measurement import Arms, Measured, Reproduces, fault_reproduces, measure
from spade_loop.rewards import Decision, StoppingRule, decide
from spade_loop.speaking import Usage, run_all
from spade_loop.types import Trajectory

REPLAYS: Final = 4
"""Subjects whose faults are played again at once."""


class Watch(Protocol):
    """Listens to a measurement. No method may change it."""

    def look(self, pairs: int, environments: int, episodes: int) -> None:
        """Episodes begin that bring so many environments to so many pairs."""

    def played(self, episodes: int, usage: Usage) -> None:
        """So many more are over; `usage` is everything spent so far, by earlier processes too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a measurement works with."""

    settings: GapSettings
    player: EpisodePlayer
    journal: Journal
    watch: Watch
    threads: int
    stop: Callable[[], None]
    """Ends what waits for the model: `Speaker.close`."""
    reproduces: Reproduces


def seeds_of(settings: GapSettings) -> list[int]:
    """Seeds of the instances, the same for every environment and in both arms; a prefix of those of more pairs."""
    return distinct_seeds(np.random.default_rng([settings.seed]), settings.max_episodes)


def replayed(settings: GapSettings) -> Reproduces:
    """Asks about faults of environments by playing them again."""
    return partial(fault_reproduces, hint_level=settings.hint_level)


def measure_all(work: Measurement, subjects: Sequence[Subject]) -> tuple[list[Result], Usage]:
    """A result for each subject, in order, and what all of it cost, by earlier processes too.

    Every finished episode is in the journal before the next one is looked at; what is there already is not played
    again. `ModelError` when the model cannot be asked any more: what was finished is kept.
    """
    settings, rule = work.settings, work.settings.rule
    book = Book(work.journal.rows, settings.conditions)
    work = replace(work, reproduces=asked_once(work.reproduces))
    seeds = seeds_of(settings)
    results: dict[str, Result] = {}
    going = list(subjects)
    for look in rule.looks:
        _play(work, book, going, seeds[:look])
        measured = _measured(work, book, going, seeds[:look])
        for subject in going:
            results[subject.digest] = _result(
                book, subject, measured[subject.digest], settings, seeds[:look]
            )
        going = [s for s in going if _goes_on(measured[s.digest], look, rule)]
    return [results[subject.digest] for subject in subjects], book.usage


def _play(work: Measurement, book: Book, subjects: Sequence[Subject], seeds: Sequence[int]) -> None:
    pieces = [
        Piece(subject, condition, seed)
        for subject in subjects
        for seed in seeds
        for condition in work.settings.conditions
    ]
    waiting = [piece for piece in pieces if piece not in book]
    work.watch.look(len(seeds), len(subjects), len(waiting))
    work.watch.played(0, book.usage)
    running = run_all(waiting, work.player.play, threads=work.threads, stop=work.stop)
    with closing(running) as finished:
        for piece, played in finished:
            _keep(work, book, piece, played)


def _keep(work: Measurement, book: Book, piece: Piece, played: Played) -> None:
    work.journal.append(episode_row(piece, played))
    book.add(piece, played)
    work.watch.played(1, book.usage)


def _measured(
    work: Measurement, book: Book, subjects: Sequence[Subject], seeds: Sequence[int]
) -> dict[str, Measured]:
    """By digest. Faults are played again for it, which takes a worker each: several subjects at a time."""
    measuring = partial(
        _measure, book, seeds=seeds, settings=work.settings, reproduces=work.reproduces
    )
    with closing(run_all(subjects, measuring, threads=min(REPLAYS, work.threads))) as done:
        return {subject.digest: measured for subject, measured in done}


def _measure(
    book: Book,
    subject: Subject,
    seeds: Sequence[int],
    settings: GapSettings,
    reproduces: Reproduces,
) -> Measured:
    plain, hinted = settings.conditions[:2]
    arms = Arms(
        plain=tuple(book.of(subject, plain, seeds)), hinted=tuple(book.of(subject, hinted, seeds))
    )
    confidence = settings.rule.confidence(len(seeds))
    return measure(subject.spec, arms, reproduces, iteration=0, confidence=confidence)


def _result(
    book: Book,
    subject: Subject,
    measured: Measured,
    settings: GapSettings,
    seeds: Sequence[int],
) -> Result:
    others: dict[str, Sequence[Trajectory]] = {
        condition.name: book.of(subject, condition, seeds) for condition in settings.conditions[2:]
    }
    return make_result(
        measured,
        others,
        settings.zones,
        name=subject.name,
        confidence=settings.rule.confidence(len(seeds)),
    )


def _goes_on(measured: Measured, look: int, rule: StoppingRule) -> bool:
    """Whether more pairs are worth it: not for an environment that keeps failing."""
    if measured.quarantined or measured.interval is None:
        return False
    return decide(look, measured.interval, rule) is Decision.CONTINUE
