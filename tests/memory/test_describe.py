from __future__ import annotations

import math

import pytest

from synthgym.errors import ConfigError
from synthgym.memory import describe
from synthgym.memory.describe import MAX_RULES_CHARS, Description, rules_text

SOURCE = '''
class Helper:
    """Not the rules."""


class LockEnv:
    """Open the gates.

    Each gate holds water.
    """
'''


def test_numbers_of_the_observation_are_masked_and_the_docstring_is_kept() -> None:
    text = rules_text("  Three of 3 gates.\n  ", "Level 12.5, 1,000 boats, gate R7. ")
    assert text == "Three of 3 gates.\n\nLevel #, # boats, gate R#."


@pytest.mark.parametrize(
    ("source", "given", "expected"),
    [
        (SOURCE, "", "Open the gates."),
        ('"""The module."""\n' + SOURCE, "", "The module."),
        (SOURCE, "Given.", "Given."),
        ("x = 1", "", "now"),
    ],
    ids=["class", "module", "given", "none"],
)
def test_the_docstring_comes_from_the_nearest_place(source: str, given: str, expected: str) -> None:
    described = describe(source, "now", docstring=given)
    assert described.rules_text.splitlines()[0] == expected


def test_a_description_holds_hashes_family_and_parameters() -> None:
    described = describe(SOURCE, "go", family="locks", parameters=[0, 0.5, 1])
    assert described.family == "locks"
    assert described.parameters == (0.0, 0.5, 1.0)
    assert described.ast_hash.startswith("ast/1:")
    assert described.data_hash.startswith("data/1:")


def test_two_instances_of_one_source_have_one_text() -> None:
    assert describe(SOURCE, "level 3") == describe(SOURCE, "level 41")


def test_long_rules_are_cut() -> None:
    assert len(describe(SOURCE, "word " * 9999).rules_text) == MAX_RULES_CHARS


@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf])
def test_a_parameter_outside_of_its_range_is_refused(value: float) -> None:
    with pytest.raises(ConfigError, match=r"scaled to \[0, 1\]"):
        Description("", "", "", "locks", (value,))


def test_parameters_without_a_family_are_refused() -> None:
    with pytest.raises(ConfigError, match="family is empty"):
        describe(SOURCE, "", parameters=[0.5])


def test_a_source_that_does_not_parse_is_refused() -> None:
    with pytest.raises(ConfigError, match="check_source"):
        describe("class", "")
