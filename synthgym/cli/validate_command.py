"""`synthgym validate`: source files against the contract, and on request against a snapshot."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from synthgym.audit.folders import MAX_READ, decoded
from synthgym.cli.entries import open_place
from synthgym.cli.output import print_json, print_text
from synthgym.errors import ConfigError
from synthgym.memory import (
    Description,
    NoveltyDecision,
    NoveltyMemory,
    behaviour_trace,
    describe,
    load_embedder,
)
from synthgym.sandbox import default_pool
from synthgym.validation import Finding, Report, Severity, validate

_HEAD: Final = 9
"""Columns of the words in front of an explanation."""


def run(
    paths: Sequence[Path], against: str | None, dialect: str, *, explain: bool, as_json: bool
) -> bool:
    """Validate each file and print what was found; whether all are fine (and new)."""
    sources = [(path, _read(path)) for path in paths]
    memory = None if against is None else _remember(against)
    outputs = []
    fine = True
    for path, source in sources:
        report = validate(source, dialect=dialect)
        novelty = None
        if memory is not None and report.ok:
            novelty = memory.check(_description(source, report))
        fine = fine and report.ok and (novelty is None or novelty.accepted)
        outputs.append({"path": str(path)} | report.to_json() | _novelty_json(novelty))
        if not as_json:
            print_text(_text(path, report, novelty, explain=explain))
    if as_json:
        print_json(outputs)
    return fine


def _remember(place: str) -> NoveltyMemory:
    """Every environment of a snapshot. Embeddings only say what is near, so the plain ones will do."""
    snapshot = open_place(place)
    memory = NoveltyMemory(load_embedder("hash"))
    specs = (snapshot.spec(entry.digest) for entry in snapshot)
    memory.seed(specs, default_pool(), with_behaviour=True)
    return memory


def _description(source: str, report: Report) -> Description:
    """What a source that passed is compared by: text, code, and what it does."""
    assert report.record is not None  # it passed
    trace = behaviour_trace(report.record, default_pool())
    return describe(source, report.first_observation, behaviour=trace)


def _read(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 become surrogates, which validation refuses."""
    try:
        with path.open("rb") as file:
            return decoded(file.read(MAX_READ))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def _text(path: Path, report: Report, novelty: NoveltyDecision | None, *, explain: bool) -> str:
    fine = report.ok and (novelty is None or novelty.accepted)
    lines = [f"{'ok' if fine else 'refused'}  {path}  {report.digest}".rstrip()]
    for finding in report.findings:
        weight = "warning: " if finding.severity is Severity.WARNING else ""
        lines.append(f"  {weight}{' '.join(str(finding).split())}")
        if explain:
            lines += _explained(finding)
    if explain:
        lines += _gates(report)
        lines += _winners(report)
    if novelty is not None:
        near = ", ".join(f"{hit.name} {hit.similarity:.2f}" for hit in novelty.nearest)
        lines.append(f"  {' '.join(f'{novelty.reason}: {novelty.detail}'.split())}")
        lines.append(f"  nearest: {near or 'none'}")
    return "\n".join(lines)


def _explained(finding: Finding) -> Iterator[str]:
    """What is wrong, how to see it again, what was seen, what to do."""
    yield _labelled("wrong", finding.reason.explanation)
    if finding.seed is not None and finding.actions:
        yield _labelled("again", f"reset with seed {finding.seed}, then send")
        for number, action in enumerate(finding.actions, 1):
            yield f"{'':{_HEAD + 5}}{number:>3}. {json.dumps(action, ensure_ascii=False)}"
    elif finding.seed is not None:
        yield _labelled("again", f"reset with seed {finding.seed}")
    elif finding.line is not None:
        yield _labelled("again", f"read line {finding.line}")
    if finding.seen:
        first, *rest = finding.seen.splitlines() or [""]
        yield _labelled("seen", first)
        yield from (f"{'':{_HEAD + 6}}{line}" for line in rest)
    yield _labelled("to do", finding.reason.remedy)


def _labelled(label: str, text: str) -> str:
    return f"      {label:<{_HEAD}}{text}"


def _gates(report: Report) -> Iterator[str]:
    """Each gate with its verdict, in the order in which they are tried."""
    yield "  gates"
    width = max(map(len, report.gates))
    yield from (f"      {name:<{width}}  {verdict}" for name, verdict in report.gates.items())


def _winners(report: Report) -> Iterator[str]:
    """How long the witness takes, and what agents that understand nothing got."""
    if report.witness_turns:
        turns = sorted({min(report.witness_turns), max(report.witness_turns)})
        took = " to ".join(map(str, turns))
        yield f"  the witness wins in {took} turns, on {len(report.witness_turns)} seeds"
    if report.wins:
        yield "  agents that understand nothing won"
        width = max(map(len, report.wins))
        for name, (won, played) in report.wins.items():
            yield f"      {name:<{width}}  {won} of {played}"


def _novelty_json(novelty: NoveltyDecision | None) -> dict[str, object]:
    return {} if novelty is None else {"novelty": asdict(novelty)}
