"""Tables as a terminal, Markdown and LaTeX show them. Text from suites and models is made harmless here."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from spade_loop.errors import ConfigError
from spade_loop.report.formats import MISSING, visible
from synthgym.ids import did_you_mean

Format = Literal["terminal", "markdown", "latex", "json"]
FORMATS: Final[tuple[str, ...]] = get_args(Format)
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "−": r"$-$",  # noqa: RUF001
    "±": r"$\pm$",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts under headings. The first `labels` columns are names, all others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1
    notes: tuple[str, ...] = ()
    """Sentences below it."""


def check_format(name: str) -> None:
    """`ConfigError` for a format that does not exist."""
    if name not in FORMATS:
        raise ConfigError(
            f"--format must be one of {', '.join(FORMATS)}, got {name!r}{did_you_mean(name, FORMATS)}"
        )


def show(tables: Sequence[Table], plain: object, form: str) -> None:
    """Print tables in a format of `FORMATS`; in JSON, `plain` in their place."""
    if form == "terminal":
        print_tables(tables, Console())
    elif form == "json":
        sys.stdout.write(json.dumps(plain, indent=2, allow_nan=False) + "\n")
    else:
        sys.stdout.write(as_markdown(tables) if form == "markdown" else as_latex(tables))


def as_markdown(tables: Sequence[Table]) -> str:
    """Tables with their titles as headings of the second level."""
    parts = []
    for table in tables:
        rule = ["---"] * table.labels + ["---:"] * (len(table.columns) - table.labels)
        lines = [_markdown_row(table.columns), f"| {' | '.join(rule)} |"]
        lines += [_markdown_row(row) for row in table.rows]
        notes = "".join(f"\n\n{_markdown_text(note)}" for note in table.notes)
        parts.append(f"## {_markdown_text(table.title)}\n\n" + "\n".join(lines) + notes + "\n")
    return "\n".join(parts)


def as_latex(tables: Sequence[Table]) -> str:
    """Tables for a document that loads the package booktabs."""
    parts = []
    for table in tables:
        columns = "l" * table.labels + "r" * (len(table.columns) - table.labels)
        body = [_latex_row(row) for row in table.rows]
        caption = " ".join([f"{table.title}.", *table.notes])
        parts.append(
            "\n".join(
                [
                    r"\begin{table}",
                    r"\centering",
                    rf"\caption{{{_latex_text(caption)}}}",
                    rf"\begin{{tabular}}{{{columns}}}",
                    r"\toprule",
                    _latex_row(table.columns),
                    r"\midrule",
                    *body,
                    r"\bottomrule",
                    r"\end{tabular}",
                    r"\end{table}",
                ]
            )
        )
    return "\n\n".join(parts) + "\n"


def print_tables(tables: Sequence[Table], console: Console) -> None:
    """Tables on a terminal."""
    for table in tables:
        grid = Grid(title=Text(visible(table.title)), title_justify="left")
        for place, column in enumerate(table.columns):
            grid.add_column(
                Text(visible(column)), justify="left" if place < table.labels else "right"
            )
        for row in table.rows:
            grid.add_row(*(Text(visible(cell)) for cell in row))
        console.print(grid)
        for note in table.notes:
            console.print(Text(visible(note)), soft_wrap=True)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_markdown_text(cell) for cell in cells)} |"


def _markdown_text(text: str) -> str:
    flat = " ".join(visible(text).split())
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", flat)


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(_latex_text(cell) for cell in cells) + r" \\"


def _latex_text(text: str) -> str:
    flat = " ".join(visible(text).split()).replace(MISSING, "--")
    return "".join(_LATEX.get(character, character) for character in flat)
