"""The recipe's other designers, made ready: endpoints and frozen models."""

from __future__ import annotations

from collections.abc import Sequence

from spade_loop.completers import Writer
from spade_loop.config import OtherDesigner


def make_writers(designers: Sequence[OtherDesigner]) -> dict[str, Writer]:
    """A writer for each designer that is a model, by name.

    An endpoint is asked at once whether it answers and serves the model; frozen weights are loaded. `ModelError` says
    what to do where either fails, `MissingExtraError` which extra is not installed.
    """
    return {other.name: _MAKERS[other.kind](other) for other in designers if other.kind in _MAKERS}


def _endpoint(other: OtherDesigner) -> Writer:
    from spade_loop.backends.endpoint import EndpointWriter

    writer = EndpointWriter(
        other.base_url,
        other.model,
        api_key_env=other.api_key_env,
        timeout=other.timeout,
        max_retries=other.retries,
        concurrency=other.concurrency,
    )
    writer.check()
    return writer


def _transformers(other: OtherDesigner) -> Writer:
    from spade_loop.backends.transformers_writer import TransformersWriter

    return TransformersWriter(other.model, name=other.name)


def _vllm(other: OtherDesigner) -> Writer:
    from spade_loop.backends.vllm import VllmWriter

    return VllmWriter(other.model, name=other.name)


_MAKERS = {"endpoint": _endpoint, "transformers": _transformers, "vllm": _vllm}
