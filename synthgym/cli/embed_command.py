"""`synthgym snapshot embed` and `synthgym search --like`: rules texts as vectors, and the nearest of them."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import typer

from synthgym.cli.entries import check_own
from synthgym.cli.output import print_text
from synthgym.diversity import collect
from synthgym.errors import SnapshotError
from synthgym.memory import Embedder, load_embedder
from synthgym.registry import Entry, Snapshot, write_vectors
from synthgym.registry.annotate import check_writable
from synthgym.registry.layout import embedder_id

_CHUNK: Final = 4096


def run(folder: Path, embedder_name: str) -> None:
    """Embed the rules text of every environment, and note the vectors in the snapshot."""
    check_own(folder)
    check_writable(folder)
    embedder = load_embedder(embedder_name)
    found = collect(Snapshot.open(folder), embedder)
    name = embedder_id(embedder.name)
    vectors = {
        member.digest: {name: vector}
        for member, vector in zip(found.members, found.vectors, strict=True)
    }
    snapshot = write_vectors(folder, vectors)
    print_text(f"{len(vectors)} vectors of {name}, {snapshot.name} {snapshot.version}")
    print_text(snapshot.digest)
    for missing in found.unmeasured:
        typer.echo(
            f"without a vector: {missing.env_id} ({missing.kind} in {missing.call})", err=True
        )


def _embedder_of(snapshot: Snapshot) -> Embedder:
    """The embedder of a snapshot's vectors, the better one when it has several."""
    plain = load_embedder("hash")  # which costs nothing to load
    if snapshot.embedders == (embedder_id(plain.name),):
        return plain
    best = load_embedder("auto")
    known = embedder_id(best.name) in snapshot.embedders
    return best if known or embedder_id(plain.name) not in snapshot.embedders else plain


def nearest(
    snapshot: Snapshot, text: str, skill: str | None, limit: int
) -> Iterator[tuple[Entry, float]]:
    """Iterate over entries whose rules are nearest to a text, with their cosine, nearest first."""
    embedder = _embedder_of(snapshot)
    name = embedder_id(embedder.name)
    if name not in snapshot.embedders:
        raise SnapshotError(
            f"{snapshot.path} holds no vectors of {name} (it has {', '.join(snapshot.embedders) or 'none'}): "
            "make some with `synthgym snapshot embed FOLDER`, or search without --like"
        )
    asked = embedder([text])[0]
    best: list[tuple[float, str]] = []
    rows = snapshot.vectors(name)
    while chunk := list(itertools.islice(rows, _CHUNK)):
        scores = np.stack([vector for _, vector in chunk]).astype(np.float32) @ asked
        scored = zip(scores.tolist(), (digest for digest, _ in chunk), strict=True)
        # With a skill some will be left out again.
        kept = limit if skill is None else len(snapshot)
        best = heapq.nlargest(kept, itertools.chain(best, scored))
    found = ((snapshot.entry(digest), score) for score, digest in best)
    fitting = ((entry, score) for entry, score in found if skill is None or skill in entry.skills)
    return itertools.islice(fitting, limit)
