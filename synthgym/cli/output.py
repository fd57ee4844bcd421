"""Printing: tables for people, JSON for programs; nothing that could drive a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from synthgym.envs.rendering import printable

_PIPE_WIDTH: Final = 240
"""Columns of a table that no terminal shows, so that ids are not folded."""


def print_json(value: object) -> None:
    """Print `value` as indented JSON, escaped to ASCII."""
    print(json.dumps(value, indent=2, ensure_ascii=True))


def print_text(text: str) -> None:
    """Print text of whatever origin."""
    print(printable(text))


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; cells are text of whatever origin, never markup."""
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    console = Console(width=width, highlight=False, markup=False)
    table = Table(*headers, box=None, pad_edge=False, header_style="bold")
    for column in table.columns:
        column.overflow = "fold"
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    console.print(table)
