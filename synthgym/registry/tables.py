"""Parquet tables of a snapshot: their columns, and reading them without trust.

Every column is flat and required, nothing is dictionary-encoded, and what a row group unfolds to is counted
from its page headers before Arrow decodes it. PyArrow is imported when the first table is opened.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from synthgym.contract import MAX_DIALECT_BYTES, MAX_TURNS, MIN_TURNS
from synthgym.errors import IntegrityError
from synthgym.registry.files import Files
from synthgym.registry.layout import FileRef
from synthgym.registry.manifest import MAX_VERSION, Entry
from synthgym.registry.notes import NOTE_CAPS
from synthgym.registry.pages import Chunk, check_pages, read_footer
from synthgym.registry.strict import is_strings

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ENTRY_COLUMNS: Final = {
    "digest": "string",
    "name": "string",
    "version": "int32",
    "title": "string",
    "skills": "string",
    "license": "string",
    "max_turns": "int32",
}
"""Arrow types by column; `skills` is a JSON list."""
COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "index": ENTRY_COLUMNS,
    "envs": ENTRY_COLUMNS | {"record": "string", "source": "string"},
    "notes": {"digest": "string", "kind": "string", "payload": "string"},
}
SORTED_BY: Final = {"index": "name", "envs": "digest", "notes": "digest"}
"""The column whose range each row group tells."""
GROUP_ROWS: Final = {"index": 4096, "envs": 128, "notes": 512}
"""Rows of a row group, as written."""
_MOST_GROUP_ROWS: Final = 65_536
_GROUP_CAP: Final = 128 * 1024 * 1024
"""Bytes that one row group may unfold to; as Python texts they may take four times as much."""
_GROUP_TARGET: Final = 32 * 1024 * 1024
"""Bytes of a row group, as written."""
_RUN_TARGET: Final = 4 * 1024 * 1024
"""Bytes of row groups that are read at once: one by one costs much when they are small."""
_ROW_CAP: Final = {
    "index": 256 * 1024,
    "envs": 2 * MAX_DIALECT_BYTES,
    "notes": max(NOTE_CAPS.values()) + 1024,
}
_COMPRESSION_LEVEL: Final = 3
_NAME: Final = r"\A[A-Z][A-Za-z0-9]{0,63}\z"
_DIGEST: Final = r"\Asha256:[0-9a-f]{64}\z"
"""As `is_name` and `is_digest` have it, for Arrow's regular expressions; see tests/registry/test_aliases.py."""
_DIGEST_CHARS: Final = 71


class Table:
    """One Parquet file of a snapshot, opened. `IntegrityError` when it is not what it should be."""

    def __init__(self, files: Files, ref: FileRef) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.shown: Final = f"{files.place}: {ref.path}"
        """How errors name it."""
        self._kind = ref.kind
        self._file: IO[bytes] = files.open(ref.path)
        weakref.finalize(self, self._file.close)
        names = list(COLUMNS[ref.kind])
        self._groups = read_footer(self._file, ref.size, len(names), self.shown)
        self._spans = [
            self._span(number, group.chunks[names.index(SORTED_BY[ref.kind])])
            for number, group in enumerate(self._groups)
        ]
        counts = [group.rows for group in self._groups]
        if sum(counts) != ref.rows:
            raise IntegrityError(f"{self.shown} has {sum(counts)} rows, promised {ref.rows}")
        if max(counts, default=0) > _MOST_GROUP_ROWS:
            raise IntegrityError(f"{self.shown}: a row group has at most {_MOST_GROUP_ROWS} rows")
        self._file.seek(0)
        try:
            self._parquet: pq.ParquetFile = pq.ParquetFile(
                self._file, memory_map=False, page_checksum_verification=False
            )
            found = self._parquet.schema_arrow
        except (pa.ArrowException, OSError, ValueError) as error:
            raise IntegrityError(f"{self.shown} is no Parquet file: {error}") from error
        if not found.equals(schema(self._kind), check_metadata=False):
            raise IntegrityError(f"{self.shown} has other columns than {names}")

    @property
    def groups(self) -> int:
        """Number of row groups."""
        return len(self._groups)

    def rows(self, group: int) -> int:
        """Number of rows of a row group."""
        return self._groups[group].rows

    def span(self, group: int) -> tuple[str, str]:
        """The least and greatest value of the sorted column in a row group, as its footer says."""
        return self._spans[group]

    def groups_with(self, value: str) -> list[int]:
        """Row groups that can hold a value of the sorted column."""
        return [n for n, (least, most) in enumerate(self._spans) if least <= value <= most]

    def read(self, group: int, columns: Sequence[str] | None = None) -> dict[str, list[Any]]:
        """Columns of a row group as lists."""
        return dict(self.read_arrow(group, columns).to_pydict())

    def read_arrow(self, group: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Columns of a row group as an Arrow table."""
        wanted = list(COLUMNS[self._kind] if columns is None else columns)
        self._check_pages(group, wanted)
        return self._read([group], wanted)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, list[Any]]]:
        """Columns of all rows, a few row groups at once."""
        for table in self.arrow_batches(columns):
            yield dict(table.to_pydict())

    def arrow_batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Columns of all rows as Arrow tables of a few row groups each, whose ranges are checked."""
        wanted = list(COLUMNS[self._kind] if columns is None else columns)
        run: list[int] = []
        size = 0
        for group in range(self.groups):
            run.append(group)
            size += self._check_pages(group, wanted)
            if size >= _RUN_TARGET or group == self.groups - 1:
                table = self._read(run, wanted)
                if SORTED_BY[self._kind] in wanted:
                    self._check_spans(run, table.column(SORTED_BY[self._kind]))
                yield table
                run, size = [], 0

    def _check_pages(self, group: int, wanted: Sequence[str]) -> int:
        """Bytes that columns of a row group unfold to; `IntegrityError` when they are too many."""
        rows, chunks = self._groups[group].rows, self._groups[group].chunks
        names = list(COLUMNS[self._kind])
        cap = start = min(_GROUP_CAP, rows * _ROW_CAP[self._kind] + 4096)
        for name in wanted:
            cap -= check_pages(self._file, chunks[names.index(name)], rows, cap, self.shown)
        return start - cap

    def _read(self, groups: list[int], wanted: list[str]) -> pa.Table:
        """Columns of row groups whose pages are checked."""
        import pyarrow as pa
        import pyarrow.compute as pc

        shown = f"{self.shown}: row group {groups[0]}"
        if len(groups) > 1:
            shown += f" to {groups[-1]}"
        try:
            table = self._parquet.read_row_groups(groups, columns=wanted, use_threads=False)
            table.validate(full=True)
            longest = max((pc.max(n).as_py() for n in _lengths(table)), default=0)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise IntegrityError(f"{shown}: {error}") from error
        if longest > _ROW_CAP[self._kind]:
            raise IntegrityError(f"{self.shown}: a value of {longest} bytes is too long")
        if table.num_rows != sum(map(self.rows, groups)):
            raise IntegrityError(f"{shown} has other rows than it says")
        return table.select(wanted)

    def _check_spans(self, groups: list[int], values: pa.ChunkedArray) -> None:
        """A row that its group's range leaves out would never be found."""
        import pyarrow.compute as pc

        start = 0
        for group in groups:
            found = pc.min_max(values.slice(start, self.rows(group))).as_py()
            if self.span(group) != (found["min"], found["max"]):
                raise IntegrityError(
                    f"{self.shown}: row group {group} tells another range than it has"
                )
            start += self.rows(group)

    def _span(self, number: int, chunk: Chunk) -> tuple[str, str]:
        try:
            if chunk.span is not None:
                return chunk.span[0].decode(), chunk.span[1].decode()
        except UnicodeDecodeError:
            pass
        raise IntegrityError(f"{self.shown}: row group {number} does not tell its range")


def schema(kind: str) -> pa.Schema:
    """The Arrow schema of a kind of table."""
    import pyarrow as pa

    types = {"string": pa.string(), "int32": pa.int32()}
    return pa.schema(
        [pa.field(name, types[type_], nullable=False) for name, type_ in COLUMNS[kind].items()]
    )


def arrow_table(kind: str, columns: Mapping[str, list[Any]]) -> pa.Table:
    """A table of a kind, in memory."""
    import pyarrow as pa

    return pa.table(dict(columns), schema=schema(kind))


def write_table(target: IO[bytes], kind: str, columns: Mapping[str, list[Any]]) -> int:
    """Write a table to a file that is open; returns its rows."""
    import pyarrow.parquet as pq

    table = arrow_table(kind, columns)
    with pq.ParquetWriter(
        target,
        table.schema,
        compression="zstd",
        compression_level=_COMPRESSION_LEVEL,
        use_dictionary=False,
        write_statistics=[SORTED_BY[kind]],
        store_schema=False,
    ) as writer:
        for start, end in _groups(table, GROUP_ROWS[kind]):
            writer.write_table(table.slice(start, end - start))
    return int(table.num_rows)


def _groups(table: pa.Table, most: int) -> Iterator[tuple[int, int]]:
    """Where row groups start and end: so many rows at most, and not many more bytes than the target."""
    ends = np.cumsum(sum(lengths.to_numpy() for lengths in _lengths(table)))
    start = 0
    while start < table.num_rows:
        before = ends[start - 1] if start else 0
        fitting = int(np.searchsorted(ends, before + _GROUP_TARGET, side="right"))
        end = max(start + 1, min(start + most, fitting))
        yield start, end
        start = end


def _lengths(table: pa.Table) -> list[pa.ChunkedArray]:
    """Bytes of each value, column by column; numbers are left out."""
    import pyarrow.compute as pc

    return [pc.binary_length(c) for c in table.itercolumns() if c.type == "string"]


def entry_columns(entries: Iterable[Entry]) -> dict[str, list[Any]]:
    """Columns of entries."""
    rows = list(entries)
    columns: dict[str, list[Any]] = {
        name: [getattr(entry, name) for entry in rows] for name in ENTRY_COLUMNS
    }
    columns["skills"] = list(map(_skills_text, columns["skills"]))
    return columns


@lru_cache(maxsize=1024)
def _skills_text(skills: tuple[str, ...]) -> str:
    return json.dumps(skills, ensure_ascii=False, separators=(",", ":"))


def entries_of(columns: Mapping[str, list[Any]]) -> Iterator[Entry]:
    """Entries of columns; `SnapshotError` when a value cannot be right."""
    skills = Skills()  # few texts, many rows
    for row in zip(*(columns[name] for name in ENTRY_COLUMNS), strict=True):
        yield entry_of(row, skills)


def entry_of(row: Sequence[Any], skills: Mapping[str, tuple[str, ...]]) -> Entry:
    """The entry of a row of `ENTRY_COLUMNS`."""
    digest, name, version, title, text, license_, max_turns = row
    return Entry(
        name=name,
        version=version,
        digest=digest,
        title=title,
        skills=skills[text],
        license=license_,
        max_turns=max_turns,
    )


class Skills(dict[str, tuple[str, ...]]):
    """Skills by their text in the table, each text read once."""

    def __missing__(self, text: str) -> tuple[str, ...]:
        self[text] = _skills(text)
        return self[text]


def _skills(text: str) -> tuple[str, ...]:
    try:
        value = json.loads(text)
        if is_strings(value):
            "".join(value).encode()  # a surrogate written as an escape cannot be written again
            return tuple(value)
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"skills must be a JSON list of texts, got {text[:80]!r}") from error
    raise IntegrityError(f"skills must be a JSON list of texts, got {text[:80]!r}")


def aliases_of(index: Table) -> list[str]:
    """Return `Entry.alias_text` of every row of an index, in its order.

    `SnapshotError` when a row is no entry, as when the entries themselves are read, and when a digest comes twice.
    """
    found: list[str] = []
    skills = Skills()  # few texts, many rows
    for table in index.arrow_batches():
        if _rows_are_entries(table, skills):
            found += _alias_texts(table)
        else:  # entry by entry, which says what is wrong
            found += [entry.alias_text for entry in entries_of(table.to_pydict())]
    if len({text[-_DIGEST_CHARS:] for text in found}) != len(found):
        raise IntegrityError(f"{index.shown}: a digest is there twice")
    return found


def _rows_are_entries(table: pa.Table, skills: Skills) -> bool:
    """Whether each row is what `Entry` takes; `IntegrityError` for skills that are none."""
    import pyarrow.compute as pc

    for text in table.column("skills").unique().to_pylist():
        _ = skills[text]
    versions = pc.min_max(table.column("version")).as_py()
    turns = pc.min_max(table.column("max_turns")).as_py()
    return bool(
        versions["min"] >= 0
        and versions["max"] <= MAX_VERSION
        and turns["min"] >= MIN_TURNS
        and turns["max"] <= MAX_TURNS
        and pc.all(pc.match_substring_regex(table.column("name"), _NAME)).as_py()
        and pc.all(pc.match_substring_regex(table.column("digest"), _DIGEST)).as_py()
    )


def _alias_texts(table: pa.Table) -> list[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    name, version, digest = (table.column(what) for what in ("name", "version", "digest"))
    joined = pc.binary_join_element_wise(name, version.cast(pa.string()), digest, " ")
    found: list[str] = joined.to_pylist()
    return found
