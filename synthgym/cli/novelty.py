"""`synthgym novelty`: the novelty memory and a pool."""

from __future__ import annotations

from typing import Annotated

import typer

from synthgym.cli.options import JsonOption

app = typer.Typer(
    name="novelty", help="Choose how the novelty memory looks at a pool.", no_args_is_help=True
)


@app.callback()
def _group() -> None:
    """Without a callback, Typer would leave out the name of the only command."""


@app.command("review-band")
def review_band(
    snapshot: Annotated[
        str | None, typer.Argument(help="Snapshot of the pool; the bundled one unless given.")
    ] = None,
    embedder: Annotated[str, typer.Option(help="auto, hash or minilm.")] = "auto",
    quantile: Annotated[
        float, typer.Option(help="Share of the environments that stay outside of the band.")
    ] = 0.9,
    json: JsonOption = False,
) -> None:
    """Choose the cosine from which on two environments should be looked at."""
    from synthgym.cli.novelty_command import run_review_band

    run_review_band(snapshot, embedder, quantile, as_json=json)
