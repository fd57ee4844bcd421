"""The members of a memory's file that hold its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from synthgym.memory.archive import ArchiveReader, ArchiveWriter
from synthgym.memory.columns import HashColumn, Rows, WordColumn
from synthgym.memory.table import METRICS, RecordTable

_HASHES = ("digests", "ast", "data")
_WORDS = ("skills", "families")
_SKIPPED: int = -1


@dataclass(frozen=True, slots=True)
class Layout:
    """Which rows and texts of a table are written, in order: removed ones are left out."""

    rows: Rows
    texts: Rows
    """Numbers of the texts that these rows have, in order."""

    @classmethod
    def of(cls, table: RecordTable) -> Layout:
        """The layout of what a table holds now."""
        rows = table.rows
        return cls(rows, np.unique(table.text_of.values[rows]))


def write_table(writer: ArchiveWriter, table: RecordTable, layout: Layout) -> Mapping[str, Any]:
    """Write the columns; what of them belongs into the JSON object."""
    rows = layout.rows
    head: dict[str, Any] = {}
    place = {int(row): i for i, row in enumerate(rows)} if len(rows) < len(table.alive) else None
    for name in _HASHES:
        column: HashColumn = getattr(table, name)
        writer.array(name, column.bytes[rows])
        head[f"{name}_prefixes"] = _write_words(writer, f"{name}_prefixes", column.prefixes, rows)
        others = [
            [row if place is None else place.get(row, _SKIPPED), text]
            for row, text in sorted(column.others.items())
        ]
        head[f"{name}_others"] = [pair for pair in others if pair[0] != _SKIPPED]
    for name in _WORDS:
        head[name] = _write_words(writer, name, getattr(table, name), rows)
    writer.array("iterations", table.iterations.values[rows])
    for name in METRICS:
        writer.array(name, table.metric(name)[rows])
    writer.array(
        "text_of", np.searchsorted(layout.texts, table.text_of.values[rows]).astype(np.int32)
    )
    writer.array("code_of", table.code_of.values[rows])
    writer.strings("details", (table.details[int(n)] for n in table.detail_of.values[rows]))
    writer.strings("texts", (table.texts[int(n)] for n in layout.texts))
    return head


def read_table(reader: ArchiveReader, head: Mapping[str, Any]) -> RecordTable:
    """Read what `write_table` wrote. ValueError, KeyError or TypeError for anything else."""
    table = RecordTable()
    n = len(reader.array("iterations", np.int64, (None,)))
    for name in _HASHES:
        prefixes = _read_words(reader, f"{name}_prefixes", head[f"{name}_prefixes"], n)
        others = {int(row): str(text) for row, text in head[f"{name}_others"]}
        column = HashColumn.restore(reader.array(name, np.uint8, (n, 32)), prefixes, others)
        setattr(table, name, column)
    _check_digests(table.digests)
    for name in _WORDS:
        setattr(table, name, _read_words(reader, name, head[name], n))
    table.iterations.fill(reader.array("iterations", np.int64, (n,)))
    for name in METRICS:
        values = reader.array(name, np.float64, (n,))
        if np.isinf(values).any():
            raise ValueError(f"{name} is infinite")
        table.fill_metric(name, values)
    for detail in reader.strings("details", n):
        table.details.append(detail)
    for text in reader.strings("texts"):
        text.decode("utf-8", "surrogatepass")
        table.texts.append(text)
    table.detail_of.fill(np.arange(n, dtype=np.int32))
    table.text_of.fill(reader.array("text_of", np.int32, (n,)))
    table.code_of.fill(reader.array("code_of", np.int32, (n,)))
    used = np.unique(table.text_of.values)
    if not np.array_equal(used, np.arange(len(table.texts))):
        raise ValueError(f"text_of must name each of the {len(table.texts)} texts")
    table.finish()
    return table


def _write_words(writer: ArchiveWriter, name: str, column: WordColumn, rows: Rows) -> list[str]:
    """Write codes anew, in order of first use, so that the same records give the same bytes."""
    codes = column.codes.values[rows]
    used, first, places = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    writer.array(name, rank[places.ravel()])
    return [column.words[int(code)] for code in used[order]]


def _read_words(reader: ArchiveReader, name: str, words: object, n: int) -> WordColumn:
    if not isinstance(words, list):
        raise TypeError(f"{name} must be a list")
    return WordColumn.restore(reader.array(name, np.int32, (n,)), words)


def _check_digests(column: HashColumn) -> None:
    """Every row must be a digest, and no two the same."""
    if column.others or column.prefixes.words not in ([], ["sha256"]):
        raise ValueError("a digest does not begin with sha256:")
    if len(np.unique(column.bytes, axis=0)) != len(column):
        raise ValueError("a digest is there twice")
