"""The run directory: committed whole or not at all, wherever a process dies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spade_loop import state as module
from spade_loop.config import Config
from spade_loop.corpus import CorpusCursor
from spade_loop.errors import RunStateError
from spade_loop.state import ROW_FILES, Record, RunDirectory, RunState

HOSTILE = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x00h\ud800i\udfffj\r\nk\\u000al\U0001f600\x7f"


class Killed(BaseException):
    """Stands for the end of the process: nothing may run after it."""


def state(iteration: int) -> RunState:
    return RunState(
        iteration=iteration,
        cursor=CorpusCursor((f"doc-{iteration}",)),
        records=(Record(digest="sha256:" + "0" * 64, skill="s", iteration=iteration - 1),),
        rms={"agent": 0.5},
        cells=(("levers",),),
    )


def rows_of(index: int, text: str = "t") -> dict[str, list[dict[str, Any]]]:
    return {
        kind: [{"iteration": index, "kind": kind, "n": n, "text": text} for n in range(2)]
        for kind in ROW_FILES
    }


def commit(directory: RunDirectory, iteration: int, text: str = "t", *, dies: bool = False) -> None:
    """Commit one more iteration: `iteration` are complete then."""
    with directory.commit(state(iteration), rows_of(iteration - 1, text)) as folder:
        (folder / "checkpoint").mkdir()
        if dies:
            raise Killed
        (folder / "checkpoint" / "weights").write_text(f"weights {iteration}")


def read(path: Path, kind: str) -> list[dict[str, Any]]:
    file = path / f"{kind}.jsonl"
    lines = file.read_bytes().split(b"\n") if file.exists() else []
    return [json.loads(line) for line in lines if line]


def assert_is_at(path: Path, iteration: int, text: str = "t") -> None:
    """The run holds exactly what it held after `iteration`, and goes on from there."""
    directory = RunDirectory.open(path)
    assert directory.load_state() == (state(iteration) if iteration else RunState())
    for kind in ROW_FILES:
        expected = [row for i in range(iteration) for row in rows_of(i, text)[kind]]
        assert read(path, kind) == expected
    kept = [f"iter-{i:05d}" for i in range(max(1, iteration - 1), iteration + 1)]
    assert sorted(p.name for p in path.glob("iter-*")) == kept
    if iteration:
        assert directory.latest is not None
        weights = directory.latest / "checkpoint" / "weights"
        assert weights.read_text() == f"weights {iteration}"
    else:
        assert directory.latest is None


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture
def directory(path: Path) -> RunDirectory:
    return RunDirectory.create(path, Config(name="x"))


def test_a_run_goes_forward_and_keeps_the_last_two_checkpoints(directory: RunDirectory) -> None:
    assert_is_at(directory.path, 0)
    for iteration in range(1, 5):
        commit(directory, iteration)
        assert_is_at(directory.path, iteration)
    assert directory.config() == Config(name="x")


@pytest.mark.parametrize("done", [0, 1, 3])
@pytest.mark.parametrize(
    ("where", "survives"),
    [
        ("body", False),
        ("fsync_tree", False),
        ("rename", False),
        ("fsync_entries", False),
        ("LATEST", False),
        ("rows 0", True),
        ("rows 2", True),
        ("_prune", True),
    ],
)
def test_a_kill_anywhere_in_a_commit_leaves_the_last_complete_iteration(
    done: int, where: str, survives: bool, directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for iteration in range(1, done + 1):
        commit(directory, iteration)
    with monkeypatch.context() as patch:
        kill_at(where, patch)
        with pytest.raises(Killed):
            commit(directory, done + 1, dies=where == "body")
    assert_is_at(directory.path, done + survives)
    # And the iteration can be done once more.
    for iteration in range(done + survives + 1, done + 3):
        commit(RunDirectory.open(directory.path), iteration)
    assert_is_at(directory.path, done + 2)


def kill_at(where: str, patch: pytest.MonkeyPatch) -> None:
    """Make the process die when a commit comes to `where`."""

    def die(*_: object, **__: object) -> None:
        raise Killed

    if where == "rename":
        rename = Path.rename
        patch.setattr(
            Path, "rename", lambda p, t: die() if p.name.endswith(".tmp") else rename(p, t)
        )
    elif where == "LATEST":
        replace = module.replace_text
        patch.setattr(
            module, "replace_text", lambda p, t: die() if p.name == "LATEST" else replace(p, t)
        )
    elif where.startswith("rows"):
        number = int(where.removeprefix("rows "))
        append = RunDirectory._append_rows

        def half(self: RunDirectory, kind: str, folder: Path) -> None:
            if ROW_FILES.index(kind) < number:
                append(self, kind, folder)
                return
            text = (folder / "rows" / f"{kind}.jsonl").read_text()
            with (self.path / f"{kind}.jsonl").open("a") as file:
                file.write(text[: len(text) * 2 // 3])  # a whole line and a part of the next
            die()

        patch.setattr(RunDirectory, "_append_rows", half)
    elif where == "_prune":
        patch.setattr(RunDirectory, "_prune", die)
    elif where != "body":
        patch.setattr(module, where, die)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two iterations."""
    path = tmp_path_factory.mktemp("played") / "run"
    directory = RunDirectory.create(path, Config())
    commit(directory, 1, HOSTILE)
    commit(directory, 2, HOSTILE)
    return path


@pytest.mark.parametrize("cut", range(0, 400, 9))
def test_row_files_cut_anywhere_in_the_last_iteration_are_completed(
    cut: int, played: Path, tmp_path: Path
) -> None:
    path = tmp_path / "run"
    shutil.copytree(played, path)
    for kind in ROW_FILES:
        content = (path / f"{kind}.jsonl").read_bytes()
        first = sum(len(line) + 1 for line in content.split(b"\n")[:2])
        (path / f"{kind}.jsonl").write_bytes(content[: first + cut])
    assert_is_at(path, 2, HOSTILE)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec=None), max_size=30))
def test_no_text_breaks_a_row(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("text") / "run"
    directory = RunDirectory.create(path, Config())
    commit(directory, 1, text)
    commit(directory, 2, text)
    assert_is_at(path, 2, text)


def test_a_number_that_json_cannot_say_is_refused_and_nothing_changes(
    directory: RunDirectory,
) -> None:
    commit(directory, 1)
    with (
        pytest.raises(ValueError, match="not JSON compliant"),
        directory.commit(state(2), {"metrics": [{"iteration": 1, "x": float("nan")}]}),
    ):
        pass
    assert_is_at(directory.path, 1)


def test_what_somebody_else_put_there_is_left_alone(directory: RunDirectory) -> None:
    for name in ("iter-00001-copy", "iter-notes", "mine.tmp"):
        (directory.path / name).mkdir()
    commit(directory, 1)
    commit(directory, 2)
    commit(directory, 3)
    assert RunDirectory.open(directory.path).load_state() == state(3)
    assert (directory.path / "iter-00001-copy").is_dir()
    assert (directory.path / "iter-notes").is_dir()
    assert (directory.path / "mine.tmp").is_dir()


def test_a_folder_without_a_config_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match="not a run directory: it has no config"):
        RunDirectory.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("iter-00007\n", "names iter-00007, which is missing"),
        ("", "should name an iteration such as iter-00003, it holds ''"),
        ("../elsewhere", "should name an iteration"),
        ("iter-1", "should name an iteration"),
    ],
)
def test_latest_must_name_an_iteration_that_is_there(
    content: str, message: str, directory: RunDirectory
) -> None:
    commit(directory, 1)
    (directory.path / "LATEST").write_text(content)
    with pytest.raises(RunStateError, match=message):
        RunDirectory.open(directory.path)
    assert (directory.path / "iter-00001").is_dir()


def read_all(path: Path) -> tuple[Config, RunState]:
    opened = RunDirectory.open(path)
    return opened.config(), opened.load_state()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("iter-00001/state.json", "{", "state.json cannot be read"),
        ("iter-00001/state.json", '{"iteration": "x"}', "state.json cannot be read"),
        ("config.json", "{", "config.json cannot be read"),
        ("metrics.jsonl", "no row\n", "metrics.jsonl, line 1: expected a row"),
        ("episodes.jsonl", '["a"]\n', "episodes.jsonl, line 1: expected a row"),
    ],
)
def test_a_damaged_file_is_named(
    file: str, content: str, message: str, directory: RunDirectory
) -> None:
    commit(directory, 1)
    (directory.path / file).write_text(content)
    with pytest.raises(RunStateError, match=message):
        read_all(directory.path)


def test_rows_of_the_last_iteration_that_are_gone_are_named(directory: RunDirectory) -> None:
    commit(directory, 1)
    shutil.rmtree(directory.path / "iter-00001" / "rows")
    with pytest.raises(RunStateError, match="cannot be brought to its last iteration"):
        RunDirectory.open(directory.path)


def test_a_place_that_is_taken_is_refused(directory: RunDirectory, tmp_path: Path) -> None:
    for make in (RunDirectory.vacant, lambda p: RunDirectory.create(p, Config())):
        with pytest.raises(RunStateError, match=f"holds a run already.*--resume {directory.path}"):
            make(directory.path)
    other = tmp_path / "other"
    other.mkdir()
    assert RunDirectory.vacant(other).path == other
    (other / "thesis.tex").write_text("x")
    with pytest.raises(RunStateError, match="is not empty and holds no run"):
        RunDirectory.vacant(other)
    with pytest.raises(RunStateError, match=r"thesis\.tex is no directory"):
        RunDirectory.vacant(other / "thesis.tex" / "run")
    assert RunDirectory.vacant(tmp_path / "a" / "b").path == tmp_path / "a" / "b"
    assert not (tmp_path / "a").exists()
