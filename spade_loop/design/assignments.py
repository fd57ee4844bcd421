"""What each design is to be about: skills in turn, documents without repeats, what the memory holds, a parent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from spade_loop.config import Config
from spade_loop.corpus import Corpus, CorpusCursor, Document, excerpt
from spade_loop.design.ideas import grounding
from spade_loop.design.tool_tasks import draw_task
from spade_loop.library import Library
from spade_loop.state import Record, Rejection
from synthgym.memory import MemoryRecord, NoveltyMemory
from synthgym.spec import SynthEnvSpec

TOP_PARENTS = 0.25
"""Share of the measured environments of a skill, best regret first, from which `designer.parents = "regret"` picks."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A held environment as the designer is shown it."""

    spec: SynthEnvSpec
    win_rate: float | None
    regret: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one design is to be about."""

    skill: str
    document_id: str
    document_license: str
    excerpt: str
    """The document, cut; empty without one."""
    grounding: str = ""
    """What to build on, as a part of the prompt: the document, or ideas for the skill."""
    exemplars: tuple[Exhibit, ...] = ()
    warnings: tuple[Exhibit, ...] = ()
    """Too easy, or too hard."""
    near_misses: tuple[Exhibit, ...] = ()
    """Nearest to the document: what a design on it would be likely to repeat."""
    rejections: tuple[Rejection, ...] = ()
    """What was refused of late for this skill, and why."""
    parent: Exhibit | None = None
    task: str = ""
    """What an environment with tools is to ask for; empty for a game."""


class Briefing:
    """Draws the assignments of an iteration. The same state and generator give the same ones."""

    def __init__(self, config: Config, corpus: Corpus) -> None:
        self._config = config
        self._corpus = corpus

    def skills(self, iteration: int) -> tuple[str, ...]:
        """The window of the recipe's skills that this iteration designs for.

        It moves once a regeneration, not once an iteration.
        """
        designer = self._config.designer
        skills, width = designer.skills, designer.skills_per_iteration
        start = (iteration // self._config.schedule.regenerate_every * width) % len(skills)
        return tuple(skills[(start + i) % len(skills)] for i in range(min(width, len(skills))))

    def draw(
        self,
        iteration: int,
        cursor: CorpusCursor,
        library: Library,
        memory: NoveltyMemory,
        rejections: Sequence[Rejection],
        rng: np.random.Generator,
    ) -> tuple[list[Assignment], CorpusCursor]:
        """What each design of an iteration is to be about, and the corpus cursor after it."""
        designer = self._config.designer
        skills = self.skills(iteration)
        assignments: list[Assignment] = []
        for i in range(designer.candidates):
            skill = skills[i % len(skills)]
            document, cursor = self._document(skill, cursor, rng)
            text = "" if document is None else excerpt(document, self._config.corpus.words)
            refused = [r for r in rejections if r.skill == skill]
            assignments.append(
                Assignment(
                    skill=skill,
                    document_id="" if document is None else document.id,
                    document_license="" if document is None else document.license,
                    excerpt=text,
                    grounding=grounding(text, skill, rng),
                    task=draw_task(rng, skill).text() if designer.task == "tools" else "",
                    exemplars=_exhibits(library, memory.exemplars(skill, designer.exemplars, rng)),
                    warnings=_exhibits(library, memory.warnings(skill, designer.warnings, rng)),
                    near_misses=_exhibits(
                        library, memory.near_misses(text or skill, designer.near_misses)
                    ),
                    rejections=tuple(refused[len(refused) - designer.rejections :]),
                    parent=self._parent(skill, library, rng),
                )
            )
        return assignments, cursor

    def _document(
        self, skill: str, cursor: CorpusCursor, rng: np.random.Generator
    ) -> tuple[Document | None, CorpusCursor]:
        if not self._config.corpus.use:
            return None, cursor
        (document,), cursor = self._corpus.draw(cursor, 1, rng, skill)
        return document, cursor

    def _parent(self, skill: str, library: Library, rng: np.random.Generator) -> Exhibit | None:
        """What an edit or a mutation starts from: an environment of the skill when there is one."""
        designer = self._config.designer
        mutates = any(other.kind == "mutation" for other in self._config.designers)
        if designer.dialect != "edit" and not mutates:
            return None
        usable = [r for _, r in sorted(library.records.items()) if not r.quarantined]
        if designer.dialect == "blueprint":
            usable = [r for r in usable if library.specs[r.digest].provenance.family]
        fitting = [r for r in usable if r.skill == skill] or usable
        if designer.parents == "regret":
            fitting = _best(fitting) or fitting
        if not fitting:
            return None
        record = fitting[int(rng.integers(len(fitting)))]
        return Exhibit(library.specs[record.digest], record.win_rate, record.regret)


def _best(records: Sequence[Record]) -> list[Record]:
    """The top quarter of the measured ones by regret, at least one."""
    measured = [r for r in records if r.regret is not None]
    ranked = sorted(measured, key=lambda r: (-(r.regret or 0.0), r.digest))
    return ranked[: max(1, round(TOP_PARENTS * len(ranked)))] if ranked else []


def _exhibits(library: Library, held: Iterable[MemoryRecord]) -> tuple[Exhibit, ...]:
    exhibits = []
    for item in held:
        record = library.records.get(item.digest)
        if record is not None:
            exhibits.append(Exhibit(library.specs[item.digest], record.win_rate, record.regret))
    return tuple(exhibits)
