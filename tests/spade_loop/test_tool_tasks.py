"""Tasks with tools: what is drawn, how often, and how it is told to a designer."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from spade_loop.design.tool_tasks import (
    DISTRACTORS,
    DOMAINS,
    KIND_WEIGHTS,
    USER_MESSAGES,
    ToolTask,
    draw_task,
)
from spade_loop.errors import ConfigError
from synthgym.contract import TOOL_SKILLS

SKILL = TOOL_SKILLS[0]


def drawn(count: int, seed: int = 0) -> list[ToolTask]:
    rng = np.random.default_rng(seed)
    return [draw_task(rng, SKILL) for _ in range(count)]


def task(**changes: Any) -> ToolTask:
    values = {"domain": "files", "kind": "execute", "user_messages": 3, "distractors": 1}
    return ToolTask(**(values | changes))  # type: ignore[arg-type]


def test_there_are_ten_domains_and_four_kinds_with_the_weights_of_the_method() -> None:
    assert len(DOMAINS) == 10
    assert list(KIND_WEIGHTS.values()) == [3, 2, 1, 1]
    assert (USER_MESSAGES[0], USER_MESSAGES[-1]) == (3, 5)
    assert (DISTRACTORS[0], DISTRACTORS[-1]) == (1, 2)


def test_equal_generators_draw_equal_tasks() -> None:
    assert drawn(50) == drawn(50)
    assert drawn(50) != drawn(50, seed=1)


def test_a_task_takes_as_much_of_the_generator_whatever_is_drawn() -> None:
    """So that what is drawn after a task does not depend on the skill."""
    states = set()
    for skill in TOOL_SKILLS:
        rng = np.random.default_rng(4)
        draw_task(rng, skill)
        states.add(int(rng.integers(2**60)))
    assert len(states) == 1


def test_kinds_come_by_their_weights_and_everything_else_equally_often() -> None:
    tasks = drawn(7000)
    kinds = Counter(t.kind for t in tasks)
    for kind, weight in KIND_WEIGHTS.items():
        # Five standard errors of a share of 7000 draws.
        assert kinds[kind] / 7000 == pytest.approx(weight / 7, abs=0.03)
    for counts, size in (
        (Counter(t.domain for t in tasks), 10),
        (Counter(t.user_messages for t in tasks), 3),
        (Counter(t.distractors for t in tasks), 2),
    ):
        assert len(counts) == size
        assert all(n / 7000 == pytest.approx(1 / size, abs=0.03) for n in counts.values())


@pytest.mark.parametrize("skill", ["optimisation", "data-retreival", ""])
def test_a_task_is_drawn_for_a_skill_of_tool_use_alone(skill: str) -> None:
    with pytest.raises(ConfigError, match="skill of tool use") as caught:
        draw_task(np.random.default_rng(0), skill)
    assert ("did you mean 'data-retrieval'" in str(caught.value)) == (skill == "data-retreival")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"domain": "file"},
            r"unknown domain 'file'; did you mean 'files'\? \(known: shop orders,",
        ),
        ({"kind": "dance"}, r"unknown kind of task 'dance' \(known: execute,"),
        ({"user_messages": 2}, "user_messages must be 3 to 5, got 2"),
        ({"user_messages": 6}, "user_messages must be 3 to 5, got 6"),
        ({"distractors": 0}, "distractors must be 1 to 2, got 0"),
        ({"distractors": 3}, "distractors must be 1 to 2, got 3"),
    ],
)
def test_a_task_that_there_is_not_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        task(**changes)


def test_a_designer_is_told_every_part_of_a_task() -> None:
    told = task(user_messages=4, distractors=2).text()
    assert "Domain: files (folders, files" in told
    assert "Kind: execute." in told
    assert "4 instructions" in told
    assert "2 tools help with none of them" in told
    assert "one tool helps with none of them" in task().text()
    # What is special about a kind is said, and in words of its own.
    said = {kind: task(kind=kind).text() for kind in KIND_WEIGHTS}
    assert len(set(said.values())) == len(said)
    assert "asks the user" in said["missing-argument"]
    assert "declined" in said["out-of-scope"]


def test_the_texts_name_no_benchmark() -> None:
    texts = " ".join(t.text() for t in drawn(200)).casefold()
    for name in ("tau2", "tau-bench", "bfcl", "acebench", "benchmark", "airline"):
        assert name not in texts
