"""How long a novelty decision takes beside many environments, and how much memory they take.

    python benchmarks/novelty_scale.py [--sizes 10000 100000 1000000]

Every size has a process of its own, which reads a memory from a file and decides on candidates.
Vectors are synthetic: 2,000 clusters in 384 dimensions. The pieces of code are those of disguised
bundled sources, of which each environment keeps a third. Half of the candidates are near-copies of
held ones, half are not. Embedding is not part of the decision. The search by numpy compares every
vector, in the form that the memory holds; both are timed by turns.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from harness import Goal, Measurement, machine, measure_apart, median, positive, run, table
from transforms import transform

from synthgym.memory import Description, NoveltyMemory, describe
from synthgym.memory.code_index import CodeIndex
from synthgym.memory.columns import HashColumn, WordColumn
from synthgym.memory.holdings import Holdings
from synthgym.memory.index import Floats, VectorIndex
from synthgym.memory.minhash import band_keys, signatures
from synthgym.memory.numpy_index import NumpyIndex
from synthgym.memory.storage import SavedMemory, write_memory
from synthgym.memory.structure import SKETCH
from synthgym.memory.subtrees import Hashes
from synthgym.memory.table import RecordTable
from synthgym.registry import Snapshot, bundled_root

DIM: Final = 384
CLUSTERS: Final = 2_000
KEPT: Final = 3
"""An environment keeps one in so many of the pieces of a disguised source."""
_MIX: Final = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB], np.uint64)
KINDS: Final = ("rename", "refactor", "reskin+refactor")
QUERIES: Final = 60
PART: Final = 10_000
GOALS: Final = {100_000: Goal(10, at_most=True, unit=" ms"), 1_000_000: Goal(60, True, " ms")}
MEMORY_GOAL: Final = Goal(1000, at_most=True, unit=" MB")


class Synthetic:
    """Vectors of numbered texts: near a centre of their cluster, the same for every caller."""

    dim = DIM
    name = "synthetic/1"

    def __init__(self) -> None:
        rng = np.random.default_rng(1)
        self._centres = rng.normal(size=(CLUSTERS, DIM)).astype(np.float32)

    def rows(self, numbers: np.ndarray) -> Floats:
        """The vectors of these numbers, float32 [n, dim]."""
        rng = np.random.default_rng([2, int(numbers[0])])
        vectors = self._centres[rng.integers(CLUSTERS, size=len(numbers))]
        vectors = vectors + np.float32(0.6) * rng.normal(size=vectors.shape).astype(np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def __call__(self, texts: Sequence[str]) -> Floats:
        """One vector a text, which ends in its number."""
        return np.concatenate([self.rows(np.array([int(t.split()[-1])])) for t in texts])


class Pool:
    """Synthetic environments by number."""

    def __init__(self) -> None:
        snapshot = Snapshot.open(bundled_root())
        rng = np.random.default_rng(3)
        found = []
        for entry in snapshot:
            source = snapshot.spec(entry.digest).record.source
            found += [describe(transform(source, kind, rng), "") for kind in KINDS]
        self.bases: list[Description] = found

    def pieces(self, number: int) -> Hashes:
        """Pieces of the code of an environment: some of a bundled source, the rest its own."""
        return np.unique(self._mixed(np.array([number]))[0])

    def sketches(self, numbers: np.ndarray) -> list[npt.NDArray[np.uint32]]:
        """What a structure index keeps of each, for consecutive numbers."""
        found: dict[int, npt.NDArray[np.uint32]] = {}
        for base in range(len(self.bases)):
            mine = numbers[numbers % len(self.bases) == base]
            if len(mine):
                halves = np.sort(self._mixed(mine) >> np.uint64(32), axis=1).astype(np.uint32)
                found |= dict(zip(mine.tolist(), halves[:, :SKETCH], strict=True))
        return [found[number] for number in numbers.tolist()]

    def _mixed(self, numbers: np.ndarray) -> npt.NDArray[np.uint64]:
        """Pieces of environments of one base: uint64 [n, pieces of the base]."""
        base = self.bases[int(numbers[0]) % len(self.bases)].pieces
        own = base ^ (numbers.astype(np.uint64)[:, None] + np.uint64(1)) * _MIX[0]
        for factor in _MIX:
            own = (own ^ own >> np.uint64(31)) * factor
        own ^= own >> np.uint64(29)
        return np.where(own % np.uint64(KEPT) == 0, base, own)

    def text(self, number: int) -> str:
        """Rules of an environment: a bundled text in an order of its own, and its number."""
        words = self.bases[number % len(self.bases)].rules_text.split()
        turn = number * 7919 % len(words)
        return f"{' '.join(words[turn:] + words[:turn])} {number}"

    def description(self, number: int) -> Description:
        """What is known of an environment."""
        text = self.text(number)
        name = f"{number:064x}"
        return Description(text, f"ast/1:{name}", f"data/1:{name}", pieces=self.pieces(number))


def build(size: int, path: Path) -> None:
    """Write a memory of so many environments: what `add` would do, many at a time."""
    pool, embedder = Pool(), Synthetic()
    index, sizes, hashes, bands = VectorIndex(DIM), [0], [], []
    for start in range(0, size, PART):
        numbers = np.arange(start, min(start + PART, size))
        index.add_many(embedder.rows(numbers))
        part = pool.sketches(numbers)
        offsets = np.cumsum([0, *map(len, part)])
        hashes.append(np.concatenate(part))
        bands.append(band_keys(signatures(hashes[-1].astype(np.uint64), offsets)))
        sizes += [len(p) for p in part]
    arrays = {
        "hashes": np.concatenate(hashes),
        "offsets": np.cumsum(sizes),
        "counted": np.ones(size, bool),
        "bands": np.concatenate(bands),
    }
    held = Holdings(records(pool, size), index, CodeIndex.restore(arrays))
    write_memory(path, SavedMemory(embedder.name, {}, held))


def records(pool: Pool, size: int) -> RecordTable:
    """A table of so many environments."""
    made, numbers = RecordTable(), np.arange(size, dtype=np.int32)
    digests = np.zeros((size, 32), np.uint8)
    digests[:, 24:] = numbers.astype(">u8").view(np.uint8).reshape(size, 8)
    same = np.zeros(size, np.int32)
    for name, prefix in (("digests", "sha256"), ("ast", "ast/1"), ("data", "data/1")):
        setattr(made, name, HashColumn.restore(digests, WordColumn.restore(same, [prefix]), {}))
    skills = [f"skill {i}" for i in range(20)]
    made.skills = WordColumn.restore(numbers % 20, skills)
    made.families = WordColumn.restore(same, [""])
    made.iterations.fill(numbers.astype(np.int64) // 1000)
    made.fill_metric("win_rate", numbers % 101 / 100)
    made.fill_metric("regret", numbers % 89 / 100)
    made.fill_metric("regret_se", np.full(size, np.nan))
    for column in (made.text_of, made.code_of, made.detail_of):
        column.fill(numbers)
    for number in range(size):
        made.details.append(msgspec.msgpack.encode((f"Environment{number}".encode(), (), None)))
        made.texts.append(pool.text(number).encode())
    made.finish()
    return made


def candidates(pool: Pool, embedder: Synthetic, size: int) -> Iterator[tuple[Description, Floats]]:
    """Candidates with their vectors: near a held environment, and not, by turns."""
    rng = np.random.default_rng(5)
    for i in range(QUERIES):
        number = int(rng.integers(size)) // PART * PART if i % 2 else size + i
        vector = embedder.rows(np.arange(number, number + (PART if i % 2 else 1)))[0]
        vector = vector + np.float32(0.01) * rng.normal(size=DIM).astype(np.float32)
        known = pool.description(number)
        changed = known.pieces[rng.random(len(known.pieces)) < 0.95]
        name = f"{size + i:064x}"
        yield (
            Description(f"candidate {size + i}", f"ast/1:{name}", f"data/1:{name}", pieces=changed),
            vector / np.linalg.norm(vector),
        )


class Given:
    """An embedder whose vectors were made before, so that they cost nothing."""

    dim = DIM
    name = Synthetic.name

    def __init__(self) -> None:
        self.vectors: dict[str, Floats] = {}

    def __call__(self, texts: Sequence[str]) -> Floats:
        return np.stack([self.vectors[text] for text in texts])


def resident_mb() -> tuple[float, float]:
    """Memory of this process that is its own, and that of mapped files, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return int(found["RssAnon"]) / 1000, int(found["RssFile"]) / 1000


def one(size: int, path: str) -> Measurement:
    """Read a memory, decide on candidates, compare with numpy."""
    pool, embedder, given = Pool(), Synthetic(), Given()
    queries = list(candidates(pool, embedder, size))
    given.vectors = {description.rules_text: vector for description, vector in queries}
    NoveltyMemory(given).check(queries[0][0])
    before = resident_mb()
    started = time.process_time()
    memory = NoveltyMemory.load(Path(path), given)
    load_s = time.process_time() - started
    memory.check(queries[0][0])
    loaded = resident_mb()
    index = memory._held.index
    numpy_index = NumpyIndex(DIM, compact=index.compact)
    for start in range(0, size, PART):
        rows = np.arange(start, min(start + PART, size))
        numpy_index.add(index.vectors(rows), rows)
    decisions, searches, scans, refused, recalled = [], [], [], 0, 0.0
    for description, vector in queries:
        times = [time.process_time()]
        decision = memory.check(description)
        times.append(time.process_time())
        hits = index.search(vector, 5)
        times.append(time.process_time())
        exact = numpy_index.best(vector[None, :], 5)[0]
        times.append(time.process_time())
        recalled += len({hit.row for hit in hits} & set(exact.tolist())) / 5
        for found, a, b in zip((decisions, searches, scans), times, times[1:], strict=False):
            found.append((b - a) * 1e3)
        refused += not decision.accepted
    print(f"{size}: recall@5 {recalled / QUERIES:.4f}", file=sys.stderr)
    return {
        "kind": index.kind,
        "decision": median(decisions),
        "slowest": max(decisions),
        "search": median(searches),
        "numpy": median(scans),
        "ratio": median(b / a for a, b in zip(searches, scans, strict=True)),
        "own": loaded[0] - before[0],
        "mapped": loaded[1] - before[1],
        "load": load_s,
        "refused": refused / QUERIES,
        "recall": recalled / QUERIES,
    }


HEAD: Final = (
    *("environments", "index", "decision, CPU ms", "slowest", "search, CPU ms", "numpy, CPU ms"),
    *("numpy / index", "memory, MB", "mapped, MB", "load, CPU s", "recall@5", "refused", "goals"),
)


def main(arguments: Sequence[str]) -> None:
    """Build and measure each size."""
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("--sizes", type=positive, nargs="+", default=[10_000, 100_000, 1_000_000])
    sizes = made.parse_args(arguments).sizes
    rows = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "memory")
            build(size, path)
            print(f"{size}: {path.stat().st_size / 1e6:.0f} MB", file=sys.stderr, flush=True)
            found = measure_apart({"size": size, "path": str(path)})
        goals = [GOALS[size].verdict(found["decision"])] if size in GOALS else []
        goals.append(f"memory {MEMORY_GOAL.verdict(found['own'] + found['mapped'])}")
        numbers = [f"{found[key]:.2f}" for key in ("decision", "slowest", "search", "numpy")]
        numbers.append(f"{found['ratio']:.1f}")
        numbers += [f"{found[key]:.0f}" for key in ("own", "mapped", "load")]
        numbers.append(f"{found['recall']:.3f}")
        share = f"{found['refused']:.0%}"
        rows.append((f"{size:,}", found["kind"], *numbers, share, ", ".join(goals)))
    print(machine())
    print(table(HEAD, rows))


if __name__ == "__main__":
    run(main, one)
