"""Options of every command that asks a model, and the `Speaker` that comes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, cast

import typer

from spade_loop.backends.writers import make_writers
from spade_loop.config import OtherDesigner
from spade_loop.errors import ConfigError
from spade_loop.speaking import Decoding, Speaker, Usage
from spade_loop.types import JsonRow
from synthgym.ids import did_you_mean

BACKENDS: Final = ("endpoint", "transformers", "vllm")
CONCURRENCY: Final = 8

Model = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="NAME",
        help="The model: as the endpoint names it, else a bundled name, a directory or a Hugging Face id.",
        show_default=False,
    ),
]
Endpoint = Annotated[
    str,
    typer.Option(
        "--endpoint",
        metavar="URL",
        help="OpenAI-compatible endpoint, /v1 included.",
        show_default=False,
    ),
]
ApiKeyEnv = Annotated[
    str,
    typer.Option(
        "--api-key-env",
        metavar="NAME",
        help="Environment variable that holds the endpoint's key.",
        show_default=False,
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="NAME",
        help=f"{', '.join(BACKENDS)}.",
        show_default="endpoint with --endpoint, else transformers",
    ),
]
Concurrency = Annotated[
    int,
    typer.Option("--concurrency", metavar="N", help="Episodes or questions under way at once."),
]
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", help="What one request to an endpoint may take."),
]
Retries = Annotated[
    int,
    typer.Option("--retries", metavar="N", help="Tries after a request that failed in passing."),
]
PriceIn = Annotated[
    float,
    typer.Option("--price-in", metavar="PRICE", help="Price of a million tokens read."),
]
PriceOut = Annotated[
    float,
    typer.Option("--price-out", metavar="PRICE", help="Price of a million tokens generated."),
]
MaxTokens = Annotated[
    int | None,
    typer.Option("--max-tokens", metavar="N", help="Tokens of one reply.", show_default=False),
]
Temperature = Annotated[
    float | None,
    typer.Option(
        "--temperature",
        metavar="T",
        help="0 takes the likeliest token each time.",
        show_default=False,
    ),
]
TopP = Annotated[
    float | None,
    typer.Option(
        "--top-p", metavar="P", help="Mass of tokens drawn from; 1: all.", show_default=False
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k", metavar="K", help="Number of tokens drawn from; 0: all.", show_default=False
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Which model is asked, and how. `ConfigError` for what cannot be."""

    model: str
    endpoint: str = ""
    api_key_env: str = ""
    backend: str = ""
    """One of `BACKENDS`; empty: the endpoint if one is given, else transformers."""
    concurrency: int = CONCURRENCY
    timeout: float = 600.0
    """Seconds, of one request to an endpoint."""
    retries: int = 4
    price_in: float = 0.0
    """Of a million tokens read, in any currency."""
    price_out: float = 0.0
    """Of a million tokens generated."""

    def __post_init__(self) -> None:
        if not self.model:
            raise ConfigError("--model must name a model, got an empty name")
        if self.backend and self.backend not in BACKENDS:
            raise ConfigError(
                f"--backend must be one of {', '.join(BACKENDS)}, got {self.backend!r}"
                f"{did_you_mean(self.backend, BACKENDS)}"
            )
        if (self.kind == "endpoint") != bool(self.endpoint):
            raise ConfigError(
                "--backend endpoint needs --endpoint URL, and no other backend has one: "
                f"got backend {self.kind!r} and endpoint {self.endpoint!r}"
            )
        if self.api_key_env and not self.endpoint:
            raise ConfigError("--api-key-env is for an endpoint: give --endpoint URL, too")
        if self.concurrency < 1:
            raise ConfigError(f"--concurrency must be at least 1, got {self.concurrency}")
        for name, price in (("--price-in", self.price_in), ("--price-out", self.price_out)):
            if not 0.0 <= price < math.inf:
                raise ConfigError(f"{name} must be a price of at least 0, got {price}")

    @property
    def kind(self) -> str:
        """The backend."""
        return self.backend or ("endpoint" if self.endpoint else "transformers")

    @property
    def priced(self) -> bool:
        """Whether a cost can be told."""
        return self.price_in > 0 or self.price_out > 0

    def cost(self, usage: Usage) -> float:
        """What `usage` cost."""
        return usage.cost(self.price_in, self.price_out)

    def identity(self) -> JsonRow:
        """What the answers depend on, for the header of a journal. No address and no key: servers move."""
        return {"name": self.model, "backend": self.kind}


def make_speaker(options: ModelOptions) -> Speaker:
    """The model, ready to be asked; whoever calls this closes it.

    An endpoint is asked at once whether it serves the model; weights are loaded. `ModelError` says what to do where
    either fails, `MissingExtraError` which extra is not installed.
    """
    kind = cast("Literal['endpoint', 'transformers', 'vllm']", options.kind)
    asked = OtherDesigner(
        name=options.model,
        kind=kind,
        share=0.0,
        model=options.model,
        base_url=options.endpoint,
        api_key_env=options.api_key_env,
        timeout=options.timeout,
        retries=options.retries,
        concurrency=options.concurrency,
    )
    return Speaker(make_writers([asked])[options.model], rows=options.concurrency)


def decoding_over(
    default: Decoding,
    *,
    max_tokens: int | None,
    temperature: float | None,
    top_p: float | None,
    top_k: int | None,
) -> Decoding:
    """`default` with what was given on the command line; `ConfigError` for a value out of its range."""
    given: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": top_p,
        "top_k": top_k,
    }
    return replace(default, **{name: value for name, value in given.items() if value is not None})


def spent(options: ModelOptions, usage: Usage) -> str:
    """What was spent so far, for a line of progress."""
    cost = f", cost {options.cost(usage):.4g}" if options.priced else ""
    return f"{usage.prompt_tokens:,} tokens read, {usage.tokens:,} generated{cost}"
