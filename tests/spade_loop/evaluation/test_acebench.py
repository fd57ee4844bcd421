"""ACEBench's agent part over a small checkout of our own making. Completers here are scripted; no model is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai_service import Service, completion, serving

from spade_loop.completers import Reply
from spade_loop.errors import ConfigError, ModelError
from spade_loop.evaluation.suite import Attempt, Failure
from spade_loop.evaluation.suites import acebench
from spade_loop.evaluation.suites.acebench_data import KINDS, differences, milestones_passed
from spade_loop.evaluation.suites.children import Limits

SCENARIO = """
import copy

class BaseApi:
    def __init__(self):
        self.wifi = False
        self.logged_in = True
        self.secret = "not compared"

    def load(self, config):
        self.wifi = config.get("wifi", False)

    def turn_on_wifi(self):
        self.wifi = True
        return {"status": True}

    def read_clock(self, zone):
        return "12:00 " + zone

    def spin(self):
        while True:
            pass

KEPT = {}

def execute_agent_func_call(func_call_list, initial_config, involved_classes, model_name, test_entry_id, language):
    for name in involved_classes:
        if name not in KEPT:
            KEPT[name] = globals()[name]()
            KEPT[name].load(copy.deepcopy(initial_config.get(name, {})))
    results = []
    for call in func_call_list:
        try:
            results.append(eval("KEPT['BaseApi']." + call))
        except Exception as error:
            results.append(f"Error during execution: {error}")
    return results, KEPT
"""
"""Stands for a checkout's scenarios: it evaluates what it is given, as they do."""


def item(kind: str, number: int, wifi: bool) -> dict[str, Any]:
    return {
        "id": f"agent_{kind}_{number}",
        "question": "Turn on the WiFi.",
        "initial_config": {"BaseApi": {"wifi": wifi}},
        "path": [],
        "function": [{"name": "turn_on_wifi", "parameters": {}}],
        "involved_classes": ["BaseApi"],
    }


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    data, code = tmp_path / "data_all" / "data_en", tmp_path / "model_inference"
    (data / "possible_answer").mkdir(parents=True)
    for kind in KINDS:
        (code / kind).mkdir(parents=True)
        (code / kind / f"{kind}_utils.py").write_text(SCENARIO)
        (code / kind / "APIModel_agent.py").write_text(
            "import a_package_that_is_not_installed\n"
            "MULTI_TURN_AGENT_PROMPT_SYSTEM_EN = '''Call functions, or say finish conversation. '''\n"
            "MULTI_TURN_AGENT_PROMPT_USER_EN = '''{functions}\\n{history}'''\n"
        )
        rows = [item(kind, 0, wifi=False), item(kind, 1, wifi=True)]
        truth = [
            {
                "id": row["id"],
                "ground_truth": [{"BaseApi": {"wifi": True, "logged_in": True}}],
                "mile_stone": ["[turn_on_wifi()]"],
            }
            for row in rows
        ]
        name = f"data_agent_{kind}.json"
        (data / name).write_text("\n".join(map(json.dumps, rows)))
        (data / "possible_answer" / name).write_text("\n".join(map(json.dumps, truth)))
    (code / "multi_turn" / "APIModel_user.py").write_text(
        "SYSTEM_PROMPT_BASE_EN = '''You are a user: {instruction}'''\nSYSTEM_PROMPT_TRAVEL_EN = ''\n"
    )
    (code / "prompt_en.py").write_text("BASE_PROMPT_EN = 'Be brief.'\nTRAVEL_PROMPT_EN = ''\n")
    return tmp_path


def played(checkout: Path, *replies: str, number: int = 0) -> Attempt:
    """A task told at once, with given replies, the last one for ever."""
    suite = acebench.suite(data=checkout, categories=("multi_step",))
    left = list(replies)
    return suite.play(
        suite.items(None)[number],
        lambda chat: Reply(left.pop(0) if len(left) > 1 else left[0], 1, stopped=True),
        0,
    )


def test_reaching_the_state_is_right(checkout: Path) -> None:
    attempt = played(checkout, "[turn_on_wifi()]", "finish conversation")
    assert attempt.correct, attempt.detail
    assert attempt.detail == "1 of 1 milestones"
    assert [m.role for m in attempt.transcript] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert attempt.transcript[3].content == "[{'status': True}]"


def test_another_state_is_wrong(checkout: Path) -> None:
    attempt = played(checkout, "[read_clock(zone='UTC')]", "finish conversation")
    assert (attempt.correct, attempt.failure) == (False, "")
    assert attempt.detail == "0 of 1 milestones; BaseApi.wifi: expected True, got False"


def test_calling_nothing_is_no_success_even_where_the_state_is_right(checkout: Path) -> None:
    attempt = played(checkout, "It is on.", "It is on.", "finish conversation", number=1)
    assert (attempt.correct, attempt.failure) == (False, acebench.NO_CALL)


def test_a_conversation_without_end_is_stopped(checkout: Path) -> None:
    attempt = played(checkout, "[read_clock(zone='UTC')]")
    assert attempt.failure == Failure.TURNS
    assert len(attempt.transcript) == 2 + acebench.MESSAGES


def test_a_cut_reply_is_counted_as_cut(checkout: Path) -> None:
    suite = acebench.suite(data=checkout, categories=("multi_step",))
    attempt = suite.play(suite.items(None)[0], lambda chat: Reply("[turn_on", 1, stopped=False), 0)
    assert attempt.failure == Failure.CUT


@pytest.mark.parametrize(
    "text",
    [
        "[turn_on_wifi(a=open('{mark}', 'w'))]",
        "[__class__(a=1)]",
        "[open(file='{mark}', mode='w')]",
        "[turn_on_wifi.__func__.__globals__(a=1)]",
    ],
)
def test_nothing_of_a_reply_is_evaluated(checkout: Path, tmp_path: Path, text: str) -> None:
    mark = tmp_path / "mark"
    attempt = played(checkout, text.replace("{mark}", str(mark)), "finish conversation")
    assert not mark.exists()
    assert "Error during execution" in attempt.transcript[3].content
    assert not attempt.correct


def test_a_call_that_does_not_end_is_a_failure_of_its_attempt(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acebench, "_LIMITS", Limits(seconds=2.0, reads=True, required=False))
    attempt = played(checkout, "[spin()]")
    assert attempt.failure == Failure.CHECKER
    assert "no answer within 2 s" in attempt.detail


@pytest.fixture
def user() -> Iterator[Service]:
    with serving() as service:
        yield service


def conversation(
    checkout: Path, user: Service, replies: Sequence[str], said: Sequence[str]
) -> Attempt:
    """A conversation with a simulated user behind an endpoint, who says what is given."""
    user.answers = [completion(text) for text in said]
    suite = acebench.suite(
        data=checkout, categories=("multi_turn",), user_model="user", user_endpoint=user.url
    )
    left = iter(replies)
    try:
        return suite.play(suite.items(None)[0], lambda chat: Reply(next(left), 1, stopped=True), 3)
    finally:
        suite.close()


def test_a_user_is_asked_where_no_function_is_called(checkout: Path, user: Service) -> None:
    attempt = conversation(
        checkout,
        user,
        ["What do you need?", "[turn_on_wifi()]", "It is on."],
        ["Hello.", "WiFi, please.", "finish conversation"],
    )
    assert attempt.correct, attempt.detail
    assert attempt.transcript[0].content.endswith("Be brief.")
    last = user.asked[-1]["messages"]
    assert last[0]["content"] == "You are a user: Turn on the WiFi."
    assert [m["role"] for m in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert last[-1]["content"] == "It is on."


def test_the_agent_sees_the_conversation_so_far(checkout: Path, user: Service) -> None:
    user.answers = [completion("Hello."), completion("WiFi."), completion("finish conversation")]
    suite = acebench.suite(
        data=checkout, categories=("multi_turn",), user_model="user", user_endpoint=user.url
    )
    seen: list[str] = []
    left = iter(["What?", "[turn_on_wifi()]", "Done."])

    def say(chat: Any) -> Reply:
        seen.append(chat[-1].content.partition("\n")[2])
        return Reply(next(left), 1, stopped=True)

    suite.play(suite.items(None)[0], say, 0)
    suite.close()
    assert seen[-1] == (
        "user:Hello.\nagent:What?\nuser:WiFi.\nagent:[turn_on_wifi()]\nexecution:[{'status': True}]\n"
    )


def test_items_are_those_of_the_files(checkout: Path) -> None:
    suite = acebench.suite(data=checkout, user_model="u", user_endpoint="http://localhost:9/v1")
    assert [(i.id, i.category) for i in suite.items(None)] == [
        ("agent_multi_step_0", "multi_step"),
        ("agent_multi_step_1", "multi_step"),
        ("agent_multi_turn_0", "multi_turn"),
        ("agent_multi_turn_1", "multi_turn"),
    ]
    assert suite.version == "1+en+user-u"
    suite.close()


def test_without_a_checkout_it_says_where_to_get_one() -> None:
    with pytest.raises(ModelError, match=r"git clone https://github\.com/.*data=DIR"):
        acebench.suite()


def test_data_without_the_scenarios_are_refused(checkout: Path) -> None:
    (checkout / "model_inference" / "multi_step" / "multi_step_utils.py").unlink()
    with pytest.raises(ConfigError, match=r"has no .*multi_step_utils\.py"):
        acebench.suite(data=checkout, categories=("multi_step",))


def test_conversations_need_a_user(checkout: Path) -> None:
    with pytest.raises(ConfigError, match="user_model=NAME"):
        acebench.suite(data=checkout)


def test_an_unknown_category_is_named(checkout: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'multi_step'"):
        acebench.suite(data=checkout, categories=("multistep",))


def test_prompts_that_are_not_where_they_were_are_named(checkout: Path) -> None:
    (checkout / "model_inference" / "multi_step" / "APIModel_agent.py").write_text("X = 1\n")
    with pytest.raises(ConfigError, match="has no text MULTI_TURN_AGENT_PROMPT_SYSTEM_EN"):
        acebench.suite(data=checkout, categories=("multi_step",))


def test_prompts_with_other_places_are_named(checkout: Path) -> None:
    path = checkout / "model_inference" / "multi_step" / "APIModel_agent.py"
    path.write_text(path.read_text().replace("{history}", "{past}"))
    with pytest.raises(ConfigError, match=r"'past'.*expected only functions, history"):
        acebench.suite(data=checkout, categories=("multi_step",))


def test_scenarios_that_do_not_run_are_refused_at_once(checkout: Path) -> None:
    (checkout / "model_inference" / "multi_step" / "multi_step_utils.py").write_text(
        "import nothing_like_this"
    )
    with pytest.raises(ConfigError, match=r"cannot be used.*nothing_like_this"):
        acebench.suite(data=checkout, categories=("multi_step",))


def test_a_line_of_something_else_is_named(checkout: Path) -> None:
    (checkout / "data_all" / "data_en" / "data_agent_multi_step.json").write_text('\n{"id": 1}\n')
    with pytest.raises(ConfigError, match=r"multi_step\.json, line 2: question"):
        acebench.suite(data=checkout, categories=("multi_step",))


@pytest.mark.parametrize(
    ("expected", "reached", "wrong"),
    [
        ([{"A": {"x": 1}}], [{"A": {"x": 1}}], 0),
        ([{"A": {"x": 1, "y": 2}}], [{"A": {"x": 1}}], 0),
        ([{"A": {"x": 1}}], [{"A": {"x": 2}}], 1),
        ([{"A": {}}], [{"A": {"x": 2}}], 1),
        ([{"A": {"x": {"1": "a"}}}], [{"A": {"x": {"1": "a", "2": "b"}}}], 0),
        ([{"A": {"x": {"1": "a", "2": "b"}}}], [{"A": {"x": {"1": "c"}}}], 2),
        ([{"A": {"x": [1]}}], [{"A": {"x": [1, 2]}}], 1),
        ([{"A": {"x": 1}}, {"BAPI": {"x": 1}}], [{"A": {"x": 1}}, {"BApi": {"x": 2}}], 0),
        ([{"A": {"x": 1}}], [], 1),
    ],
)
def test_states(expected: Any, reached: Any, wrong: int) -> None:
    assert len(differences(expected, reached)) == wrong


@given(st.lists(st.sampled_from("abc"), max_size=5), st.lists(st.sampled_from("abc"), max_size=8))
def test_milestones_are_counted_in_order(way: list[str], calls: list[str]) -> None:
    passed, stones = milestones_passed([way], calls)
    assert stones == len(way)
    rest = iter(calls)
    assert all(stone in rest for stone in way[:passed])
    rest = iter(calls)
    assert passed == stones or not all(stone in rest for stone in way[: passed + 1])


def test_the_way_that_fits_best_counts() -> None:
    assert milestones_passed([["a", "x"], ["a", "b"], ["y"]], ["a", "b"]) == (2, 2)
