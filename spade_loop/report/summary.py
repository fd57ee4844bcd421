"""The table that a run ends with on the terminal."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spade_loop.report.formats import decimal, percent, plus_minus, visible
from spade_loop.report.headline import designs_sentence, outcomes
from spade_loop.report.reading import MetricsRow, RoleNumbers, read_run
from spade_loop.schedule import Schedule
from spade_loop.types import Role

MAX_ROWS = 30
"""Iterations listed: the newest; report.html has all."""
COLUMNS = (
    "iter",
    "designs\nin/out",
    "solved\nplain",
    "solved\nhinted",
    "regret ± SE",
    "designer\ntokens",
    "designer\n|adv|",
    "agent\ntokens",
    "agent\n|adv|",
)


def print_summary(run_directory: Path, console: Console) -> None:
    """Print a run's iterations, one a line, from its files. `RunStateError` when it is no run directory."""
    run = read_run(run_directory)
    name, planned = visible(run.config.name), Schedule.of(run.config).steps
    if not run.done:
        console.print(Text(f"{name}: none of {planned} iterations is complete yet"), soft_wrap=True)
        return
    table = Table(
        title=Text(f"{name}: {run.done} of {planned} iterations"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    for column in COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for row in run.metrics[-MAX_ROWS:]:
        table.add_row(*(Text(cell) for cell in cells(row)))
    console.print(table)
    if run.done > MAX_ROWS:
        console.print(Text(f"({run.done - MAX_ROWS} earlier iterations: see report.html)"))
    console.print(Text(designs_sentence(outcomes(run.metrics))), soft_wrap=True)
    rehearsed = [row.rehearsal for row in run.metrics if row.rehearsal.rows]
    if rehearsed:
        rows, tokens = (sum(r.rows for r in rehearsed), sum(r.trained_tokens for r in rehearsed))
        told = f"{rows:,} demonstrations rehearsed, {tokens:,} tokens that nobody sampled"
        console.print(Text(told), soft_wrap=True)


def cells(row: MetricsRow) -> tuple[str, ...]:
    """The texts of one iteration, in the order of `COLUMNS`."""
    return (
        str(row.iteration + 1),
        f"{row.admitted}/{row.made - row.admitted}",
        percent(row.solve_rate.plain),
        percent(row.solve_rate.hinted),
        plus_minus(row.regret.mean, row.regret.standard_error),
        *_role(row.role(Role.DESIGNER)),
        *_role(row.role(Role.AGENT)),
    )


def _role(numbers: RoleNumbers) -> tuple[str, str]:
    return f"{numbers.trained_tokens:,}", decimal(numbers.abs_advantage)
