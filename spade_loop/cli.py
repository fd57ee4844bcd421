"""`spade-loop`: run SPADE over a registry snapshot."""

from __future__ import annotations

import os

# OpenMP reads these once, when torch loads it: spinning threads cost a busy two-core machine most of its speed.
for _name, _value in (
    ("OMP_WAIT_POLICY", "PASSIVE"),
    ("GOMP_SPINCOUNT", "0"),
    ("TOKENIZERS_PARALLELISM", "false"),
    ("TRL_EXPERIMENTAL_SILENCE", "1"),
    ("HF_HUB_DISABLE_PROGRESS_BARS", "1"),
    ("TQDM_DISABLE", "1"),
):
    os.environ.setdefault(_name, _value)

import importlib
import json
import signal
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Annotated

import typer
from rich.console import Console

from spade_loop.commands.compare_command import compare
from spade_loop.commands.eval_command import evaluate
from spade_loop.commands.gap_command import gap
from spade_loop.commands.warmstart_command import warmstart
from spade_loop.config import load_config, recipes
from spade_loop.errors import ConfigError, MissingExtraError, SpadeLoopError, WorldError
from spade_loop.inputs import interrupted_run, new_run
from spade_loop.planning import SHARDINGS, as_text, make_plan
from spade_loop.report.formats import visible
from spade_loop.world import launched, leave
from synthgym.errors import SynthGymError
from synthgym.ids import did_you_mean

USER_ERROR = 2
INTERRUPTED = 130

app = typer.Typer(
    help="Self-play over a synthgym registry: one model designs environments and learns in them (SPADE).",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
Recipe = Annotated[
    str, typer.Argument(help="Name of a bundled recipe, or a path that ends in .toml.")
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a setting by its dotted key."),
]


@app.command()
def run(
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="Name of a bundled recipe, or a path that ends in .toml.", show_default="tiny"
        ),
    ] = None,
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; default runs/<name>, numbered if taken.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with an interrupted run in this directory.")
    ] = None,
) -> None:
    """Design, play and train for the recipe's iterations; leaves a snapshot, a checkpoint and a report."""
    if launched()[0]:
        _assist()
        return
    from spade_loop.report.display import make_progress
    from spade_loop.report.summary import print_summary

    console = Console(stderr=True)
    if resume is not None and (recipe is not None or overrides or out is not None):
        raise SpadeLoopError(
            "--resume goes on with the run as it was configured: leave out the recipe, --set and --out"
        )
    # What the user named is looked at first: torch takes seconds to load, a mistake is told at once.
    if resume is not None:
        inputs = interrupted_run(resume)
    else:
        config = load_config(recipe or "tiny", overrides or [])
        inputs = new_run(config, out or _free_directory(config.name))
    path = inputs.directory.path
    with make_progress(console) as progress, warnings.catch_warnings():
        # Third-party deprecations are for us to act on, not for the user of a run.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            report = _needs_loop("spade_loop.run").go_on(inputs, progress)
        except KeyboardInterrupt:
            begun = (path / "config.json").exists()
            progress.note(
                f"interrupted; nothing half-written. Go on with: spade-loop run --resume {path}"
                if begun
                else "interrupted before anything was written"
            )
            raise
    print_summary(path, console)
    console.print(f"snapshot    {path / 'snapshot'}", highlight=False)
    console.print(f"report      {report}", highlight=False)


def _assist() -> None:
    """What a launcher's other processes do: the first one reads the command line, prints and writes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that leads ends all
    loop = _needs_loop("spade_loop.run")
    _needs_loop("transformers").utils.logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loop.assist()


@app.command()
def plan(
    recipe: Recipe = "tiny",
    overrides: Overrides = None,
    processes: Annotated[
        int, typer.Option(help="Number of processes that would share the run.")
    ] = 1,
    sharding: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="What they share besides rows: none, fsdp2 or deepspeed_zero3."
        ),
    ] = "none",
    as_json: Annotated[
        bool, typer.Option("--json", help="The whole config and all numbers, as JSON.")
    ] = False,
) -> None:
    """Print what a recipe would do and need, and what this machine lacks; loads no model, asks no network."""
    if sharding not in SHARDINGS:
        raise ConfigError(
            f"--sharding must be one of {', '.join(SHARDINGS)}, got {sharding!r}{did_you_mean(sharding, SHARDINGS)}"
        )
    made = make_plan(load_config(recipe, overrides or []), processes=processes, sharding=sharding)
    print(json.dumps(made.to_json(), indent=2) if as_json else as_text(made))


@app.command(name="recipes")
def list_recipes() -> None:
    """List the bundled recipes."""
    found = recipes()
    width = max(map(len, found))
    for name, path in found.items():
        first = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
        print(f"{name:{width}} {first}")


@app.command()
def report(path: Annotated[Path, typer.Argument(help="A run directory.")]) -> None:
    """Write report.html of a run anew, from its rows."""
    print(_needs_loop("spade_loop.report.page").write_report(path))


app.command()(gap)
app.command(name="eval")(evaluate)
app.command()(compare)
app.command()(warmstart)


def _needs_loop(module: str) -> ModuleType:
    """A module by name; `MissingExtraError` without the packages of the extra `loop`."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("spade_loop", "synthgym"):
            raise
        raise MissingExtraError(
            f"{module} needs the package {error.name}: install the extra with `pip install 'synthgym[loop]'`"
        ) from error


def _free_directory(name: str) -> Path:
    path, number = Path("runs") / name, 2
    while path.exists():
        path, number = Path("runs") / f"{name}-{number}", number + 1
    return path


def main() -> None:
    """Entry point: every failure that a user can mend is one line and exit code 2."""
    code = _called()
    if launched()[1] > 1:
        leave(code)
    sys.exit(code)


def _called() -> int:
    """Exit code of the command that was called."""
    try:
        app(standalone_mode=True)
    except (SpadeLoopError, SynthGymError) as error:
        # Of several processes the one that failed, or the one that leads, says why.
        if not (isinstance(error, WorldError) and launched()[0]):
            print(f"spade-loop: {visible(str(error))}", file=sys.stderr)
        return USER_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as error:  # how the command line ends, a success too
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    return 0
