"""`spade-loop eval`: a model on suites of questions and tasks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.text import Text

from spade_loop.commands import model_options as options
from spade_loop.errors import ConfigError, ModelError, SpadeLoopError
from spade_loop.report.formats import visible
from spade_loop.speaking import Decoding

if TYPE_CHECKING:
    from spade_loop.evaluation.suite import Suite


def evaluate(  # noqa: PLR0913 -- a command's options
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SUITE...",
            help="Names of suites; `snapshot:REFERENCE` is any registry snapshot.",
            show_default=False,
        ),
    ] = None,
    model: options.Model = "",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the results; the same one again goes on with what is missing.",
            show_default=False,
        ),
    ] = None,
    suite_options: Annotated[
        list[str] | None,
        typer.Option(
            "--suite-option",
            metavar="KEY=VALUE",
            help="An option of a suite; SUITE.KEY=VALUE where there are several suites.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The suite's data on this machine, in place of the Hub: its option `data`.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Items of each suite at most, evenly from its parts.",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tries at each item.", show_default="the suite's own"),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of replies, of a snapshot's instances, of intervals.")
    ] = 0,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="NAME", help="What is printed: terminal, markdown, latex or json."
        ),
    ] = "terminal",
    list_suites: Annotated[
        bool, typer.Option("--list", help="List the suites that are installed, with their options.")
    ] = False,
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
    """Measure a model on suites; leaves transcripts, rates with intervals, and tables. Failures count as wrong."""
    from spade_loop.evaluation.tables import check_format

    check_format(form)
    if list_suites:
        _list(form)
        return
    if not suites or not model or out is None:
        raise ConfigError(
            "expected `spade-loop eval SUITE... --model NAME --out DIR`; `spade-loop eval --list` lists the suites"
        )
    if seed < 0:
        raise ConfigError(f"--seed must be at least 0, got {seed}")
    if samples is not None and samples < 1:
        raise ConfigError(f"--samples must be at least 1, got {samples}")
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
    decoding = partial(
        options.decoding_over,
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
    )
    texts = [*(suite_options or []), *([f"data={data}"] if data is not None else [])]
    if data is not None and len(suites) > 1:
        raise ConfigError("--data is for one suite: give --suite-option SUITE.data=FILE for each")
    _run(
        suites,
        texts,
        asked_model,
        decoding,
        out,
        limit=limit,
        samples=samples,
        seed=seed,
        form=form,
    )


def _run(  # noqa: PLR0913 -- the command, its options read
    suites: Sequence[str],
    texts: Sequence[str],
    model: options.ModelOptions,
    decoding: Callable[[Decoding], Decoding],
    out: Path,
    *,
    limit: int | None,
    samples: int | None,
    seed: int,
    form: str,
) -> None:
    from spade_loop.evaluation.presenting import tables_of
    from spade_loop.evaluation.running import Asked, Conditions, evaluate
    from spade_loop.evaluation.tables import as_markdown, show
    from spade_loop.report.display import make_progress
    from spade_loop.state import replace_text

    console = Console(stderr=True)
    with contextlib.ExitStack() as stack:
        asked = []
        # Suites come before the model: a mistake is told before weights are loaded.
        for suite, chosen in _opened(suites, texts, seed):
            stack.callback(suite.close)
            suite.items(limit)
            asked.append(
                Asked(
                    suite=suite,
                    options=chosen,
                    decoding=decoding(suite.decoding),
                    samples=samples or suite.samples,
                    limit=limit,
                )
            )
        speaker = stack.enter_context(options.make_speaker(model))
        conditions = Conditions(
            model=model.identity(),
            seed=seed,
            concurrency=model.concurrency,
            spent=lambda usage: options.spent(model, usage),
        )
        with make_progress(console) as progress, _resumable(out, console):
            found = evaluate(asked, speaker, out, conditions, progress)
    tables = tables_of(found, model.cost if model.priced else None)
    replace_text(out / "eval.md", f"# Evaluation of {found.label}\n\n{as_markdown(tables)}")
    show(tables, msgspec.to_builtins(found, str_keys=True), form)
    console.print(Text(visible(f"results     {out / 'eval.json'}")), soft_wrap=True)


def _opened(
    suites: Sequence[str], texts: Sequence[str], seed: int
) -> Iterator[tuple[Suite, dict[str, str]]]:
    """Each suite with the options that were given for it."""
    from spade_loop.evaluation.plugins import check_owners, open_suite, options_for

    check_owners(suites, texts)
    for name in suites:
        chosen = options_for(name, texts, alone=len(suites) == 1)
        yield open_suite(name, chosen, seed=seed), chosen


@contextlib.contextmanager
def _resumable(out: Path, console: Console) -> Iterator[None]:
    """Say how to go on when an evaluation breaks off."""
    how = f"what is finished is kept in {out}: give the same command again to go on"
    try:
        yield
    except ModelError as error:
        raise ModelError(f"{error}; {how}") from error
    except KeyboardInterrupt:
        console.print(Text(visible(f"interrupted; {how}")), soft_wrap=True)
        raise


def _list(form: str) -> None:
    import inspect

    from spade_loop.evaluation.plugins import factory_of, settings_of, suite_names
    from spade_loop.evaluation.tables import Table, show

    rows = []
    for name in suite_names():
        try:
            factory = factory_of(name)
            settings = settings_of(factory)
        except (ImportError, SpadeLoopError) as error:
            rows.append((name, "", f"does not load: {error}"))
            continue
        about = (inspect.getdoc(inspect.getmodule(factory)) or "").partition("\n")[0]
        texts = [
            key if value.default is inspect.Parameter.empty else f"{key}={_shown(value.default)}"
            for key, value in settings.items()
        ]
        rows.append((name, ", ".join(texts), about))
    table = Table(
        title="Suites", columns=("Suite", "Options", "What it is"), rows=tuple(rows), labels=3
    )
    show([table], [{"suite": n, "options": o, "about": a} for n, o, a in rows], form)


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        return ",".join(str(part) for part in default)
    if isinstance(default, bool):
        return str(default).lower()  # as one writes it
    return "" if default is None else str(default)
