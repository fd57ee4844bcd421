"""Several replies to one design, turns that mend a refused one, and designers that are not trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from designer_bench import Bench

from spade_loop.chat import ChatFormat
from spade_loop.completers import JsonSchema, Reply
from spade_loop.config import Config, DesignerConfig, OtherDesigner
from spade_loop.corpus import Corpus
from spade_loop.design.admission import Admission, Admitter
from spade_loop.design.assignments import Assignment, Exhibit
from spade_loop.design.authors import Authors
from spade_loop.design.designer import Designer
from spade_loop.design.dialects import make_dialect
from spade_loop.families import load_families, random_blueprint, render
from spade_loop.types import POLICY, Message, Outcome
from synthgym.memory import HashEmbedder, NoveltyMemory
from synthgym.sandbox import Pool
from synthgym.spec import EnvRecord, Provenance, SynthEnvSpec

FAMILY = load_families()[0]


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool() as pool:
        yield pool


@pytest.fixture
def bench(chat: ChatFormat, tokenizer: Any, pool: Pool) -> Bench:
    return Bench(chat, tokenizer.eos_token_id, Corpus.load(), pool)


@pytest.fixture
def memory() -> NoveltyMemory:
    return NoveltyMemory(HashEmbedder())


def assignment(parent: Exhibit | None = None) -> Assignment:
    return Assignment(
        skill=FAMILY.skill, document_id="d", document_license="CC0-1.0", excerpt="x", parent=parent
    )


def designs(count: int) -> list[str]:
    """Blueprints that are far apart from each other."""
    choices = FAMILY.choices()
    from spade_loop.families import Blueprint

    return [
        Blueprint(
            FAMILY.name, {name: values[i % len(values)] for name, values in choices.items()}
        ).to_json()
        for i in range(count)
    ]


def run(
    bench: Bench, memory: NoveltyMemory, replies: Sequence[str], count: int = 1, **settings: Any
) -> list[Admission]:
    designer = bench.designer("blueprint", **settings)
    given = [assignment() for _ in range(count)]
    return designer.design(bench.sampler(replies), given, memory, 0, (5, 0))


def fates(admissions: Sequence[Admission]) -> list[tuple[int, int, int, str]]:
    return [
        (a.candidate.slot, a.candidate.draw, a.candidate.attempt, str(a.candidate.outcome))
        for a in admissions
    ]


def test_a_refused_design_is_mended_in_the_same_chat(bench: Bench, memory: NoveltyMemory) -> None:
    (good,) = designs(1)
    first, second = run(bench, memory, ["{}", good], repairs=2)
    assert fates([first, second]) == [(0, 0, 0, "unparsed"), (0, 0, 1, "admitted")]
    # The repair is conditioned on everything before it, token by token.
    said = (*first.candidate.prompt_ids, *first.candidate.completion.ids)
    assert second.candidate.prompt_ids[: len(said)] == said
    asked = bench.chat.decode(second.candidate.prompt_ids[len(said) :])
    assert first.candidate.detail[:20] in asked
    assert first.candidate.trained
    assert second.candidate.trained


def test_repairs_end_when_they_are_used_up(bench: Bench, memory: NoveltyMemory) -> None:
    admissions = run(bench, memory, ["{}"] * 3, repairs=2)
    assert fates(admissions) == [(0, 0, i, "unparsed") for i in range(3)]
    assert len(memory) == 0


def test_only_what_was_refused_is_asked_again(bench: Bench, memory: NoveltyMemory) -> None:
    one, two = designs(2)
    admissions = run(bench, memory, [one, "{}", two], count=2, repairs=1)
    assert fates(admissions) == [
        (0, 0, 0, "admitted"),
        (1, 0, 0, "unparsed"),
        (1, 0, 1, "admitted"),
    ]
    assert [rows for rows, _ in bench.asked] == [2, 1]


def test_a_repetition_may_be_mended_too(bench: Bench, memory: NoveltyMemory) -> None:
    one, two = designs(2)
    admissions = run(bench, memory, [one, one, two], count=2, repairs=1)
    assert [f[3] for f in fates(admissions)] == ["admitted", "duplicate", "admitted"]


def test_of_several_draws_one_sound_design_is_kept(bench: Bench, memory: NoveltyMemory) -> None:
    one, two = designs(2)
    admissions = run(bench, memory, ["{}", one, two], best_of=3)
    outcomes = [a.candidate.outcome for a in admissions]
    assert sorted(outcomes) == [Outcome.ADMITTED, Outcome.SURPASSED, Outcome.UNPARSED]
    assert [a.candidate.draw for a in admissions] == [0, 1, 2]
    assert len(memory) == 1
    assert sum(a.candidate.spec is not None for a in admissions) == 1
    assert {o.valid for o in (Outcome.ADMITTED, Outcome.SURPASSED)} == {True}


def test_when_no_draw_is_sound_the_one_that_came_nearest_is_mended(
    bench: Bench, memory: NoveltyMemory
) -> None:
    one, two = designs(2)
    run(bench, memory, [one])
    admissions = run(bench, memory, ["{}", one, two], best_of=2, repairs=1)
    assert fates(admissions) == [
        (0, 0, 0, "unparsed"),
        (0, 1, 0, "duplicate"),
        (0, 1, 1, "admitted"),
    ]


def test_without_the_gate_a_repetition_is_admitted(bench: Bench, memory: NoveltyMemory) -> None:
    from dataclasses import replace

    from spade_loop.config import NoveltyConfig

    designer = bench.designer("blueprint")
    config = replace(designer._config, novelty=NoveltyConfig(gate=False))
    dialect = make_dialect(config.designer)
    open_gate = Designer(
        config, dialect, Admitter(config, dialect, bench.pool), Authors(config, dialect, {})
    )
    (one,) = designs(1)
    admissions = open_gate.design(bench.sampler([one, one]), [assignment()] * 2, memory, 0, (5,))
    assert [a.candidate.outcome for a in admissions] == [Outcome.ADMITTED] * 2


# --- designers beside the policy ---


class Scribe:
    """A writer that answers from a list and keeps what it was asked; a model only in name."""

    def __init__(self, name: str, replies: Sequence[str]) -> None:
        self.name = name
        self.left = iter(replies)
        self.chats: list[list[Message]] = []
        self.seeds: list[int] = []
        self.schemas: list[JsonSchema | None] = []

    def write(
        self,
        chats: Sequence[Sequence[Message]],
        *,
        max_tokens: int,
        temperature: float,
        seeds: Sequence[int],
        schema: JsonSchema | None = None,
    ) -> list[Reply]:
        self.chats += [list(chat) for chat in chats]
        self.seeds += seeds
        self.schemas.append(schema)
        return [Reply(next(self.left), 1, stopped=True) for _ in chats]


def with_others(
    bench: Bench, others: Sequence[OtherDesigner], writers: dict[str, Any], **settings: Any
) -> Designer:
    config = Config(
        designer=DesignerConfig(
            candidates=4, initial_share=0.0, max_tokens=100_000, skills=(FAMILY.skill,), **settings
        ),
        designers=tuple(others),
        validation=bench.designer("blueprint")._config.validation,
    )
    dialect = make_dialect(config.designer)
    return Designer(
        config, dialect, Admitter(config, dialect, bench.pool), Authors(config, dialect, writers)
    )


def test_another_model_designs_beside_the_policy_and_is_never_trained_on(
    bench: Bench, memory: NoveltyMemory
) -> None:
    one, two = designs(2)
    scribe = Scribe("big", ["{}", two])
    other = OtherDesigner(
        name="frontier", kind="endpoint", share=0.25, model="big", base_url="http://x"
    )
    designer = with_others(bench, [other], {"frontier": scribe}, repairs=1)
    replies = [one, "{}", "{}", "{}", "{}"]
    made = designer.design(bench.sampler(replies), [assignment()] * 4, memory, 3, (5, 0))
    assert [a.candidate.author for a in made] == [POLICY] * 3 + ["frontier"] + [POLICY] * 2 + [
        "frontier"
    ]
    last = made[-1].candidate
    assert (last.outcome, last.attempt, last.trained) == (Outcome.ADMITTED, 1, False)
    assert (last.prompt_ids, last.completion.ids) == ((), ())
    assert last.spec is not None
    assert last.spec.provenance.author == "big"
    # The second question follows the first answer, with a seed of its own.
    assert [m.role for m in scribe.chats[1]] == ["system", "user", "assistant", "user"]
    assert scribe.chats[1][:2] == scribe.chats[0]
    assert len(set(scribe.seeds)) == 2
    assert all(s is not None for s in scribe.schemas)


def test_chance_designs_legal_blueprints_and_mutation_changes_a_parent(
    bench: Bench, memory: NoveltyMemory
) -> None:
    held = random_blueprint(FAMILY, np.random.default_rng(0))
    parent = SynthEnvSpec(
        record=EnvRecord(source=render(held, [FAMILY]), entry="XEnv", max_turns=5),
        name="Held",
        provenance=Provenance(family=FAMILY.name, parameters=dict(held.parameters)),
    )
    others = [
        OtherDesigner(name="chance", kind="random", share=0.5),
        OtherDesigner(name="edits", kind="mutation", share=0.5),
    ]
    designer = with_others(bench, others, {}, repairs=1)
    given = [assignment(Exhibit(parent, 0.5, 0.3))] * 4
    made = designer.design(bench.sampler([]), given, memory, 0, (5, 0))
    assert [a.candidate.author for a in made][:4] == ["chance"] * 2 + ["edits"] * 2
    assert len(made) == 4  # nobody is there to mend
    import json

    for a in made:
        assert a.candidate.outcome in (Outcome.ADMITTED, Outcome.REFUSED, Outcome.DUPLICATE)
        assert json.loads(a.candidate.reply)["family"] == FAMILY.name
    for a in made[2:]:
        parameters = json.loads(a.candidate.reply)
        changed = [k for k, v in held.parameters.items() if parameters[k] != v]
        assert len(changed) == 1
    again = designer.design(bench.sampler([]), given, NoveltyMemory(HashEmbedder()), 0, (5, 0))
    assert [a.candidate.reply for a in again] == [a.candidate.reply for a in made]
