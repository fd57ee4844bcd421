"""Environments with tools in a worker: the same as in plain Python, and faults that are not the tool's to hide."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tool_sources import ECHO, JSON, MALFORMED, MINIMAL, STEPS, TAKEN, one_call, plain, session

from synthgym.contract import MAX_ACTION_CHARS
from synthgym.envs import TOOL_FORMATS, parse_action
from synthgym.envs.tool_calls import encode_action
from synthgym.sandbox import EnvFault, FaultKind, Loaded, Pool, ResetResult, StepResult


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=2, sources_per_worker=20) as pool:
        yield pool


@pytest.mark.parametrize("source", [ECHO, STEPS], ids=["echo", "steps"])
def test_a_worker_gives_what_plain_python_gives(source: str, pool: Pool) -> None:
    one, env = session(pool, source), plain(source)
    observation, info = env.reset(3)
    assert one.solution(3) == tuple(env.solution())
    assert one.hint(3) == env.hint()
    assert one.reset(3) == ResetResult(observation, info)
    actions = [action for action in MALFORMED if "\ud800" not in action]
    actions += [one_call(tool, {"value": json.loads(text)}) for tool in TAKEN for text in JSON]
    actions += [one_call("fails", {"kind": "x"}), *env.solution()]
    for action in actions:
        assert one.step(action) == StepResult(*env.step(action)), action
    one.close()


def test_a_worker_offers_the_schemas(pool: Pool) -> None:
    one = session(pool, STEPS)
    loaded = one.load()
    assert isinstance(loaded, Loaded)
    assert [tool["function"]["name"] for tool in loaded.tools] == ["set", "break_seal"]
    assert (loaded.entry, loaded.max_turns, loaded.requires) == ("StepsEnv", 40, ())
    one.close()


def test_a_model_that_writes_tags_or_json_plays(pool: Pool) -> None:
    replies = [
        '<think>Door</think><tool_call>{"name": "set", "arguments": {"what": "door", "state": "open"}}</tool_call>',
        "<tool_call>\n<function=set>\n<parameter=what>\nlamp\n</parameter>\n<parameter=state>\non\n</parameter>\n"
        "</function>\n</tool_call>",
        "So it is \\boxed{1,234.50}.",
        '```json\n{"name": "break_seal", "arguments": {}}\n```',
        "<answer>deep red</answer>",
        '{"answer": "1"}',
    ]
    one = session(pool, STEPS)
    one.reset(0)
    steps = [one.step(parse_action(reply, TOOL_FORMATS).action) for reply in replies]
    rewards = [step.reward for step in steps if isinstance(step, StepResult)]
    assert sum(rewards) == 1.0
    assert steps[-1] == StepResult(
        "That is right.\n\nThe user has no further wishes.", rewards[-1], True, False, {"done": 6}
    )
    one.close()


def test_the_largest_action_is_taken(pool: Pool) -> None:
    one = session(pool, ECHO)
    one.reset(0)
    room = MAX_ACTION_CHARS - len(encode_action([{"name": "text", "arguments": {"value": ""}}]))
    step = one.step(encode_action([{"name": "text", "arguments": {"value": "x" * room}}]))
    assert isinstance(step, StepResult)
    assert len(step.observation) == room + len("str ''")
    one.close()


@pytest.mark.parametrize("kind", ["memory", "hang", "exit"])
def test_what_a_tool_does_to_its_worker_is_a_fault_and_not_an_error_of_the_tool(
    kind: str, pool: Pool
) -> None:
    doings = {
        "memory": 'return "x" * 10**12',
        "hang": "while True: pass",
        "exit": "raise SystemExit",
    }
    source = MINIMAL.replace("{setup}", 'self.instruct("A.", lambda: False)')
    source = source.replace("self.count += amount", doings[kind])
    one = session(pool, source)
    one.reset(0)
    step = one.step(one_call("add", {}))
    assert isinstance(step, EnvFault)
    assert (
        step.kind
        is {"memory": FaultKind.MEMORY, "hang": FaultKind.TIMEOUT, "exit": FaultKind.ERROR}[kind]
    )
    one.close()
