"""Sources, edits and thinking in a designer's reply."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.parsing import (
    Edit,
    ReplyError,
    apply_edits,
    last_code_block,
    parse_edits,
    strip_thinking,
)

EDIT = "<<<<<<< SEARCH\nold\n=======\nnew\n>>>>>>> REPLACE"


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ("```python\na = 1\n```", "a = 1\n"),
        ("First\n```python\na = 1\n```\nbetter:\n```py\na = 2\n```\n", "a = 2\n"),
        ("```json\n{}\n```\n```\nb = 1\n```", "b = 1\n"),
        ("```python\nb = 1\n```\nrun it:\n```bash\nls\n```", "b = 1\n"),
        ("<think>```python\nno = 1\n```</think>```python\nyes = 1\n```", "yes = 1\n"),
        ("```python\r\na = 1\r\n```", "a = 1\n"),
    ],
)
def test_the_last_python_block_is_the_source(reply: str, source: str) -> None:
    assert last_code_block(reply) == source


@pytest.mark.parametrize("reply", ["", "no code", "```json\n{}\n```", "<think>```python\na\n```"])
def test_a_reply_without_a_python_block_is_refused(reply: str) -> None:
    with pytest.raises(ReplyError, match="no fenced Python block"):
        last_code_block(reply)


def test_edits_are_applied_in_order() -> None:
    edits = parse_edits(f"I change two lines.\n{EDIT}\nand\n{EDIT.replace('old', 'two')}\n")
    assert apply_edits("old\ntwo\n", edits) == "new\nnew\n"


@pytest.mark.parametrize(
    ("parent", "edits", "message"),
    [
        ("a\n", (Edit("b\n", "c\n"),), "does not occur"),
        ("a\na\n", (Edit("a\n", "c\n"),), "occurs 2 times"),
        ("a\n", (Edit("\n", "c\n"),), "is empty"),
        ("a\n", (Edit("a\n", "a\n"),), "change nothing"),
        ("  a\n    a\n", (Edit("      a\n", "c\n"),), "occurs 2 times"),
        ("if x:\n    a\n", (Edit("  if x:\n   a\n", "c\n"),), "does not occur"),
        ("\ta\n", (Edit("    a\n", "c\n"),), "does not occur"),
        ("a\nb\n", (Edit("a\n\nb\n", "c\n"),), "does not occur"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(
    parent: str, edits: tuple[Edit, ...], message: str
) -> None:
    with pytest.raises(ReplyError, match=message):
        apply_edits(parent, edits)


PARENT = """class A:
    def f(self):
        x = 1

        return x
"""


@pytest.mark.parametrize(
    ("search", "replace", "result"),
    [
        # spaces at the ends of lines, and empty lines around
        ("        x = 1  \n", "        x = 2\n", PARENT.replace("x = 1", "x = 2")),
        ("\n  \n        x = 1\t\n", "        x = 2\n", PARENT.replace("x = 1", "x = 2")),
        # all lines further to the left, or to the right
        (
            "def f(self):\n    x = 1\n    \n    return x\n",
            "def g(self):\n\n    return 2\n",
            "class A:\n    def g(self):\n\n        return 2\n",
        ),
        (
            "            x = 1\n\n            return x\n",
            "            if y:\n                return 3\n",
            "class A:\n    def f(self):\n        if y:\n            return 3\n",
        ),
        # taken out
        ("x = 1 \n\nreturn x \n", "", "class A:\n    def f(self):\n"),
    ],
)
def test_spaces_do_not_keep_an_edit_from_its_place(search: str, replace: str, result: str) -> None:
    assert apply_edits(PARENT, (Edit(search, replace),)) == result


def test_an_exact_place_comes_before_one_that_differs_in_spaces() -> None:
    parent = "if a:\n    go\nif b:\n        go\n"
    edits = (Edit("if b:\n        go\n", "stop\n"),)
    assert apply_edits(parent, edits) == "if a:\n    go\nstop\n"


def test_a_parent_without_a_last_line_end_can_be_edited_there() -> None:
    assert apply_edits("a\nb", (Edit("b\n", "c\n"),)) == "a\nc"


@given(st.text())
def test_no_reply_crashes_the_parsers(reply: str) -> None:
    strip_thinking(reply)
    for parse in (last_code_block, parse_edits):
        try:
            parse(reply)
        except ReplyError:
            continue


@given(st.text(alphabet="ab\n", max_size=30), st.text(alphabet="ab\n", max_size=30))
def test_an_edit_replaces_exactly_what_it_names(before: str, after: str) -> None:
    parent = f"{before}UNIQUE LINE\n{after}"
    assert apply_edits(parent, (Edit("UNIQUE LINE\n", "other\n"),)) == f"{before}other\n{after}"


INDENTS = st.integers(0, 8).map(lambda n: " " * n)


@given(before=INDENTS, shift=INDENTS, end=INDENTS)
def test_a_shifted_search_part_gives_what_the_exact_one_gives(
    before: str, shift: str, end: str
) -> None:
    parent = f"{before}top\n{before}  one\n\n{before}    two\nrest\n"
    exact = (Edit(f"{before}  one\n\n{before}    two\n", f"{before}  new\n{before}    er\n"),)
    moved = f"{shift}one{end}\n\n{shift}  two\n", f"{shift}new\n{shift}  er\n"
    assert apply_edits(parent, (Edit(*moved),)) == apply_edits(parent, exact)
