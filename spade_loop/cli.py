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
):
    os.environ.setdefault(_name, _value)

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spade_loop.batch import BatchShape, initial_proposals
from spade_loop.config import Config, load_config, recipes
from spade_loop.errors import SpadeLoopError
from synthgym.errors import SynthGymError

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
    recipe: Recipe = "tiny",
    overrides: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Run directory; default runs/<name>, numbered if taken.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option(help="Go on with an interrupted run in this directory.")
    ] = None,
) -> None:
    """Design, play and train for the recipe's iterations; leaves a snapshot, a checkpoint and a report."""
    from spade_loop.report.display import make_progress
    from spade_loop.report.summary import print_summary

    console = Console(stderr=True)
    if resume is not None and (overrides or out is not None):
        raise SpadeLoopError(
            "--resume goes on with the run as it was configured: leave out --set and --out"
        )
    config = None if resume is not None else load_config(recipe, overrides or [])
    with make_progress(console) as progress, warnings.catch_warnings():
        # Third-party deprecations are for us to act on, not for the user of a run.
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        from spade_loop import run as runner

        path = resume if resume is not None else (out or _free_directory(config))
        try:
            report = (
                runner.resume(path, progress)
                if config is None
                else runner.start(config, path, progress)
            )
        except KeyboardInterrupt:
            progress.note(
                f"interrupted; nothing half-written. Go on with: spade-loop run --resume {path}"
            )
            raise
    print_summary(path, console)
    console.print(f"snapshot    {path / 'snapshot'}", highlight=False)
    console.print(f"report      {report}", highlight=False)


@app.command()
def plan(recipe: Recipe = "tiny", overrides: Overrides = None) -> None:
    """Print what a recipe would do, without loading a model: the full config and the batch it trains on."""
    config = load_config(recipe, overrides or [])
    shape = BatchShape.of(config)
    agent = config.agent
    episodes = agent.environments * agent.seeds * agent.plays
    print(
        json.dumps(
            {
                "config": config.to_json(),
                "iteration": {
                    "designs": config.designer.candidates,
                    "designs_from_the_initial_designer": initial_proposals(config),
                    "episodes_plain": episodes,
                    "episodes_hinted": episodes,
                    "rows": {
                        "designer": shape.designer,
                        "agent": shape.agent,
                        "total": shape.total,
                    },
                },
            },
            indent=2,
        )
    )


@app.command(name="recipes")
def list_recipes() -> None:
    """List the bundled recipes."""
    for name, path in recipes().items():
        first = path.read_text(encoding="utf-8").splitlines()[0].removeprefix("#").strip()
        print(f"{name:12} {first}")


@app.command()
def report(path: Annotated[Path, typer.Argument(help="A run directory.")]) -> None:
    """Write report.html of a run anew, from its rows."""
    from spade_loop.report.page import write_report

    print(write_report(path))


def _free_directory(config: Config | None) -> Path:
    name = "run" if config is None else config.name
    path, number = Path("runs") / name, 2
    while path.exists():
        path, number = Path("runs") / f"{name}-{number}", number + 1
    return path


def main() -> None:
    """Entry point: every failure that a user can mend is one line and exit code 2."""
    try:
        app(standalone_mode=True)
    except (SpadeLoopError, SynthGymError) as error:
        print(f"spade-loop: {error}", file=sys.stderr)
        sys.exit(USER_ERROR)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
