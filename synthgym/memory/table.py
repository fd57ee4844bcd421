"""The records of a memory as columns: some 200 bytes an environment besides its texts and vectors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from synthgym.errors import ConfigError
from synthgym.memory.behaviour import Trace
from synthgym.memory.blobs import BlobLog
from synthgym.memory.columns import HashColumn, KeyIndex, NumberColumn, Rows, WordColumn, key_of
from synthgym.memory.describe import Description
from synthgym.memory.records import MemoryRecord

METRICS: Final = ("win_rate", "regret", "regret_se")


class _Detail(msgspec.Struct, frozen=True, array_like=True):
    """What is seldom asked for."""

    name: bytes
    parameters: tuple[float, ...]
    behaviour: tuple[str, str, str] | None


class RecordTable:
    """Records by row, in the order in which they came; a removed one leaves a gap."""

    def __init__(self) -> None:
        self.digests, self.ast, self.data = HashColumn(), HashColumn(), HashColumn()
        self.skills, self.families = WordColumn(), WordColumn()
        self.iterations = NumberColumn(np.int64)
        self._metrics = {name: NumberColumn(np.float64) for name in METRICS}
        self.alive = NumberColumn(np.bool_)
        self.details: BlobLog = BlobLog()
        """Name, parameters and behaviour, packed."""
        self.detail_of = NumberColumn(np.int32)
        self.texts: BlobLog = BlobLog()
        self.text_of = NumberColumn(np.int32)
        self.code_of = NumberColumn(np.int32)
        """Number of the structure; -1 when nothing is known of its pieces."""
        self._code_rows = NumberColumn(np.int32)
        """A row for each number of a structure."""
        self._by_digest, self._by_ast = KeyIndex(), KeyIndex()
        self._by_text, self._text_rows = KeyIndex(), KeyIndex()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[MemoryRecord]:
        return (self.record(row) for row in self.rows.tolist())

    @property
    def rows(self) -> Rows:
        """Rows that hold a record, in order."""
        return np.flatnonzero(self.alive.values)

    def row(self, digest: str) -> int | None:
        """The row of a digest; None when it is not held."""
        for row in self._by_digest.rows(key_of(digest)):
            if self.alive.values[row] and self.digests[row] == digest:
                return row
        return None

    def digests_like(self, text: str) -> list[str]:
        """Digests for a message that one is not held: the first thousand that begin as `text`."""
        start = text[: len("sha256:") + 4]
        found = (self.digests[int(row)] for row in self.rows[:100_000])
        return [digest for digest in found if digest.startswith(start)][:1000]

    def digest(self, row: int) -> str:
        """The digest of a row."""
        return self.digests[row]

    def name(self, row: int) -> str:
        """The name of a row's environment."""
        return _text(self._detail(row).name)

    def text(self, row: int) -> int:
        """Number of the rules text of a row."""
        return int(self.text_of.values[row])

    def text_number(self, text: str) -> int | None:
        """The number of a rules text that some record has."""
        for number in self._by_text.rows(key_of(text)):
            if self._rules(number) == text and self.rows_of_text(number):
                return number
        return None

    def rows_of_text(self, number: int) -> list[int]:
        """Rows whose rules text has this number, in order."""
        rows = self._text_rows.rows(number)
        return [r for r in rows if self.alive.values[r] and self.text_of.values[r] == number]

    def rows_of_structure(self, ast_hash: str) -> list[int]:
        """Rows with this structure, in order."""
        rows = self._by_ast.rows(key_of(ast_hash))
        return [r for r in rows if self.alive.values[r] and self.ast[r] == ast_hash]

    def code_number(self, ast_hash: str) -> int | None:
        """The number of the pieces of this structure, when they are known."""
        for row in self.rows_of_structure(ast_hash):
            if self.code_of.values[row] >= 0:
                return int(self.code_of.values[row])
        return None

    def rows_of_code(self, number: int) -> list[int]:
        """Rows whose structure has this number, in order."""
        if number >= len(self._code_rows):
            return []  # of nothing that is held
        row = int(self._code_rows.values[number])
        if self.alive.values[row] and self.code_of.values[row] == number:
            return self.rows_of_structure(self.ast[row])
        found: list[int] = np.flatnonzero(
            (self.code_of.values == number) & self.alive.values
        ).tolist()
        return found

    def data_hash(self, row: int) -> str:
        """The data hash of a row."""
        return self.data[row]

    def rows_of_family(self, family: str, since: int) -> list[int]:
        """Rows of a blueprint family that were admitted after iteration `since`, in order."""
        rows = self.families.rows(family)
        recent = self.alive.values[rows] & (self.iterations.values[rows] > since)
        found: list[int] = rows[recent].tolist()
        return found

    def rows_of_skill(self, skill: str) -> Rows:
        """Rows of a skill, in order."""
        rows = self.skills.rows(skill)
        return rows[self.alive.values[rows]]

    def iteration(self, row: int) -> int:
        """When the environment of a row was last admitted."""
        return int(self.iterations.values[row])

    def metric(self, name: str) -> npt.NDArray[np.float64]:
        """`win_rate`, `regret` or `regret_se` by row; NaN where it was not measured."""
        return self._metrics[name].values

    def parameters(self, row: int) -> tuple[float, ...]:
        """Parameters of a row's blueprint."""
        return self._detail(row).parameters

    def behaviour(self, row: int) -> Trace | None:
        """What a row's environment did under fixed actions; None when it was not played."""
        kept = self._detail(row).behaviour
        return None if kept is None else Trace(*kept)

    def record(self, row: int) -> MemoryRecord:
        """The record of a row."""
        measured = {
            key: None if math.isnan(column.values[row]) else float(column.values[row])
            for key, column in self._metrics.items()
        }
        return MemoryRecord(
            digest=self.digests[row],
            name=self.name(row),
            skill=self.skills[row],
            description=self._description(row, self._rules(self.text(row))),
            iteration=self.iteration(row),
            **measured,
        )

    def put(self, record: MemoryRecord, code: int = -1) -> int | None:
        """Add a record, or put it in the place of the one with its digest.

        `code` is the number of its structure, -1 where nothing is known of its pieces. A rules text
        that no record has yet gets the next number.
        """
        row = self.row(record.digest)
        text = self.text_number(record.description.rules_text)
        if text is None:
            text = self._add_text(record.description.rules_text)
        orphan = None
        if row is None:
            row = self._append(record)
            self.text_of.append(text)
            self._text_rows.add(text, row)
            self.code_of.append(code)
        else:
            old = self._replace(row, record)
            if old != text:
                self.text_of.values[row] = text
                self._text_rows.add(text, row)
                orphan = None if self.rows_of_text(old) else old
            self.code_of.values[row] = code
        while len(self._code_rows) <= code:
            self._code_rows.append(row)
        self.measure(row, record)
        return orphan

    def measure(self, row: int, record: MemoryRecord) -> None:
        """Put the metrics of a record in place of those of a row."""
        for name, column in self._metrics.items():
            value = getattr(record, name)
            column.values[row] = math.nan if value is None else value

    def remove(self, row: int) -> int | None:
        """Forget a row; the number of its text when no other record has it."""
        self.alive.values[row] = False
        self._count -= 1
        number = self.text(row)
        return None if self.rows_of_text(number) else number

    def fill_metric(self, name: str, values: npt.NDArray[np.float64]) -> None:
        """Take these as a whole column of metrics."""
        self._metrics[name].fill(values)

    def finish(self) -> None:
        """Make the indexes by key, after the columns were filled; every row holds a record.

        ValueError when a name or a parameter is not as it should be.
        """
        self._count = len(self.digests)
        self.alive.fill(np.ones(self._count, np.bool_))
        self._by_digest = KeyIndex.restore(self.digests.keys())
        self._by_ast = KeyIndex.restore(self.ast.keys())
        texts = (key_of(self._rules(number)) for number in range(len(self.texts)))
        self._by_text = KeyIndex.restore(np.fromiter(texts, np.uint64, len(self.texts)))
        self._text_rows = KeyIndex.restore(self.text_of.values.astype(np.uint64))
        codes, rows = np.unique(self.code_of.values, return_index=True)
        first = np.zeros(int(codes.max(initial=-1)) + 1, np.int32)
        first[codes[codes >= 0]] = rows[codes >= 0]
        self._code_rows.fill(first)
        for row in range(self._count):
            try:
                self._description(row, "")
            except (msgspec.MsgspecError, ConfigError) as error:
                raise ValueError(f"record {row}: {error}") from error

    def copy(self) -> RecordTable:
        """Return a table that can be changed without changing this one."""
        other: RecordTable = object.__new__(RecordTable)
        for name, value in self.__dict__.items():
            if name == "_metrics":
                copied: object = {key: column.copy() for key, column in value.items()}
            else:
                copied = value if isinstance(value, int) else value.copy()
            setattr(other, name, copied)
        return other

    def _description(self, row: int, text: str) -> Description:
        detail = self._detail(row)
        return Description(
            rules_text=text,
            ast_hash=self.ast[row],
            data_hash=self.data[row],
            family=self.families[row],
            parameters=detail.parameters,
            behaviour=None if detail.behaviour is None else Trace(*detail.behaviour),
        )

    def _append(self, record: MemoryRecord) -> int:
        row = len(self.alive)
        self.digests.append(record.digest)
        self._by_digest.add(key_of(record.digest), row)
        for column, text in self._hashes(record):
            column.append(text)
        self._by_ast.add(key_of(record.description.ast_hash), row)
        self.skills.append(record.skill)
        self.families.append(record.description.family)
        self.iterations.append(record.iteration)
        self.detail_of.append(self.details.append(_packed(record)))
        self.alive.append(True)
        for metric in self._metrics.values():
            metric.append(math.nan)
        self._count += 1
        return row

    def _replace(self, row: int, record: MemoryRecord) -> int:
        """Write a record over an old one; the number of the old one's text."""
        if self.ast[row] != record.description.ast_hash:
            self._by_ast.add(key_of(record.description.ast_hash), row)
        for column, text in self._hashes(record):
            column.set(row, text)
        self.skills.set(row, record.skill)
        self.families.set(row, record.description.family)
        self.iterations.values[row] = record.iteration
        detail = _packed(record)
        if self.details[int(self.detail_of.values[row])] != detail:
            self.detail_of.values[row] = self.details.append(detail)
        return self.text(row)

    def _hashes(self, record: MemoryRecord) -> tuple[tuple[HashColumn, str], ...]:
        description = record.description
        return (self.ast, description.ast_hash), (self.data, description.data_hash)

    def _detail(self, row: int) -> _Detail:
        packed = self.details[int(self.detail_of.values[row])]
        return msgspec.msgpack.decode(packed, type=_Detail)

    def _add_text(self, text: str) -> int:
        number = self.texts.append(_bytes(text))
        self._by_text.add(key_of(text), number)
        return number

    def _rules(self, number: int) -> str:
        return _text(self.texts[number])


def _packed(record: MemoryRecord) -> bytes:
    description = record.description
    trace = description.behaviour
    kept = None if trace is None else (trace.outcomes, trace.numbers, trace.pattern)
    detail = _Detail(_bytes(record.name), description.parameters, kept)
    return msgspec.msgpack.encode(detail)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")
