"""From an assignment to an admitted environment, with recorded replies in place of a model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from designer_bench import Bench

from spade_loop.chat import ChatFormat
from spade_loop.config import Config, DesignerConfig
from spade_loop.corpus import UNKNOWN_LICENSE, Corpus, CorpusCursor
from spade_loop.design.assignments import Assignment, Briefing, Exhibit
from spade_loop.design.dialects import make_dialect
from spade_loop.errors import ConfigError
from spade_loop.families import Blueprint, load_families, random_blueprint
from spade_loop.library import Library
from spade_loop.types import INITIAL, POLICY, Outcome
from synthgym.contract import SKILLS
from synthgym.memory import HashEmbedder, NoveltyMemory
from synthgym.registry import Snapshot, bundled_root
from synthgym.sandbox import Pool

COMPLETIONS = Path(__file__).parents[1] / "data" / "completions"
RECORDED: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(COMPLETIONS.glob("*.json"))
}
FATE: dict[str, tuple[Outcome, tuple[str, ...]]] = {
    "edit-1": (Outcome.UNPARSED, ("cut",)),
    "edit-2": (Outcome.UNPARSED, ("cut",)),
    "edit-3": (Outcome.UNPARSED, ("no-source",)),
    "edit-4": (Outcome.UNPARSED, ("cut",)),
    "edit-written": (Outcome.ADMITTED, ()),
    "program-1": (Outcome.REFUSED, ("solution-raised",)),
    "program-written": (Outcome.ADMITTED, ()),
}
"""What becomes of each recorded reply."""
FAMILIES = {family.skill: family for family in load_families()}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.load()


@pytest.fixture(scope="module")
def started() -> Library:
    return Library.start(Snapshot.open(bundled_root()))


@pytest.fixture
def library(started: Library) -> Library:
    return started.copy()


@pytest.fixture
def memory() -> NoveltyMemory:
    return NoveltyMemory(HashEmbedder())


@pytest.fixture
def bench(chat: ChatFormat, tokenizer: Any, corpus: Corpus, pool: Pool) -> Bench:
    return Bench(chat, tokenizer.eos_token_id, corpus, pool)


def assigned(name: str, library: Library) -> tuple[Assignment, str]:
    """The assignment of a recording, and its reply."""
    recording = RECORDED[name]
    parents = {spec.env_id: spec for spec in library.specs.values()}
    parent = recording["parent"]
    given = Assignment(
        skill=recording["skill"],
        document_id=recording["document_id"],
        document_license="CC0-1.0",
        excerpt="An excerpt.",
        parent=None if parent is None else Exhibit(parents[parent], None, None),
    )
    return given, recording["reply"]


def blueprint_attempt(blueprint: Blueprint, skill: str) -> tuple[Assignment, str]:
    given = Assignment(
        skill=skill, document_id="d", document_license="CC0-1.0", excerpt="An excerpt."
    )
    return given, blueprint.to_json()


# recorded replies


def test_every_recording_has_its_fate_in_the_table() -> None:
    assert set(FATE) == set(RECORDED)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_reply_meets_its_fate(
    name: str, bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned(name, library)
    tokens = len(bench.chat.encode_text(reply))
    # A reply that the limit cut lacks the token that would have ended it.
    limit = tokens if RECORDED[name]["finish_reason"] == "length" else tokens + 1
    designer = bench.designer(RECORDED[name]["dialect"], max_tokens=limit)
    (admission,) = bench.run(designer, memory, [(given, reply)])
    candidate = admission.candidate
    assert candidate.reply == reply
    assert (candidate.outcome, candidate.reasons) == FATE[name]
    assert (candidate.spec is not None) == (candidate.outcome is Outcome.ADMITTED)
    assert (admission.report is not None) == (candidate.outcome is not Outcome.UNPARSED)
    assert bool(candidate.detail) == (candidate.outcome is not Outcome.ADMITTED)
    assert len(memory) == (candidate.outcome is Outcome.ADMITTED)


def test_a_reply_that_the_limit_cut_is_unparsed_even_when_its_code_is_whole(
    bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned("program-written", library)
    designer = bench.designer("program", max_tokens=len(bench.chat.encode_text(reply)))
    (admission,) = bench.run(designer, memory, [(given, reply)])
    assert admission.candidate.outcome is Outcome.UNPARSED
    assert admission.candidate.reasons == ("cut",)
    assert not admission.candidate.completion.stopped


# admission


@pytest.mark.parametrize("name", ["program-written", "edit-written"])
def test_the_same_program_twice_in_an_iteration_is_a_duplicate(
    name: str, bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    attempts = [assigned(name, library)] * 2
    first, second = bench.run(bench.designer(RECORDED[name]["dialect"]), memory, attempts)
    assert first.candidate.outcome is Outcome.ADMITTED
    assert (second.candidate.outcome, second.candidate.reasons) == (Outcome.DUPLICATE, ("copy",))
    assert first.candidate.spec is not None
    assert first.candidate.spec.name in second.candidate.detail
    assert second.candidate.spec is None
    assert second.report is not None
    assert len(memory) == 1


def test_an_edit_that_only_renames_is_a_duplicate_of_its_parent(
    bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, _ = assigned("edit-written", library)
    assert given.parent is not None
    memory.seed([given.parent.spec], bench.pool)
    line = "        heard = 2 * len(self.method)\n"
    tail = '        return ["listen"] * heard + [f"ring {row}" for row in self._next_rows(heard + RUN)[heard:]]\n'
    new = (line + tail).replace("heard", "rounds")
    reply = f"<<<<<<< SEARCH\n{line}{tail}=======\n{new}>>>>>>> REPLACE"
    (admission,) = bench.run(bench.designer("edit"), memory, [(given, reply)])
    assert (admission.candidate.outcome, admission.candidate.reasons) == (
        Outcome.DUPLICATE,
        ("copy",),
    )


@pytest.mark.parametrize("name", ["program-written", "edit-written"])
def test_an_admitted_environment_says_where_it_came_from(
    name: str, bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned(name, library)
    dialect = RECORDED[name]["dialect"]
    (admission,) = bench.run(bench.designer(dialect), memory, [(given, reply)], iteration=3)
    spec = admission.candidate.spec
    assert spec is not None
    stem = {"program": "FalseWeight", "edit": "ChangeRinging"}[dialect]
    assert spec.name == stem + spec.digest.removeprefix("sha256:")[:8]
    assert spec.title
    assert spec.title in spec.record.source
    # A program has the terms of its document, an edit those of what it was made from.
    terms = {"program": "CC0-1.0", "edit": "Apache-2.0"}[dialect]
    assert (spec.skills, spec.license) == ((given.skill,), terms)
    origin = spec.provenance
    assert (origin.author, origin.dialect) == ("recorded", dialect)
    assert origin.prompt_digest == make_dialect(DesignerConfig(dialect=dialect)).prompt.digest
    assert (origin.document_id, origin.document_license) == (given.document_id, "CC0-1.0")
    assert origin.parent == ("" if given.parent is None else given.parent.spec.digest)
    assert (origin.iteration, origin.seed) == (3, 5)
    assert (origin.family, dict(origin.parameters)) == ("", {})
    assert memory.get(spec.digest).name == spec.name
    assert admission.report is not None
    assert admission.report["digest"] == spec.digest


def test_nobody_asserts_the_licence_of_a_document_without_one(
    bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned("program-written", library)
    attempt = (replace(given, document_license=UNKNOWN_LICENSE), reply)
    (admission,) = bench.run(bench.designer("program"), memory, [attempt])
    assert admission.candidate.spec is not None
    assert admission.candidate.spec.license == "NOASSERTION"
    assert admission.candidate.spec.provenance.document_license == UNKNOWN_LICENSE


def test_an_environment_whose_class_has_no_usable_name_is_named_design(
    bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned("program-written", library)
    attempt = (given, reply.replace("FalseWeightEnv", "ΩEnv"))
    (admission,) = bench.run(bench.designer("program"), memory, [attempt])
    assert admission.candidate.spec is not None
    assert admission.candidate.spec.name.startswith("Design")


# blueprints


def test_what_luck_wins_is_refused_unless_the_run_allows_it(
    bench: Bench, memory: NoveltyMemory
) -> None:
    family = FAMILIES["optimisation"]
    easiest = {name: values[0] for name, values in family.choices().items()}
    attempt = blueprint_attempt(Blueprint(family.name, easiest), "optimisation")
    (strict,) = bench.run(bench.designer("blueprint", allowed=()), memory, [attempt])
    assert (strict.candidate.outcome, strict.candidate.reasons) == (
        Outcome.REFUSED,
        ("scraping-agent-wins",),
    )
    (lenient,) = bench.run(bench.designer("blueprint"), memory, [attempt])
    assert lenient.candidate.outcome is Outcome.ADMITTED
    assert lenient.report is not None
    assert lenient.report["ok"] is False


@pytest.mark.parametrize("skill", sorted(FAMILIES))
def test_a_blueprint_is_admitted(skill: str, bench: Bench, memory: NoveltyMemory) -> None:
    family = FAMILIES[skill]
    blueprint = random_blueprint(family, np.random.default_rng(3))
    (admission,) = bench.run(
        bench.designer("blueprint"), memory, [blueprint_attempt(blueprint, skill)]
    )
    candidate = admission.candidate
    assert candidate.outcome is Outcome.ADMITTED, candidate.detail
    assert candidate.cell == family.name
    assert candidate.spec is not None
    assert candidate.spec.provenance.family == family.name
    assert dict(candidate.spec.provenance.parameters) == dict(blueprint.parameters)
    assert memory.get(candidate.spec.digest).description.family == family.name


def test_blueprints_that_do_not_fit_are_told_apart(bench: Bench, memory: NoveltyMemory) -> None:
    skill, other = SKILLS[:2]
    good = blueprint_attempt(random_blueprint(FAMILIES[skill], np.random.default_rng(3)), skill)
    foreign = random_blueprint(FAMILIES[other], np.random.default_rng(3)).to_json()
    attempts = [good, good, (good[0], foreign), (good[0], good[1] + "}"), (good[0], "")]
    admissions = bench.run(bench.designer("blueprint"), memory, attempts)
    assert [(a.candidate.outcome, a.candidate.reasons) for a in admissions] == [
        (Outcome.ADMITTED, ()),
        (Outcome.DUPLICATE, ("same-parameters",)),
        (Outcome.UNPARSED, ("no-source",)),
        (Outcome.UNPARSED, ("no-source",)),
        (Outcome.UNPARSED, ("no-source",)),
    ]


# proposals


def test_replies_stay_with_their_assignments_when_skills_alternate(
    bench: Bench, memory: NoveltyMemory
) -> None:
    skills = SKILLS[:2]
    rng = np.random.default_rng(0)
    attempts = [
        blueprint_attempt(random_blueprint(FAMILIES[skill], rng), skill) for skill in skills * 2
    ]
    # The rows of a skill are sampled together: the replies are asked for in that order.
    replies = [attempts[i][1] for i in (0, 2, 1, 3)]
    designer = bench.designer("blueprint", skills_per_iteration=2, candidates=8)
    given = [a for a, _ in attempts]
    made = designer.design(bench.sampler(replies), given, memory, 0, (5, 0))
    assert [a.candidate.reply for a in made] == [reply for _, reply in attempts]
    assert [a.candidate.cell for a in made] == [FAMILIES[skill].name for skill in skills * 2]
    assert [rows for rows, _ in bench.asked] == [2, 2]
    offered = [_families_of(schema) for _, schema in bench.asked]
    assert offered == [[FAMILIES[skill].name] for skill in skills]


def _families_of(schema: Mapping[str, Any] | None) -> list[str]:
    assert schema is not None
    return [option["properties"]["family"]["const"] for option in schema["anyOf"]]


@pytest.mark.parametrize(("share", "initial"), [(0.0, 0), (0.25, 1), (0.5, 2), (1.0, 4)])
def test_the_last_proposals_come_from_the_initial_designer(
    share: float, initial: int, bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned("program-written", library)
    designer = bench.designer("program", initial_share=share, candidates=4)
    made = bench.run(designer, memory, [(given, reply)] * 4)
    authors = [a.candidate.author for a in made]
    assert authors == [POLICY] * (4 - initial) + [INITIAL] * initial
    assert [a.candidate.trained for a in made] == [author == POLICY for author in authors]
    assert sorted(bench.opened) == [
        (who, rows) for who, rows in ((False, 4 - initial), (True, initial)) if rows
    ]


def test_a_candidate_keeps_the_ids_of_its_prompt_and_reply(
    bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned("program-written", library)
    (admission,) = bench.run(bench.designer("program"), memory, [(given, reply)])
    candidate = admission.candidate
    assert candidate.cell == given.skill
    prompt = bench.chat.decode(candidate.prompt_ids)
    assert "An excerpt." in prompt
    assert prompt.rstrip().endswith("assistant")
    assert candidate.completion.ids == (*bench.chat.encode_text(reply), bench.stop_id)


def test_an_edit_without_a_parent_is_our_failure(
    bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    given, reply = assigned("program-written", library)
    with pytest.raises(ConfigError, match="needs a parent"):
        bench.run(bench.designer("edit"), memory, [(given, reply)])


def measure(library: Library, memory: NoveltyMemory, digest: str, wins: int, regret: float) -> None:
    """Ten plays of an environment, as the loop would note them."""
    library.records[digest] = replace(
        library.records[digest], episodes=10, plain_wins=float(wins), regret=regret
    )
    memory.update(digest, win_rate=wins / 10, regret=regret)


@pytest.mark.parametrize("dialect", ["program", "edit", "blueprint"])
def test_prompts_show_what_was_measured(
    dialect: str, bench: Bench, library: Library, memory: NoveltyMemory
) -> None:
    good, bad = [s for s in library.specs.values() if s.skills == (SKILLS[0],)]
    memory.seed([good, bad], bench.pool)
    measure(library, memory, good.digest, wins=5, regret=0.25)
    measure(library, memory, bad.digest, wins=0, regret=0.0)
    config = Config(designer=DesignerConfig(dialect=dialect, exemplars=2, warnings=2))
    given, _ = Briefing(config, bench.corpus).draw(
        0, CorpusCursor(), library, memory, (), np.random.default_rng([5, 0])
    )
    made = bench.run(bench.designer(dialect), memory, [(a, "no design") for a in given])
    for admission in made:
        prompt = bench.chat.decode(admission.candidate.prompt_ids)
        assert f"- {good.title}" in prompt
        assert f"- too hard: {bad.title}" in prompt
        if dialect != "blueprint":
            assert "solves it in 50% of its plays, and gains +0.25 from a hint" in prompt
