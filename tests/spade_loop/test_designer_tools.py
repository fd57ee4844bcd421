"""The prompt for environments with tools: what it promises of `ToolEnv` is so, and its prefix can be cached."""

from __future__ import annotations

import ast
import string
from importlib import resources

import numpy as np
import pytest

from spade_loop.design.ideas import grounding
from spade_loop.design.tool_tasks import draw_task
from spade_loop.parsing import last_code_block
from spade_loop.prompts import load_prompt
from spade_loop.types import Message
from synthgym.contract import TOOL_SKILLS, TOOLS_BASE
from synthgym.registry import Snapshot, bundled_root
from synthgym.validation import Report, validate

EXAMPLE = (
    resources.files("spade_loop.prompts").joinpath("worked_example_tools.txt").read_text("utf-8")
).strip()
PROMPT = load_prompt("designer_tools")
VARYING = ("skill", "exemplars", "warnings", "document", "task")


def chat(seed: int, skill: str) -> tuple[Message, ...]:
    rng = np.random.default_rng(seed)
    return PROMPT.render(
        example=EXAMPLE,
        skill=skill,
        task=draw_task(rng, skill).text(),
        document=grounding(None, skill, rng),
        exemplars=f"- Environment {seed}.",
        warnings="",
    )


@pytest.fixture(scope="module")
def report() -> Report:
    return validate(EXAMPLE)


def test_the_worked_example_passes_every_gate(report: Report) -> None:
    assert report.ok, str(report)
    assert not report.findings
    assert report.record is not None
    assert report.record.base == TOOLS_BASE


def test_nobody_who_understands_nothing_wins_the_worked_example(report: Report) -> None:
    assert {name: won for name, (won, _) in report.wins.items() if won} == {}
    assert report.record is not None
    assert max(report.witness_turns) <= report.record.max_turns - 4


def test_the_worked_example_is_none_of_the_bundled_environments() -> None:
    snapshot = Snapshot.open(bundled_root())
    entries = {snapshot.spec(entry.digest).record.entry for entry in snapshot}
    assert "LostPropertyEnv" in entries
    assert "ToolShedEnv" not in entries


def test_the_worked_example_has_all_that_the_prompt_speaks_of() -> None:
    tree = ast.parse(EXAMPLE)
    named = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert {"setup", "hint", "solution", "tool_ask_user", "tool_decline"} <= named
    assert not {"__init__", "reset", "step"} & named
    assert 3 <= sum(name.startswith("tool_") for name in named) <= 8
    for text in (
        "Literal[",
        "raise ToolError(",
        "self.instruct(",
        "answer=",
        "Args:",
        "distractor",
    ):
        assert text in EXAMPLE
    assert len(EXAMPLE.splitlines()) <= 140


def test_what_varies_comes_last() -> None:
    chats = [chat(seed, skill) for seed, skill in enumerate(TOOL_SKILLS)]
    assert len({messages[0] for messages in chats}) == 1
    texts = [messages[-1].content for messages in chats]
    shared = texts[0].partition("Skill: ")[0]
    assert EXAMPLE in shared
    assert all(text.startswith(shared) for text in texts)
    template = PROMPT.messages[-1].content
    assert sorted(string.Template(template).get_identifiers()) == sorted(("example", *VARYING))
    end = template[template.index("$skill") :]
    # Nothing but labels stands between what varies, and nothing behind it.
    assert len(end) < 200
    assert end.endswith("$task")


def test_the_source_is_found_again_in_the_prompt() -> None:
    """The fences of the example are in order, and the words around it hold no block of their own."""
    before_reply = chat(1, TOOL_SKILLS[0])[-1].content
    assert last_code_block(before_reply).strip() == EXAMPLE


@pytest.mark.parametrize("skill", TOOL_SKILLS)
def test_a_chat_tells_skill_task_and_ideas(skill: str) -> None:
    text = chat(3, skill)[-1].content
    rng = np.random.default_rng(3)
    assert f"Skill: {skill}\n" in text
    assert text.endswith(draw_task(rng, skill).text())
    assert grounding(None, skill, rng) in text


def test_the_prompt_names_no_benchmark() -> None:
    text = " ".join(message.content for message in PROMPT.messages).casefold()
    assert not any(name in text for name in ("tau2", "bfcl", "acebench", "benchmark"))
