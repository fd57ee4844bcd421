"""The command line: each command is parsed here, and does its work in a file of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from synthgym.cli.snapshot import app as snapshot_app
from synthgym.errors import SynthGymError

USER_ERROR: Final = 2
"""Exit code of a mistake on the command line, or of something that could not be done."""
REFUSED: Final = 1
"""Exit code of `validate` when a source is refused, and of `isolation` below the required level."""

app = typer.Typer(
    name="synthgym",
    help="Environments that a language model wrote, as Gymnasium environments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(snapshot_app)

SnapshotOption = Annotated[
    Path | None,
    typer.Option("--snapshot", help="Folder of a snapshot; the bundled one unless given."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
IdArgument = Annotated[str, typer.Argument(help="synthgym/<Name>-v<N>, a name, or a digest.")]


@app.command("list")
def list_command(
    skill: Annotated[str | None, typer.Option(help="Only those that exercise this skill.")] = None,
    json: JsonOption = False,
    snapshot: SnapshotOption = None,
) -> None:
    """List the environments of a snapshot."""
    from synthgym.cli.list_command import run

    run(snapshot, skill, as_json=json)


@app.command()
def show(
    env_id: IdArgument,
    source: Annotated[bool, typer.Option("--source", help="Print the source as well.")] = False,
    json: JsonOption = False,
    snapshot: SnapshotOption = None,
) -> None:
    """Show what is known of one environment."""
    from synthgym.cli.show_command import run

    run(snapshot, env_id, with_source=source, as_json=json)


@app.command()
def play(
    env_id: IdArgument,
    seed: Annotated[int | None, typer.Option(min=0, help="Which instance; drawn if none.")] = None,
    hint: Annotated[bool, typer.Option("--hint", help="Show the hint from the start.")] = False,
    snapshot: SnapshotOption = None,
) -> None:
    """Play an environment yourself. `:hint` shows the hint, `:quit` leaves."""
    from synthgym.cli.play_command import run

    run(snapshot, env_id, seed, with_hint=hint)


@app.command()
def validate(
    paths: Annotated[list[Path], typer.Argument(help="Source files.")],
    explain: Annotated[bool, typer.Option("--explain", help="Say what each code means.")] = False,
    json: JsonOption = False,
    against: Annotated[
        Path | None, typer.Option(help="Snapshot to compare with: duplicates are refused.")
    ] = None,
) -> None:
    """Check source files against the contract. Exit code 1 when one is refused."""
    from synthgym.cli.validate_command import run

    if not run(paths, against, explain=explain, as_json=json):
        raise typer.Exit(REFUSED)


@app.command()
def isolation(
    require: Annotated[
        str | None, typer.Option(help="Exit with 1 below this level: full, partial or reduced.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Say what protects this machine from the code of an environment."""
    from synthgym.cli.isolation_command import run

    missing = run(require, as_json=json)
    if missing is not None:
        typer.echo(f"error: {missing}", err=True)
        raise typer.Exit(REFUSED)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 refused, 2 a mistake or failure, 130 interrupted."""
    try:
        app(args=None if arguments is None else list(arguments), prog_name="synthgym")
    except SynthGymError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        sys.exit(130)
