"""What an evaluation comes to: rates of each suite from its attempts, and the file `eval.json`."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from spade_loop.errors import RunStateError
from spade_loop.evaluation.statistics import Estimate, mean_with_interval, pass_at_k
from spade_loop.speaking import Decoding, Usage
from spade_loop.state import replace_text
from spade_loop.types import JsonRow

FILE: Final = "eval.json"
FORMAT: Final = 1
OVERALL: Final = "overall"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """All tries at one item that can be scored, in order."""

    id: str
    category: str
    correct: tuple[bool, ...]
    score: tuple[float, ...]
    unscored: int = 0
    """Tries that a fault of the environment ended."""

    @property
    def rate(self) -> float | None:
        """Share of tries that were correct; None when none could be scored."""
        return sum(self.correct) / len(self.correct) if self.correct else None

    @property
    def mean_score(self) -> float | None:
        """Mean score of the tries."""
        return sum(self.score) / len(self.score) if self.score else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Rates over all items, or over those of a category."""

    accuracy: Estimate | None
    """Mean over items of the share of tries that were correct; None where nothing could be scored."""
    score: Estimate | None
    """The same of scores."""
    pass_at: dict[int, Estimate] = field(default_factory=dict)
    """By k: mean over items of the chance that one of k tries is correct; empty with one try an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteResult:
    """One suite with one model."""

    name: str
    version: str
    options: dict[str, str]
    decoding: Decoding
    samples: int
    seed: int
    groups: dict[str, Group]
    """`overall` first, then every category where there are several."""
    failures: dict[str, int]
    """Attempts by the kind of their failure; all but faults count as wrong."""
    usage: Usage
    items: tuple[ItemResult, ...]

    @property
    def attempts(self) -> int:
        """Tries, those that could not be scored among them."""
        return sum(len(item.correct) + item.unscored for item in self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What `eval.json` holds."""

    format: int = FORMAT
    model: JsonRow
    """What the answers depend on: name and backend."""
    suites: tuple[SuiteResult, ...]

    @property
    def label(self) -> str:
        """The model's name."""
        return str(self.model.get("name", "?"))


def item_results(rows: Sequence[Mapping[str, Any]]) -> tuple[ItemResult, ...]:
    """Items in the order of `rows`, which are rows of attempts: every try at an item after the one before."""
    tries: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        tries.setdefault(row["item"], []).append(row)
    found = []
    for name, all_of_it in tries.items():
        counted = [row for row in all_of_it if row["counted"]]
        found.append(
            ItemResult(
                id=name,
                category=all_of_it[0]["category"],
                correct=tuple(bool(row["correct"]) for row in counted),
                score=tuple(float(row["score"]) for row in counted),
                unscored=len(all_of_it) - len(counted),
            )
        )
    return tuple(found)


def groups_of(items: Sequence[ItemResult], *, seed: int) -> dict[str, Group]:
    """Rates of all items, and of each category where there are several; the bootstrap draws from `seed`."""
    categories = list(dict.fromkeys(item.category for item in items))
    groups = {OVERALL: _group(items, np.random.default_rng([seed, 0]))}
    if len(categories) > 1:
        for number, category in enumerate(categories, start=1):
            part = [item for item in items if item.category == category]
            groups[category] = _group(part, np.random.default_rng([seed, number]))
    return groups


def failures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Number of attempts by the kind of their failure, most frequent first."""
    counts = Counter(row["failure"] for row in rows if row["failure"])
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def write_evaluation(evaluation: Evaluation, folder: Path) -> Path:
    """Write `eval.json`, whole or not at all."""
    path = folder / FILE
    plain = msgspec.to_builtins(evaluation, str_keys=True)
    replace_text(path, json.dumps(plain, indent=1, allow_nan=False) + "\n")
    return path


def read_evaluation(folder: Path) -> Evaluation:
    """The results of a directory, or of its `eval.json`. `RunStateError` says what is missing or wrong."""
    path = folder if folder.is_file() else folder / FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RunStateError(
            f"{path} cannot be read ({error.strerror}): give the --out directory of a finished `spade-loop eval`"
        ) from error
    try:
        found = msgspec.json.decode(content, type=Evaluation, strict=False)
    except msgspec.MsgspecError as error:
        raise RunStateError(
            f"{path} does not hold the results of an evaluation: {error}"
        ) from error
    if found.format != FORMAT:
        raise RunStateError(
            f"{path} has format {found.format}, expected {FORMAT}: another version wrote it"
        )
    return found


def stable_seed(*parts: object) -> int:
    """A seed below 2^31 that is the same in every process, from anything that JSON can write."""
    digest = hashlib.sha256(json.dumps(parts).encode()).digest()
    return int.from_bytes(digest[:4]) & 0x7FFFFFFF


def _group(items: Sequence[ItemResult], rng: np.random.Generator) -> Group:
    rates = [item.rate for item in items if item.rate is not None]
    scores = [item.mean_score for item in items if item.mean_score is not None]
    most = max((len(item.correct) for item in items), default=0)
    pass_at = {}
    for k in _powers_of_two(most):
        chances = [
            pass_at_k(len(item.correct), sum(item.correct), k)
            for item in items
            if len(item.correct) >= k
        ]
        estimate = mean_with_interval(chances, rng)
        if estimate is not None:
            pass_at[k] = estimate
    return Group(
        accuracy=mean_with_interval(rates, rng),
        score=mean_with_interval(scores, rng),
        pass_at=pass_at,
    )


def _powers_of_two(most: int) -> list[int]:
    """1, 2, 4 ... up to `most`, and `most` itself; none where there is one try."""
    if most < 2:
        return []
    return sorted({2**n for n in range(most.bit_length())} | {most})
