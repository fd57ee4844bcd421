"""`report.html`: one file that shows a whole run, made from the files of its directory alone.

It loads nothing: no script, font, image or address. Text of models and environments is hostile. Jinja escapes every
value that the template prints, `visible` shows the characters that hide or reorder text, and the page's content
security policy forbids scripts and requests should both fail. The same files give the same bytes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from spade_loop.errors import RunStateError
from spade_loop.report import formats
from spade_loop.report.charts import Chart, Point, Series, draw
from spade_loop.report.gallery import build_gallery
from spade_loop.report.headline import headline, outcomes
from spade_loop.report.reading import MetricsRow, RoleNumbers, Run, read_run
from spade_loop.state import replace_text
from spade_loop.types import Arm, Outcome, Role

REPORT = "report.html"
MAX_TABLE_ROWS = 200
"""Iterations that a table lists: the newest. The charts show all."""
MAX_REASONS = 50

MEANINGS = {
    Outcome.ADMITTED: "passed validation and the novelty check",
    Outcome.UNPARSED: "the reply held no environment that could be read",
    Outcome.REFUSED: "validation found a fault",
    Outcome.DUPLICATE: "the memory holds one like it",
    Outcome.SURPASSED: "another draw for the same design was kept",
}


@dataclass(frozen=True, slots=True)
class OutcomeLine:
    """One line of the table of outcomes."""

    outcome: str
    meaning: str
    number: int


@dataclass(frozen=True, slots=True)
class ReasonLine:
    """One line of the table of reasons."""

    reason: str
    number: int
    example: str
    """What was said of the newest design that was lost for this reason."""


def write_report(run_directory: Path) -> Path:
    """Write `report.html` into a run directory, whole or not at all; its path.

    Reads and changes nothing else there, so it may be called while the run goes on. `RunStateError` when it is no
    run directory, when one of its files is damaged, or when the page cannot be written.
    """
    page = render(read_run(run_directory))
    target = run_directory / REPORT
    try:
        replace_text(target, page)
    except OSError as error:
        raise RunStateError(f"cannot write {target}: {error}") from error
    return target


def render(run: Run) -> str:
    """The page as HTML text."""
    drawn = charts(run)
    return (
        templates()
        .get_template("report.html")
        .render(
            run=run,
            config_json=json.dumps(run.config.to_json(), indent=2, ensure_ascii=False),
            sentences=headline(run),
            charts=[(chart, draw(chart)) for chart in drawn],
            outcomes=outcome_lines(run),
            reasons=reason_lines(run),
            newest=run.metrics[-MAX_TABLE_ROWS:],
            gallery=build_gallery(run),
            max_rows=MAX_TABLE_ROWS,
            designer=Role.DESIGNER,
            agent=Role.AGENT,
        )
    )


def templates() -> Environment:
    """Where pages come from: every value is made visible and escaped, and none may be missing."""
    environment = Environment(
        loader=PackageLoader("spade_loop.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalise,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        name: getattr(formats, name)
        for name in ("decimal", "significant", "percent", "duration", "clip", "count")
    }
    environment.globals["plus_minus"] = formats.plus_minus
    return environment


def _finalise(value: Any) -> Any:
    """What the template prints: every string that is not markup of ours is made visible, then escaped by Jinja."""
    if isinstance(value, Markup):
        return value
    if value is None:
        return formats.MISSING
    return formats.visible(str(value))


def outcome_lines(run: Run) -> list[OutcomeLine]:
    """Designs of the run by outcome, in the order of `Outcome`."""
    totals = outcomes(run.metrics)
    return [OutcomeLine(str(o), MEANINGS[o], totals[o]) for o in Outcome]


def reason_lines(run: Run) -> list[ReasonLine]:
    """Why designs were lost, most frequent first, with the newest example of each."""
    totals: Counter[str] = Counter()
    for row in run.metrics:
        totals.update(row.refused_for)
    examples: dict[str, str] = defaultdict(str)
    for design in run.designs:
        for reason in design.reasons:
            examples[reason] = design.detail or examples[reason]
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    return [
        ReasonLine(formats.clip(reason, 80), number, formats.clip(examples[reason], 240))
        for reason, number in ordered[:MAX_REASONS]
    ]


def charts(run: Run) -> list[Chart]:
    """The charts over iterations, in the order in which they are shown."""

    def line(label: str, of: Callable[[MetricsRow], float | None]) -> Series:
        return Series(label, tuple(Point(r.iteration + 1, of(r)) for r in run.metrics))

    def of_roles(of: Callable[[RoleNumbers], float | None]) -> tuple[Series, ...]:
        return tuple(
            Series(str(role), tuple(Point(r.iteration + 1, of(r.role(role))) for r in run.metrics))
            for role in Role
        )

    regret = Series(
        "mean regret ± 1 standard error",
        tuple(Point(r.iteration + 1, r.regret.mean, r.regret.standard_error) for r in run.metrics),
    )
    return [
        Chart(
            ident="regret",
            title="Mean regret",
            description="Return with the hint minus return without it, on the same seeds. Not floored: below zero the "
            "hint did harm. Bars are one standard error, over seeds.",
            series=(regret,),
            floor=0.0,
        ),
        Chart(
            ident="solved",
            title="Solve rate",
            description="Share of the episodes that reached the goal, without the hint and with it.",
            series=(
                line(str(Arm.PLAIN), lambda r: r.solve_rate.plain),
                line(str(Arm.HINTED), lambda r: r.solve_rate.hinted),
            ),
            floor=0.0,
            ceiling=1.0,
        ),
        Chart(
            ident="reward",
            title="Reward of both roles",
            description="Mean reward of the rows of each role. Each iteration plays other environments, "
            "so a rise alone is no progress.",
            series=of_roles(lambda role: role.reward),
            floor=0.0,
        ),
        Chart(
            ident="tokens",
            title="Trained tokens",
            description="Tokens that carried a gradient, in rows with an advantage other than zero.",
            series=of_roles(lambda role: float(role.trained_tokens)),
            floor=0.0,
        ),
        Chart(
            ident="advantage",
            title="Sum of |advantage|",
            description="What each role puts into the update, after centring and weighting.",
            series=of_roles(lambda role: role.abs_advantage),
            floor=0.0,
        ),
    ]
