from __future__ import annotations

import pytest

from synthgym.validation.play_checks import commands_in, random_agent


@pytest.mark.parametrize(
    ("observation", "commands"),
    [
        ("Say 'go north' or \"wait\".", ("go north", "wait", "Say")),
        ("Moves:\n- lift\n- drop: lets go\n1. look (around)\n", ("lift", "drop", "look", "Moves")),
        ("", ()),
        ("'a' 'b' 'c' 'd' 'e' 'f'", ("a", "b", "c", "d", "e")),
        ("go 'go'", ("go",)),
    ],
)
def test_commands_are_what_is_quoted_listed_or_comes_first(
    observation: str, commands: tuple[str, ...]
) -> None:
    assert commands_in(observation) == commands


def test_the_random_agent_repeats_with_its_seed_and_uses_words_of_the_observation() -> None:
    seen = "Open the upper-gate, quickly."
    first, again = random_agent(3), random_agent(3)
    actions = [first(seen) for _ in range(50)]
    assert [again(seen) for _ in range(50)] == actions
    words = {word for action in actions for word in action.split(" ")}
    assert words <= {"Open", "the", "upper-gate", "quickly", *"0123456789"}
    assert {len(action.split(" ")) for action in actions} == {1, 2, 3}


def test_the_random_agent_has_digits_when_there_are_no_words() -> None:
    assert set(random_agent(1)("").split(" ")) <= set("0123456789")
