"""Descriptions of skills, ideas for them, and what a designer builds on when there is no document."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from spade_loop.design.ideas import GUIDES, IDEAS_SHOWN, grounding, ideas, summary
from spade_loop.errors import ConfigError
from synthgym.contract import SKILLS, TOOL_SKILLS

each_skill = pytest.mark.parametrize("skill", GUIDES)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_there_are_nine_skills_of_games_and_six_of_tool_use() -> None:
    others = set(GUIDES) - set(TOOL_SKILLS)
    assert len(others) == 9
    assert others - set(SKILLS) == {
        "strategic-planning",
        "memory-recall",
        "language-understanding",
    }
    assert set(GUIDES) - others == set(TOOL_SKILLS)


@each_skill
def test_a_guide_is_short_and_says_nothing_twice(skill: str) -> None:
    guide = GUIDES[skill]
    assert summary(skill) == guide.summary
    assert 5 <= len(guide.ideas) <= 10
    assert all(text.endswith((".", "?")) and len(text) <= 120 for text in guide.ideas)
    assert len(guide.summary) <= 120


def test_no_idea_stands_twice() -> None:
    every = list(chain.from_iterable(guide.ideas for guide in GUIDES.values()))
    assert len(set(every)) == len(every)


@each_skill
def test_ideas_are_drawn_without_repetition_and_the_same_again(skill: str) -> None:
    known = GUIDES[skill].ideas
    drawn = ideas(skill, 3, rng())
    assert drawn == ideas(skill, 3, rng())
    assert len(set(drawn)) == 3
    assert set(ideas(skill, len(known), rng())) == set(known)
    assert {idea for seed in range(60) for idea in ideas(skill, 1, rng(seed))} == set(known)


@pytest.mark.parametrize("k", [0, -1, 7])
def test_more_ideas_than_there_are_cannot_be_drawn(k: int) -> None:
    with pytest.raises(ConfigError, match=rf"1 to 6 ideas to draw for optimisation, got k = {k}"):
        ideas("optimisation", k, rng())


def test_an_unknown_skill_is_named_with_its_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'optimisation'"):
        summary("optimization")
    with pytest.raises(ConfigError, match="unknown skill 'juggling' "):
        ideas("juggling", 1, rng())
    with pytest.raises(ConfigError, match="unknown skill"):
        grounding("A document.", "juggling", rng())


@pytest.mark.parametrize(("skill", "word"), [(SKILLS[0], "Ground"), (TOOL_SKILLS[0], "Borrow")])
def test_a_document_is_what_is_built_on_and_nothing_is_drawn(skill: str, word: str) -> None:
    used, fresh = rng(), rng()
    text = grounding("  A bell moves by one place.\n", skill, used)
    assert text.startswith(word)
    assert "never mention" in text
    assert text.endswith("\nA bell moves by one place.")
    assert used.integers(2**60) == fresh.integers(2**60)


@each_skill
@pytest.mark.parametrize("document", [None, "", " \n"])
def test_without_a_document_there_are_a_summary_and_ideas(skill: str, document: str | None) -> None:
    text = grounding(document, skill, rng(5))
    assert GUIDES[skill].summary in text
    assert text.count("\n- ") == IDEAS_SHOWN
    assert [line[2:] for line in text.splitlines() if line.startswith("- ")] == list(
        ideas(skill, IDEAS_SHOWN, rng(5))
    )
    assert "document" not in text
