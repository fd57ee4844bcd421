from __future__ import annotations

import json

import numpy as np
import pytest

from synthgym.errors import ConfigError
from synthgym.memory.review_band import SAMPLE, Floats, choose_review_band


def unit(n: int, dim: int = 16, seed: int = 0) -> Floats:
    rows = np.random.default_rng(seed).normal(size=(n, dim))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_the_band_begins_where_one_in_ten_has_its_nearest_neighbour() -> None:
    vectors = unit(300)
    products = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.fill_diagonal(products, -2)
    nearest = products.max(axis=1)
    band = choose_review_band(vectors)
    assert band.cosine == pytest.approx(np.quantile(nearest, 0.9), abs=2e-4)
    assert band.share == pytest.approx(0.1, abs=0.02)
    assert band.pair_rate == pytest.approx((products >= band.cosine).sum() / (300 * 299), rel=0.05)
    assert band.nearest["p90"] == band.cosine
    assert choose_review_band(vectors, quantile=0.5).cosine < band.cosine


def test_a_larger_pool_is_told_more_false_alarms() -> None:
    at = choose_review_band(unit(300)).share_at
    assert list(at.values()) == sorted(at.values())
    assert 0 < at[100] < at[100_000] <= 1


def test_a_pool_of_one_text_is_all_in_the_band() -> None:
    band = choose_review_band(np.repeat(unit(1), 12, axis=0))
    assert (band.cosine, band.share, band.pair_rate) == (1.0, 1.0, 1.0)
    assert band.share_at[100] == 1.0


def test_a_large_pool_is_sampled_and_the_sample_follows_from_the_generator() -> None:
    vectors = unit(SAMPLE + 500, 8)
    bands = [choose_review_band(vectors, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert bands[0] == bands[1] != bands[2]
    assert (bands[0].sampled, bands[0].environments) == (SAMPLE, SAMPLE + 500)
    assert choose_review_band(vectors) == choose_review_band(vectors)
    json.dumps(bands[0].to_json())


@pytest.mark.parametrize("quantile", [0.0, 1.0, float("nan")])
def test_a_quantile_outside_of_its_range_is_refused(quantile: float) -> None:
    with pytest.raises(ConfigError, match="quantile"):
        choose_review_band(unit(12), quantile=quantile)


def test_a_pool_that_is_too_small_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 10"):
        choose_review_band(unit(9))
