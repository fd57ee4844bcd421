"""`synthgym novelty review-band`: from which cosine on somebody should look at a pair."""

from __future__ import annotations

from synthgym.cli.entries import open_snapshot
from synthgym.cli.output import print_json, print_table, print_text
from synthgym.memory import NoveltyMemory, ReviewBand, choose_review_band, load_embedder
from synthgym.sandbox import default_pool


def run_review_band(
    place: str | None, embedder_name: str, quantile: float, *, as_json: bool
) -> None:
    """Embed every environment of a snapshot, each reset once, and say where its band begins."""
    snapshot = open_snapshot(place)
    embedder = load_embedder(embedder_name)
    memory = NoveltyMemory(embedder)
    memory.seed((snapshot.spec(entry.digest) for entry in snapshot), default_pool())
    band = choose_review_band(memory.vectors(), quantile=quantile)
    if as_json:
        print_json(band.to_json() | {"embedder": embedder.name})
    else:
        _print(band, embedder.name)


def _print(band: ReviewBand, embedder: str) -> None:
    print_text(
        f"review_cosine {band.cosine:.4f} for {band.environments} environments, by {embedder}"
    )
    nearest = ", ".join(f"{name} {value:.3f}" for name, value in band.nearest.items())
    print_text(f"cosine with the nearest other one: {nearest} ({band.sampled} looked at)")
    print_text(f"pairs in the band: {band.pair_rate:.2e} of {band.pairs}")
    rows = [(f"{band.environments} (measured)", f"{band.share:.3f}")]
    rows += [
        (f"{size} (if pairs were independent)", f"{p:.3f}") for size, p in band.share_at.items()
    ]
    print_table(("pool", "P(a new environment is in the band)"), rows)
