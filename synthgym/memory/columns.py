"""Columns of a table with up to millions of rows: numbers, few different words, hashes, and rows by key."""

from __future__ import annotations

import hashlib
import re
import struct
from typing import Any, Final, Generic, TypeVar

import numpy as np
import numpy.typing as npt

_HASH: Final = re.compile(r"([\w./-]{1,40}):([0-9a-f]{64})")
_TAIL: Final = 1024
_KEY_BITS: Final = (1 << 63) - 1
Rows = npt.NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)


class NumberColumn(Generic[Number]):
    """Numbers, or rows of `width` numbers, in an array that grows by a quarter."""

    def __init__(self, dtype: type[Number], width: int = 0) -> None:
        self._width = width
        self._data: npt.NDArray[Number] = np.zeros((0, width) if width else 0, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def values(self) -> npt.NDArray[Number]:
        """A view of every value; valid until the next change of length."""
        return self._data[: self._count]

    def append(self, value: Any) -> None:
        """Append one."""
        if self._count == len(self._data):
            shape = (max(16, self._count * 5 // 4), *self._data.shape[1:])
            grown = np.zeros(shape, self._data.dtype)
            grown[: self._count] = self._data
            self._data = grown
        self._data[self._count] = value
        self._count += 1

    def fill(self, values: npt.NDArray[Number]) -> None:
        """Take these as the whole column."""
        self._data, self._count = values.astype(self._data.dtype), len(values)

    def copy(self) -> NumberColumn[Number]:
        """Return a column that can be changed without changing this one."""
        other: NumberColumn[Number] = object.__new__(NumberColumn)
        other._width, other._count = self._width, self._count
        other._data = self.values.copy()
        return other


class WordColumn:
    """Words of which many rows have the same: each is held once."""

    def __init__(self) -> None:
        self.codes = NumberColumn(np.int32)
        self.words: list[str] = []
        self._numbers: dict[str, int] = {}

    def __getitem__(self, row: int) -> str:
        return self.words[int(self.codes.values[row])]

    def append(self, word: str) -> None:
        """Append one."""
        self.codes.append(self._number(word))

    def set(self, row: int, word: str) -> None:
        """Replace the word of a row."""
        self.codes.values[row] = self._number(word)

    def rows(self, word: str) -> Rows:
        """Rows that have this word, in order."""
        if word not in self._numbers:
            return np.zeros(0, np.int64)
        return np.flatnonzero(self.codes.values == self._numbers[word])

    @classmethod
    def restore(cls, codes: npt.NDArray[np.int32], words: list[str]) -> WordColumn:
        """A column as another one left it. ValueError when a code stands for no word."""
        column = cls()
        if len(codes) and (int(codes.min()) < 0 or int(codes.max()) >= len(words)):
            raise ValueError(f"a code outside of {len(words)} words")
        if len(set(words)) != len(words) or not all(isinstance(word, str) for word in words):
            raise ValueError("words must be different texts")
        column.codes.fill(codes)
        column.words, column._numbers = list(words), {word: i for i, word in enumerate(words)}
        return column

    def copy(self) -> WordColumn:
        """Return a column that can be changed without changing this one."""
        other = WordColumn()
        other.codes, other.words = self.codes.copy(), list(self.words)
        other._numbers = dict(self._numbers)
        return other

    def _number(self, word: str) -> int:
        if word not in self._numbers:
            self._numbers[word] = len(self.words)
            self.words.append(word)
        return self._numbers[word]


class HashColumn:
    """Texts such as `ast/1:<64 hex>`, as 32 bytes and the number of what stands before the colon.

    Any other text is held as it is.
    """

    def __init__(self) -> None:
        self._bytes = NumberColumn(np.uint8, 32)
        self._prefixes = WordColumn()
        self._others: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._bytes)

    def __getitem__(self, row: int) -> str:
        if row in self._others:
            return self._others[row]
        return f"{self._prefixes[row]}:{self._bytes.values[row].tobytes().hex()}"

    def append(self, text: str) -> None:
        """Append one."""
        self._bytes.append(0)
        self._prefixes.append("")
        self.set(len(self) - 1, text)

    def set(self, row: int, text: str) -> None:
        """Replace the text of a row."""
        self._others.pop(row, None)
        match = _HASH.fullmatch(text)
        if match is None:
            self._others[row] = text
        else:
            self._prefixes.set(row, match[1])
            self._bytes.values[row] = np.frombuffer(bytes.fromhex(match[2]), np.uint8)

    @property
    def bytes(self) -> npt.NDArray[np.uint8]:
        """The hashes alone: uint8 [n, 32], zero for other texts."""
        return self._bytes.values

    @property
    def prefixes(self) -> WordColumn:
        """What stands before the colon; empty for other texts."""
        return self._prefixes

    @property
    def others(self) -> dict[int, str]:
        """Texts by row that are no such hashes."""
        return self._others

    @classmethod
    def restore(
        cls, values: npt.NDArray[np.uint8], prefixes: WordColumn, others: dict[int, str]
    ) -> HashColumn:
        """A column as another one left it. ValueError when a row of `others` is outside."""
        column = cls()
        if not all(0 <= row < len(values) for row in others):
            raise ValueError(f"a text outside of {len(values)} rows")
        column._bytes.fill(values)
        column._prefixes, column._others = prefixes, others
        return column

    def keys(self) -> npt.NDArray[np.uint64]:
        """`key_of` every row."""
        words = np.ascontiguousarray(self.bytes).view(">u8").astype(np.uint64)
        keys: npt.NDArray[np.uint64] = np.bitwise_xor.reduce(words, axis=1) & np.uint64(_KEY_BITS)
        for row, text in self._others.items():
            keys[row] = key_of(text)
        return keys

    def copy(self) -> HashColumn:
        """Return a column that can be changed without changing this one."""
        other = HashColumn()
        other._bytes, other._prefixes = self._bytes.copy(), self._prefixes.copy()
        other._others = dict(self._others)
        return other


class KeyIndex:
    """Rows by a 64-bit key: sorted arrays, and the last ones in a dictionary until they are merged.

    It may name rows whose key has changed since, and with luck of one in 10^19 another key's: who
    asks compares.
    """

    def __init__(self) -> None:
        self._keys = np.zeros(0, np.uint64)
        self._rows = np.zeros(0, np.uint32)
        self._tail: dict[int, list[int]] = {}
        self._waiting = 0

    @classmethod
    def restore(cls, keys: npt.NDArray[np.uint64]) -> KeyIndex:
        """An index where the key at place i names row i."""
        index = cls()
        order = np.argsort(keys, kind="stable")
        index._keys, index._rows = keys[order], order.astype(np.uint32)
        return index

    def add(self, key: int, row: int) -> None:
        """Let `key` name `row`."""
        self._tail.setdefault(key, []).append(row)
        self._waiting += 1
        if self._waiting > max(_TAIL, len(self._keys) // 32):
            self._merge()

    def rows(self, key: int) -> list[int]:
        """Rows that this key names, in order, each once."""
        low, high = np.searchsorted(self._keys, np.array([key, key + 1], np.uint64))
        found = {*self._rows[low:high].tolist(), *self._tail.get(key, ())}
        return sorted(found)

    def copy(self) -> KeyIndex:
        """Return an index that can be changed without changing this one."""
        other = KeyIndex()
        other._keys, other._rows = self._keys, self._rows  # replaced, never written to
        other._tail = {key: list(rows) for key, rows in self._tail.items()}
        other._waiting = self._waiting
        return other

    def _merge(self) -> None:
        fresh = [(key, row) for key, rows in self._tail.items() for row in rows]
        keys = np.concatenate([self._keys, np.array([k for k, _ in fresh], np.uint64)])
        rows = np.concatenate([self._rows, np.array([r for _, r in fresh], np.uint32)])
        order = np.argsort(keys, kind="stable")
        self._keys, self._rows = keys[order], rows[order]
        self._tail, self._waiting = {}, 0


def key_of(text: str) -> int:
    """A key for a text: 63 bits of its BLAKE2b, so that the number after it has 64 bits as well.

    Of a text that is a hash already, its four words upon each other.
    """
    match = _HASH.fullmatch(text)
    if match is not None:
        first, second, third, fourth = struct.unpack(">4Q", bytes.fromhex(match[2]))
        return int(first ^ second ^ third ^ fourth) & _KEY_BITS
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big") & _KEY_BITS
