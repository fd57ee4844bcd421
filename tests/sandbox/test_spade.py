"""Sources of the SPADE pools, read as they are, through the adapter in a worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from synthgym.contract import SPADE_BASE, SPADE_TOOLS_BASE
from synthgym.envs import SynthEnv
from synthgym.envs.tool_calls import encode_action, encode_answer
from synthgym.errors import ResetNeeded
from synthgym.sandbox import EnvFault, FaultKind, Loaded, Pool, ResetResult, Session, StepResult
from synthgym.sandbox.spade import boxed_steps, tool_steps
from synthgym.spec import EnvRecord, Limits, SynthEnvSpec
from synthgym.validation import validate

SPADE = Path(__file__).parents[1] / "data" / "spade"
GAME = (SPADE / "game_00000_000_logical_deduction.py").read_text()
DEPOT = (SPADE / "game_00001_000_data_retrieval.py").read_text()
WORKSHOP = (SPADE / "game_00002_000_multi_step_workflows.py").read_text()

MINIMAL = """
class OddEnv:
    def __init__(self, max_turns=6):
        self.max_turns = max_turns

    def reset(self, seed=None):
        return {reset}

    def step(self, action):
        return {step}

    def solution(self):
        return {solution}
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(max_workers=4, sources_per_worker=50) as pool:
        yield pool


def record(source: str, base: str = SPADE_BASE) -> EnvRecord:
    return EnvRecord(
        source=source,
        entry="",
        max_turns=25,
        base=base,
        reward_min_u=-1_000_000,
        action_format="tools" if base == SPADE_TOOLS_BASE else "raw",
    )


def session(pool: Pool, base: str = SPADE_BASE, /, **parts: str) -> Session:
    defaults = {
        "reset": "'begin', {}",
        "step": "action, 0.0, False, False, {}",
        "solution": "'x'",
    }
    return pool.open(record(MINIMAL.format(**defaults | parts), base))


def result(found: StepResult | EnvFault) -> StepResult:
    assert isinstance(found, StepResult), found
    return found


def test_a_game_is_spoken_to_in_boxes_and_its_witness_wins(pool: Pool) -> None:
    game = pool.open(record(GAME))
    loaded = game.load()
    assert isinstance(loaded, Loaded)
    assert (loaded.entry, loaded.max_turns, loaded.tools) == ("VaultDialEnv", 15, ())
    assert not loaded.has_hint
    for seed in range(5):
        game.reset(seed)
        actions = game.solution(seed)
        assert not isinstance(actions, EnvFault)
        steps = [result(game.step(action)) for action in actions]
        assert [step.reward for step in steps] == [0.0, 1.0]
        assert steps[-1].terminated


def test_only_the_last_reward_counts_and_it_is_cut(pool: Pool) -> None:
    paid = session(
        pool, step="action, 5.0 if 'end' in action else -3.0, 'end' in action, False, {}"
    )
    paid.reset(0)
    assert result(paid.step("go")).reward == 0.0
    assert result(paid.step("end")).reward == 1.0
    lost = session(pool, step="action, -7.0, True, False, {}")
    lost.reset(0)
    assert result(lost.step("go")).reward == -1.0


def test_a_reward_beyond_the_declared_range_is_refused(pool: Pool) -> None:
    for reward in ("11.0", "-10.5", "float('nan')"):
        bad = session(pool, step=f"action, {reward}, False, False, {{}}")
        bad.reset(0)
        fault = bad.step("go")
        assert isinstance(fault, EnvFault)
        assert fault.kind is FaultKind.BAD_VALUE


def test_a_lost_game_pays_less_than_nothing_through_gymnasium_too(pool: Pool) -> None:
    source = MINIMAL.format(
        reset="'begin', {}", step="action, -7.0, True, False, {}", solution="'x'"
    )
    env = SynthEnv(SynthEnvSpec(record=record(source), name="Odd"), pool=pool)
    env.reset(seed=1)
    _, reward, terminated, _, info = env.step("go")
    assert (reward, terminated, info["success"]) == (-1.0, True, False)
    assert "fault" not in info
    with pytest.raises(ResetNeeded):
        env.step("go")
    env.close()


def test_bare_text_from_reset_is_an_observation(pool: Pool) -> None:
    bare = session(pool, reset="'only text'")
    assert bare.reset(3) == ResetResult("only text", {})


def test_the_global_generator_is_seeded_for_one_instance_alone(pool: Pool) -> None:
    one, other = pool.open(record(GAME)), pool.open(record(GAME))
    one.reset(1)
    other.reset(2)
    again = pool.open(record(GAME))
    again.reset(1)
    assert one.solution(1) == again.solution(1)
    assert other.solution(2) != one.solution(1)


def test_turns_beyond_the_budget_are_cut_and_missing_ones_filled(pool: Pool) -> None:
    for text, turns in (("999", 25), ("1", 2), ("'many'", 25), ("True", 25), ("7", 7)):
        source = MINIMAL.format(
            reset="'begin', {}", step="action, 0.0, False, False, {}", solution="'x'"
        ).replace("self.max_turns = max_turns", f"self.max_turns = {text}")
        loaded = pool.open(record(source)).load()
        assert isinstance(loaded, Loaded)
        assert loaded.max_turns == turns


def test_the_first_of_several_classes_is_the_game(pool: Pool) -> None:
    helper = "\n\nclass LaterEnv(VaultDialEnv):\n    pass\n"
    base = "class Env:\n    pass\n\n"
    loaded = pool.open(record(base + GAME.split('"""', 2)[2] + helper)).load()
    assert isinstance(loaded, Loaded)
    assert loaded.entry == "VaultDialEnv"


@pytest.mark.parametrize("source", [DEPOT, WORKSHOP], ids=["answer", "instructions"])
def test_tool_use_environments_have_schemas_and_win_by_their_solution(
    pool: Pool, source: str
) -> None:
    desk = pool.open(record(source, SPADE_TOOLS_BASE))
    loaded = desk.load()
    assert isinstance(loaded, Loaded)
    assert {tool["type"] for tool in loaded.tools} == {"function"}
    for seed in range(5):
        desk.reset(seed)
        actions = desk.solution(seed)
        assert not isinstance(actions, EnvFault)
        steps = [result(desk.step(action)) for action in actions]
        assert steps[-1].terminated
        assert sum(step.reward for step in steps) == 1.0


def test_what_a_tool_raises_is_text_and_noted(pool: Pool) -> None:
    desk = pool.open(record(DEPOT, SPADE_TOOLS_BASE))
    desk.reset(0)
    step = result(desk.step(encode_action([{"name": "weigh", "arguments": {"box": "P1"}}])))
    assert "TypeError" in step.observation
    assert step.info == {"tool_errors": ["weigh: TypeError"]}
    assert result(desk.step(encode_answer("nonsense"))).info == {}


def test_criteria_are_told_at_reset(pool: Pool) -> None:
    desk = pool.open(record(WORKSHOP, SPADE_TOOLS_BASE))
    reset = desk.reset(0)
    assert isinstance(reset, ResetResult)
    assert reset.info["criteria"] == ["unmet"] * 3
    broken = WORKSHOP.replace('s["last_read"] == self.second', 's["nothing"]')
    desk = pool.open(record(broken, SPADE_TOOLS_BASE))
    reset = desk.reset(0)
    assert isinstance(reset, ResetResult)
    assert reset.info["criteria"][2] == "raised KeyError"


@pytest.mark.parametrize(
    ("parts", "call"),
    [
        ({"reset": "None"}, "reset"),
        ({"reset": "('a',)"}, "reset"),
        ({"reset": "('a', [])"}, "reset"),
        ({"reset": "(5, {})"}, "reset"),
        ({"step": "'text'"}, "step"),
        ({"step": "(1, 2, 3, 4, 5)"}, "step"),
        ({"step": "('a', '1', False, False, {})"}, "step"),
        ({"step": "('a', 0.0, None, False, {})"}, "step"),
        ({"solution": "None"}, "solution"),
        ({"solution": "b'x'"}, "solution"),
        ({"solution": "[1]"}, "solution"),
        ({"solution": "1 / 0"}, "solution"),
        ({"solution": "'x' * 10_000_000"}, "solution"),
    ],
)
def test_a_wrong_value_is_a_fault_of_that_call(
    pool: Pool, parts: dict[str, str], call: str
) -> None:
    odd = session(pool, **parts)
    found: Any = odd.reset(0)
    if call != "reset":
        assert isinstance(found, ResetResult)
        found = odd.step("a") if call == "step" else odd.solution(0)
    assert isinstance(found, EnvFault)
    assert (found.call, found.kind in (FaultKind.BAD_VALUE, FaultKind.ERROR)) == (call, True)


HOSTILE = {
    "a property for turns": "    max_turns = property(lambda self: 1 / 0)\n",
    "no tools": "    def get_tools(self):\n        return None\n",
    "endless tools": "    def get_tools(self):\n        return ['x' * 2000] * 100_000\n",
    "tools that raise": "    def get_tools(self):\n        raise KeyError('x')\n",
    "criteria of its own": "    def criteria_states(self):\n        return {1: object()}\n",
    "an execute_tool of its own": "    def execute_tool(self, name, arguments):\n        return 5\n",
}


@pytest.mark.parametrize("part", list(HOSTILE.values()), ids=list(HOSTILE))
def test_a_class_that_plays_tricks_on_the_adapter_is_a_fault_or_a_finding(
    pool: Pool, part: str
) -> None:
    source = WORKSHOP.replace(
        "class WorkshopMTEnv(ToolUseBaseEnv):\n", f"class WorkshopMTEnv(ToolUseBaseEnv):\n{part}"
    )
    desk = pool.open(record(source, SPADE_TOOLS_BASE), Limits(solution_seconds=2))
    for found in (desk.load(), desk.reset(0), desk.solution(0)):
        assert found is not None
    report = validate(source, pool=pool, dialect="spade")
    assert report.findings


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (r"\boxed{left} then \boxed{go {up}}", ["left", "go {up}"]),
        ("1. open door\n2) walk\nStep 3: stop", ["open door", "walk", "stop"]),
        ("open\n\n walk \n", ["open", "walk"]),
        ("42", ["42"]),
        ("", []),
    ],
)
def test_a_solution_in_prose_becomes_actions(text: str, steps: list[str]) -> None:
    assert boxed_steps(text) == steps


class _Tools:
    def tool_cd(self) -> None: ...
    def tool_mv(self) -> None: ...


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (
            "1. cd(path='/a (b)') -> ok 2. mv(src=\"x\", n=3, deep={'k': [1, None]}) ANSWER: done",
            [
                encode_action([{"name": "cd", "arguments": {"path": "/a (b)"}}]),
                encode_action(
                    [
                        {
                            "name": "mv",
                            "arguments": {"src": "x", "n": 3, "deep": {"k": [1, None]}},
                        }
                    ]
                ),
                encode_answer("done"),
            ],
        ),
        ("other(x=1) <answer> 7 </answer>", [encode_answer("7")]),
        ("cd(path=where) ANSWER: here", [encode_answer("here")]),
        ("cd('/positional') is no call by name; answer = 5", [encode_answer("5")]),
        ("just text", [encode_answer("just text")]),
        ("", []),
    ],
)
def test_a_solution_of_calls_becomes_canonical_actions(text: str, steps: list[str]) -> None:
    assert tool_steps(text, _Tools()) == steps
