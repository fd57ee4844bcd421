"""The command line: each command is parsed here, and does its work in a file of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from synthgym.cli.novelty import app as novelty_app
from synthgym.cli.options import (
    AdoptOption,
    IdArgument,
    JsonOption,
    SignersOption,
    SignKeyOption,
    SnapshotOption,
    ValidOption,
)
from synthgym.cli.snapshot import app as snapshot_app
from synthgym.errors import SynthGymError

USER_ERROR: Final = 2
"""Exit code of a mistake on the command line, or of something that could not be done."""
REFUSED: Final = 1
"""Exit code of `validate` and `audit` when a source is refused, and of `isolation` below the required level."""

app = typer.Typer(
    name="synthgym",
    help="Environments that a language model wrote, as Gymnasium environments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

app.add_typer(snapshot_app)
app.add_typer(novelty_app)


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
def search(
    text: Annotated[str, typer.Argument(help="Words in name or title.")] = "",
    skill: Annotated[str | None, typer.Option(help="Only those that exercise this skill.")] = None,
    like: Annotated[
        bool, typer.Option("--like", help="By what the rules mean: the nearest vectors.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Print at most so many.")] = 50,
    json: JsonOption = False,
    snapshot: SnapshotOption = None,
) -> None:
    """Search a snapshot of any size, without loading a source. Exit code 1 when nothing fits."""
    from synthgym.cli.list_command import search

    if not search(snapshot, text, skill, limit, like=like, as_json=json):
        raise typer.Exit(REFUSED)


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
    explain: Annotated[
        bool, typer.Option("--explain", help="Say how to see each finding again.")
    ] = False,
    json: JsonOption = False,
    against: Annotated[
        str | None, typer.Option(help="Snapshot to compare with: duplicates are refused.")
    ] = None,
    dialect: Annotated[str, typer.Option(help="program, spade or auto.")] = "program",
) -> None:
    """Check source files against the contract. Exit code 1 when one is refused."""
    from synthgym.cli.validate_command import run

    if not run(paths, against, dialect, explain=explain, as_json=json):
        raise typer.Exit(REFUSED)


@app.command()
def calibrate(  # noqa: PLR0913 (one parameter for each option)
    env_ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="ENV_ID", help="Ids, names or digests; all unless given."),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="Instances that each agent plays.")] = 100,
    agents: Annotated[
        str, typer.Option(help="Which agents, with commas between.")
    ] = "null,random,scraper,search,witness",
    budget: Annotated[int, typer.Option(min=1, help="Steps of the search, an instance.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="The first instance.")] = 0,
    write: Annotated[
        bool, typer.Option("--write", help="Note the figures in the snapshot.")
    ] = False,
    json: JsonOption = False,
    snapshot: SnapshotOption = None,
) -> None:
    """Measure how agents that know no language fare: solve rates, returns, turns."""
    from synthgym.cli.calibrate_command import Settings, run

    settings = Settings(
        episodes=episodes,
        first_seed=seed,
        agents=tuple(name.strip() for name in agents.split(",")),
        search_budget=budget,
    )
    run(snapshot, env_ids or (), settings, write=write, as_json=json)


@app.command()
def audit(  # noqa: PLR0913 (one parameter an option)
    paths: Annotated[
        list[Path], typer.Argument(help="Folders, snapshots, .py, .jsonl or .jsonl.gz files.")
    ],
    workers: Annotated[
        int | None, typer.Option(help="Processes that validate; one a CPU unless given.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page for people here.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="File of rows; <name>.audit.jsonl here unless given.")
    ] = None,
    json: JsonOption = False,
    dialect: Annotated[str, typer.Option(help="auto, program or spade.")] = "auto",
    seeds: Annotated[int, typer.Option(help="Instances that each source is tried on.")] = 20,
    limit: Annotated[int | None, typer.Option(help="Audit the first so many only.")] = None,
    require: Annotated[
        str | None, typer.Option(help="Isolation below which nothing is run: full, partial, ...")
    ] = None,
) -> None:
    """Validate every source in folders that others wrote. Exit code 1 when one is not fine."""
    from synthgym.audit import AuditSettings
    from synthgym.cli.audit_command import run
    from synthgym.sandbox.oversight import known_level

    settings = AuditSettings(
        dialect=dialect, seeds=seeds, workers=workers, require=known_level(require)
    )
    if not run(paths, settings, limit, out, html, as_json=json):
        raise typer.Exit(REFUSED)


@app.command()
def diversity(  # noqa: PLR0913 (one parameter an option)
    snapshots: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SNAPSHOT",
            help="Folders, packed files or references; the bundled one unless given.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page for people here.")] = None,
    embedder: Annotated[str, typer.Option(help="hash, minilm or auto.")] = "auto",
    sample: Annotated[
        int, typer.Option(min=1, help="Environments in a subset, where there are as many.")
    ] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Of the random subsets.")] = 0,
    traces: Annotated[
        bool, typer.Option("--traces", help="Play the witness of each environment as well.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Measure how diverse snapshots are, side by side at equal size."""
    from synthgym.cli.diversity_command import Settings, run

    settings = Settings(embedder=embedder, sample=sample, seed=seed, traces=traces)
    run(snapshots or (), settings, html, as_json=json)


@app.command()
def publish(  # noqa: PLR0913 (one parameter an option)
    snapshot: Annotated[Path, typer.Argument(help="Folder of the snapshot, or .sgz file.")],
    remote: Annotated[str, typer.Argument(help="Folder or URL of a registry, or hf://org/name.")],
    sign_key: SignKeyOption = None,
    allowed_signers: SignersOption = None,
    adopt: AdoptOption = False,
    valid_days: ValidOption = None,
    allow_leak: Annotated[
        list[str] | None,
        typer.Option(help="home-path, e-mail or token: what looks private is meant to be public."),
    ] = None,
    allow_license: Annotated[
        list[str] | None,
        typer.Option(help="other, unknown, ...; none for environments without any license."),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Make a repository that only its owners see.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Verify a snapshot and publish it: to a registry, or as a data set of the Hugging Face Hub."""
    from synthgym.cli.publish_command import Settings, run

    settings = Settings(
        sign_key=sign_key,
        allowed_signers=allowed_signers,
        adopt=adopt,
        valid_days=valid_days,
        allow_leaks=allow_leak or (),
        allow_licenses=allow_license or (),
    )
    run(snapshot, remote, settings, private=private, as_json=json)


@app.command()
def pull(  # noqa: PLR0913 (one parameter an option)
    references: Annotated[
        list[str], typer.Argument(metavar="REFERENCE", help="For example games>=1,<2.")
    ],
    only: Annotated[
        str | None, typer.Option(help="Parts, with commas between: envs, notes, vectors.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(help="Only the files of this environment.")
    ] = None,
    remote: Annotated[
        list[str] | None, typer.Option(help="Registry to look in, instead of the configured ones.")
    ] = None,
    allowed_signers: SignersOption = None,
    require_signature: Annotated[
        bool, typer.Option("--require-signature", help="Refuse what nobody trusted has signed.")
    ] = False,
    offline: Annotated[bool, typer.Option("--offline", help="Use the cache only.")] = False,
    allow_yanked: Annotated[
        bool, typer.Option("--allow-yanked", help="Load even what was yanked as unsafe.")
    ] = False,
    recheck: Annotated[
        bool,
        typer.Option("--recheck", help="Read what is in the cache, and replace what is damaged."),
    ] = False,
    lock: Annotated[
        bool, typer.Option("--lock", help="Note in synthgym.lock what the references come to.")
    ] = False,
    no_lock: Annotated[bool, typer.Option("--no-lock", help="Read no synthgym.lock.")] = False,
    json: JsonOption = False,
) -> None:
    """Bring snapshots to this machine and print their folders."""
    from synthgym.cli.pull_command import Settings, run

    settings = Settings(
        only=tuple(part.strip() for part in only.split(",")) if only else (),
        env_ids=env or (),
        remotes=remote or (),
        allowed_signers=allowed_signers,
        require_signature=require_signature,
        offline=offline,
        allow_yanked=allow_yanked,
        recheck=recheck,
        use_lock=not no_lock,
        write_lock=lock,
    )
    run(references, settings, as_json=json)


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
    # What the system refuses (a full disk, a folder that may not be read) is the user's to mend.
    except (SynthGymError, OSError) as error:
        from synthgym.envs.rendering import printable

        typer.echo(f"error: {printable(str(error))}", err=True)  # it may quote a stranger's text
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        sys.exit(130)
