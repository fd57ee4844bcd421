"""Finished pieces of work on disk: resumed after any kill, never mixed, never written by two."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.errors import RunStateError
from spade_loop.journal import Journal, read_journal

HEADER = {"model": {"name": "m", "backend": "endpoint"}, "seed": 0, "only": []}
ROWS = [{"env": f"e{i}", "text": "line\nbreak, \u2028 and \ud800 half"} for i in range(4)]


def written(path: Path) -> Path:
    with Journal.open(path, HEADER) as journal:
        for row in ROWS:
            journal.append(row)
    return path


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    path = written(tmp_path / "deep" / "j.jsonl")
    with Journal.open(path, HEADER) as journal:
        assert list(journal.rows) == ROWS
    assert read_journal(path) == (HEADER, tuple(ROWS))


@given(cut=st.integers(min_value=0))
def test_wherever_a_write_was_torn_the_whole_rows_are_kept(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = written(tmp_path_factory.mktemp("torn") / "j.jsonl")
    content = path.read_bytes()
    kept = content[: cut % (len(content) + 1)]
    path.write_bytes(kept)
    whole = max(0, kept.count(b"\n") - 1)
    with Journal.open(path, HEADER) as journal:
        assert list(journal.rows) == ROWS[:whole]
        journal.append({"env": "new"})
    with Journal.open(path, HEADER) as journal:
        assert list(journal.rows) == [*ROWS[:whole], {"env": "new"}]


def test_another_question_is_refused_by_what_differs(tmp_path: Path) -> None:
    path = written(tmp_path / "j.jsonl")
    before = path.read_bytes()
    other = {"model": {"name": "n", "backend": "endpoint"}, "seed": 1, "only": [], "extra": True}
    with pytest.raises(RunStateError) as caught:
        Journal.open(path, other)
    told = str(caught.value)
    assert 'model.name was "m", now it is "n"' in told
    assert "seed was 0, now it is 1" in told
    assert "extra was not there, now it is true" in told
    assert "backend" not in told
    assert path.read_bytes() == before


def test_a_journal_without_rows_may_be_begun_anew(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    Journal.open(path, HEADER).close()
    other = {**HEADER, "seed": 7}
    with Journal.open(path, other) as journal:
        journal.append(ROWS[0])
    assert read_journal(path) == (other, (ROWS[0],))


def test_two_writers_are_refused_and_the_next_one_may(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with (
        Journal.open(path, HEADER),
        pytest.raises(RunStateError, match="another process is writing to it"),
    ):
        Journal.open(path, HEADER)
    Journal.open(path, HEADER).close()


@pytest.mark.parametrize("bad", [b"[1]\n", b"{}\n", b"hello\n", b"[" * 100_000 + b"\n"])
def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(bad)
    with pytest.raises(RunStateError, match=r"j\.jsonl, line 1: expected"):
        Journal.open(path, HEADER)
    with pytest.raises(RunStateError, match="line 1"):
        read_journal(path)
    assert path.read_bytes() == bad


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "j.jsonl")
    lines = path.read_bytes().split(b"\n")
    lines[2] = b'{"env": '
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(RunStateError, match="line 3: expected a JSON object"):
        Journal.open(path, HEADER)


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, HEADER) as journal:
        crew = [
            threading.Thread(
                target=lambda n=n: [journal.append({"n": n, "i": i}) for i in range(50)]
            )
            for n in range(8)
        ]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
    rows = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert sorted((r["n"], r["i"]) for r in rows) == [(n, i) for n in range(8) for i in range(50)]


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunStateError, match="cannot write"):
        Journal.open(tmp_path / "file" / "j.jsonl", HEADER)
    with pytest.raises(RunStateError, match="cannot be read"):
        read_journal(tmp_path / "nothing.jsonl")
