"""Families whose environments have tools: over the whole space of parameters, and in the rules of each."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tool_families import FAMILIES, env_class, started

from spade_loop.families import Blueprint, Family, random_blueprint, render
from synthgym.contract import TOOLS_BASE
from synthgym.validation import validate

FIRST_CHARS = 800
"""Of a first observation: fewer than 250 tokens of any tokenizer that takes English words as one or two."""
TOLD = "I have told you all there is to tell."
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def every_blueprint(family: Family) -> list[Blueprint]:
    choices = family.choices()
    return [
        Blueprint(family.name, dict(zip(choices, values, strict=True)))
        for values in itertools.product(*choices.values())
    ]


def corners(family: Family) -> list[Blueprint]:
    """The easiest, the hardest, and some that are drawn."""
    values = family.choices()
    rng = np.random.default_rng([3, len(family.name)])
    return [
        Blueprint(family.name, {key: v[0] for key, v in values.items()}),
        Blueprint(family.name, {key: v[-1] for key, v in values.items()}),
        *(random_blueprint(family, rng) for _ in range(2)),
    ]


def send(env: Any, *actions: str) -> list[str]:
    """The observations of actions."""
    return [env.step(action)[0] for action in actions]


def options(env: Any, name: str) -> list[str]:
    """What the only parameter of a tool may be."""
    schemas = {item["function"]["name"]: item["function"] for item in json.loads(env.tool_schemas)}
    (parameter,) = schemas[name]["parameters"]["properties"].values()
    return list(parameter["enum"])


def calls(actions: Sequence[str], name: str) -> list[int]:
    """Where a tool is called."""
    return [i for i, action in enumerate(actions) if f'"name":"{name}"' in action]


@each_family
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 5])
def test_the_witness_wins_with_every_blueprint_and_little_is_read(
    family: Family, step: int
) -> None:
    for number, blueprint in enumerate(every_blueprint(family)[::step]):
        env = env_class(render(blueprint, FAMILIES))()
        first, info = env.reset(number)
        assert len(first) <= FIRST_CHARS
        assert first.count("\n- ") == 6
        assert set(info["criteria"]) <= {"unmet", "answer"}
        assert len(info["criteria"]) == blueprint.parameters["requests"]
        actions = env.solution()
        assert 3 <= len(actions) <= env.max_turns - 2
        total = 0.0
        for action in actions:
            text, reward, terminated, _, info = env.step(action)
            assert len(text) <= 200
            assert "tool_errors" not in info
            total += reward
        assert terminated, blueprint
        assert total == pytest.approx(1.0)


@each_family
def test_every_parameter_changes_what_happens(family: Family) -> None:
    easiest = {key: values[0] for key, values in family.choices().items()}

    def story(parameters: dict[str, Any]) -> str:
        env = env_class(render(Blueprint(family.name, parameters), FAMILIES))()
        texts = []
        for seed in range(8):
            texts += [env.reset(seed)[0], *send(env, *env.solution())]
        return "\n".join(texts)

    for key, values in family.choices().items():
        stories = {story(easiest | {key: value}) for value in values}
        assert len(stories) == len(values), key


@each_family
def test_hints_grow_clearer_and_only_the_third_names_what_is_hidden(family: Family) -> None:
    for number, blueprint in enumerate(corners(family)):
        env = env_class(render(blueprint, FAMILIES))()
        first, _ = env.reset(number)
        assert len(env.hint(1)) < len(env.hint(2)) <= 400
        assert env.hint() == env.hint(2)
        assert not re.search(r"\d", env.hint(1) + env.hint(2))
        hidden = set(env.hint(3).split()) - set(first.split()) - set(env.hint(2).split())
        assert hidden


@each_family
def test_a_value_that_was_left_out_is_told_when_it_is_asked_for(family: Family) -> None:
    for seed in range(5):
        env, first = started(family.name, seed, missing=True, requests=2)
        actions = env.solution()
        (asked,) = calls(actions, "ask")
        wish = [first, *send(env, *actions[:asked])][-1].rpartition("User: ")[2]
        told = send(env, actions[asked])[0].removeprefix("User: ")
        value = told.rstrip(".").split()[-1]
        assert told != TOLD
        assert value not in wish
        assert value in "".join(actions[asked + 1 :])


@each_family
def test_what_nobody_left_out_is_not_told(family: Family) -> None:
    env, _ = started(family.name)
    for about in options(env, "ask"):
        assert send(env, env.call("ask", about=about)) == [f"User: {TOLD}"]


@each_family
def test_only_the_foreign_request_can_be_declined(family: Family) -> None:
    for seed in range(5):
        env, _ = started(family.name, seed, foreign=True, requests=3)
        actions = env.solution()
        (declined,) = calls(actions, "decline")
        for number, action in enumerate(actions):
            if number != declined:
                assert "Error: the user insists" in send(env, actions[declined])[0]
            _, reward, *_ = env.step(action)
            if number == declined:
                assert reward == pytest.approx(1 / 3)


@each_family
@pytest.mark.parametrize("value", ["", "\x00", "é 🙂", "x" * 4000])
def test_odd_texts_are_errors_that_end_nothing(family: Family, value: str) -> None:
    env, _ = started(family.name)
    known = json.loads(env.tool_schemas)
    for schema in known:
        properties = schema["function"]["parameters"]["properties"]
        fillers = {"string": value, "integer": -1, "boolean": True}
        arguments = {
            key: item["enum"][0] if "enum" in item else fillers[item["type"]]
            for key, item in properties.items()
        }
        text, reward, terminated, _, info = env.step(
            env.call(schema["function"]["name"], **arguments)
        )
        assert text
        assert len(text) < 200
        assert (reward, terminated, info.get("tool_errors")) == (0.0, False, None)


@each_family
def test_admission_accepts_what_is_rendered(family: Family) -> None:
    for blueprint in corners(family):
        report = validate(render(blueprint, FAMILIES))
        assert report.ok, (blueprint, str(report))
        assert report.record is not None
        assert report.record.base == TOOLS_BASE


@pytest.mark.slow
@each_family
@pytest.mark.timeout(1200)
def test_admission_accepts_a_large_part_of_the_space(family: Family) -> None:
    blueprints = every_blueprint(family)
    for index in np.random.default_rng(8).permutation(len(blueprints))[:60]:
        report = validate(render(blueprints[index], FAMILIES))
        assert report.ok, (blueprints[index], str(report))


# ticket_desk


def test_a_change_of_the_wrong_record_must_be_set_right() -> None:
    env, _ = started("ticket_desk", 1)
    target, day = env.targets[0], env.plan[0][env.targets[0]]
    other = next(number for number in env.records if number != target)
    before = env.records[other]["day"]
    right = env.call("move", number=target, day=day) if day else env.call("cancel", number=target)
    assert "User:" not in "".join(send(env, env.call("move", number=other, day=60), right))
    _, reward, *_ = env.step(env.call("move", number=other, day=before))
    assert reward == pytest.approx(0.5)


@pytest.mark.parametrize("alike", [1, 2, 3, 4])
def test_records_that_are_alike_share_a_thing_and_never_a_person(alike: int) -> None:
    env, _ = started("ticket_desk", records=8, alike=alike)
    pairs = [(record["thing"], record["person"]) for record in env.records.values()]
    assert len(set(pairs)) == len(pairs) == 8
    counts = [len(env.tool_search(thing)) for thing in {thing for thing, _ in pairs}]
    assert max(counts) == alike


def test_a_cancelled_record_can_be_set_again() -> None:
    env, _ = started("ticket_desk")
    number = next(iter(env.records))
    cancelled, shown, moved = send(
        env,
        env.call("cancel", number=number),
        env.call("read", number=number),
        env.call("move", number=number, day=9),
    )
    assert "cancelled" in cancelled
    assert json.loads(shown.split("\n")[0])["day"] == 0
    assert moved.startswith(f"Record {number} is set to day 9.")
    assert send(env, env.call("move", number=number, day=61)) == ["Error: days run from 1 to 60"]


# stuck_switches


def refused(env: Any) -> tuple[str, str, str]:
    """(what the user wants changed, what it waits for, the refusal of a first try)."""
    part, other = env.chains[0][:2]
    return part, other, send(env, env.solution()[0])[0]


def test_a_refusal_names_the_part_that_is_waited_for() -> None:
    env, _ = started("stuck_switches", refusal="names")
    part, other, text = refused(env)
    assert text.startswith(f"Error: the {part} refuses: the {other} must be o")


def test_a_refusal_gives_a_code_that_only_the_manual_explains() -> None:
    env, _ = started("stuck_switches", refusal="codes")
    part, other, text = refused(env)
    (code,) = re.findall(r"code (\d+)", text)
    assert other not in text
    assert "waits" not in send(env, env.call("look", part=part))[0]
    assert f"the {other} must be o" in send(env, env.call("manual", code=int(code)))[0]
    assert "no such code" in send(env, env.call("manual", code=7))[0]


def test_a_bare_refusal_is_explained_by_a_look_at_the_part() -> None:
    env, _ = started("stuck_switches", refusal="bare")
    part, other, text = refused(env)
    assert text == f"Error: the {part} refuses: not now"
    assert other in json.loads(send(env, env.call("look", part=part))[0])["waits"]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_chain_is_switched_from_its_far_end_and_can_be_switched_back(depth: int) -> None:
    env, _ = started("stuck_switches", 3, depth=depth)
    chain = env.chains[0]
    assert len(chain) == depth + 1
    for part in chain[:-1]:
        assert "refuses" in send(env, env.call("switch", part=part, on=env.wanted[part]))[0]
    last = chain[-1]
    send(env, env.call("switch", part=last.upper(), on=env.wanted[last]))
    assert env.parts[last]["on"] == env.wanted[last]
    send(env, env.call("switch", part=last, on=not env.wanted[last]))
    assert env.need(chain[-2]).startswith(f"the {last} must be")


# paper_chase


def opened(env: Any) -> tuple[int, list[str], str]:
    """(code of the first paper, its offices in order, what is said when it is opened)."""
    person, paper = env.wanted[0]
    (text,) = send(env, env.call("open", person=person, paper=paper))
    (code,) = re.findall(r"\d+", text)
    return int(code), env.routes[paper], text


def test_a_code_is_used_up_and_the_wrong_office_does_not_take_it() -> None:
    env, _ = started("paper_chase", stages=2, order="tried")
    code, offices, text = opened(env)
    assert text == f"Code {code}."
    for office in options_of_offices(env):
        taken = not send(env, env.call("hand_in", office=office, code=code))[0].startswith("Error")
        assert taken == (office == offices[0])
        if taken:
            break
    assert send(env, env.call("hand_in", office=offices[0], code=code)) == [
        f"Error: code {code} is not in use"
    ]


def options_of_offices(env: Any) -> list[str]:
    """Every office, the right one of the first paper last."""
    right = env.routes[env.wanted[0][1]][0]
    return [*sorted({"check", "sign", "stamp", "pay"} - {right}), right]


def test_a_paper_is_not_filed_before_its_last_office() -> None:
    env, _ = started("paper_chase", stages=1)
    code, (office,), _ = opened(env)
    assert send(env, env.call("file", code=code))[0].startswith("Error: code")
    (text,) = send(env, env.call("hand_in", office=office, code=code))
    (new,) = re.findall(r"Code (\d+): ready to be filed\.", text)
    _, reward, *_ = env.step(env.call("file", code=int(new)))
    assert reward == pytest.approx(0.5)


@pytest.mark.parametrize("order", ["told", "listed", "tried"])
def test_the_order_of_offices_is_known_in_one_way(order: str) -> None:
    env, _ = started("paper_chase", stages=3, order=order)
    _, offices, text = opened(env)
    assert (f"next {offices[0]}" in text) == (order == "told")
    (listed,) = send(env, env.call("list_offices", paper=env.wanted[0][1]))
    assert (listed == json.dumps(offices)) == (order == "listed")
    assert listed.startswith("Error") == (order != "listed")


def test_another_persons_paper_does_not_count() -> None:
    env, _ = started("paper_chase", stages=1)
    person, paper = env.wanted[0]
    other = "Ana" if person != "Ana" else "Ben"
    code = int(re.findall(r"\d+", send(env, env.call("open", person=other, paper=paper))[0])[0])
    (text,) = send(env, env.call("hand_in", office=env.routes[paper][0], code=code))
    new = int(re.findall(r"\d+", text)[0])
    _, reward, *_ = env.step(env.call("file", code=new))
    assert reward == 0.0


# full_shelves


def shelves_with(kind: str, **changes: Any) -> Any:
    """An environment whose first wish is of that kind."""
    for seed in range(50):
        env, _ = started("full_shelves", seed, **changes)
        if env.kinds[0] == kind:
            return env
    raise AssertionError(f"no first wish is {kind}")


def test_a_full_place_takes_nothing() -> None:
    env = shelves_with("bring", room=2)
    gap = env.gap(env.where)
    thing = next(name for name, place in env.where.items() if place != gap)
    full = next(place for place in env.places if place not in (gap, env.where[thing]))
    assert send(env, env.call("move", thing=thing, place=full)) == [f"Error: the {full} is full"]
    assert send(env, env.call("find_gap")) == [f"The {gap} has room for one more."]
    assert "is there already" in send(env, env.call("move", thing=thing, place=env.where[thing]))[0]


def test_a_swap_is_done_when_nothing_else_has_moved() -> None:
    env = shelves_with("swap", places=4)
    one, other = env.wishes[0]
    before = dict(env.where)
    third = next(name for name in env.where if name not in (one, other))
    gap = env.gap(before)
    send(env, env.call("move", thing=third, place=gap))
    for thing, place in env.moves(env.where, "swap", one, other):
        assert env.step(env.call("move", thing=thing, place=place))[1] == 0.0
    assert (env.where[one], env.where[other]) == (before[other], before[one])
    _, reward, *_ = env.step(env.call("move", thing=third, place=before[third]))
    assert reward == pytest.approx(0.5)


def test_a_thing_may_be_brought_whatever_gives_way() -> None:
    env = shelves_with("bring", places=5, room=3)
    thing, goal = env.wishes[0]
    if env.gap(env.where) != goal:
        last = max(name for name, place in env.where.items() if place == goal)
        send(env, env.call("move", thing=last, place=env.gap(env.where)))
    _, reward, *_ = env.step(env.call("move", thing=thing, place=goal))
    assert reward == pytest.approx(0.5)
