"""What each design is to be about: skills in turn, documents without repeats, what the memory holds, a parent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from spade_loop.config import Config, DesignerConfig, ScheduleConfig
from spade_loop.corpus import UNKNOWN_LICENSE, Corpus, CorpusCursor, Document
from spade_loop.design.assignments import Assignment, Briefing
from spade_loop.design.dialects import EditDialect, make_dialect
from spade_loop.errors import ConfigError
from spade_loop.library import Library
from spade_loop.state import Rejection
from synthgym.contract import SKILLS
from synthgym.memory import HashEmbedder, NoveltyMemory
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.load()


@pytest.fixture
def library() -> Library:
    return Library.start(Snapshot.open(bundled_root()))


@pytest.fixture
def memory() -> NoveltyMemory:
    return NoveltyMemory(HashEmbedder())


def make_briefing(
    corpus: Corpus, dialect: str, schedule: ScheduleConfig | None = None, **settings: Any
) -> Briefing:
    plain: dict[str, Any] = {"dialect": dialect}
    designer = DesignerConfig(**plain | settings)
    return Briefing(Config(designer=designer, schedule=schedule or ScheduleConfig()), corpus)


def draw(
    corpus: Corpus,
    dialect: str,
    library: Library,
    memory: NoveltyMemory,
    refused: Sequence[Rejection] = (),
    **settings: Any,
) -> list[Assignment]:
    briefing = make_briefing(corpus, dialect, **settings)
    given, _ = briefing.draw(
        0, CorpusCursor(), library, memory, refused, np.random.default_rng([5, 0])
    )
    return given


def test_skills_take_turns(corpus: Corpus) -> None:
    briefing = make_briefing(corpus, "program", skills_per_iteration=2, candidates=8)
    shown = [briefing.skills(i) for i in range(3)]
    assert [skill for pair in shown for skill in pair] == list(SKILLS)
    assert briefing.skills(3) == briefing.skills(0)
    two = make_briefing(corpus, "program", skills=SKILLS[:2], skills_per_iteration=3, candidates=12)
    assert two.skills(0) == SKILLS[:2]


def test_skills_turn_with_the_regenerations(corpus: Corpus) -> None:
    briefing = make_briefing(corpus, "program", ScheduleConfig(regenerate_every=4))
    assert [briefing.skills(i)[0] for i in (0, 4, 8)] == list(SKILLS[:3])


def test_what_was_refused_is_told_the_latest_of_the_skill(
    corpus: Corpus, library: Library, memory: NoveltyMemory
) -> None:
    rejections = [
        Rejection(skill=skill, title=f"T{i}", reasons=("cut",))
        for i, skill in enumerate([SKILLS[0], SKILLS[1], SKILLS[0], SKILLS[0]])
    ]
    for count, titles in ((0, []), (2, ["T2", "T3"]), (9, ["T0", "T2", "T3"])):
        given = draw(corpus, "program", library, memory, rejections, rejections=count)
        assert [[r.title for r in a.rejections] for a in given] == [titles] * 6


def test_near_misses_are_nearest_to_the_document(
    corpus: Corpus, library: Library, memory: NoveltyMemory, pool: Pool
) -> None:
    specs = list(library.specs.values())[:4]
    memory.seed(specs, pool)
    for a in draw(corpus, "program", library, memory, near_misses=2):
        nearest = memory.near_misses(a.excerpt, 2)
        assert [e.spec.digest for e in a.near_misses] == [r.digest for r in nearest]


def test_parents_of_high_regret_are_preferred(
    corpus: Corpus, library: Library, memory: NoveltyMemory
) -> None:
    best = min(d for d, r in library.records.items() if r.skill == SKILLS[0])
    library.records[best] = replace(library.records[best], regret=0.5, episodes=8)
    parents = [a.parent for a in draw(corpus, "edit", library, memory, parents="regret")]
    assert {p.spec.digest for p in parents if p is not None} == {best}


def test_each_assignment_gets_a_document_of_its_own(
    corpus: Corpus, library: Library, memory: NoveltyMemory
) -> None:
    briefing = make_briefing(corpus, "program", candidates=8, skills_per_iteration=2)
    rng = np.random.default_rng(0)
    given, cursor = briefing.draw(1, CorpusCursor(), library, memory, (), rng)
    assert [a.skill for a in given] == list(briefing.skills(1)) * 4
    assert sorted(a.document_id for a in given) == list(cursor.seen)
    assert len(cursor.seen) == 8
    for a in given:
        document = corpus[a.document_id]
        assert (document.skill, document.license) == (a.skill, a.document_license)
        assert document.text.startswith(a.excerpt)
        assert len(a.excerpt.split()) <= 120


def test_only_the_edit_dialect_starts_from_a_parent(
    corpus: Corpus, library: Library, memory: NoveltyMemory
) -> None:
    assert all(a.parent is None for a in draw(corpus, "program", library, memory))
    parents = [a.parent for a in draw(corpus, "edit", library, memory, candidates=12)]
    skills = {p.spec.skills for p in parents if p is not None}
    assert skills == {(SKILLS[0],)}
    assert len({p.spec.name for p in parents if p is not None}) == 2


def test_a_quarantined_environment_is_no_parent(
    corpus: Corpus, library: Library, memory: NoveltyMemory
) -> None:
    spared = next(d for d, r in library.records.items() if r.skill != SKILLS[0])
    for digest, record in library.records.items():
        library.records[digest] = replace(record, quarantined=digest != spared)
    # None of the skill is left, so another skill's environment is better than none.
    parents = [a.parent for a in draw(corpus, "edit", library, memory)]
    assert {p.spec.digest for p in parents if p is not None} == {spared}
    library.records[spared] = replace(library.records[spared], quarantined=True)
    given = draw(corpus, "edit", library, memory)
    assert [a.parent for a in given] == [None] * 6
    with pytest.raises(ConfigError, match="needs a parent"):
        EditDialect().messages(given[0])


def measure(library: Library, memory: NoveltyMemory, digest: str, wins: int, regret: float) -> None:
    """Ten plays of an environment, as the loop would note them."""
    library.records[digest] = replace(
        library.records[digest], episodes=10, plain_wins=float(wins), regret=regret
    )
    memory.update(digest, win_rate=wins / 10, regret=regret)


def test_an_environment_that_is_too_easy_is_shown_as_such(
    corpus: Corpus, library: Library, memory: NoveltyMemory, pool: Pool
) -> None:
    spec = next(s for s in library.specs.values() if s.skills == (SKILLS[0],))
    memory.seed([spec], pool)
    measure(library, memory, spec.digest, wins=10, regret=0.0)
    given = draw(corpus, "program", library, memory)
    assert [w.spec.digest for a in given for w in a.warnings] == [spec.digest] * 6
    assert all(a.exemplars == () for a in given)
    text = make_dialect(DesignerConfig(dialect="program")).messages(given[0])[-1].content
    assert f"- too easy: {spec.title}" in text


def test_assignments_depend_on_the_generator_alone(
    corpus: Corpus, library: Library, memory: NoveltyMemory
) -> None:
    assert draw(corpus, "edit", library, memory) == draw(corpus, "edit", library.copy(), memory)


def test_a_corpus_smaller_than_an_iteration_repeats_its_documents(
    library: Library, memory: NoveltyMemory
) -> None:
    single = Corpus([Document("one", "Only this.", UNKNOWN_LICENSE)])
    given = draw(single, "program", library, memory)
    assert {a.document_id for a in given} == {"one"}
    assert {a.document_license for a in given} == {UNKNOWN_LICENSE}
