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
PIPED: Final = 400
"""Columns there are for a table in a file or a pipe; it takes what it needs."""
_LONG_HEADING: Final = 7
"""Characters from which on the heading of a column of numbers has two lines."""
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
_NEGATIVE: Final = re.compile(r"(?<![^\s\[])-(?=[0-9])", re.ASCII)
"""The sign of a number, which is no hyphen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of texts under headings. The first `labels` columns are names, all others numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    labels: int = 1
    notes: tuple[str, ...] = ()
    """Sentences below it."""
    spare: frozenset[str] = frozenset()
    """Headings of columns that a narrow terminal does without."""


def check_format(name: str) -> None:
    """`ConfigError` for a format that does not exist."""
    if name not in FORMATS:
        raise ConfigError(
            f"--format must be one of {', '.join(FORMATS)}, got {name!r}{did_you_mean(name, FORMATS)}"
        )


def show(tables: Sequence[Table], plain: object, form: str) -> None:
    """Print tables in a format of `FORMATS`; in JSON, `plain` in their place."""
    if form == "terminal":
        console = Console()
        print_tables(tables, console if console.is_terminal else Console(width=PIPED))
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
    """Tables on a terminal: names are folded where there is no room for them, numbers are not."""
    for number, table in enumerate(tables):
        if number:
            console.print()
        console.print(Text(visible(table.title), style="bold"), soft_wrap=True)
        grid = _grid(table, frozenset())
        room = console.options.update(width=PIPED)
        if console.measure(grid, options=room).maximum > console.width:
            grid = _grid(table, table.spare)
        console.print(grid)
        for note in table.notes:
            console.print(Text(visible(note)), soft_wrap=True)


def _grid(table: Table, left_out: frozenset[str]) -> Grid:
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    places = [i for i, column in enumerate(table.columns) if column not in left_out]
    for place in places:
        label = place < table.labels
        heading = visible(table.columns[place])
        if not label and len(heading) > _LONG_HEADING:
            heading = "\n".join(heading.rsplit(" ", 1))
        grid.add_column(
            Text(heading),
            justify="left" if label else "right",
            overflow="fold",
            no_wrap=not label,
        )
    for row in table.rows:
        grid.add_row(*(Text(visible(row[place])) for place in places))
    return grid


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_markdown_text(cell) for cell in cells)} |"


def _markdown_text(text: str) -> str:
    flat = " ".join(visible(text).split())
    return re.sub(r"([\\|`*_<>\[\]])", r"\\\1", flat)


def _latex_row(cells: Sequence[str]) -> str:
    """A row: what begins with a bracket or a star would be taken for an option of the end of the line before it."""
    row = " & ".join(_latex_text(cell) for cell in cells)
    return ("{}" if row.startswith(("[", "*")) else "") + row + r" \\"


def _latex_text(text: str) -> str:
    flat = " ".join(visible(text).split()).replace(MISSING, "--")
    text = "".join(_LATEX.get(character, character) for character in flat)
    return _NEGATIVE.sub("$-$", text)
