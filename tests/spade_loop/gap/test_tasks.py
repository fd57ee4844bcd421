"""A user's task files: what is read, and how each mistake is told by file and line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spade_loop.errors import ConfigError
from spade_loop.tasks import Task, normalised, read_tasks

GOOD: dict[str, Any] = {"prompt": "2 + 2?", "hint": "Count.", "answer": "4"}


def lines(tmp_path: Path, *rows: object) -> Path:
    path = tmp_path / "mine.jsonl"
    text = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return path


def test_all_kinds_are_read_in_order(tmp_path: Path) -> None:
    path = lines(
        tmp_path,
        GOOD,
        GOOD | {"id": "n", "check": "numeric", "answer": 4.5},
        {"prompt": "x", "hint": "y", "checker": "def check(reply): return 1"},
    )
    one, two, three = read_tasks(path)
    assert (one.id, one.check, one.answer, one.where) == ("line-1", "exact", "4", f"{path}, line 1")
    assert (two.id, two.check, two.answer) == ("n", "numeric", "4.5")
    assert (three.id, three.check, three.answer) == ("line-3", "python", "")
    assert len({t.digest for t in (one, two, three)}) == 3
    assert one.spec.digest != two.spec.digest


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("", "the line is empty"),
        ("   ", "the line is empty"),
        ('{"prompt": "x"', "expected a JSON object"),
        ("[1]", "expected a JSON object"),
        ('{"prompt": "a", "prompt": "b", "hint": "h", "answer": "c"}', "a key is there twice"),
        ("[" * 5000, "expected a JSON object"),
        ({"prompt": "x", "answer": "4"}, "the key 'hint' is missing"),
        ({"hint": "x", "answer": "4"}, "the key 'prompt' is missing"),
        ({"prompt": "x", "hint": "y"}, "the key 'answer' is missing"),
        (GOOD | {"hint": " "}, "hint must be a text that is not empty, got ' '"),
        (GOOD | {"hint": None}, "hint must be a text that is not empty, got None"),
        (GOOD | {"answer": True}, "answer must be a text"),
        (GOOD | {"hnt": "x"}, "unknown key 'hnt'; did you mean 'hint'"),
        (GOOD | {"check": "numric"}, "got 'numric'; did you mean 'numeric'"),
        (GOOD | {"check": 3}, "check must be one of exact, numeric, python, got 3"),
        (GOOD | {"check": "python"}, "the key 'checker' is missing"),
        (GOOD | {"check": "exact", "checker": "x"}, "with the check 'exact' has no 'checker'"),
        (GOOD | {"prompt": "\ud800"}, "prompt is no Unicode text"),
    ],
)
def test_a_mistake_is_told_by_file_and_line(tmp_path: Path, row: object, told: str) -> None:
    path = lines(tmp_path, GOOD, row, GOOD | {"id": "last"})
    with pytest.raises(ConfigError) as caught:
        read_tasks(path)
    assert f"{path}, line 2: " in str(caught.value)
    assert told in str(caught.value)


def test_ids_must_differ(tmp_path: Path) -> None:
    path = lines(tmp_path, GOOD, GOOD | {"id": "line-1"})
    with pytest.raises(ConfigError, match=r"line 2: the id 'line-1' is that of .*line 1, too"):
        read_tasks(path)


def test_a_file_without_tasks(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(ConfigError, match="holds no task"):
        read_tasks(tmp_path / "none.jsonl")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_tasks(tmp_path / "missing.jsonl")


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)


@given(prompt=TEXTS, hint=TEXTS, answer=TEXTS)
def test_any_text_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, prompt: str, hint: str, answer: str
) -> None:
    path = tmp_path_factory.mktemp("tasks") / "t.jsonl"
    row = {"prompt": prompt, "hint": hint, "answer": answer}
    path.write_bytes(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    (task,) = read_tasks(path)
    assert (task.prompt, task.hint, task.answer) == (prompt, hint, answer)


@given(st.text())
def test_normalising_twice_changes_nothing_more_but_full_stops(text: str) -> None:
    once = normalised(text)
    assert once == once.strip()
    assert normalised(f"  {text}\n") == once
    assert normalised(once.rstrip(".").rstrip() + ".") == normalised(once.rstrip(".").rstrip())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Paris", " paris. "),
        ("New  York", "new\nyork"),
        ("\uff14\uff12", "42"),
        ("Stra\u00dfe", "STRASSE"),
    ],
)
def test_what_counts_as_the_same(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_what_does_not() -> None:
    assert normalised("4.5") != normalised("45")
    assert normalised("no") != normalised("know")


def test_where_a_task_stands_is_no_part_of_it() -> None:
    one = Task(id="a", prompt="p", hint="h", answer="x", where="here")
    other = Task(id="b", prompt="p", hint="h", answer="x", where="there")
    assert one.spec.digest == other.spec.digest
