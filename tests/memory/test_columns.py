from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.memory import columns
from synthgym.memory.columns import HashColumn, KeyIndex, NumberColumn, WordColumn, key_of

HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
TEXTS = st.one_of(
    HEX.map(lambda h: f"ast/1:{h}"),
    HEX.map(lambda h: f"sha256:{h}"),
    HEX.map(lambda h: f"ast/1:{h.upper()}"),
    st.text(max_size=80),
)


@given(st.lists(TEXTS, max_size=8), st.data())
def test_any_text_comes_back_from_a_column_of_hashes(texts: list[str], data: st.DataObject) -> None:
    column = HashColumn()
    for text in texts:
        column.append(text)
    if texts:
        row = data.draw(st.integers(0, len(texts) - 1))
        texts[row] = data.draw(TEXTS)
        column.set(row, texts[row])
    prefixes = WordColumn.restore(column.prefixes.codes.values, column.prefixes.words)
    again = HashColumn.restore(column.bytes, prefixes, dict(column.others))
    for held in (column, column.copy(), again):
        assert [held[i] for i in range(len(held))] == texts
        assert held.keys().tolist() == [key_of(text) for text in texts]


def test_a_copied_column_changes_alone() -> None:
    words, numbers = WordColumn(), NumberColumn(np.int32)
    for i in range(20):
        words.append("ab"[i % 2])
        numbers.append(i)
    others = words.copy(), numbers.copy()
    others[0].set(0, "new")
    others[1].values[0] = 99
    others[1].append(5)
    assert (words[0], others[0][0], others[0][2]) == ("a", "new", "a")
    assert (numbers.values[0], len(numbers), len(others[1])) == (0, 20, 21)
    assert words.rows("a").tolist() == list(range(0, 20, 2))
    assert words.rows("new").tolist() == []


@pytest.mark.parametrize(("codes", "words"), [([2], ["a", "b"]), ([-1], ["a"]), ([0], ["a", "a"])])
def test_codes_without_a_word_are_refused(codes: list[int], words: list[str]) -> None:
    with pytest.raises(ValueError, match="words"):
        WordColumn.restore(np.array(codes, np.int32), words)


@given(st.lists(st.integers(0, 5), max_size=60))
def test_rows_are_found_by_key_before_and_after_they_are_merged(keys: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_TAIL", 7)
        index = KeyIndex()
        for row, key in enumerate(keys):
            index.add(key, row)
        again = KeyIndex.restore(np.array(keys, np.uint64))
        other = index.copy()
        other.add(3, 1000)
    for key in range(7):
        rows = [row for row, held in enumerate(keys) if held == key]
        assert index.rows(key) == again.rows(key) == rows
    assert other.rows(3)[-1] == 1000


def test_keys_are_spread_whatever_bits_of_a_hash_differ() -> None:
    for shift in (0, 40, 130, 200):
        keys = {key_of(f"ast/1:{i << shift:064x}") for i in range(1, 9)}
        assert len(keys) == 8
        assert all(0 <= key < 2**63 for key in keys)
