"""Small environments, and snapshots of them in either layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

LAYOUTS: Final = ("folder", "shards")
EMBEDDER: Final = "unit-test"


def game(
    name: str = "LedgerAudit", version: int = 0, text: str = "", steps: int = 0, **notes: Any
) -> SynthEnvSpec:
    """An environment. `text` changes its content alone, `steps` its structure too."""
    body = "    turns += 1\n" * steps
    source = f'"""Rules."""\n\n\nclass {name}Env:\n    max_turns = turns = 9\n{body}# {text}\n'
    record = EnvRecord(source=source, entry=f"{name}Env", max_turns=9, requires=("math",))
    return SynthEnvSpec(record=record, name=name, version=version, **notes)


def games(count: int, **notes: Any) -> list[SynthEnvSpec]:
    """Environments of different content and structure: `Game0`, `Game1`, ..."""
    return [game(f"Game{number}", steps=number, **notes) for number in range(count)]


def write(
    path: Path,
    specs: Iterable[SynthEnvSpec],
    layout: str = "folder",
    *,
    name: str = "games",
    version: str = "1.0.0",
    **options: Any,
) -> Snapshot:
    """Write a snapshot as `write_snapshot` does, with a name and version unless they are given."""
    return write_snapshot(path, specs, name=name, version=version, layout=layout, **options)


def rich(path: Path, layout: str) -> Snapshot:
    """A snapshot with every kind of note."""
    specs = [
        game("LedgerAudit", title="Audit of a ledger", skills=("logical-deduction",)),
        game("DryDock", 1, metrics={"regret": 0.25}, hint="Look at the tide."),
        game("DryDock", 0, "caf\u00e9 \u20ac\r", license="MIT"),
    ]
    return write(
        path,
        specs,
        layout,
        reports={specs[0].digest: {"ok": True, "seeds": [0, 1]}},
        vectors={spec.digest: {EMBEDDER: row(spec.digest)} for spec in specs[:2]},
    )


def row(digest: str) -> np.ndarray[Any, np.dtype[np.float16]]:
    """A vector that tells its environment."""
    return np.frombuffer(bytes.fromhex(digest[7:23]), np.uint8).astype(np.float16)


def tree(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by path."""
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def contents(snapshot: Snapshot) -> dict[str, tuple[str, Mapping[str, bytes]]]:
    """Digest and notes of every environment, by id."""
    return {item.entry.env_id: (item.entry.digest, item.notes) for item in snapshot.packed()}
