"""`spade-loop gap`: where a model's frontier lies among the environments of a snapshot, or a user's own tasks."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from spade_loop.commands import model_options as options
from spade_loop.errors import ConfigError

PIPED: Final = 400
"""Columns there are for the table in a file or a pipe; it takes what it needs."""


def gap(  # noqa: PLR0913 -- a command's options
    place: Annotated[
        str,
        typer.Argument(
            metavar="SNAPSHOT_OR_TASKS",
            help="A registry snapshot (folder, file or reference), or a file of tasks that ends in .jsonl.",
            show_default=False,
        ),
    ],
    model: options.Model,
    out: Annotated[
        Path,
        typer.Option(
            help="Directory of the results; the same one again goes on with what is missing.",
            show_default=False,
        ),
    ],
    half_width: Annotated[
        float,
        typer.Option(metavar="W", help="Play on until the interval of a regret is this narrow."),
    ] = 0.2,
    max_episodes: Annotated[
        int, typer.Option(metavar="N", help="Pairs of episodes of each environment at most.")
    ] = 64,
    seed: Annotated[int, typer.Option(metavar="N", help="Of instances and replies.")] = 0,
    environments: Annotated[
        int | None,
        typer.Option(metavar="N", help="Only the first so many.", show_default="all"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="Only these; may be given several times."),
    ] = None,
    hint_level: Annotated[
        int, typer.Option(metavar="LEVEL", help="Of the hinted arm: 1, 2 or 3.")
    ] = 2,
    levels: Annotated[
        str,
        typer.Option(
            metavar="LEVELS", help="Hint levels to play besides, as 1,2,3.", show_default=False
        ),
    ] = "",
    placebo: Annotated[
        bool, typer.Option("--placebo", help="Play an arm whose hint says nothing, too.")
    ] = False,
    max_turns: Annotated[int, typer.Option(metavar="N", help="Turns of an episode at most.")] = 100,
    mastered: Annotated[
        float, typer.Option(metavar="RATE", help="Plain solve rate of what is mastered.")
    ] = 0.9,
    solvable: Annotated[
        float, typer.Option(metavar="RATE", help="A solve rate up to this one counts as none.")
    ] = 0.1,
    helps: Annotated[
        float | None,
        typer.Option(
            metavar="REGRET",
            help="Regret of a hint that helps though its interval holds 0.",
            show_default="the half-width",
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Note the figures in the snapshot, for its filter.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every number as JSON.")] = False,
    endpoint: options.Endpoint = "",
    api_key_env: options.ApiKeyEnv = "",
    backend: options.Backend = "",
    concurrency: options.Concurrency = options.CONCURRENCY,
    timeout: options.Timeout = 600.0,
    retries: options.Retries = 4,
    price_in: options.PriceIn = 0.0,
    price_out: options.PriceOut = 0.0,
    max_tokens: options.MaxTokens = None,
    temperature: options.Temperature = None,
    top_p: options.TopP = None,
    top_k: options.TopK = None,
) -> None:
    """Play every environment with and without its hint, and tell what the model has mastered and where it can learn."""
    from spade_loop.gap.running import Asked, run
    from spade_loop.gap.settings import DECODING, GapSettings
    from spade_loop.gap.zones import ZoneRules

    asked_model = options.ModelOptions(
        model=model,
        endpoint=endpoint,
        api_key_env=api_key_env,
        backend=backend,
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        price_in=price_in,
        price_out=price_out,
    )
    settings = GapSettings(
        decoding=options.decoding_over(
            DECODING, max_tokens=max_tokens, temperature=temperature, top_p=top_p, top_k=top_k
        ),
        half_width=half_width,
        max_episodes=max_episodes,
        seed=seed,
        hint_level=hint_level,
        levels=read_levels(levels),
        placebo=placebo,
        max_turns=max_turns,
    )
    zones = ZoneRules(
        mastered=mastered, solvable=solvable, helps=half_width if helps is None else helps
    )
    asked = Asked(
        place=place,
        out=out,
        only=tuple(only or ()),
        environments=environments,
        settings=replace(settings, zones=zones),
        write=write,
        model=asked_model.identity(),
        open_speaker=partial(options.make_speaker, asked_model),
        threads=concurrency,
        prices=(price_in, price_out),
        spent=partial(options.spent, asked_model),
    )
    report = run(asked, Console(stderr=True))
    if as_json:
        print(json.dumps(report.to_json(), indent=2))
        return
    shown = Console()
    if not shown.is_terminal:
        shown = Console(width=PIPED)
    shown.print(report.table(shown.width))
    for line in report.sentences():
        shown.print(line, highlight=False, markup=False)
    shown.print(f"page        {out / 'gap.html'}", highlight=False, markup=False, soft_wrap=True)


def read_levels(text: str) -> tuple[int, ...]:
    """Hint levels of a list such as `1,2,3`; `ConfigError` for anything else."""
    if not text.strip():
        return ()
    if re.fullmatch(r"\s*\d\s*(,\s*\d\s*)*", text, re.ASCII) is None:
        raise ConfigError(f"--levels must be hint levels such as 1,2,3, got {text!r}")
    return tuple(int(part) for part in text.split(","))
