"""The work of `synthgym snapshot`: each function is one of its commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer

from synthgym.cli.entries import open_place
from synthgym.cli.output import print_json, print_table, print_text
from synthgym.envs.rendering import printable
from synthgym.errors import ConfigError, SnapshotError, TrustError
from synthgym.registry import Entry, Snapshot, algebra, archive, build_bundled
from synthgym.registry.core import check_name, check_version
from synthgym.registry.layout import SIGNATURES

_SHOWN: Final = 20
"""Entries of a kind that `diff` prints."""


def build(folder: Path, name: str | None, release: str | None, *, force: bool) -> None:
    """Build a registry from hand-written environments; exit code 1 when one is refused."""
    for text, check in ((name, check_name), (release, check_version)):
        if text is not None:
            check(text)  # a mistake on the command line, not a refusal
    try:
        snapshot = build_bundled(folder, name=name, version=release, force=force)
    except SnapshotError as error:
        typer.echo(printable(str(error)), err=True)
        raise typer.Exit(1) from error
    _tell(snapshot)


def verify(place: str) -> Snapshot:
    """Compare everything with the manifest; exit code 3 when anything differs, 4 when pulling it is refused."""
    try:
        snapshot = open_place(place)
        problems = snapshot.verify()
    except ConfigError:  # there is no such place
        raise
    except SnapshotError as error:
        typer.echo(printable(str(error)), err=True)
        raise typer.Exit(4 if isinstance(error, TrustError) else 3) from error
    for problem in problems:
        typer.echo(printable(problem), err=True)
    if problems:
        raise typer.Exit(3)
    typer.echo(f"{len(snapshot)} environments as promised: {snapshot.digest}")
    return snapshot


def info(place: str, *, as_json: bool) -> None:
    """Print what the manifest says."""
    snapshot = open_place(place)
    facts = _facts(snapshot)
    if as_json:
        print_json(facts)
        return
    parents = facts.pop("parents")
    facts["parents"] = "; ".join(
        f"{p['relation']} of {p['name']} {p['version']} {p['digest']}" for p in parents
    )
    facts["embedders"] = ", ".join(f"{k} ({v})" for k, v in facts["embedders"].items())
    print_table(("", ""), [(key, str(value)) for key, value in facts.items() if value != ""])


def diff(old: str, new: str, *, notes: bool, as_json: bool) -> bool:
    """Print what leads from one snapshot to the other; whether anything differs."""
    found = algebra.diff(open_place(old), open_place(new), notes=notes)
    if as_json:
        print_json(
            {
                "added": [_row(entry) for entry in found.added],
                "removed": [_row(entry) for entry in found.removed],
                "renamed": [[_row(before), _row(after)] for before, after in found.renamed],
                "noted": [_row(entry) for entry in found.noted],
            }
        )
        return bool(found)
    for what, entries in (("added", found.added), ("removed", found.removed)):
        _print_entries(what, [entry.env_id for entry in entries])
    _print_entries("renamed", [f"{a.env_id} -> {b.env_id}" for a, b in found.renamed])
    _print_entries("noted anew", [entry.env_id for entry in found.noted])
    if not found:
        print_text("no difference")
    return bool(found)


def merge(
    places: Sequence[str],
    out: Path,
    name: str,
    release: str,
    on_conflict: str,
    layout: str | None,
) -> None:
    """Unite snapshots."""
    snapshots = [open_place(place) for place in places]
    _tell(
        algebra.merge(
            out, snapshots, name=name, version=release, on_conflict=on_conflict, layout=layout
        )
    )


def split(place: str, out: Path, parts: Sequence[str], seed: int, release: str) -> None:
    """Take a snapshot apart, each part in a folder of its name."""
    targets = {name: (out / name, share) for name, share in map(_part, parts)}
    if len(targets) != len(parts):
        raise ConfigError(f"each part needs a name of its own, got {', '.join(parts)}")
    made = algebra.split(open_place(place), targets, seed=seed, version=release)
    for snapshot in made.values():
        _tell(snapshot)


def pack(place: str, target: Path) -> None:
    """Write a snapshot as one file."""
    typer.echo(str(archive.pack(open_place(place), target)))


def unpack(place: str, target: Path) -> None:
    """Write a packed snapshot as a folder."""
    _tell(archive.unpack(open_place(place), target))


def _facts(snapshot: Snapshot) -> dict[str, Any]:
    core, manifest = snapshot.core, snapshot.manifest
    return {
        "name": core.name,
        "version": core.version,
        "digest": snapshot.digest,
        "content": core.content_digest,
        "environments": core.env_count,
        "notes": core.notes_count,
        "license": core.license,
        "parents": [parent.to_json() for parent in core.parents],
        "layout": manifest.layout,
        "files": len(manifest.files),
        "bytes": sum(ref.size for ref in manifest.files),
        "embedders": dict(manifest.embedders),
        "signatures": SIGNATURES if SIGNATURES in set(snapshot.files.paths()) else "none",
    }


def _tell(snapshot: Snapshot) -> None:
    typer.echo(f"{len(snapshot)} environments, {snapshot.name} {snapshot.version}")
    typer.echo(snapshot.digest)


def _part(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        return name, float(share)
    except ValueError:
        raise ConfigError(f"a part is a name and a share, as train=0.9, got {text!r}") from None


def _print_entries(what: str, lines: Sequence[str]) -> None:
    if lines:
        print_text(f"{what}: {len(lines)}")
        for line in lines[:_SHOWN]:
            print_text(f"  {line}")
        if len(lines) > _SHOWN:
            print_text(f"  and {len(lines) - _SHOWN} more (--json lists all)")


def _row(entry: Entry) -> dict[str, Any]:
    return {"id": entry.env_id, "digest": entry.digest, "title": entry.title}
