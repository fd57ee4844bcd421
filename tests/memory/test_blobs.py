from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthgym.memory import blobs
from synthgym.memory.blobs import BlobLog


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 100 bytes, of which the first few are held."""
    monkeypatch.setattr(blobs, "BLOCK_BYTES", 100)
    monkeypatch.setattr(blobs, "HELD_BYTES", 200)


def text(i: int) -> bytes:
    return f"{i} ".encode() * (i % 40)


@given(st.lists(st.binary(max_size=60), max_size=30))
def test_strings_come_back_by_number(values: list[bytes]) -> None:
    log = BlobLog()
    assert [log.append(value) for value in values] == list(range(len(values)))
    assert [log[i] for i in range(len(values))] == values
    assert len(log) == len(values)


@pytest.mark.usefixtures("small")
def test_strings_come_back_from_memory_and_from_disk() -> None:
    log = BlobLog()
    for i in range(500):
        log.append(text(i))
    assert any(isinstance(place, bytes) for place in log._blocks)
    assert any(isinstance(place, tuple) for place in log._blocks)
    assert [log[i] for i in range(500)] == [text(i) for i in range(500)]
    assert [log[i] for i in (499, 0, 250, 3)] == [text(i) for i in (499, 0, 250, 3)]


@pytest.mark.usefixtures("small")
def test_copies_grow_apart_and_share_what_they_had() -> None:
    log = BlobLog()
    for i in range(300):
        log.append(text(i))
    other = log.copy()
    for i in range(300, 600):
        log.append(b"here" + text(i))
        other.append(b"there" + text(i))
    assert [log[i] for i in range(300)] == [other[i] for i in range(300)]
    assert [log[i] for i in range(300, 600)] == [b"here" + text(i) for i in range(300, 600)]
    assert [other[i] for i in range(300, 600)] == [b"there" + text(i) for i in range(300, 600)]


@pytest.mark.usefixtures("small")
def test_a_forked_child_does_not_write_into_the_file_of_its_parent() -> None:
    log = BlobLog()
    for i in range(300):
        log.append(text(i))
    child = os.fork()
    if child == 0:
        for _ in range(300):
            log.append(b"child" * 9)
        good = [log[i] for i in range(300)] == [text(i) for i in range(300)]
        os._exit(0 if good and log[599] == b"child" * 9 else 1)
    assert os.waitpid(child, 0)[1] == 0
    for i in range(300, 600):
        log.append(text(i))
    assert [log[i] for i in range(600)] == [text(i) for i in range(600)]
