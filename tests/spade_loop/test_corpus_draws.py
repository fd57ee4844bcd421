from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spade_loop
from spade_loop.corpus import Corpus, CorpusCursor, Document
from spade_loop.errors import ConfigError, CorpusError

ROOT = Path(spade_loop.__file__).parents[1]


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def make(*skills: str) -> Corpus:
    return Corpus(
        Document(f"d{number:02}", f"Text {number}.", "CC0-1.0", skill=skill)
        for number, skill in enumerate(skills)
    )


def ids(documents: list[Document]) -> list[str]:
    return [document.id for document in documents]


# --- sampling


def test_a_sample_is_distinct_and_does_not_depend_on_the_order_of_the_lines() -> None:
    corpus = make(*[""] * 20)
    backwards = Corpus(reversed(list(corpus)))
    drawn = corpus.sample(8, rng(3))
    assert len(set(ids(drawn))) == 8
    assert backwards.sample(8, rng(3)) == drawn
    assert corpus.sample(8, rng(4)) != drawn


def test_a_sample_is_the_same_in_another_process_with_another_hash_seed() -> None:
    program = (
        "import numpy as np; from spade_loop.corpus import Corpus, CorpusCursor;"
        "c = Corpus.load(None); g = np.random.default_rng(5);"
        "s = c.sample(4, g, skill='optimisation', exclude={'siphon', 'kanban-cards'});"
        "d, n = c.draw(CorpusCursor(('siphon',)), 4, g, 'causal-inference');"
        "print(c.digest, *[x.id for x in s + d], *n.seen)"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
    assert outputs.pop().split()[0] == Corpus.load(None).digest


def test_a_sample_prefers_the_skill_then_documents_without_one() -> None:
    corpus = make("a", "a", "", "", "b", "b")
    for seed in range(20):
        drawn = corpus.sample(5, rng(seed), skill="a")
        assert [document.skill for document in drawn] == ["a", "a", "", "", "b"]


@pytest.mark.parametrize("skill", [None, ""])
def test_without_a_skill_every_document_is_equally_likely(skill: str | None) -> None:
    corpus = make("a", "", "b", "b")
    generator = rng(1)
    counts = Counter(corpus.sample(1, generator, skill=skill)[0].id for _ in range(2000))
    assert len(counts) == 4
    assert min(counts.values()) > 400


def test_excluded_documents_are_never_sampled() -> None:
    corpus = make("a", "a", "b")
    assert ids(corpus.sample(2, rng(), skill="a", exclude=["d00"])) == ["d01", "d02"]


def test_sampling_more_than_there_is_says_how_many_there_are() -> None:
    with pytest.raises(CorpusError, match="cannot draw 3 documents: 2 of 3 are available"):
        make("", "", "").sample(3, rng(), exclude=["d01"])
    assert make("").sample(0, rng()) == []


def test_a_negative_number_of_documents_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 0, got -1"):
        make("").sample(-1, rng())
    with pytest.raises(ConfigError, match="at least 0, got -1"):
        make("").draw(CorpusCursor(), -1, rng())


# --- the coverage cursor


@settings(deadline=None)
@given(
    skills=st.lists(st.sampled_from(["", "a", "b"]), min_size=1, max_size=12),
    sizes=st.lists(st.integers(0, 15), max_size=12),
    seed=st.integers(0, 9),
)
def test_every_document_is_used_once_before_any_repeats(
    skills: list[str], sizes: list[int], seed: int
) -> None:
    corpus = make(*skills)
    generator, cursor = rng(seed), CorpusCursor()
    used: list[str] = []
    for turn, size in enumerate(sizes):
        drawn, cursor = corpus.draw(cursor, size, generator, ("a", "b", None)[turn % 3])
        assert len(drawn) == size
        if size <= len(corpus):
            assert len(set(ids(drawn))) == size
        used.extend(ids(drawn))
    for start in range(0, len(used), len(corpus)):
        round_ids = used[start : start + len(corpus)]
        assert len(set(round_ids)) == len(round_ids)


def test_unused_documents_of_other_skills_come_before_a_repeat() -> None:
    corpus = make("a", "a", "b", "")
    first, cursor = corpus.draw(CorpusCursor(), 2, rng(), "a")
    second, cursor = corpus.draw(cursor, 2, rng(), "a")
    third, cursor = corpus.draw(cursor, 1, rng(), "a")
    assert [[document.skill for document in drawn] for drawn in (first, second, third)] == [
        ["a", "a"],
        ["", "b"],
        ["a"],
    ]
    assert cursor.seen == (third[0].id,)


def test_a_draw_does_not_change_the_cursor_it_was_given_and_repeats_exactly() -> None:
    corpus = make(*"abab")
    cursor = CorpusCursor(("d00",))
    once = corpus.draw(cursor, 2, rng(7), "b")
    assert corpus.draw(cursor, 2, rng(7), "b") == once
    assert cursor == CorpusCursor(("d00",))


def test_a_cursor_of_another_corpus_is_refused() -> None:
    with pytest.raises(CorpusError, match="'elsewhere', which is not in this corpus"):
        make("").draw(CorpusCursor(("elsewhere",)), 1, rng())


def test_a_cursor_survives_json() -> None:
    cursor = CorpusCursor(("a", "b"))
    assert CorpusCursor.from_json(json.loads(json.dumps(cursor.to_json()))) == cursor


@pytest.mark.parametrize("data", [{}, {"seen": "ab"}, {"seen": [1]}, {"seen": [], "round": 2}])
def test_a_malformed_cursor_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(CorpusError, match="a corpus cursor is"):
        CorpusCursor.from_json(data)
