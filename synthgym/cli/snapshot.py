"""`synthgym snapshot`: build a registry from hand-written environments, verify any snapshot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="snapshot", help="Build and verify snapshots of environments.", no_args_is_help=True
)
Folder = Annotated[
    Path, typer.Argument(help="Folder of the snapshot.", exists=True, file_okay=False)
]


@app.command()
def build(
    folder: Folder,
    release: Annotated[
        str | None,
        typer.Option(help="Version of the snapshot; that of the old manifest, or 0.1.0."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Let ids stand for new content: nobody has them yet.")
    ] = False,
) -> None:
    """Validate every env.py and card.json and write spec.json, report.json and manifest.json.

    Exit code 1 when an environment is refused; then nothing was written.
    """
    from synthgym.errors import SnapshotError
    from synthgym.registry import build_bundled

    try:
        snapshot = build_bundled(folder, version=release, force=force)
    except SnapshotError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from error
    typer.echo(f"{len(snapshot)} environments, {snapshot.name} {snapshot.version}")
    typer.echo(snapshot.digest)


@app.command()
def verify(folder: Folder) -> None:
    """Read every file and compare it with the manifest; nothing is executed.

    Exit code 3 when anything differs.
    """
    from synthgym.errors import SnapshotError
    from synthgym.registry import Snapshot

    try:
        snapshot = Snapshot.open(folder)
        problems = snapshot.verify()
    except SnapshotError as error:
        problems = (str(error),)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(3)
    typer.echo(f"{len(snapshot)} environments as promised: {snapshot.digest}")
