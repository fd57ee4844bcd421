from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from synthgym.audit import count_sources, json_lines
from synthgym.audit.places import Source, check_places, find_sources
from synthgym.errors import ConfigError, SnapshotError
from synthgym.registry import bundled_root


def lines(path: Path, rows: list[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def found(*paths: Path) -> list[Source]:
    check_places(paths)
    return list(find_sources(paths))


# --- folders ---


def test_names_are_paths_that_can_be_used_again(tmp_path: Path) -> None:
    (tmp_path / "pool" / "in").mkdir(parents=True)
    (tmp_path / "pool" / "a.py").write_text("1")
    (tmp_path / "pool" / "in" / "b.py").write_text("2")
    (tmp_path / "c.txt").write_text("3")
    sources = found(tmp_path / "pool", tmp_path / "c.txt", tmp_path / "pool")
    assert [(Path(s.name).read_text(), s.text) for s in sources] == [(x, x) for x in "123"]
    assert count_sources([tmp_path / "pool", tmp_path / "c.txt", tmp_path / "pool"]) == 3


def test_hostile_names_are_names(tmp_path: Path) -> None:
    names = ["<b>&.py", "a\nb.py", "\x1b[2J.py", "\udce9.py", "'\".py", "\u202egnp.py"]
    for name in names:
        (tmp_path / name).write_text(name.encode("utf-8", "surrogatepass").hex())
    assert sorted(Path(source.name).name for source in found(tmp_path)) == sorted(names)
    assert all(source.text for source in found(tmp_path))


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "b.py").symlink_to("a.py")
    sources = find_sources([tmp_path])
    assert next(sources).text == "1"
    (link,) = sources
    assert (link.text, link.name) == (None, str(tmp_path / "b.py"))
    assert "links are not followed" in link.problem


def test_a_file_that_vanishes_is_told(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (tmp_path / name).write_text("1")
    sources = find_sources([tmp_path])
    next(sources)
    (tmp_path / "b.py").unlink()
    gone, there = sources
    assert gone.problem == "cannot be read: No such file or directory"
    assert there.text == "1"


# --- mistakes ---


@pytest.mark.parametrize("name", ["nothing", "nothing.py", "nothing.jsonl"])
def test_a_path_that_is_not_there_is_a_mistake(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="nothing"):
        check_places([tmp_path / name])


def test_no_path_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="at least one path"):
        check_places([])


def test_a_folder_without_sources_says_what_was_looked_for(tmp_path: Path) -> None:
    (tmp_path / "readme.md").touch()
    with pytest.raises(ConfigError, match=r"files that end in \.py"):
        check_places([tmp_path])
    (tmp_path / "pool.jsonl").touch()
    with pytest.raises(ConfigError, match=r"rows of 'pool\.jsonl', name that file"):
        check_places([tmp_path])


def test_an_empty_file_of_rows_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "pool.jsonl").write_text("\n  \n")
    with pytest.raises(ConfigError, match="no rows in"):
        check_places([tmp_path / "pool.jsonl"])


# --- rows ---


def test_a_source_is_found_under_any_of_the_usual_keys(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "pool.jsonl",
        [
            {"code": "1", "name": "one"},
            {"id": 2, "source": "2", "content": "not this"},
            {"text": "3", "title": "x" * 500},
            {"content": "4", "name": None, "path": "a.py"},
        ],
    )
    assert [(s.name, s.title, s.text) for s in found(path)] == [
        (f"{path}:1", "one", "1"),
        (f"{path}:2", "2", "2"),
        (f"{path}:3", "x" * 200, "3"),
        (f"{path}:4", "a.py", "4"),
    ]
    assert count_sources([path]) is None


def test_a_broken_row_is_told_and_the_next_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_lines, "MAX_LINE", 400_000)
    path = tmp_path / "pool.jsonl"
    broken = [b"{", b"[1]", b"7", b'{"name": "x"}', b"\xff\xfe", b"{}", b"[" * 200_000]
    broken += [b'{"code": ' + b"9" * 5000 + b"}", b'{"code": "' + b"x" * 1_000_000 + b'"}']
    path.write_bytes(b"\n".join([*broken, b'{"code": "good"}']))
    *bad, good = found(path)
    assert good == Source(name=f"{path}:10", text="good")
    assert all(source.text is None for source in bad)
    problems = [source.problem for source in bad]
    assert "expected an object with a text under source or code" in problems[3]
    assert problems[3].endswith("got a row with name")
    assert problems[1].endswith("got list")
    assert problems[6] == "a broken row: nested too deeply"
    assert problems[8] == "the line is too long for a row"


def test_a_compressed_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl.gz"
    text = "".join(json.dumps({"code": str(n) * 50}) + "\n" for n in range(20_000)).encode()
    path.write_bytes(gzip.compress(text))
    assert [source.text for source in found(path)] == [str(n) * 50 for n in range(20_000)]
    path.write_bytes(path.read_bytes()[:-100])
    *whole, last = found(path)
    assert len(whole) > 1000
    assert "cannot be read from here on: damaged after line" in last.problem
    path.write_bytes(b"not compressed")
    (only,) = found(path)
    assert "cannot be read" in only.problem


def test_rows_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    with path.open("w") as file:
        for number in range(5_000):
            file.write(json.dumps({"code": f"{number:<10000}"}) + "\n")

    def most(sources: Iterator[Source]) -> int:
        tracemalloc.start()
        try:
            assert sum(1 for _ in sources) == 5_000
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert path.stat().st_size > 50_000_000
    assert most(find_sources([path])) < 1_000_000


@pytest.mark.parametrize("name", ["pool.jsonl", "pool.jsonl.gz", "pool.py"])
def test_nobody_waits_for_a_pipe(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ConfigError, match="neither a regular file nor a folder"):
        check_places([tmp_path / name])
    (only,) = find_sources([tmp_path / name])  # as if it had been exchanged since
    assert "not a regular file" in only.problem


# --- snapshots ---


def test_a_snapshot_of_ours_is_read_by_its_manifest(tmp_path: Path) -> None:
    root = tmp_path / "registry"
    shutil.copytree(bundled_root(), root)
    (root / "envs" / "stray.py").touch()
    (root / "envs" / "DryDock" / "v0" / "env.py").write_text("changed")
    sources = found(root)
    assert len(sources) == 14 == count_sources([root])
    assert sources[0].title == "synthgym/AssayOffice-v0"
    assert Path(sources[0].name).read_text() == sources[0].text
    (changed,) = [source for source in sources if source.text is None]
    assert changed.title == "synthgym/DryDock-v0"
    assert "env.py" in changed.problem


def test_a_snapshot_of_ours_that_is_damaged_is_not_taken_for_a_folder(tmp_path: Path) -> None:
    shutil.copytree(bundled_root(), tmp_path / "registry")
    manifest = tmp_path / "registry" / "manifest.json"
    manifest.write_bytes(manifest.read_bytes()[:-20])
    with pytest.raises(SnapshotError):
        check_places([tmp_path / "registry"])


def test_the_manifest_of_somebody_else_makes_no_snapshot(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text('{"format": "other"}')
    (tmp_path / "a.py").write_text("1")
    assert [source.text for source in found(tmp_path)] == ["1"]


def test_the_keys_of_rows_are_those_of_the_docs() -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text("utf-8")
    (line,) = [line for line in page.splitlines() if line.startswith("| a `.jsonl`")]
    keys = [*json_lines.SOURCE_KEYS, *json_lines.NAME_KEYS]
    assert re.findall(r"`(\w+)`", line) == keys
