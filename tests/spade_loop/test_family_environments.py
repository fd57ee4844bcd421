from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from spade_loop.config import load_config
from spade_loop.families import Blueprint, Family, load_families, random_blueprint, render
from synthgym.validation import validate

FAMILIES = tuple(family for family in load_families() if not family.has_tools)
TINY = load_config("tiny")
EASIEST = {
    family.name: Blueprint(family.name, {k: v[0] for k, v in family.choices().items()})
    for family in FAMILIES
}
each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def env_class(source: str) -> Any:
    """The environment class; our own sources may run here."""
    namespace: dict[str, Any] = {}
    exec(compile(source, "env.py", "exec"), namespace)
    return next(value for name, value in namespace.items() if name.endswith("Env"))


def sample(family: Family, count: int = 12) -> list[Blueprint]:
    rng = np.random.default_rng([7, len(family.name)])
    return [random_blueprint(family, rng) for _ in range(count)]


def script(actions: list[str]) -> Callable[[str], str | None]:
    """An agent that plays `actions`, whatever it sees."""
    rest = iter(actions)
    return lambda _observation: next(rest, None)


def command(text: str) -> Callable[[str], str]:
    """An agent that always answers `text`."""
    return lambda _observation: text


def play(made: Any, seed: int, act: Callable[[str], str | None]) -> tuple[float, bool, list[str]]:
    """(return, won, observations); asserts the reward rules of the contract on the way."""
    env = made()
    observation, _ = env.reset(seed)
    seen, total = [observation], 0.0
    for _ in range(made.max_turns):
        action = act(observation)
        if action is None:
            break
        observation, reward, terminated, _, _ = env.step(action)
        seen.append(observation)
        total += reward
        assert reward >= 0.0
        assert (abs(total - 1.0) < 1e-9) == terminated
        if terminated:
            return total, True, seen
    return total, False, seen


def choices_in(observation: str) -> list[str]:
    """The commands that an observation lists."""
    return observation.split("Reply with one of: ")[1].split(".")[0].split(", ")


@each_family
def test_the_witness_wins_on_every_seed_within_the_turns(family: Family) -> None:
    for blueprint in [EASIEST[family.name], *sample(family, 40)]:
        made = env_class(render(blueprint, FAMILIES))
        assert 3 <= made.max_turns <= 7
        for seed in range(20):
            env = made()
            env.reset(seed)
            actions = env.solution()
            assert len(set(actions)) > 1
            assert 1 <= made.max_turns - len(actions) <= 3
            total, won, _ = play(made, seed, script(actions))
            assert won
            assert total == pytest.approx(1.0)


@each_family
def test_no_single_command_wins(family: Family) -> None:
    for blueprint in [EASIEST[family.name], *sample(family, 20)]:
        made = env_class(render(blueprint, FAMILIES))
        for seed in range(10):
            env = made()
            env.reset(seed)
            for action in {"", "help", *env.solution()}:
                assert not play(made, seed, command(action))[1]


@each_family
def test_guessing_among_the_choices_gives_returns_that_differ(family: Family) -> None:
    """On the easiest blueprint: what a weak player does must leave something to learn from."""
    made = env_class(render(EASIEST[family.name], FAMILIES))
    rng = random.Random(5)
    returns = [play(made, 3, lambda seen: rng.choice(choices_in(seen)))[0] for _ in range(40)]
    assert len(set(returns)) >= 2
    assert 0.05 <= sum(value > 1.0 - 1e-9 for value in returns) / len(returns) <= 0.95


@each_family
def test_observations_are_short_and_list_the_commands(family: Family) -> None:
    rng = random.Random(6)
    for blueprint in sample(family, 30):
        made = env_class(render(blueprint, FAMILIES))
        for seed in range(5):
            _, won, seen = play(made, seed, lambda obs: rng.choice(choices_in(obs)))
            assert len(seen[0].split()) <= 60
            assert all(len(text.split()) <= 25 for text in seen[1:])
            running = seen[:-1] if won else seen
            assert all(2 <= len(set(choices_in(text))) <= 4 for text in running)


@each_family
@pytest.mark.parametrize("action", ["", "hello", "\\boxed{red}", "9" * 5000, "\x00\n", "é 🙂"])
def test_an_unknown_command_costs_a_turn_and_says_what_can_be_done(
    family: Family, action: str
) -> None:
    env = env_class(family.source)()
    env.reset(1)
    observation, reward, terminated, truncated, _ = env.step(action)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert choices_in(observation)
    assert len(observation) < 300


@each_family
def test_a_command_is_read_without_regard_to_case_and_a_full_stop(family: Family) -> None:
    env = env_class(family.source)()
    env.reset(1)
    assert env.step(f" {env.solution()[0].upper()}. ")[1] > 0.0


@each_family
def test_steps_after_the_end_do_nothing(family: Family) -> None:
    env = env_class(family.source)()
    env.reset(1)
    for action in env.solution():
        env.step(action)
    assert env.step("red")[1:4] == (0.0, True, False)


@each_family
def test_hints_of_levels_1_and_2_never_list_the_solution(family: Family) -> None:
    for blueprint in sample(family, 30):
        made = env_class(render(blueprint, FAMILIES))
        for seed in range(5):
            env = made()
            env.reset(seed)
            actions = env.solution()
            answers = ", ".join(actions)
            assert answers in env.hint(3)
            if len(actions) > 2:  # two words may stand side by side in a list of choices
                assert answers not in env.hint(1)
                assert answers not in env.hint()
            assert env.hint() == env.hint(2)
            assert len(env.hint().split()) <= 60


def test_a_wrong_way_on_the_crooked_map_leads_back_and_is_not_paid_twice() -> None:
    env = env_class(render(EASIEST["crooked_map"], FAMILIES))()
    env.reset(0)
    answers = env.solution()
    env.step(answers[0])
    wrong = next(way for way in env.junctions[1][3] if way != answers[1])
    observation = env.step(wrong)[0]
    assert env.passed == 0
    assert choices_in(observation) == env.junctions[0][3]
    assert env.step(answers[0])[1] == 0.0


def test_an_empty_box_is_struck_off_until_two_are_left() -> None:
    parameters = dict(EASIEST["sealed_notes"].parameters) | {"choices": 3}
    env = env_class(render(Blueprint("sealed_notes", parameters), FAMILIES))()
    observation, _ = env.reset(0)
    boxes, right = choices_in(observation), env.solution()[0]
    wrong = [box for box in boxes if box != right]
    assert choices_in(env.step(wrong[0])[0]) == [box for box in boxes if box != wrong[0]]
    assert len(choices_in(env.step(wrong[1])[0])) == 2


def test_the_purse_shrinks_by_what_was_paid() -> None:
    parameters = dict(EASIEST["best_trade"].parameters) | {"rule": "cash"}
    env = env_class(render(Blueprint("best_trade", parameters), FAMILIES))()
    env.reset(4)
    purses = [purse for _, purse, _ in env.days]
    paid = [int(dict(text.split() for _, text in listed)[best]) for best, _, listed in env.days]
    assert purses[1:] == [purse - price for purse, price in zip(purses, paid, strict=True)][:-1]
    assert all(price <= purse for purse, price in zip(purses, paid, strict=True))


@pytest.mark.slow
@each_family
def test_admission_accepts_what_is_rendered(family: Family) -> None:
    for source in [
        family.source,
        *(render(blueprint, FAMILIES) for blueprint in sample(family, 2)),
    ]:
        report = validate(source)
        assert {str(item.reason) for item in report.refusals} <= set(TINY.validation.allowed), str(
            report
        )
