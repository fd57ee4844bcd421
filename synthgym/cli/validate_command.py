"""`synthgym validate`: source files against the contract, and on request against a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from synthgym.cli.output import print_json, print_text
from synthgym.contract import MAX_SOURCE_BYTES
from synthgym.errors import ConfigError
from synthgym.memory import NoveltyDecision, NoveltyMemory, describe, load_embedder
from synthgym.registry import Snapshot
from synthgym.sandbox import default_pool
from synthgym.validation import Report, validate


def run(paths: Sequence[Path], against: Path | None, *, explain: bool, as_json: bool) -> bool:
    """Validate each file and print what was found; whether all are fine (and new)."""
    sources = [(path, _read(path)) for path in paths]
    memory = None if against is None else _remember(against)
    outputs = []
    fine = True
    for path, source in sources:
        report = validate(source)
        novelty = None
        if memory is not None and report.ok:
            novelty = memory.check(describe(source, report.first_observation))
        fine = fine and report.ok and (novelty is None or novelty.accepted)
        outputs.append({"path": str(path)} | report.to_json() | _novelty_json(novelty))
        if not as_json:
            print_text(_text(path, report, novelty, explain=explain))
    if as_json:
        print_json(outputs)
    return fine


def _remember(path: Path) -> NoveltyMemory:
    """Every environment of a snapshot. Embeddings only say what is near, so the plain ones will do."""
    snapshot = Snapshot.open(path)
    memory = NoveltyMemory(load_embedder("hash"))
    memory.seed((snapshot.spec(entry.digest) for entry in snapshot), default_pool())
    return memory


def _read(path: Path) -> str:
    """The text of a file; bytes that are not UTF-8 become surrogates, which validation refuses."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_SOURCE_BYTES + 1).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error


def _text(path: Path, report: Report, novelty: NoveltyDecision | None, *, explain: bool) -> str:
    fine = report.ok and (novelty is None or novelty.accepted)
    lines = [f"{'ok' if fine else 'refused'}  {path}  {report.digest}".rstrip()]
    for finding in report.findings:
        lines.append(f"  {finding}")
        if explain:
            lines.append(f"      {finding.reason.explanation}")
    if explain and report.ok:
        turns = report.witness_turns
        lines += [
            f"  {len(report.seeds)} seeds; the solution takes {min(turns)} to {max(turns)} turns",
            f"  the random agent won {report.random_wins} of its episodes",
        ]
    if novelty is not None:
        near = ", ".join(f"{hit.name} {hit.similarity:.2f}" for hit in novelty.nearest)
        lines.append(f"  {' '.join(f'{novelty.reason}: {novelty.detail}'.split())}")
        lines.append(f"  nearest: {near or 'none'}")
    return "\n".join(lines)


def _novelty_json(novelty: NoveltyDecision | None) -> dict[str, object]:
    return {} if novelty is None else {"novelty": asdict(novelty)}
