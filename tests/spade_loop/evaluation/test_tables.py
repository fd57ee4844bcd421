"""Tables in Markdown, LaTeX and on a terminal, with text that would break them."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from spade_loop.errors import ConfigError
from spade_loop.evaluation.tables import Table, as_latex, as_markdown, check_format, print_tables

HOSTILE = ("a|b\n\\c", "50 % & more_or $x$", "<script>[red]x[/red]\x1b[31m‮")
TABLE = Table(
    title="A #1 table", columns=("Suite", "B \u2212 A"), rows=((HOSTILE[0], HOSTILE[1]), (HOSTILE[2], "+1.0")),
    notes=("A note_with 5 %.",),
)  # fmt: skip


def test_markdown_keeps_its_columns_whatever_a_cell_says() -> None:
    lines = as_markdown([TABLE]).splitlines()
    assert lines[0] == "## A #1 table"
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)
    assert "\x1b" not in "".join(lines)
    assert r"\<script\>" in rows[3]


@given(st.lists(st.text(), min_size=2, max_size=2))
def test_no_text_adds_a_column_or_a_line(cells: list[str]) -> None:
    table = Table(title="t", columns=("a", "b"), rows=(tuple(cells),))
    row = as_markdown([table]).split("\n")[4]
    inner = re.sub(r"\\.", "", row)
    assert inner.count("|") == 3
    latex = as_latex([table]).splitlines()
    (body,) = latex[latex.index(r"\midrule") + 1 : latex.index(r"\bottomrule")]
    assert re.sub(r"\\.", "", body).count("&") == 1
    assert re.sub(r"\\.", "", body).count("%") == 0


def test_latex_is_escaped_and_complete() -> None:
    text = as_latex([TABLE])
    assert r"50 \% \& more\_or \$x\$" in text
    assert r"B $-$ A" in text
    assert r"\begin{tabular}{lr}" in text
    assert text.count(r"\begin{") == text.count(r"\end{") == 2
    assert r"\caption{A \#1 table. A note\_with 5 \%.}" in text


def test_latex_has_minus_signs_and_no_row_that_starts_an_option() -> None:
    table = Table(
        title="t", columns=("a-1", "b"), rows=(("[x]", "-6.2"), ("*", "[-18.8, -0.1]")), labels=1
    )
    rows = as_latex([table]).splitlines()[7:9]
    assert rows == [r"{}[x] & $-$6.2 \\", r"{}* & [$-$18.8, $-$0.1] \\"]
    assert "a-1 & b" in as_latex([table])


@given(st.integers(40, 120), st.lists(st.text("abc-:", min_size=1, max_size=40), min_size=1))
def test_a_narrow_terminal_folds_names_and_cuts_nothing(width: int, names: list[str]) -> None:
    rows = tuple((name, "[-18.8, 0.0]", "1.0000", "12/3") for name in names)
    table = Table(
        title="t",
        columns=("Suite", "95 % interval", "p (Holm)", "A/B better"),
        rows=rows,
        spare=frozenset({"A/B better"}),
    )
    console = Console(file=io.StringIO(), width=width)
    print_tables([table], console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\N{HORIZONTAL ELLIPSIS}" not in shown
    assert shown.count("[-18.8, 0.0]") == shown.count("1.0000") == len(names)
    assert shown.count("12/3") == (len(names) if "better" in shown else 0)
    assert "".join(names) in "".join(
        line.split("  ")[0].split(" [")[0].strip() for line in shown.splitlines()[3:]
    )


def test_a_terminal_shows_what_would_be_obeyed() -> None:
    console = Console(file=io.StringIO(), width=120)
    print_tables([TABLE], console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "[red]x[/red]" in shown
    assert "\x1b[31m" not in shown
    assert "A note_with 5 %." in shown


def test_an_unknown_format_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'latex'"):
        check_format("latx")
