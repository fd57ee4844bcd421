"""What the novelty rules reject rightly and wrongly, on environments that other people wrote.

    python benchmarks/novelty_recall.py                   # of rlve-gym, reasoning-gym, textarena what is there
    python benchmarks/novelty_recall.py --path DIR        # looks in DIR, too (pip install --target DIR)
    python benchmarks/novelty_recall.py --folder pool/    # your own sources

False rejections are counted by leaving one out: an environment of the collection against all others.
Nobody made it as a copy, so a rejection counts as wrong even where the two are siblings. Recall is
counted for copies in disguise (`transforms.py`): one is recognised when the rules reject it for its
own original. Intervals are Wilson's, 95 %.

Thresholds were tuned on rlve-gym alone; the other collections are as they come. Traces of behaviour
are compared for rlve-gym (`rlve_traces.py`) and for the bundled environments (in the sandbox).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from harness import positive, table
from known_sources import Pool, describe_all
from peer_sources import PACKAGES, Collection, bundled, folder, installed
from transforms import KINDS, transform

from synthgym.memory.embedder import load_embedder
from synthgym.memory.rules import Likeness, Relation, Strictness, relation

TUNED: Final = "rlve-gym"
SEED: Final = 0
"""Of the copies that are reported. The thresholds were read off copies of seed 7."""
GOALS: Final[Mapping[Strictness, tuple[float, Mapping[str, float]]]] = {
    Strictness.REFACTOR: (
        0.03,
        {"rename": 0.97, "constants": 0.97, "reword": 0.97, "reskin": 0.97, "refactor": 0.85},
    ),
    Strictness.SIBLING: (0.06, dict.fromkeys(KINDS, 0.97)),
}
"""At most so many false rejections, at least that recall, on the collection they were tuned on."""
CURVE: Final = (0.5, 0.55, 0.6, 0.65, 0.7, 0.72, 0.75, 0.8, 0.85, 0.9)
_Z: Final = 1.959964
Rule = Callable[[Likeness], bool]


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share; nan of nothing."""
        return self.count / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's, 95 %."""
        if not self.of:
            return math.nan, math.nan
        n, p = self.of, self.value
        middle = (p + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
        half = _Z / (1 + _Z * _Z / n) * math.sqrt(p * (1 - p) / n + _Z * _Z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:.3f} ({low:.3f} to {high:.3f})"


@dataclass(frozen=True, slots=True)
class Measured:
    """Of one collection everything that the rules can be tried on."""

    name: str
    skipped: tuple[str, ...]
    genuine: list[list[Likeness]]
    """Of each environment: to others."""
    copies: dict[str, list[Likeness]]
    """By kind: of each copy to its own original."""
    found: dict[str, Share]
    """By kind: copies whose original is named at all, by shared code or by text."""
    traced: Share

    def false_rejections(self, rule: Rule) -> Share:
        """Environments that the rule rejects for another one."""
        return Share(sum(any(map(rule, row)) for row in self.genuine), len(self.genuine))

    def recall(self, rule: Rule, kind: str) -> Share:
        """Copies that the rule rejects for their own original."""
        return Share(sum(map(rule, self.copies[kind])), len(self.copies[kind]))


def measure(collection: Collection, embedder: str, seed: int, sample: int | None) -> Measured:
    """Describe a collection and copies of it, and compare them."""
    names = list(collection.sources)
    count = len(names) if sample is None else min(sample, len(names))
    chosen = [names[number * len(names) // count] for number in range(count)]
    texts = {(name, ""): source for name, source in collection.sources.items()}
    for kind in KINDS:
        for name in chosen:
            rng = np.random.default_rng([seed, names.index(name), KINDS.index(kind)])
            source = collection.sources[name]
            texts[name, kind] = transform(source, kind, rng, keep=collection.keep)
    known = describe_all(collection, texts, load_embedder(embedder))
    pool = Pool([known[name, ""] for name in names])
    rows = {name: row for row, name in enumerate(names)}
    genuine = [pool.likenesses(known[name, ""], without=rows[name]) for name in names]
    copies: dict[str, list[Likeness]] = {}
    found: dict[str, Share] = {}
    for kind in KINDS:
        pairs = [pool.to(known[name, kind], rows[name]) for name in chosen]
        copies[kind] = [likeness for likeness, _ in pairs]
        found[kind] = Share(sum(hit for _, hit in pairs), len(pairs))
    traced = Share(sum(known[name, ""].trace is not None for name in names), len(names))
    return Measured(collection.name, collection.skipped, genuine, copies, found, traced)


def rule_of(strictness: Strictness) -> Rule:
    """The rules of the memory, as a yes or no."""
    return lambda likeness: relation(likeness, strictness).rejects


def _families(copies: Sequence[Likeness]) -> Share:
    """Copies that `refactor` takes for one engine with other data: a quota counts them."""
    found = (relation(likeness, Strictness.REFACTOR) for likeness in copies)
    return Share(sum(item is Relation.SAME_FAMILY for item in found), len(copies))


def containment_from(threshold: float) -> Rule:
    """Equal structure and data, or so much shared code: a point of the curve."""
    return lambda pair: (pair.ast_equal and pair.data_equal) or pair.containment >= threshold


def report(measured: Measured) -> str:
    """The tables of one collection."""
    tuned = measured.name.startswith(TUNED)
    head = ["strictness", "false rejections", *KINDS]
    rows = []
    for strictness in Strictness:
        rule = rule_of(strictness)
        shares = [measured.false_rejections(rule), *(measured.recall(rule, k) for k in KINDS)]
        rows.append([str(strictness), *map(str, shares)])
    family = [_families(measured.copies[kind]) for kind in KINDS]
    rows.append(["(same family: a quota)", "", *(f"{share.value:.3f}" for share in family)])
    rows.append(["(named at all)", "", *(f"{measured.found[k].value:.3f}" for k in KINDS)])
    curve = []
    for threshold in CURVE:
        rule = containment_from(threshold)
        shares = [measured.false_rejections(rule), *(measured.recall(rule, k) for k in KINDS)]
        curve.append([f"{threshold:g}", *(f"{share.value:.3f}" for share in shares)])
    skipped = f"; left out {len(measured.skipped)} files that this Python cannot parse"
    lines = [
        f"## {measured.name}: {len(measured.genuine)} environments"
        f"{', the rules were tuned on these' if tuned else ''}",
        f"{len(measured.copies['rename'])} copies of each kind; traces of "
        f"{measured.traced.count}{skipped if measured.skipped else ''}.",
        table(head, rows),
        "Equal structure and data, or containment from a threshold on, without anything else:",
        table(["containment", "false rejections", *KINDS], curve),
    ]
    return "\n\n".join([*lines, *(goals(measured) if tuned else ())])


def goals(measured: Measured) -> list[str]:
    """Which goals were met, by how much the others were missed."""
    lines = []
    for strictness, (most, least) in GOALS.items():
        rule = rule_of(strictness)
        wrong = measured.false_rejections(rule).value
        lines.append(_verdict(f"{strictness}: false rejections", wrong, most, wrong <= most))
        for kind, goal in least.items():
            value = measured.recall(rule, kind).value
            lines.append(_verdict(f"{strictness}: {kind}", value, goal, value >= goal))
    return ["Goals:", "\n".join(lines)]


def _verdict(what: str, value: float, goal: float, met: bool) -> str:
    missed = f"**missed by {abs(value - goal):.3f}**"
    return f"- {what} {value:.3f}, goal {goal:.2f}: {'met' if met else missed}"


def collections(path: Sequence[str], folders: Sequence[Path]) -> list[Collection]:
    """What was asked for: folders, or the packages that are installed and the bundled registry."""
    if folders:
        return [folder(place) for place in folders]
    found = []
    for package in PACKAGES:
        collection = installed(package.distribution, path)
        if collection is None:
            print(
                f"SKIPPED: {package.distribution} is not installed: "
                f"pip install {package.distribution}",
                file=sys.stderr,
            )
        else:
            found.append(collection)
    return [*found, bundled()]


def to_json(measured: Measured) -> dict[str, object]:
    """The same for a program."""
    levels = {}
    for strictness in Strictness:
        rule = rule_of(strictness)
        levels[str(strictness)] = {
            "false_rejections": asdict(measured.false_rejections(rule)),
            "recall": {kind: asdict(measured.recall(rule, kind)) for kind in KINDS},
        }
    return {"name": measured.name, "environments": len(measured.genuine), "levels": levels}


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--path", action="append", default=[], help="where packages are, too")
    parser.add_argument("--folder", action="append", default=[], type=Path)
    parser.add_argument("--embedder", default="auto", choices=("auto", "hash", "minilm"))
    parser.add_argument("--seed", type=int, default=SEED, help="of the copies")
    parser.add_argument("--sample", type=positive, help="copies of at most so many environments")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args(arguments)
    sys.setrecursionlimit(20_000)  # sources of strangers nest deeper than ast.unparse can
    results = []
    for collection in collections(wanted.path, wanted.folder):
        began = time.perf_counter()
        measured = measure(collection, wanted.embedder, wanted.seed, wanted.sample)
        results.append(to_json(measured))
        if not wanted.json:
            print(report(measured), end="\n\n", flush=True)
        seconds = time.perf_counter() - began
        print(f"{measured.name}: {seconds:.0f} s", file=sys.stderr, flush=True)
    if wanted.json:
        print(json.dumps(results))


if __name__ == "__main__":
    main(sys.argv[1:])
