"""Results and comparisons as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from spade_loop.evaluation.comparing import MCNEMAR, SIGN_FLIP, Comparison, Difference
from spade_loop.evaluation.results import OVERALL, Evaluation, SuiteResult
from spade_loop.evaluation.statistics import Estimate
from spade_loop.evaluation.suite import Failure
from spade_loop.evaluation.tables import Table
from spade_loop.report.formats import MISSING, count
from spade_loop.speaking import Usage

Cost = Callable[[Usage], float]
_SIGNIFICANT: Final = 0.05


def tables_of(evaluation: Evaluation, cost: Cost | None = None) -> list[Table]:
    """One table of rates, one of what went wrong and what was spent; `cost` prices the latter."""
    return [_rates(evaluation), _failures(evaluation), _spent(evaluation, cost)]


def comparison_table(comparison: Comparison) -> Table:
    """All rows of a comparison. A is the same in each; B has a column of its own where there are several."""
    first = comparison.rows[0].first
    seconds = list(dict.fromkeys(row.second for row in comparison.rows))
    several = len(seconds) > 1
    what = "accuracy" if comparison.metric == "correct" else "scores"
    sides = f"A is {first}" + ("" if several else f", B is {seconds[0]}")
    return Table(
        title=f"Comparison of {what}, in per cent: {sides}",
        columns=(
            "Suite", "Category", *(["B"] if several else []), "Items", "A %", "B %",
            "B − A", "95 % interval", "A/B better", "p", "p (Holm)",  # noqa: RUF001
        ),
        rows=tuple(_comparison_row(row, several=several) for row in comparison.rows),
        labels=3 if several else 2,
        spare=frozenset({"A/B better", "p"}),
        notes=(
            "Items are paired by id. Intervals: percentile bootstrap of paired items. "
            + _tests(comparison.rows)
            + " Holm's correction is over all overall rows, and over all rows of categories; * marks p (Holm) < 0.05.",
            *comparison.notes,
        ),
    )  # fmt: skip


def interval(estimate: Estimate | None) -> str:
    """`[41.2, 58.8]` of a share, in per cent."""
    if estimate is None:
        return MISSING
    return f"[{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _rates(evaluation: Evaluation) -> Table:
    ks = sorted({k for suite in evaluation.suites for k in _shown_ks(suite)})
    rows = []
    for suite in evaluation.suites:
        for name, group in suite.groups.items():
            accuracy = group.accuracy
            rows.append(
                (
                    suite.name,
                    name,
                    f"{accuracy.items:,}" if accuracy else "0",
                    str(suite.samples),
                    _percent(accuracy),
                    interval(accuracy),
                    _percent(group.score),
                    *(_percent(group.pass_at.get(k)) for k in ks),
                )
            )
    return Table(
        title=f"Accuracy of {evaluation.label}, in per cent",
        columns=(
            "Suite", "Category", "Items", "Samples", "Accuracy", "95 % interval", "Score",
            *(f"pass@{k}" for k in ks),
        ),
        rows=tuple(rows),
        labels=2,
        spare=frozenset({"Samples", "Score"}),
        notes=(
            "Accuracy is the mean over items of the share of samples that were correct; intervals resample items. "
            "Attempts that failed count as wrong, but for faults of an environment, which are left out.",
        ),
    )  # fmt: skip


def _failures(evaluation: Evaluation) -> Table:
    rows = [
        (suite.name, kind, f"{number:,}", f"{100 * number / max(1, suite.attempts):.1f}",
         "left out" if kind == Failure.FAULT else "wrong")
        for suite in evaluation.suites
        for kind, number in suite.failures.items()
    ]  # fmt: skip
    rows += [(s.name, "none", "0", "0.0", "") for s in evaluation.suites if not s.failures]
    return Table(
        title="Attempts that failed, by kind",
        columns=("Suite", "Failure", "Attempts", "Per cent", "Counted"),
        rows=tuple(rows),
        labels=2,
    )


def _spent(evaluation: Evaluation, cost: Cost | None) -> Table:
    rows = []
    for suite in evaluation.suites:
        usage = suite.usage
        priced = () if cost is None else (f"{cost(usage):.4g}",)
        numbers = (suite.attempts, usage.calls, usage.prompt_tokens, usage.tokens)
        rows.append((suite.name, *(f"{number:,}" for number in numbers), *priced))
    columns = ("Suite", "Attempts", "Calls", "Tokens read", "Tokens generated")
    return Table(
        title="What was spent",
        columns=columns if cost is None else (*columns, "Cost"),
        rows=tuple(rows),
        notes=tuple(f"{suite.name}: {_how(suite)}." for suite in evaluation.suites),
    )


def _how(suite: SuiteResult) -> str:
    decoding = suite.decoding
    drawn = (
        "greedy"
        if decoding.temperature == 0
        else f"temperature {decoding.temperature:g}, top-p {decoding.top_p:g}, top-k {decoding.top_k or 'off'}"
    )
    options = "".join(f", {key}={value}" for key, value in suite.options.items())
    return (
        f"version {suite.version}, {drawn}, at most {count(decoding.max_tokens, 'token')} a reply, "
        f"seed {suite.seed}{options}"
    )


def _shown_ks(suite: SuiteResult) -> list[int]:
    """The largest k alone, next to the accuracy, which is pass@1."""
    ks = [k for k in suite.groups[OVERALL].pass_at if k > 1]
    return ks[-1:]


def _percent(estimate: Estimate | None) -> str:
    return MISSING if estimate is None else f"{100 * estimate.value:.1f}"


def _comparison_row(row: Difference, *, several: bool) -> tuple[str, ...]:
    mark = " *" if row.adjusted < _SIGNIFICANT else ""
    return (
        row.suite,
        row.group,
        *([row.second] if several else []),
        f"{row.items:,}",
        f"{100 * row.first_mean:.1f}",
        f"{100 * row.second_mean:.1f}",
        f"{100 * row.difference.value:+.1f}",
        interval(row.difference),
        f"{row.only_first:,}/{row.only_second:,}",
        _p(row.p_value),
        _p(row.adjusted) + mark,
    )


def _tests(rows: Sequence[Difference]) -> str:
    names = {row.test for row in rows}
    if len(names) > 1:
        return f"Tests: {MCNEMAR}, where both have one sample of every item; else {SIGN_FLIP}."
    return f"Test: {names.pop()}."


def _p(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"
