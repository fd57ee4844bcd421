"""`spade-loop warmstart`: a model that begins self-play with the forms of both roles."""

from __future__ import annotations

import importlib
import json
import warnings
from pathlib import Path
from types import ModuleType
from typing import Annotated, cast, get_args

import typer
from rich.console import Console

from spade_loop.config import Config, load_config, recipes
from spade_loop.errors import ConfigError, MissingExtraError
from spade_loop.warmstart.settings import Roles, WarmStart
from synthgym.ids import did_you_mean

ROLES = get_args(Roles)
_DEFAULT = WarmStart()


def warmstart(  # noqa: PLR0913 -- the options of a command
    recipe_or_model: Annotated[
        str,
        typer.Argument(
            help="A recipe, or a model (bundled name, directory, Hugging Face id) with the settings of `tiny`."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the new model; empty, or not there.")],
    snapshot: Annotated[
        str,
        typer.Option(
            metavar="REF",
            help="Snapshot whose witnesses are replayed: folder, packed file or reference; the recipe's unless given.",
        ),
    ] = "",
    rows: Annotated[
        str, typer.Option(metavar="FILE", help="Train on the demonstrations of this file instead.")
    ] = "",
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Override a setting by its dotted key."),
    ] = None,
    roles: Annotated[str, typer.Option(metavar="NAME", help=", ".join(ROLES))] = _DEFAULT.roles,
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Episodes of each environment.")
    ] = _DEFAULT.seeds,
    held_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Of seeds and designs: never trained on.")
    ] = _DEFAULT.held_out,
    hinted: Annotated[
        float, typer.Option(metavar="SHARE", help="Of the episodes: shown with the hint.")
    ] = _DEFAULT.hinted,
    epochs: Annotated[
        float, typer.Option(metavar="N", help="Passes over the rows.")
    ] = _DEFAULT.epochs,
    batch: Annotated[
        int, typer.Option(metavar="N", help="Rows of one optimiser step.")
    ] = _DEFAULT.batch,
    learning_rate: Annotated[
        float | None,
        typer.Option(
            metavar="RATE", help="Of AdamW.", show_default="2e-4 with an adapter, else 2e-5"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of everything that is drawn.")
    ] = _DEFAULT.seed,
    rows_only: Annotated[
        bool, typer.Option("--rows-only", help="Write the rows, and train nothing.")
    ] = False,
) -> None:
    """Fine-tune a model on what witnesses do and on how environments are written; both are rows for people, too."""
    from spade_loop.report.display import make_progress
    from spade_loop.warmstart.preparing import ROWS, Staging, Task, check_task, source_of

    if roles not in ROLES:
        raise ConfigError(
            f"--roles must be one of {', '.join(ROLES)}, got {roles!r}{did_you_mean(roles, ROLES)}"
        )
    config = _config(recipe_or_model, overrides or [])
    settings = WarmStart(
        roles=cast("Roles", roles),
        seeds=seeds,
        held_out=held_out,
        hinted=hinted,
        epochs=epochs,
        batch=batch,
        learning_rate=learning_rate,
        seed=seed,
    )
    task = Task(config, settings, source_of(config, snapshot, rows), trains=not rows_only)
    check_task(task)
    staging = Staging(out, task)
    console = Console(stderr=True)
    with make_progress(console) as progress, warnings.catch_warnings():
        # Third-party deprecations are for us to act on, not for the user of a run.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            made = staging.rows(task, progress)
            if rows_only:
                told = made.to_json()
                staging.finish(task.identity | told)
            else:
                told = _training().warm_start(task, staging, made, progress).to_json()
        except KeyboardInterrupt:
            progress.note("interrupted; nothing half-written. The same command goes on from here")
            raise
    print(json.dumps(told, indent=2))
    console.print(f"rows        {out / ROWS}", highlight=False)
    if not rows_only:
        console.print(f"run it with spade-loop run --set policy.model={out}", highlight=False)


def _config(name: str, overrides: list[str]) -> Config:
    """The config of a recipe, or that of `tiny` with a model. `ConfigError` for what looks like neither."""
    from spade_loop.backends.weights import BUNDLED

    if name.endswith(".toml") or name in recipes():
        return load_config(name, overrides)
    if name in BUNDLED or "/" in name or Path(name).expanduser().is_dir():
        # A name is text, whatever it would be as TOML.
        return load_config("tiny", [f"policy.model={json.dumps(name)}", *overrides])
    known = (*recipes(), *BUNDLED)
    raise ConfigError(
        f"{name!r} is neither a recipe nor a model{did_you_mean(name, known)}: give a recipe ({', '.join(recipes())}, "
        f"or a path that ends in .toml), a bundled model ({', '.join(BUNDLED)}), a directory, or a Hugging Face id"
    )


def _training() -> ModuleType:
    """What trains; `MissingExtraError` without the packages of the extra `loop`."""
    try:
        return importlib.import_module("spade_loop.warmstart.running")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("spade_loop", "synthgym"):
            raise
        raise MissingExtraError(
            f"a warm start needs the package {error.name}: pip install 'synthgym[loop]'"
        ) from error
