"""The layout of shards: Parquet tables by the first bits of the digest, and an index by name."""

from __future__ import annotations

import bisect
import hashlib
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from pathlib import Path
from typing import Any, Final

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.ids import is_digest, parse_env_id, parse_pinned_id, slug
from synthgym.registry.files import Files
from synthgym.registry.layout import INDEX, FileRef, shard_of, table_path
from synthgym.registry.manifest import Entry, Manifest
from synthgym.registry.notes import REPORT, VECTOR
from synthgym.registry.packed import Packed, Roots
from synthgym.registry.strict import parse_json
from synthgym.registry.tables import (
    ENTRY_COLUMNS,
    Skills,
    Table,
    aliases_of,
    arrow_table,
    entries_of,
    entry_columns,
    entry_of,
    write_table,
)
from synthgym.registry.vectors import read_vectors, write_vectors
from synthgym.spec import SynthEnvSpec

_OPEN_TABLES: Final = 32


class ShardReader:
    """Environments of the layout of shards. What is read at once is a row group, not a file.

    An environment certifies itself: its digest is computed anew. Notes and index are compared with the
    manifest by `verify`, and before a pulled snapshot is used.
    """

    def __init__(self, files: Files, manifest: Manifest) -> None:
        self._files = files
        self._manifest = manifest
        self._refs = {ref.path: ref for ref in manifest.files}
        self._shards = sum(ref.kind == "envs" for ref in manifest.files)
        self.table = lru_cache(maxsize=_OPEN_TABLES)(self._open)

    def entries(self) -> Iterator[Entry]:
        """Iterate over the entries by name and version."""
        for columns in self.table(INDEX).batches():
            yield from entries_of(columns)

    def by_id(self, env_id: str) -> Entry | None:
        """Find an entry by `synthgym/<Name>-v<N>`."""
        wanted = parse_env_id(env_id)
        return next((e for e in self._named(wanted.name) if e.version == wanted.version), None)

    def by_digest(self, digest: str) -> Entry | None:
        """Find an entry by its digest."""
        found = self._row("envs", digest, tuple(ENTRY_COLUMNS))
        return None if found is None else next(entries_of(found))

    def by_pinned_id(self, pinned_id: str) -> Entry | None:
        """Find an entry by its pinned id: the shard of its digits, then the one whose name fits."""
        parts = parse_pinned_id(pinned_id)
        if parts is None:
            return None
        least = f"sha256:{parts[1]}"
        table = self.table(self._path("envs", least + "0" * 52))
        for group in range(table.groups):
            low, high = table.span(group)
            if low[:19] <= least <= high[:19]:
                for entry in entries_of(table.read(group, list(ENTRY_COLUMNS))):
                    if entry.digest.startswith(least) and slug(entry.name) == parts[0]:
                        return entry
        return None

    def named(self, name: str) -> list[Entry]:
        """Entries of a name, by version."""
        return list(self._named(name))

    def ids(self) -> Iterator[str]:
        """Iterate over the ids for people: what a misspelt one is compared with."""
        for columns in self.table(INDEX).batches(["name", "version"]):
            for name, version in zip(columns["name"], columns["version"], strict=True):
                yield f"synthgym/{name}-v{version}"

    def digests(self) -> list[str]:
        """Every digest, sorted; `IntegrityError` when one comes twice or out of order."""
        found: list[str] = []
        for number in range(self._shards):
            table = self.table(table_path("envs", number, self._shards))
            for columns in table.batches(["digest"]):
                group = [*found[-1:], *columns["digest"]]
                if not all(map(operator.lt, group, group[1:])):
                    raise IntegrityError(f"{self._files.place}: digests are out of order")
                found += columns["digest"]
        return found

    def aliases(self) -> list[str]:
        """`alias_text` of every entry, in the order of `entries()`.

        `IntegrityError` when the index is not the file of the manifest.
        """
        self._check_hash(self._refs[INDEX])
        return aliases_of(self.table(INDEX))

    def lists(self, entries: Sequence[Entry]) -> bool:
        """Whether the index has these entries, in this order and as synthgym writes them."""
        expected, start = arrow_table("index", entry_columns(entries)), 0
        for table in self.table(INDEX).arrow_batches():
            if not table.equals(expected.slice(start, table.num_rows)):
                return False
            start += table.num_rows
        return start == len(entries)

    def rows(self, places: list[int]) -> Iterator[Entry]:
        """Iterate over the entries at ascending places of `entries()`."""
        table, start, first = self.table(INDEX), 0, 0
        for group in range(table.groups):
            after = bisect.bisect_left(places, start + table.rows(group), first)
            if first < after:
                chosen = [place - start for place in places[first:after]]
                yield from entries_of(table.read_arrow(group).take(chosen).to_pydict())
            start, first = start + table.rows(group), after

    def spec(self, entry: Entry) -> SynthEnvSpec:
        """Read an environment; nothing of it is executed."""
        return self._packed(entry).spec()

    def report(self, entry: Entry) -> dict[str, Any] | None:
        """Read the validation report of an environment; None when it has none."""
        notes = self._notes(entry.digest)
        return parse_json(notes[REPORT], REPORT) if REPORT in notes else None

    def vectors(self, embedder: str) -> Iterator[tuple[str, bytes]]:
        """Iterate over (digest, float16 bytes) by digest."""
        return read_vectors(self._files, self._manifest, embedder)

    def packed(self, shard: int = 0, count: int = 1) -> Iterator[Packed]:
        """Iterate over the environments of a shard, by digest, with all their notes.

        `count` may be another number of shards than that of the files.
        """
        first = shard * self._shards // count
        last = max(first + 1, (shard + 1) * self._shards // count)
        for number in range(first, last):
            for item in self._shard(number):
                if shard_of(item.entry.digest, count) == shard:
                    yield item

    def problems(self) -> Iterator[str]:
        """Yield what differs in single files: size, SHA-256, order, the entries of the index."""
        for ref in self._manifest.files:
            try:
                self._check_hash(ref)
            except SnapshotError as error:
                yield str(error)

    def _shard(self, number: int) -> Iterator[Packed]:
        notes = _Following(self._rows("notes", number))
        vectors = {
            VECTOR + name: _vector_rows(self._files, self._manifest, name, number)
            for name in self._manifest.embedders
        }
        skills = Skills()
        for *columns, record, source in self._rows("envs", number):
            entry = entry_of(columns, skills)
            payloads = notes.take(entry.digest)
            if vectors:
                own = {k: v[entry.digest] for k, v in vectors.items() if entry.digest in v}
                payloads = dict(sorted({**payloads, **own}.items()))
            yield Packed(entry=entry, record=record, source=source, notes=payloads)
            for rows in vectors.values():
                rows.pop(entry.digest, None)
        notes.end()
        for kind, rows in vectors.items():
            if rows:
                raise IntegrityError(f"a {kind} of {min(rows)}, which is not there")

    def _rows(self, kind: str, number: int) -> Iterator[Sequence[Any]]:
        """Rows of a shard, checked to be in order and to belong there."""
        table, last = self.table(table_path(kind, number, self._shards)), ("", "")
        for columns in table.batches():
            digests = columns["digest"]
            kinds = columns["kind"] if kind == "notes" else repeat("", len(digests))
            keys = [last, *zip(digests, kinds, strict=False)]
            ascending = all(map(operator.lt, keys, keys[1:]))
            rows = zip(*columns.values(), strict=True)
            if ascending and all(self._belongs(d, number) for d in (digests[0], digests[-1])):
                yield from rows  # what is between the first and the last belongs there as well
            else:
                yield from self._rows_before_fault(kind, number, last, rows)
            last = keys[-1]

    def _rows_before_fault(
        self, kind: str, number: int, last: tuple[str, str], rows: Iterable[Sequence[Any]]
    ) -> Iterator[Sequence[Any]]:
        for row in rows:
            key = (row[0], row[1] if kind == "notes" else "")
            if key <= last or not self._belongs(row[0], number):
                raise IntegrityError(f"{self._files.place}: {kind} {key} is out of order")
            last = key
            yield row

    def _belongs(self, digest: str, number: int) -> bool:
        return is_digest(digest) and shard_of(digest, self._shards) == number

    def _packed(self, entry: Entry) -> Packed:
        row = self._row("envs", entry.digest, ("record", "source"))
        if row is None:
            raise IntegrityError(f"{self._files.place}: {entry.env_id} is not in its shard")
        return Packed(
            entry=entry,
            record=row["record"][0],
            source=row["source"][0],
            notes=self._notes(entry.digest),
        )

    def _notes(self, digest: str) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        table = self.table(self._path("notes", digest))
        for group in table.groups_with(digest):
            columns = table.read_arrow(group)
            digests = columns.column("digest").to_pylist()
            chosen = slice(
                bisect.bisect_left(digests, digest), bisect.bisect_right(digests, digest)
            )
            rows = columns.slice(chosen.start, chosen.stop - chosen.start).to_pydict()
            for kind, payload in zip(rows["kind"], rows["payload"], strict=True):
                found[kind] = payload.encode()
        return found

    def _row(self, kind: str, digest: str, columns: tuple[str, ...]) -> dict[str, list[Any]] | None:
        """Columns of the one row of a digest, each a list of one value."""
        table = self.table(self._path(kind, digest))
        for group in table.groups_with(digest):
            digests = table.read(group, ["digest"])["digest"]
            place = bisect.bisect_left(digests, digest)
            if place < len(digests) and digests[place] == digest:
                return dict(table.read_arrow(group, columns).slice(place, 1).to_pydict())
        return None

    def _named(self, name: str) -> Iterator[Entry]:
        table = self.table(INDEX)
        for group in table.groups_with(name):
            names = table.read(group, ["name"])["name"]
            first, after = bisect.bisect_left(names, name), bisect.bisect_right(names, name)
            if first < after:
                columns = table.read_arrow(group).slice(first, after - first).to_pydict()
                yield from entries_of(columns)

    def _path(self, kind: str, digest: str) -> str:
        return table_path(kind, shard_of(digest, self._shards), self._shards)

    def _open(self, path: str) -> Table:
        if path not in self._refs:
            raise IntegrityError(f"{self._files.place}: the manifest names no {path}")
        return Table(self._files, self._refs[path])

    def _check_hash(self, ref: FileRef) -> None:
        digest, size = hashlib.sha256(), 0
        with self._files.open(ref.path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
        if size != ref.size or digest.hexdigest() != ref.sha256[7:]:
            raise IntegrityError(
                f"{self._files.place}: {ref.path} is not the file of the manifest: promised "
                f"{ref.sha256}, got sha256:{digest.hexdigest()}"
            )


class _Following:
    """Notes sorted by digest, taken along with another table of the same order."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def take(self, digest: str) -> dict[str, bytes]:
        """The next notes, as long as they are of this digest, by kind."""
        found: dict[str, bytes] = {}
        while self._next is not None and self._next[0] == digest:
            if self._next[1].startswith(VECTOR):
                raise IntegrityError(f"a {self._next[1]} of {digest} lies among the notes")
            found[self._next[1]] = self._next[2].encode()
            self._next = next(self._rows, None)
        return found

    def end(self) -> None:
        """Raise `IntegrityError` when rows are left: they belong to nothing."""
        if self._next is not None:
            raise IntegrityError(f"a note of {self._next[0]}, which is not there")


def write_shards(
    root: Path, count: int, buckets: Iterable[list[Packed]], roots: Roots
) -> list[FileRef]:
    """Write the tables of `count` buckets below `root`, each sorted by digest, and then the index.

    `roots` has seen every environment afterwards. Returns what the manifest says of the files.
    """
    refs: list[FileRef] = []
    for number, bucket in enumerate(buckets):
        for item in bucket:
            roots.add(item.entry, item.notes)
        envs = entry_columns(item.entry for item in bucket)
        envs |= {
            "record": [item.record for item in bucket],
            "source": [item.source for item in bucket],
        }
        refs.append(_write(root, "envs", table_path("envs", number, count), envs))
        notes = _note_columns(bucket)
        refs.append(_write(root, "notes", table_path("notes", number, count), notes))
        for kind in sorted({k for item in bucket for k in item.notes if k.startswith(VECTOR)}):
            rows = [(i.entry.digest, i.notes[kind]) for i in bucket if kind in i.notes]
            refs.append(write_vectors(root, kind.removeprefix(VECTOR), number, count, rows))
    roots.entries.sort(key=lambda entry: entry.alias)
    refs.append(_write(root, "index", INDEX, entry_columns(roots.entries)))
    return refs


def _note_columns(bucket: list[Packed]) -> dict[str, list[str]]:
    rows = [
        (item.entry.digest, kind, payload.decode())
        for item in bucket
        for kind, payload in item.notes.items()
        if not kind.startswith(VECTOR)
    ]
    return {name: [row[i] for row in rows] for i, name in enumerate(("digest", "kind", "payload"))}


def _write(root: Path, kind: str, path: str, columns: Mapping[str, list[Any]]) -> FileRef:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        rows = write_table(file, kind, columns)
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    return FileRef(
        path=path, sha256=f"sha256:{digest}", size=target.stat().st_size, kind=kind, rows=rows
    )


def _vector_rows(files: Files, manifest: Manifest, embedder: str, number: int) -> dict[str, bytes]:
    return dict(read_vectors(files, manifest, embedder, number))
