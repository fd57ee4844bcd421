from __future__ import annotations

import json
from pathlib import Path

from command_line import Run
from diversity_pools import DOORS, snapshot, spec


def test_the_band_of_the_bundled_environments_is_chosen(run: Run) -> None:
    done = run("novelty", "review-band", "--embedder", "hash", "--json")
    assert (done.code, done.err) == (0, "")
    band = json.loads(done.out)
    assert band["embedder"] == "hash/1-512"
    assert band["cosine"] == band["nearest"]["p90"]
    assert 0 < band["share"] < 0.3
    told = run("novelty", "review-band", "--embedder", "hash")
    assert f"review_cosine {band['cosine']:.4f} for {band['environments']} environments" in told.out
    assert f"{band['environments']} (measured)" in told.out
    assert "100000 (if pairs were independent)" in told.out


def test_a_pool_that_is_too_small_is_a_mistake(run: Run, tmp_path: Path) -> None:
    snapshot(tmp_path / "pool", spec(DOORS, "Doors"))
    done = run("novelty", "review-band", tmp_path / "pool", "--embedder", "hash")
    assert done.code == 2
    assert "at least 10 environments" in done.err


def test_a_wrong_quantile_is_a_mistake(run: Run) -> None:
    done = run("novelty", "review-band", "--embedder", "hash", "--quantile", "1.5")
    assert done.code == 2
    assert "quantile" in done.err
