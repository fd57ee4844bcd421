"""What the gates of validation find and what they refuse wrongly, over the labelled set, and what they cost.

    python benchmarks/gates.py
    python benchmarks/gates.py --json > gates.json

Exit code 1 when a fault is not found (recall below 1), when too much is refused wrongly (precision below 0.98), or when
a reason has no example. See README.md in this folder for what is counted.
"""

from __future__ import annotations

import compileall
import json
import resource
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness import Measurement, interleave, machine, median, parser, positive, run, spread, table
from labelled import (
    BAD,
    MUTATION,
    Labelled,
    bad_examples,
    mutation,
    near_misses,
    registry,
    rendered,
)
from workload import load

import synthgym
from synthgym import Pool, validate
from synthgym.spec import Limits
from synthgym.validation import Reason, Report, Severity, Verdict

PER_WORKER: Final = 16
"""Sources that one worker takes, one after the other."""
RECALL: Final = 1.0
PRECISION: Final = 0.98
"""Least share of the refusals of a kind that must be right."""
QUICK: Final = Limits(
    load_seconds=2, reset_seconds=0.5, step_seconds=0.5, hint_seconds=0.5, solution_seconds=0.5
)
"""For sources that take for ever: waiting for the end of the limits tells nothing more."""
LIGHT, REGISTRY, ALL_GOOD = "light", "registry", "all good ones"
WORKLOADS: Final = (LIGHT, REGISTRY, ALL_GOOD)


@dataclass(slots=True)
class Count:
    """Right and wrong verdicts of one kind."""

    true_positives: int = 0
    false_positives: int = 0
    false_negatives: int = 0
    true_negatives: int = 0

    def enter(self, expected: bool, found: bool) -> None:
        """Count one source."""
        if expected:
            self.true_positives += found
            self.false_negatives += not found
        else:
            self.false_positives += found
            self.true_negatives += not found

    @property
    def there(self) -> int:
        """Sources that have the fault."""
        return self.true_positives + self.false_negatives

    @property
    def recall(self) -> float:
        """Share of what was there that was found; 1 when nothing was there."""
        return self.true_positives / self.there if self.there else 1.0

    @property
    def precision(self) -> float:
        """Share of what was found that was there; 1 when nothing was found."""
        found = self.true_positives + self.false_positives
        return self.true_positives / found if found else 1.0

    @property
    def enough(self) -> bool:
        """Whether both are."""
        return self.recall >= RECALL and self.precision >= PRECISION

    def to_json(self) -> dict[str, float]:
        """JSON object of the counts and the shares."""
        return {
            "true_positives": self.true_positives,
            "false_positives": self.false_positives,
            "false_negatives": self.false_negatives,
            "true_negatives": self.true_negatives,
            "recall": self.recall,
            "precision": self.precision,
        }


@dataclass(frozen=True, slots=True)
class Judged:
    """A source of the set, and what validation said of it."""

    item: Labelled
    reasons: frozenset[Reason]
    failed: tuple[str, ...]
    """The gates that did not let it pass."""

    @property
    def gate(self) -> str | None:
        """The gate that found the fault; None when it is a warning, or more than one gate or none did."""
        return self.failed[0] if len(self.failed) == 1 else None

    @property
    def mistake(self) -> str:
        """What is wrong with the verdict; empty when nothing is."""
        expected = frozenset() if self.item.reason is None else frozenset({self.item.reason})
        if self.reasons != expected:
            found = ", ".join(sorted(self.reasons)) or "nothing"
            return f"expected {', '.join(expected) or 'nothing'}, found {found}"
        refused = any(reason.severity is Severity.REFUSED for reason in expected)
        if len(self.failed) != refused:
            return f"failed at {', '.join(self.failed) or 'no gate'}"
        return ""


# --- what is found ---


def judge(items: Iterable[Labelled]) -> list[Judged]:
    """Validate every source of the set in one pool."""
    found = []
    with Pool(sources_per_worker=PER_WORKER) as pool:
        for number, item in enumerate(items, 1):
            slow = item.reason is not None and item.reason.endswith("-timeout")
            report = validate(item.source, pool=pool, limits=QUICK if slow else Limits())
            found.append(Judged(item, report.reasons, _failed(report)))
            if number % 50 == 0:
                print(f"{number} sources judged", file=sys.stderr, flush=True)
    return found


def _failed(report: Report) -> tuple[str, ...]:
    return tuple(name for name, verdict in report.gates.items() if verdict is Verdict.FAILED)


def by_reason(judged: Sequence[Judged]) -> dict[str, Count]:
    """A source counts as positive for the reason of its label."""
    counts = {reason.value: Count() for reason in Reason}
    for one in judged:
        for reason in Reason:
            counts[reason.value].enter(reason is one.item.reason, reason in one.reasons)
    return counts


def by_gate(judged: Sequence[Judged]) -> dict[str, Count]:
    """A source counts as positive for the gate that its bad example failed at; mutations follow it."""
    own = {one.item.name: one.gate for one in judged if one.item.kind == BAD}
    counts: dict[str, Count] = {}
    with Pool() as pool:
        names = list(validate("", pool=pool).gates)
    for name in names:
        counts[name] = Count()
        for one in judged:
            faulty = one.item.kind in (BAD, MUTATION)
            expected = faulty and own.get(one.item.name.partition("/")[0]) == name
            counts[name].enter(expected, name in one.failed)
    return counts


def the_set(mutations: int, sample: int | None) -> list[Labelled]:
    """All sources with their labels; of each kind the first `sample` when that is given."""
    bad = bad_examples()[:sample]
    mutated = [mutation(item, number) for item in bad for number in range(mutations)]
    return [*bad, *mutated, *_good(sample)]


# --- what it costs ---


def _good(sample: int | None) -> list[Labelled]:
    return [*near_misses()[:sample], *registry()[:sample], *rendered()[:sample]]


def one(workload: str, sources: int, sample: int | None) -> Measurement:
    """CPU and wall-clock time of the full validation of a workload, in a fresh process."""
    if workload == LIGHT:
        texts = list(load("light", sources).sources)
    else:
        items = registry()[:sample] if workload == REGISTRY else _good(sample)
        texts = [item.source for item in items]
    # Workers write no bytecode; whether somebody else did must not decide what is measured.
    compileall.compile_dir(str(Path(synthgym.__file__).parent), quiet=2)
    before, began = _cpu_seconds(), time.perf_counter()
    with Pool(sources_per_worker=PER_WORKER) as pool:
        for text in texts:
            validate(text, pool=pool)
    seconds, cpu = time.perf_counter() - began, _cpu_seconds() - before
    return {
        "environments": len(texts),
        "cpu_ms": cpu / len(texts) * 1e3,
        "per_second": len(texts) / seconds,
    }


def _cpu_seconds() -> float:
    """Of this process and of all children that have ended, and theirs."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


# --- what is printed ---


def count_table(head: str, counts: Mapping[str, Count]) -> str:
    """One row a gate or reason."""
    rows = [
        [
            f"`{name}`",
            str(count.true_positives),
            str(count.false_positives),
            str(count.false_negatives),
            str(count.true_negatives),
            f"{count.recall:.3f}" if count.there else "none there",
            f"{count.precision:.3f}",
            "" if count.enough else "**missed**",
        ]
        for name, count in counts.items()
    ]
    columns = [head, "found", "wrongly", "overlooked", "rightly not", "recall", "precision", ""]
    return table(columns, rows)


def cost_table(costs: Mapping[str, list[Measurement]]) -> str:
    """One row a workload."""
    rows = [
        [
            name,
            f"{items[0]['environments']}",
            spread([item["cpu_ms"] for item in items], ".1f"),
            spread([item["per_second"] for item in items], ".1f"),
        ]
        for name, items in costs.items()
    ]
    return table(["workload", "environments", "CPU ms/environment", "environments/s"], rows)


def _as_json(
    judged: Sequence[Judged],
    counts: Mapping[str, Mapping[str, Count]],
    costs: Mapping[str, list[Measurement]],
) -> dict[str, Any]:
    kinds = [one.item.kind for one in judged]
    return {
        "machine": machine().splitlines(),
        "sources": {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        **{
            part: {name: count.to_json() for name, count in found.items()}
            for part, found in counts.items()
        },
        "mistakes": {one.item.name: one.mistake for one in judged if one.mistake},
        "costs": {
            name: {key: median(item[key] for item in items) for key in items[0]}
            for name, items in costs.items()
        },
    }


def main(arguments: Sequence[str]) -> None:
    """Judge, measure and print."""
    reader = parser(__doc__, rounds=3)
    reader.add_argument("--json", action="store_true", help="one JSON object instead of tables")
    reader.add_argument("--mutations", type=positive, default=2, help="of each bad example")
    reader.add_argument("--sources", type=positive, default=32, help="variants of the light one")
    reader.add_argument("--sample", type=positive, help="only so many sources of each kind")
    options = reader.parse_args(arguments)
    judged = judge(the_set(options.mutations, options.sample))
    counts = {"gates": by_gate(judged), "reasons": by_reason(judged)}
    settings = {"sources": options.sources, "sample": options.sample}
    measured = interleave(options.rounds, [{"workload": name, **settings} for name in WORKLOADS])
    costs = dict(zip(WORKLOADS, measured, strict=True))
    mistakes = [f"- {one.item.name}: {one.mistake}" for one in judged if one.mistake]
    bare = [name for name, count in counts["reasons"].items() if not count.there]
    if options.sample is None:
        mistakes += [f"- {name} has no bad example" for name in bare]
    if options.json:
        print(json.dumps(_as_json(judged, counts, costs), indent=2))
    else:
        print(machine())
        for part, found in counts.items():
            print(f"### {part}\n\n{count_table(part[:-1], found)}")
        print(f"### costs\n\n{cost_table(costs)}")
    print("\n".join(mistakes) or "no mistakes", file=sys.stderr if options.json else sys.stdout)
    enough = all(count.enough for part in counts.values() for count in part.values())
    if not enough or (bare and options.sample is None):
        raise SystemExit(1)


if __name__ == "__main__":
    run(main, one)
