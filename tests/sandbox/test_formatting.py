"""Templates with paths must come out as `str.format` would bring them out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.sandbox.formatting import SafeFormatter


class Point:
    def __init__(self, x: object, y: object) -> None:
        self.x = x
        self.y = y


ARGS = (Point(3, [1, {"k": "v"}]), "text", 2.5)
VALUES = {"p": Point("left", {"0": "zero", "a b": 1}), "width": 7, "f": 1.0}
PATHS = [
    "0",
    "1",
    "2",
    "",
    "0.x",
    ".y",
    "0.y[1][k]",
    "p.x",
    "p.y[0]",
    "p.y[a b]",
    "[0]",
    "5",
    "q",
    "p.z",
    "p.y[",
    "0.",
]
SPECS = ["", ":>8", ":{width}", ":{0.x}", ":<{width}", ":.{2}f", ":{:{}}", ":{{"]
CONVERSIONS = ["", "!r", "!s", "!a", "!x", "!"]


def result(run: object) -> object:
    assert callable(run)
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - the kind of error is part of the comparison
        return type(error)


@settings(max_examples=600, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "a ", "{{", "}}", "}"]),
            st.sampled_from(PATHS),
            st.sampled_from(CONVERSIONS),
            st.sampled_from(SPECS),
        ),
        max_size=4,
    )
)
def test_a_template_gives_what_str_format_gives(pieces: list[tuple[str, str, str, str]]) -> None:
    text = "".join(f"{before}{{{path}{how}{spec}}}" for before, path, how, spec in pieces)
    ours = result(lambda: SafeFormatter(getattr, ARGS, VALUES).expand(text))
    assert ours == result(lambda: text.format(*ARGS, **VALUES)), text
    ours = result(lambda: SafeFormatter(getattr, None, VALUES).expand(text))
    assert ours == result(lambda: text.format_map(VALUES)), text


def test_automatic_and_manual_numbers_do_not_mix() -> None:
    numbered = SafeFormatter(getattr, (Point(3, 4), "text", [9]), {}).expand("{.x} {} {[0]}")
    assert numbered == "3 text 9"
    for text in ("{.x} {0}", "{0.x} {}"):
        with pytest.raises(ValueError, match="cannot switch"):
            SafeFormatter(getattr, ARGS, {}).expand(text)
