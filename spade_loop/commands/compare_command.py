"""`spade-loop compare`: whether one model does better than another on the same items."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from spade_loop.errors import ConfigError


def compare(
    directories: Annotated[
        list[Path],
        typer.Argument(
            metavar="A B [C...]",
            help="Directories of `spade-loop eval`; the first is compared with each of the others.",
        ),
    ],
    suites: Annotated[
        list[str] | None,
        typer.Option("--suite", metavar="NAME", help="Only this suite.", show_default="all"),
    ] = None,
    common: Annotated[
        bool, typer.Option("--common", help="Compare the items that all have, where sets differ.")
    ] = False,
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="What is compared: correct, or score.")
    ] = "correct",
    seed: Annotated[int, typer.Option(metavar="N", help="Of intervals and permutation tests.")] = 0,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="What is printed: terminal, markdown, latex or json."
        ),
    ] = "terminal",
) -> None:
    """Compare evaluations: paired differences, their intervals, exact or permutation tests, Holm's correction."""
    from spade_loop.evaluation.comparing import METRICS, Side, compare
    from spade_loop.evaluation.presenting import comparison_table
    from spade_loop.evaluation.results import read_evaluation
    from spade_loop.evaluation.tables import check_format, show
    from synthgym.ids import did_you_mean

    check_format(form)
    if metric not in METRICS:
        raise ConfigError(
            f"--metric must be one of {', '.join(METRICS)}, got {metric!r}{did_you_mean(metric, METRICS)}"
        )
    if seed < 0:
        raise ConfigError(f"--seed must be at least 0, got {seed}")
    sides = [Side(label=str(path), evaluation=read_evaluation(path)) for path in directories]
    found = compare(sides, common=common, metric=METRICS[metric], suites=suites or (), seed=seed)
    show([comparison_table(found)], msgspec.to_builtins(found, str_keys=True), form)
