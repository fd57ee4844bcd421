from __future__ import annotations

import numpy as np
import pytest

from synthgym.memory import minhash
from synthgym.memory.mapping import mapped, release
from synthgym.memory.minhash import LENGTH, LshIndex


def test_arrays_come_back_as_they_were_and_cannot_be_written() -> None:
    given = [np.arange(10, dtype=np.uint32), np.zeros(0, np.float32), np.array([2.5, -1.0])]
    found = mapped(iter(given))
    for before, after in zip(given, found, strict=True):
        assert after.dtype == before.dtype
        assert after.tolist() == before.tolist()
    with pytest.raises(ValueError, match="read-only"):
        found[0][0] = 1


def test_nothing_is_mapped_as_nothing() -> None:
    assert [array.tolist() for array in mapped([np.zeros(0, np.uint8)])] == [[]]


def test_what_was_released_is_read_again() -> None:
    (found,) = mapped([np.arange(5000)])
    release(found)
    release(found[10:20])
    release(np.arange(3))  # not mapped: nothing to release
    assert int(found.sum()) == 5000 * 4999 // 2


def test_an_index_in_files_answers_as_one_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 40, (300, LENGTH)).astype(np.uint32)  # small numbers: bands meet
    plain = LshIndex()
    plain.extend(rows)
    monkeypatch.setattr(minhash, "MAPPED", 10)
    monkeypatch.setattr(minhash, "_RECENT", 16)
    in_files = LshIndex()
    for row in rows:
        in_files.add(row)
    assert not in_files._bands[0].flags.writeable
    copied = in_files.copy()
    copied.extend(rows[:40])
    for row in rows[::7]:
        assert in_files.query(row, 20) == plain.query(row, 20)
    assert (in_files.keys() == plain.keys()).all()
    assert (len(in_files), len(copied)) == (300, 340)
