from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from synthgym.errors import ConfigError
from synthgym.memory import (
    Description,
    HashEmbedder,
    Judge,
    MemoryRecord,
    NoveltyMemory,
    NoveltyReason,
    Trace,
    Verdict,
)
from synthgym.memory.subtrees import Hashes

Digest = Callable[[object], str]
RNG = np.random.default_rng(0)
PIECES: Hashes = np.unique(RNG.integers(0, 2**64, size=200, dtype=np.uint64))
OTHERS: Hashes = np.unique(RNG.integers(0, 2**64, size=200, dtype=np.uint64))
TRACE = Trace(outcomes="a", numbers="b", pattern="c")
BASE_TEXT = "open the lock gates of the canal"
OTHER_TEXT = "count the primes below a bound"


def sharing(share: float, key: str = "x", text: str = OTHER_TEXT, **more: object) -> Description:
    """A candidate with this share of the pieces of the held one."""
    kept = round(share * len(PIECES))
    pieces = np.unique(np.concatenate([PIECES[:kept], OTHERS[: len(PIECES) - kept]]))
    return Description(text, f"ast/1:{key}", "", pieces=pieces, **more)  # type: ignore[arg-type]


def holding(digest: Digest, **settings: object) -> NoveltyMemory:
    memory = NoveltyMemory(HashEmbedder(64), **settings)  # type: ignore[arg-type]
    held = Description(BASE_TEXT, "ast/1:base", "", behaviour=TRACE, pieces=PIECES)
    memory.add(digest(0), held, name="Base", skill="logic", iteration=0)
    return memory


@pytest.mark.parametrize(
    ("strictness", "candidate", "reason"),
    [
        ("copy", sharing(0.95), NoveltyReason.NEW),
        ("refactor", sharing(0.95), NoveltyReason.REFACTORED_COPY),
        ("refactor", sharing(0.65), NoveltyReason.NEW),
        ("refactor", sharing(0.65, behaviour=TRACE), NoveltyReason.RESKIN),
        ("copy", sharing(0.65, behaviour=TRACE), NoveltyReason.NEW),
        ("refactor", sharing(0.0, behaviour=TRACE), NoveltyReason.NEW),
        ("sibling", sharing(0.65), NoveltyReason.SIBLING),
        ("sibling", sharing(0.55), NoveltyReason.NEW),
        ("sibling", sharing(0.55, text=BASE_TEXT), NoveltyReason.SIBLING),
        ("sibling", sharing(0.0, text=BASE_TEXT), NoveltyReason.NEW),
        ("copy", sharing(0.0, key="base"), NoveltyReason.COPY),
    ],
)
def test_the_strictness_says_what_is_refused(
    digest: Digest, strictness: str, candidate: Description, reason: NoveltyReason
) -> None:
    decision = holding(digest, strictness=strictness).check(candidate, iteration=99)
    assert decision.reason is reason
    assert decision.accepted == (reason is NoveltyReason.NEW)
    assert decision.accepted or "Base" in decision.detail


@pytest.mark.parametrize(
    ("candidate", "near"),
    [
        (sharing(0.0), False),
        (sharing(0.55), True),
        (sharing(0.0, text=BASE_TEXT), True),
    ],
    ids=["neither", "code", "text"],
)
def test_what_is_near_is_accepted_and_named(
    digest: Digest, candidate: Description, near: bool
) -> None:
    decision = holding(digest).check(candidate)
    assert decision.accepted
    assert decision.review == ((digest(0),) if near else ())
    assert ("Base" in decision.detail) == near


def test_where_the_review_band_begins_is_a_setting(digest: Digest) -> None:
    candidate = sharing(0.0, text=BASE_TEXT + " now")
    cosine = holding(digest).check(candidate).nearest[0].similarity
    assert 0.8 < cosine < 1.0
    assert holding(digest, review_cosine=cosine).check(candidate).review
    assert not holding(digest, review_cosine=cosine + 1e-4).check(candidate).review


class Says:
    """A judge with one answer, or one exception."""

    def __init__(self, answer: object) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def judge(self, candidate: Description, held: MemoryRecord) -> Verdict:
        self.asked.append(held.name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (Verdict.NEW, True),
        (Verdict.DUPLICATE, False),
        (Verdict.UNKNOWN, False),
        ("new", False),
        (None, False),
        (True, False),
        (ValueError("no model"), False),
    ],
    ids=str,
)
def test_only_a_judge_that_says_new_lets_a_near_one_in(
    digest: Digest, answer: object, accepted: bool
) -> None:
    judge: Judge = Says(answer)
    decision = holding(digest, judge=judge).check(sharing(0.55))
    assert decision.accepted == accepted
    assert decision.reason is (NoveltyReason.NEW if accepted else NoveltyReason.JUDGED)
    assert judge.asked == ["Base"]  # type: ignore[attr-defined]


def test_a_judge_is_asked_about_near_ones_alone(digest: Digest) -> None:
    judge = Says(Verdict.DUPLICATE)
    memory = holding(digest, judge=judge)
    assert memory.check(sharing(0.0)).accepted
    assert not memory.check(sharing(0.95)).accepted
    assert judge.asked == []


def test_without_a_judge_a_quota_limits_those_that_are_near(digest: Digest) -> None:
    memory = holding(digest, review_quota=2, window=3)
    reasons = []
    for i in range(1, 4):
        own = np.unique(RNG.integers(0, 2**64, size=200, dtype=np.uint64))
        candidate = Description(BASE_TEXT, f"ast/1:{i}", "", pieces=own)
        decision = memory.check(candidate)
        reasons.append(decision.reason)
        if decision.accepted:
            memory.add(digest(i), candidate, name=f"E{i}", skill="s", iteration=0)
    assert reasons == [NoveltyReason.NEW, NoveltyReason.REVIEW_FULL, NoveltyReason.REVIEW_FULL]
    assert memory.check(candidate, iteration=3).accepted


def test_equal_structure_and_behaviour_with_other_data_is_a_reskin(digest: Digest) -> None:
    memory = holding(digest)
    other = Description(OTHER_TEXT, "ast/1:base", "data", behaviour=TRACE, pieces=PIECES)
    assert memory.check(other).reason is NoveltyReason.RESKIN
    unplayed = Description(OTHER_TEXT, "ast/1:base", "data", pieces=PIECES)
    assert memory.check(unplayed).accepted


def test_a_blueprint_is_not_compared_by_its_code(digest: Digest) -> None:
    blueprint = Description(BASE_TEXT, "ast/1:b", "", "locks", (0.5,), TRACE, PIECES)
    assert holding(digest, strictness="sibling").check(blueprint).accepted


def test_what_was_removed_refuses_nothing(digest: Digest) -> None:
    memory = holding(digest)
    memory.remove(digest(0))
    assert memory.check(sharing(0.95)).accepted
    assert memory.check(sharing(0.0, key="base")).nearest == ()
    assert digest(0) not in memory
    assert list(memory) == []


def test_new_code_under_an_old_digest_replaces_the_old(digest: Digest) -> None:
    memory = holding(digest)
    new = Description(OTHER_TEXT, "ast/1:new", "", pieces=OTHERS)
    memory.add(digest(0), new, name="Base", skill="logic", iteration=1)
    assert memory.check(sharing(0.95)).accepted
    rewritten = Description("neither text", "ast/1:y", "", pieces=OTHERS[10:])
    assert memory.check(rewritten).reason is NoveltyReason.REFACTORED_COPY
    assert [near.similarity for near in memory.nearest(OTHER_TEXT, 9)] == [1.0]


@pytest.mark.parametrize(
    "settings",
    [{"strictness": "strict"}, {"review_cosine": 1.1}, {"review_quota": 0}],
    ids=lambda settings: next(iter(settings)),
)
def test_wrong_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(settings))):
        NoveltyMemory(HashEmbedder(8), **settings)  # type: ignore[arg-type]


def test_a_structure_that_nobody_has_any_more_survives_a_file(
    digest: Digest, tmp_path: Path
) -> None:
    memory = holding(digest)
    new = Description(OTHER_TEXT, "ast/1:new", "")  # and nothing is known of its pieces
    memory.add(digest(0), new, name="Base", skill="logic", iteration=1)
    memory.save(tmp_path / "memory")
    again = NoveltyMemory.load(tmp_path / "memory", HashEmbedder(64))
    assert again.check(sharing(0.95)).accepted
    again.add(digest(1), sharing(0.0, key="y"), name="Other", skill="logic", iteration=1)
    rewritten = Description("neither text", "ast/1:z", "", pieces=OTHERS[10:])
    assert "Other" in again.check(rewritten).detail


def test_what_is_refused_changes_nothing(digest: Digest) -> None:
    memory = holding(digest)
    wrong = Description(OTHER_TEXT, "ast/1:wrong", "", pieces=PIECES[::-1])
    with pytest.raises(ConfigError, match="sorted"):
        memory.add(digest(1), wrong, name="Wrong", skill="logic", iteration=0)
    memory.add(digest(2), sharing(0.0), name="Other", skill="logic", iteration=0)
    assert [near.name for near in memory.nearest(OTHER_TEXT, 1)] == ["Other"]
    assert [near.similarity for near in memory.nearest(OTHER_TEXT, 1)] == [1.0]
