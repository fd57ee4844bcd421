"""Two models or more on the same items: paired differences, their intervals, and tests corrected for their number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, Literal

import numpy as np

from spade_loop.errors import ConfigError
from spade_loop.evaluation.results import OVERALL, Evaluation, ItemResult, SuiteResult
from spade_loop.evaluation.statistics import (
    Estimate,
    difference_with_interval,
    holm,
    mcnemar,
    sign_flip,
)
from synthgym.ids import did_you_mean

Metric = Literal["correct", "score"]
METRICS: Final[Mapping[str, Metric]] = {"correct": "correct", "score": "score"}
"""What can be compared, by name."""
MCNEMAR: Final = "McNemar, exact"
SIGN_FLIP: Final = "sign-flip permutation"
_SHOWN: Final = 5
"""Items that an error names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the compared: a directory's name and what is in it."""

    label: str
    evaluation: Evaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One suite, or one category of it, of two models. Differences are the second's less the first's."""

    suite: str
    group: str
    first: str
    second: str
    items: int
    """Items with a result on both sides."""
    first_mean: float
    second_mean: float
    difference: Estimate
    only_first: int
    """Items on which the first did better."""
    only_second: int
    test: str
    p_value: float
    adjusted: float = 1.0
    """After Holm's correction, among all overall rows or among all rows of categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a comparison comes to."""

    metric: Metric
    rows: tuple[Difference, ...]
    notes: tuple[str, ...]
    """What a reader has to know: items left out, other decoding."""


def compare(
    sides: Sequence[Side],
    *,
    common: bool = False,
    metric: Metric = "correct",
    suites: Sequence[str] = (),
    seed: int = 0,
) -> Comparison:
    """The first side against each of the others, on every suite that all of them have.

    A test is McNemar's where both sides tried every item once and correctness is compared, else a sign-flip
    permutation test of the items' mean differences. Holm's correction is over all overall rows, and over all rows of
    categories. `ConfigError` when the sides have other items, or another version of a suite, naming what differs;
    with `common`, items that all sides share are compared.
    """
    if len({side.label for side in sides}) < len(sides) or len(sides) < 2:
        raise ConfigError(
            f"expected two or more different directories, got {', '.join(s.label for s in sides)}"
        )
    names, notes = _shared(sides, suites)
    rows: list[Difference] = []
    for number, name in enumerate(names):
        results = [_suite(side, name) for side in sides]
        _check_versions(name, sides, results)
        notes += _conditions(name, sides, results)
        kept, told = _same_items(name, sides, results, common=common)
        notes += told
        for place, (side, other) in enumerate(zip(sides[1:], kept[1:], strict=True)):
            rng = np.random.default_rng([seed, number, place])
            rows += _differences(name, (sides[0].label, side.label), (kept[0], other), metric, rng)
    if not rows:
        raise ConfigError("the compared have no item with a result on both sides")
    return Comparison(
        metric=metric, rows=tuple(_corrected(rows)), notes=tuple(dict.fromkeys(notes))
    )


Items = dict[str, ItemResult]


def _shared(sides: Sequence[Side], wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """Suites of all sides, in the order of the first, and what is said of those that some lack."""
    have = [[suite.name for suite in side.evaluation.suites] for side in sides]
    everywhere = [name for name in have[0] if all(name in names for names in have)]
    anywhere = list(dict.fromkeys(name for names in have for name in names))
    for name in wanted:
        if name not in everywhere:
            raise ConfigError(
                f"the suite {name!r} is not in all of {', '.join(s.label for s in sides)}"
                f"{did_you_mean(name, everywhere)} (in all are: {', '.join(everywhere) or 'none'})"
            )
    if not everywhere:
        told = "; ".join(
            f"{side.label} has {', '.join(names)}" for side, names in zip(sides, have, strict=True)
        )
        raise ConfigError(f"no suite is in all of the directories: {told}")
    left_out = [name for name in anywhere if name not in everywhere] if not wanted else []
    notes = [f"Not in all directories, and left out: {', '.join(left_out)}."] if left_out else []
    return [name for name in everywhere if not wanted or name in wanted], notes


def _suite(side: Side, name: str) -> SuiteResult:
    return next(suite for suite in side.evaluation.suites if suite.name == name)


def _check_versions(name: str, sides: Sequence[Side], results: Sequence[SuiteResult]) -> None:
    for (side, one), (next_side, other) in pairwise(zip(sides, results, strict=True)):
        if one.version != other.version:
            raise ConfigError(
                f"{name} is another suite in {next_side.label} (version {other.version}) than in {side.label} "
                f"(version {one.version}): evaluate again with the same versions installed"
            )


def _conditions(name: str, sides: Sequence[Side], results: Sequence[SuiteResult]) -> list[str]:
    """Sentences about how the sides were evaluated, where that differs."""
    notes = []
    for side, result in zip(sides[1:], results[1:], strict=True):
        if result.decoding != results[0].decoding:
            notes.append(
                f"{name}: {side.label} was decoded as {_told(result)}, {sides[0].label} as {_told(results[0])}."
            )
        if result.samples != results[0].samples:
            notes.append(
                f"{name}: {side.label} has {result.samples} samples an item, {sides[0].label} {results[0].samples}."
            )
        given, first = _options(result), _options(results[0])
        if given != first:
            notes.append(
                f"{name}: options of {side.label} were {given or 'none'}, of {sides[0].label} {first or 'none'}."
            )
    return notes


def _options(result: SuiteResult) -> str:
    """What was set, but for the place of the data: other data make another version."""
    return ", ".join(f"{k}={v}" for k, v in sorted(result.options.items()) if k != "data")


def _told(result: SuiteResult) -> str:
    decoding = result.decoding
    return (
        f"temperature {decoding.temperature:g}, top-p {decoding.top_p:g}, top-k {decoding.top_k}, "
        f"{decoding.max_tokens} tokens"
    )


def _same_items(
    name: str, sides: Sequence[Side], results: Sequence[SuiteResult], *, common: bool
) -> tuple[list[Items], list[str]]:
    """The items of each side by id; of other sets either those in all, with a note, or `ConfigError`."""
    items = [{item.id: item for item in result.items} for result in results]
    shared = [key for key in items[0] if all(key in side for side in items)]
    if all(len(side) == len(shared) for side in items):
        return items, []
    told = "; ".join(
        part
        for side, own in zip(sides[1:], items[1:], strict=True)
        for part in (
            _lacking(side.label, [key for key in items[0] if key not in own]),
            _lacking(sides[0].label, [key for key in own if key not in items[0]]),
        )
        if part
    )
    if not common:
        raise ConfigError(
            f"{name} was played on other items: {told}; --common compares the {len(shared)} that all have"
        )
    kept = [{key: side[key] for key in shared} for side in items]
    return kept, [f"{name}: compared on the {len(shared)} items that all have; {told}."]


def _lacking(label: str, names: Sequence[str]) -> str:
    """What a side has not; empty when that is nothing."""
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{label} lacks {', '.join(names[:_SHOWN])}{more}"


def _differences(
    name: str,
    labels: tuple[str, str],
    sides: tuple[Items, Items],
    metric: Metric,
    rng: np.random.Generator,
) -> Iterator[Difference]:
    """Overall, and by category where there are several."""
    first, second = sides
    categories = list(dict.fromkeys(item.category for item in first.values()))
    groups = [OVERALL, *(categories if len(categories) > 1 else [])]
    for group in groups:
        keys = [k for k, item in first.items() if group in (OVERALL, item.category)]
        pairs = [(first[key], second[key]) for key in keys]
        row = _difference(name, group, labels, pairs, metric, rng)
        if row is not None:
            yield row


def _difference(
    name: str,
    group: str,
    labels: tuple[str, str],
    pairs: Sequence[tuple[ItemResult, ItemResult]],
    metric: Metric,
    rng: np.random.Generator,
) -> Difference | None:
    """One row; None without a pair of items that both could be scored."""
    measured = [
        (a, b, one, other)
        for a, b in pairs
        if (one := _value(a, metric)) is not None and (other := _value(b, metric)) is not None
    ]
    deltas = [other - one for _, _, one, other in measured]
    estimate = difference_with_interval(deltas, rng)
    if estimate is None:
        return None
    only_first, only_second = sum(d < 0 for d in deltas), sum(d > 0 for d in deltas)
    single = metric == "correct" and all(
        len(a.correct) == len(b.correct) == 1 for a, b, _, _ in measured
    )
    return Difference(
        suite=name,
        group=group,
        first=labels[0],
        second=labels[1],
        items=len(measured),
        first_mean=sum(one for _, _, one, _ in measured) / len(measured),
        second_mean=sum(other for _, _, _, other in measured) / len(measured),
        difference=estimate,
        only_first=only_first,
        only_second=only_second,
        test=MCNEMAR if single else SIGN_FLIP,
        p_value=mcnemar(only_first, only_second) if single else sign_flip(deltas, rng),
    )


def _value(item: ItemResult, metric: Metric) -> float | None:
    return item.rate if metric == "correct" else item.mean_score


def _corrected(rows: Sequence[Difference]) -> Iterator[Difference]:
    adjusted: dict[int, float] = {}
    for family in (True, False):
        places = [i for i, row in enumerate(rows) if (row.group == OVERALL) is family]
        adjusted |= zip(places, holm([rows[i].p_value for i in places]), strict=True)
    for place, row in enumerate(rows):
        yield replace(row, adjusted=adjusted[place])
