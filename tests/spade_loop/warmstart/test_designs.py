"""Designer rows: the reply that would have written what is held, in every dialect."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warm_games import EDITED, GAME, blueprints, edited, game, spec_of

from spade_loop.config import load_config
from spade_loop.corpus import Corpus, Document
from spade_loop.demonstrations import Demonstration
from spade_loop.design.dialects import make_dialect
from spade_loop.families import load_families, parse_blueprint, render
from spade_loop.parsing import apply_edits, last_code_block, parse_edits
from spade_loop.warmstart.designs import design_rows, edits_between, rules_of
from spade_loop.warmstart.settings import WarmStart
from synthgym.registry import Snapshot, bundled_root
from synthgym.spec import Provenance, SynthEnvSpec

DOCUMENT = Document("tides", "Tides rise twice a day and fall as often.", "CC0-1.0")
CORPUS = Corpus([DOCUMENT])


def made(
    specs: list[SynthEnvSpec], *changed: str, wanted: WarmStart | None = None
) -> tuple[list[Demonstration], Counter[str]]:
    config = load_config("tiny", list(changed))
    dropped: Counter[str] = Counter()
    rows = design_rows(
        specs,
        config,
        wanted or WarmStart(),
        dialect=make_dialect(config.designer),
        corpus=CORPUS,
        dropped=lambda why: dropped.update([why]),
    )
    return list(rows), dropped


def reply(row: Demonstration) -> str:
    return row.completion[0].content


def test_a_program_is_written_in_a_fence_and_asked_for_by_skill_and_rules() -> None:
    (row,), dropped = made([game()], "designer.dialect=program")
    assert not dropped
    assert last_code_block(reply(row)).strip() == GAME.strip()
    asked = row.prompt[-1].content
    assert "logical-deduction" in asked
    assert "Say the number on the wall, twice." in asked
    assert row.prompt[-1].role == "user"


def test_the_document_that_an_environment_was_designed_from_is_shown() -> None:
    spec = replace(game(), provenance=Provenance(document_id="tides"))
    (row,), _ = made([spec], "designer.dialect=program")
    assert "Tides rise twice a day" in row.prompt[-1].content
    (without,), _ = made([spec], "designer.dialect=program", "corpus.use=false")
    assert "Tides" not in without.prompt[-1].content


def test_tools_and_games_are_asked_for_apart() -> None:
    snapshot = Snapshot.open(bundled_root())
    specs = [snapshot.spec(entry.digest) for entry in snapshot]
    games, rest = made(specs, "designer.dialect=program")
    tools, other = made(
        specs,
        "designer.dialect=program",
        "designer.task=tools",
        "designer.skills=['data-retrieval']",
    )
    assert (len(games), len(tools)) == (12, 2)
    assert rest == {"designer.task=game asks for other environments": 2}
    assert other == {"designer.task=tools asks for other environments": 12}
    assert len({row.digest for row in (*games, *tools)}) == 14


def test_a_blueprint_is_the_json_that_its_family_reads() -> None:
    specs = blueprints(3)
    rows, dropped = made([*specs, game()])
    assert dropped == {"it was not rendered from a blueprint of designer.families": 1}
    families = load_families()
    by_digest = {spec.digest: spec for spec in specs}
    for row in rows:
        source = render(parse_blueprint(reply(row), families), families)
        assert source.strip() == by_digest[row.digest].record.source.strip()
    others, _ = made(specs, "designer.families=['best_trade']")
    assert others == []


def test_an_edit_leads_from_the_parent_that_the_snapshot_holds() -> None:
    parent = game()
    child = edited(parent)
    (row,), dropped = made([parent, child], "designer.dialect=edit")
    assert dropped == {"the snapshot does not hold what it was edited from": 1}
    assert apply_edits(GAME, parse_edits(reply(row))) == EDITED
    assert "The wall says" in row.prompt[-1].content
    alone, _ = made([child], "designer.dialect=edit")
    assert alone == []


def test_environments_are_held_out_whole_and_the_seed_decides_which() -> None:
    specs = [spec_of(GAME.replace("twice", f"twice, {n}"), "Wall", version=n) for n in range(16)]
    rows, _ = made(specs, "designer.dialect=program")
    assert Counter(row.split for row in rows) == {"train": 14, "held-out": 2}
    again, _ = made(specs, "designer.dialect=program")
    other, _ = made(specs, "designer.dialect=program", wanted=WarmStart(seed=1))
    assert rows == again
    held = [{r.digest for r in found if r.split == "held-out"} for found in (rows, other)]
    assert held[0] != held[1]
    (only,), _ = made(specs[:1], "designer.dialect=program")
    assert only.split == "train"


def test_exemplars_are_others_of_the_skill_with_what_was_measured() -> None:
    measured = spec_of(GAME.replace("twice", "three times"), "Other", metrics={"solve_rate": 0.25})
    rows, _ = made([game(), measured], "designer.dialect=program", "designer.exemplars=2")
    (row,) = [r for r in rows if r.digest == game().digest]
    assert "The Other (logical-deduction). The agent solves it in 25% of its plays" in (
        row.prompt[-1].content
    )
    assert "The Wall (logical-deduction)" not in row.prompt[-1].content


def test_what_no_reply_can_write_is_counted() -> None:
    fenced = spec_of(GAME.replace('"Read the wall."', '"""Read.\n```\nwall\n"""'), "Fenced")
    rows, dropped = made([fenced], "designer.dialect=program")
    assert rows == []
    assert dropped == {"the dialect reads another environment out of its own reply": 1}
    rows, dropped = made([replace(game(), skills=("juggling",))], "designer.dialect=program")
    assert rows == []
    assert dropped == {"it exercises no skill that a designer is asked for": 1}


@pytest.mark.parametrize(
    ("source", "rules"),
    [
        (GAME, "Say the number on the wall, twice."),
        ('class WallEnv:\n    """In the class."""\n', "In the class."),
        ("class WallEnv:\n    pass\n", "The Wall"),
    ],
)
def test_rules_are_the_docstring_or_the_title(source: str, rules: str) -> None:
    assert rules_of(spec_of(source, "Wall")) == rules


def test_a_source_that_does_not_parse_has_the_rules_of_its_title() -> None:
    spec = spec_of("class WallEnv:\n    pass\n", "Wall")
    broken = replace(spec, record=replace(spec.record, source="class WallEnv(:"))
    assert rules_of(broken) == "The Wall"


LINES = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    c()", "d"]), min_size=1, max_size=12)


@settings(deadline=None, max_examples=300)
@given(LINES, LINES)
def test_edits_lead_from_one_text_to_the_other_or_there_are_none(
    old: list[str], new: list[str]
) -> None:
    parent, source = ("\n".join(lines) + "\n" for lines in (old, new))
    found = edits_between(parent, source)
    if parent == source:
        assert found is None
    elif found is not None:
        assert apply_edits(parent, parse_edits(found)) == source


def test_distinct_lines_always_have_edits() -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:3], "new", *old[5:20], *old[21:], "end"]
    parent, source = ("\n".join(lines) + "\n" for lines in (old, new))
    found: Any = edits_between(parent, source)
    assert apply_edits(parent, parse_edits(found)) == source
    assert found.count("SEARCH") == 3
