from __future__ import annotations

import hashlib
import logging
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.errors import ConfigError
from synthgym.memory import embedder
from synthgym.memory.embedder import HashEmbedder, load_embedder

TEXTS = ["open the gate of the lock", "open the gate of the canal", "audit the ledger #"]


@given(st.lists(st.text(max_size=40), max_size=4))
def test_every_vector_has_unit_length_whatever_the_text(texts: list[str]) -> None:
    vectors = HashEmbedder(16)(texts)
    assert vectors.shape == (len(texts), 16)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


def test_texts_that_share_words_are_nearer() -> None:
    vectors = HashEmbedder()(TEXTS)
    near, far = float(vectors[0] @ vectors[1]), float(vectors[0] @ vectors[2])
    assert near > 0.5 > far + 0.2


def test_a_vector_does_not_depend_on_its_neighbours() -> None:
    embed = HashEmbedder()
    assert np.array_equal(embed(TEXTS)[1:2], embed(TEXTS[1:2]))


def test_hashed_vectors_are_the_same_bytes_in_another_process() -> None:
    code = (
        "import hashlib, sys; from synthgym.memory.embedder import HashEmbedder;"
        f"print(hashlib.sha256(HashEmbedder()({TEXTS!r}).tobytes()).hexdigest())"
    )
    expected = hashlib.sha256(HashEmbedder()(TEXTS).tobytes()).hexdigest()
    for seed in ("3", "4"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed},
        )
        assert done.stdout.strip() == expected


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'minilm'"):
        load_embedder("miniml")


def test_auto_falls_back_to_hashing_and_says_so_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(embedder, "minilm_available", lambda: False)
    embedder._warn_fallback.cache_clear()
    with caplog.at_level(logging.WARNING):
        first, second = load_embedder("auto"), load_embedder("auto")
    assert isinstance(first, HashEmbedder)
    assert isinstance(second, HashEmbedder)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "shared words" in caplog.text


def test_a_vector_space_is_named_by_its_dimension() -> None:
    assert HashEmbedder(16).name != HashEmbedder(32).name


def test_a_dimension_of_one_is_refused() -> None:
    with pytest.raises(ConfigError, match="dim"):
        HashEmbedder(1)
