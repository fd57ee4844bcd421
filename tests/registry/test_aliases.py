"""The index, gone through by columns: it is taken and refused as the entries are, one by one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import hostile
import pytest
from hostile import INDEX
from hypothesis import given, settings
from hypothesis import strategies as st

from synthgym.errors import IntegrityError, SnapshotError
from synthgym.registry import Snapshot
from synthgym.registry.algebra import diff
from synthgym.registry.manifest import Entry

VALUES: dict[str, list[Any]] = {
    "name": ["Env9", "E" * 64, "E" * 65, "", "env", "Env 1", "Env1\n", "Env\u00e9", "../x", "E\0"],
    "digest": [
        *("sha256:" + text for text in ("a" * 64, "A" * 64, "a" * 63, "a" * 65, "a" * 64 + "\n")),
        "SHA256:" + "a" * 64,
        "",
    ],
    "version": [0, 999_999, 1_000_000, -1],
    "max_turns": [1, 0, -1, 7, 10**6],
    "skills": ["[]", '["a", "b"]', "{}", '"a"', "[1]", '["\\ud800"]', "[" * 5000, ""],
    "title": ["", "\u20ac"],
    "license": ["", "x"],
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.write_games(tmp_path_factory.mktemp("aliases") / "s")


def changed(original: Path, root: Path, column: str, value: Any, number: int = 4) -> Snapshot:
    shutil.copytree(original, root)
    values = hostile.columns(root / INDEX)
    values[column][number] = value
    hostile.change_rows(root, INDEX, lambda _: values)
    return Snapshot.open(root)


def outcome(read: Any) -> Any:
    try:
        return read()
    except SnapshotError as error:
        return str(error)


CASES = [(column, value) for column, values in VALUES.items() for value in values]


@pytest.mark.parametrize(("column", "value"), CASES, ids=range(len(CASES)))
def test_a_row_is_taken_or_refused_as_its_entry_is(
    original: Path, tmp_path: Path, column: str, value: Any
) -> None:
    snapshot = changed(original, tmp_path / "s", column, value)
    expected = outcome(lambda: [entry.alias_text for entry in snapshot])
    assert outcome(snapshot.aliases) == expected
    found = outcome(lambda: diff(Snapshot.open(original), snapshot, notes=False))
    if isinstance(expected, str):
        assert found == expected
    else:
        assert bool(found) == (column in ("name", "digest", "version") and value != 0)


@settings(max_examples=60, deadline=None)
@given(column=st.sampled_from(["name", "digest", "skills"]), data=st.data())
def test_so_is_any_text(
    original: Path, tmp_path_factory: pytest.TempPathFactory, column: str, data: st.DataObject
) -> None:
    patterns = {"name": r"[A-Z]?[A-Za-z0-9]*.?", "digest": r"sha256:[0-9a-f]{64}.?", "skills": ".*"}
    text = data.draw(st.from_regex(patterns[column]) | st.text(st.characters(codec="utf-8")))
    snapshot = changed(original, tmp_path_factory.mktemp("any") / "s", column, text)
    expected = outcome(lambda: [entry.alias_text for entry in snapshot])
    assert outcome(snapshot.aliases) == expected


def test_a_digest_that_is_listed_twice_is_refused(original: Path, tmp_path: Path) -> None:
    digest = hostile.columns(original / INDEX)["digest"][0]
    snapshot = changed(original, tmp_path / "s", "digest", digest)
    with pytest.raises(IntegrityError, match="there twice"):
        diff(Snapshot.open(original), snapshot, notes=False)


def test_an_index_that_is_not_the_file_of_the_manifest_is_not_compared(
    original: Path, tmp_path: Path
) -> None:
    snapshot = changed(original, tmp_path / "s", "title", "another")
    shutil.copy(original / INDEX, snapshot.path / INDEX)
    with pytest.raises(IntegrityError, match=r"index\.parquet is not the file of the manifest"):
        diff(Snapshot.open(original), snapshot, notes=False)


def test_a_snapshot_that_changes_while_it_is_compared_is_refused(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = changed(original, tmp_path / "s", "version", 7)
    entries = list(Snapshot.open(original))
    monkeypatch.setattr(other, "entries_at", lambda places: [entries[place] for place in places])
    with pytest.raises(IntegrityError, match="has changed while it was read"):
        diff(Snapshot.open(original), other, notes=False)


@pytest.mark.parametrize("layout", ["folder", "shards"])
def test_the_entries_that_a_snapshot_lists_are_all_of_its_own(layout: str, tmp_path: Path) -> None:
    snapshot = hostile.write_snapshot(
        tmp_path / "s", hostile.GAMES, name="s", version="1", layout=layout
    )
    entries: list[Entry] = list(snapshot)
    assert snapshot.lists(entries)
    assert not snapshot.lists(entries[:-1])
    assert not snapshot.lists([*entries, entries[0]])
    assert not snapshot.lists(entries[::-1])
    for places in ([], [0], [1, 4], [0, 1, 2, 3, 4]):
        assert list(snapshot.entries_at(places)) == [entries[place] for place in places]


def test_skills_that_are_written_in_another_way_are_verified_all_the_same(
    original: Path, tmp_path: Path
) -> None:
    snapshot = changed(original, tmp_path / "s", "skills", "[ ]")
    assert not snapshot.lists(list(snapshot))
    assert snapshot.verify() == ()
