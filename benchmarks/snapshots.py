"""Snapshots of many environments: writing, verifying, finding, registering, comparing, beside other ways to ship them.

    python benchmarks/snapshots.py --rounds 3
    python benchmarks/snapshots.py --rounds 1 --million

See README.md in this folder for what the numbers mean.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from harness import (
    Goal,
    Measurement,
    interleave,
    machine,
    median,
    parser,
    positive,
    run,
    spread,
    table,
)

from synthgym.registry import Entry, Snapshot, bundled_root, write_snapshot
from synthgym.registry.packed import Packed, pack_env
from synthgym.registry.writing import write_packed
from synthgym.spec import Provenance, SynthEnvSpec

OURS, FILES, DATASET = (
    "synthgym snapshot",
    "a file each and a list of checksums",
    "datasets, Parquet",
)
WAYS: Final = (OURS, FILES, DATASET)
MILLION: Final = "a million"
ASKED: Final = 200
"""Environments that are looked up, each in a way of its own."""
GOALS: Final = {
    "write": Goal(3, at_most=True, unit=" s"),
    "verify": Goal(1, at_most=True, unit=" s"),
    "one": Goal(5, at_most=True, unit=" ms"),
    "read_kb": Goal(300, at_most=True, unit=" KB"),
    "register": Goal(1, at_most=True, unit=" s"),
    "make": Goal(20, at_most=True, unit=" ms"),
}
DIFF_GOAL: Final = Goal(5, at_most=True, unit=" s")


def specs(count: int) -> tuple[list[SynthEnvSpec], dict[str, dict[str, Any]]]:
    """Environments made of the bundled ones, each a content of its own, and their reports."""
    bundled = Snapshot.open(bundled_root())
    base = [bundled.spec(entry.digest) for entry in bundled]
    found = [dict(bundled.report(entry.digest)) for entry in bundled]
    rng, made, reports = random.Random(0), [], {}
    for number in range(count):
        model = base[number % len(base)]
        source = f"{model.record.source}\n# {number} {rng.random()}\n"
        spec = replace(
            model,
            record=replace(model.record, source=source),
            name=f"Env{number}",
            title=f"Environment {number}",
            provenance=Provenance(author="a model", seed=number),
        )
        made.append(spec)
        reports[spec.digest] = found[number % len(base)]
    return made, reports


def one(way: str, environments: int) -> Measurement:
    """CPU seconds, milliseconds and bytes of one way."""
    with tempfile.TemporaryDirectory() as name:
        if way == MILLION:
            return _million(Path(name), environments)
        made, reports = specs(environments)
        return {OURS: _ours, FILES: _files, DATASET: _dataset}[way](Path(name), made, reports)


def _ours(
    folder: Path, made: list[SynthEnvSpec], reports: dict[str, dict[str, Any]]
) -> Measurement:
    import gymnasium  # noqa: PLC0415 -- not a part of the other ways

    from synthgym.registration import register_snapshot  # noqa: PLC0415

    place = folder / "snapshot"
    out: Measurement = {}
    _timed(
        out,
        "write",
        lambda: write_snapshot(
            place, made, name="many", version="1.0.0", reports=reports, layout="shards"
        ),
    )
    out["mb"] = sum(file.stat().st_size for file in place.rglob("*") if file.is_file()) / 1e6
    opened = Snapshot.open(place)
    assert _timed(out, "verify", opened.verify) == ()
    asked = [spec.digest for spec in random.Random(1).sample(made, ASKED)]
    opened = Snapshot.open(place)
    reads = _CountedReads(opened)
    _timed(out, "one", lambda: [opened.spec(digest) for digest in asked], ASKED / 1e3)
    out["read_kb"] = reads.total / ASKED / 1e3
    _timed(out, "register", lambda: register_snapshot(place))
    environment = gymnasium.make(made[0].env_id)  # starts the pool
    ids = [spec.env_id for spec in random.Random(2).sample(made, 20)]
    _timed(out, "make", lambda: [gymnasium.make(env_id) for env_id in ids], 20 / 1e3)
    environment.close()
    return out


class _CountedReads:
    """Counts the bytes that a snapshot reads from now on."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.total = 0
        files, plain = snapshot.files, snapshot.files.open

        def opened(path: str) -> Any:
            file = plain(path)
            return _Counting(file, self)

        files.open = opened  # type: ignore[method-assign]


class _Counting:
    """A file that tells how much of it is read."""

    def __init__(self, file: Any, count: _CountedReads) -> None:
        self._file, self._count = file, count

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._file.read(size)
        self._count.total += len(data)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _files(
    folder: Path, made: list[SynthEnvSpec], reports: dict[str, dict[str, Any]]
) -> Measurement:
    """As the published pools do it: sources and notes as files, checksums in one text."""
    out: Measurement = {}

    def write() -> None:
        lines = []
        for number, spec in enumerate(made):
            for suffix, text in (
                ("py", spec.record.source),
                ("json", json.dumps(spec.to_json() | {"report": reports[spec.digest]})),
            ):
                path = folder / f"game_{number:06d}.{suffix}"
                path.write_text(text)
                lines.append(f"{hashlib.sha256(text.encode()).hexdigest()}  {path.name}\n")
        (folder / "checksums.sha256").write_text("".join(lines))

    def verify() -> None:
        for line in (folder / "checksums.sha256").read_text().splitlines():
            digest, _, name = line.partition("  ")
            assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest

    _timed(out, "write", write)
    out["mb"] = sum(file.stat().st_blocks * 512 for file in folder.iterdir()) / 1e6
    _timed(out, "verify", verify)
    asked = random.Random(1).sample(range(len(made)), ASKED)
    _timed(
        out, "one", lambda: [(folder / f"game_{n:06d}.py").read_text() for n in asked], ASKED / 1e3
    )
    return out


def _dataset(
    folder: Path, made: list[SynthEnvSpec], reports: dict[str, dict[str, Any]]
) -> Measurement:
    """The rows as a data set of the package `datasets`; it has nothing to verify."""
    import datasets  # noqa: PLC0415 -- an extra

    datasets.disable_progress_bars()
    out: Measurement = {}
    path = folder / "train.parquet"

    def write() -> None:
        rows = [
            {
                "digest": spec.digest,
                "name": spec.name,
                "source": spec.record.source,
                "spec": json.dumps(spec.to_json()),
                "report": json.dumps(reports[spec.digest]),
            }
            for spec in made
        ]
        datasets.Dataset.from_list(rows).to_parquet(str(path))

    _timed(out, "write", write)
    out["mb"] = path.stat().st_size / 1e6
    loaded: list[Any] = []
    _timed(
        out,
        "open",
        lambda: loaded.append(
            datasets.load_dataset("parquet", data_files=str(path), cache_dir=str(folder / "cache"))
        ),
    )
    rows = loaded[0]["train"]
    place = {digest: number for number, digest in enumerate(rows["digest"])}
    asked = [place[spec.digest] for spec in random.Random(1).sample(made, ASKED)]
    _timed(out, "one", lambda: [rows[number]["source"] for number in asked], ASKED / 1e3)
    return out


def _million(folder: Path, environments: int) -> Measurement:
    """Two snapshots that differ in 2,000 environments: opened, looked up, searched, sampled, compared."""
    out: Measurement = {}
    shift = 1000
    for name, first in (("old", 0), ("new", shift)):
        digests = _many(first, environments)
        _timed(
            out,
            f"write {name}",
            lambda digests=digests, name=name: write_packed(  # type: ignore[misc]
                folder / name,
                lambda shard, count: digests(shard, count),
                environments,
                name="many",
                version="1.0.0",
            ),
        )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out["written_rss_mb"] = before / 1024
    return out | _apart(folder, environments)


def _apart(folder: Path, environments: int) -> Measurement:
    """What a reader needs, in a process of its own: its peak of memory is not that of the writer."""
    import multiprocessing  # noqa: PLC0415

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        read: Measurement = pool.apply(_read_million, (str(folder), environments))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        compared: Measurement = pool.apply(_compare_million, (str(folder),))
    return read | compared


def _read_million(folder: str, environments: int) -> Measurement:
    base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out: Measurement = {}
    opened: list[Snapshot] = []
    _timed(out, "open", lambda: opened.append(Snapshot.open(Path(folder, "new"))), 1e-3)
    snapshot = opened[0]
    ids = [f"synthgym/Env{number}-v0" for number in range(1000, environments, environments // 20)]
    _timed(out, "id", lambda: [snapshot.spec(env_id) for env_id in ids], len(ids) / 1e3)
    _timed(out, "sample", lambda: snapshot.sample(100, np.random.default_rng(0)))
    _timed(out, "search", lambda: list(snapshot.search(f"environment {environments // 2}")))
    out["read_rss_mb"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - base) / 1024
    return out


def _compare_million(folder: str) -> Measurement:
    from synthgym.registry.algebra import diff  # noqa: PLC0415

    out: Measurement = {}
    old, new = Snapshot.open(Path(folder, "old")), Snapshot.open(Path(folder, "new"))
    sets: list[set[str]] = []
    _timed(out, "digests", lambda: sets.extend([set(old.digests()), set(new.digests())]))
    assert len(sets[0] ^ sets[1]) == 2000
    found = _timed(out, "diff", lambda: diff(old, new, notes=False))
    assert (len(found.added), len(found.removed)) == (1000, 1000)
    return out


def _many(first: int, count: int) -> Callable[[int, int], Iterator[Packed]]:
    """Small environments by shard. Only their source and digest differ."""
    model = pack_env(specs(1)[0][0])
    record = json.loads(model.record)
    tail = json.dumps(record, sort_keys=True, separators=(",", ":"))[:-1]
    by_digest: list[tuple[str, int]] = []
    for number in range(first, first + count):
        text = f'{tail},"source":{json.dumps(f"# {number}")}}}'
        by_digest.append(
            ("sha256:" + hashlib.sha256(b"synthgym-env-v1\0" + text.encode()).hexdigest(), number)
        )
    by_digest.sort()

    def shard(wanted: int, shards: int) -> Iterator[Packed]:
        first, after = (
            bisect.bisect_left(
                by_digest, f"{number * 256 // shards:02x}", key=lambda row: row[0][7:]
            )
            for number in (wanted, wanted + 1)
        )
        for digest, number in by_digest[first : after if wanted + 1 < shards else None]:
            entry = Entry(
                name=f"Env{number}",
                version=0,
                digest=digest,
                title=model.entry.title,
                skills=model.entry.skills,
                license=model.entry.license,
                max_turns=model.entry.max_turns,
            )
            yield Packed(entry=entry, record=model.record, source=f"# {number}", notes=model.notes)

    return shard


def _timed(out: Measurement, name: str, work: Callable[[], Any], per: float = 1.0) -> Any:
    """CPU seconds of `work` over `per`, of all threads of this process."""
    began = time.process_time()
    result = work()
    out[name] = (time.process_time() - began) / per
    return result


def ways_table(found: dict[str, list[Measurement]]) -> str:
    """One row a way."""
    rows = []
    for way, items in found.items():
        cells = [way]
        for key in ("write", "verify", "one"):
            values = [item[key] for item in items if key in item]
            cells.append(spread(values, ".2f") if values else "none")
        cells.append(spread([item["mb"] for item in items], ".1f"))
        rows.append(cells)
    return table(["way", "write, CPU s", "verify, CPU s", "one source, CPU ms", "MB on disk"], rows)


def goals_table(items: list[Measurement]) -> str:
    """Ours against what we set out to reach."""
    return table(
        ["what", "measured", "goal", ""],
        [
            [
                key,
                spread([item[key] for item in items], ".2f"),
                str(goal),
                goal.verdict(median(item[key] for item in items)),
            ]
            for key, goal in GOALS.items()
        ],
    )


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    reader = parser(__doc__, rounds=3)
    reader.add_argument("--environments", type=positive, default=10_000)
    reader.add_argument("--million", action="store_true", help="1,000,000 small ones as well")
    options = reader.parse_args(arguments)
    print(machine())
    cases = [{"way": way, "environments": options.environments} for way in WAYS]
    measured = dict(zip(WAYS, interleave(options.rounds, cases), strict=True))
    print(f"### {options.environments:,} environments with reports\n\n{ways_table(measured)}")
    print(f"### Goals\n\n{goals_table(measured[OURS])}")
    if options.million:
        items = interleave(1, [{"way": MILLION, "environments": 1_000_000}])[0]
        rows = [[key, f"{value:,.2f}"] for key, value in items[0].items()]
        print(f"### {MILLION}\n\n{table(['what', 'CPU s (open, id: ms)'], rows)}")
        print(f"diff: goal {DIFF_GOAL}, {DIFF_GOAL.verdict(items[0]['diff'])}")


if __name__ == "__main__":
    run(main, one)
