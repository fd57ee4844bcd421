"""Whole runs with a tiny random model, through the command line: finished, killed, resumed, interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from whole_runs import ENVIRONMENT, command, rows, run

from spade_loop.state import RunDirectory
from synthgym.registry import Snapshot

pytestmark = pytest.mark.slow


def orphans(marker: str) -> list[str]:
    """Processes that still carry `marker` in their environment or command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            text = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if marker.encode() in text and int(process.name) != os.getpid():
            found.append(process.name)
    return found


@pytest.fixture(scope="module")
def finished(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run of two iterations."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    run(tiny_model, "--out", str(path))
    return path


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    wait_until(path.exists, process)


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def started(tiny_model: Path, tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A run in its second iteration."""
    path = tmp_path / "broken"
    with subprocess.Popen(
        command(tiny_model, "--out", str(path)),
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as process:
        wait_for(path / "LATEST", process)
        yield path, process
        process.kill()


def test_a_run_leaves_snapshot_checkpoint_rows_and_report(finished: Path) -> None:
    metrics = [json.loads(line) for line in rows(finished, "metrics").splitlines()]
    assert [row["iteration"] for row in metrics] == [0, 1]
    for row in metrics:
        assert set(row["roles"]) == {"designer", "agent"}
        assert row["played"] == 2
    assert any(row["roles"]["designer"]["abs_advantage"] > 0 for row in metrics)
    snapshot = Snapshot.open(finished / "snapshot")
    assert snapshot.verify() == ()
    assert len(snapshot) == sum(row["designs"]["admitted"] for row in metrics)
    for entry in snapshot:
        spec = snapshot.spec(entry.digest)
        assert spec.provenance.family
        assert spec.provenance.document_license == "CC0-1.0"
    latest = RunDirectory(finished).latest
    assert latest is not None
    assert (latest / "checkpoint" / "adapter_model.safetensors").is_file()
    assert "<html" in (finished / "report.html").read_text(encoding="utf-8")
    episodes = [json.loads(line) for line in rows(finished, "episodes").splitlines()]
    assert len(episodes) == 2 * 2 * 2 * 2 * 2
    pairs = {(e["iteration"], e["digest"], e["seed"], e["play"]) for e in episodes}
    assert len(pairs) * 2 == len(episodes)
    assert not list(finished.glob("*.tmp"))
    assert not (finished / ".trainer").exists()


def test_the_same_config_gives_the_same_rows_in_another_process(
    finished: Path, tiny_model: Path, tmp_path: Path
) -> None:
    again = tmp_path / "again"
    done = subprocess.run(
        command(tiny_model, "--out", str(again)),
        env=ENVIRONMENT | {"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for kind in ("metrics", "episodes", "designs"):
        assert rows(again, kind) == rows(finished, kind)
    assert Snapshot.open(again / "snapshot").digest == Snapshot.open(finished / "snapshot").digest


def test_a_killed_run_resumes_and_equals_an_uninterrupted_one(
    finished: Path, started: tuple[Path, subprocess.Popen[str]], tiny_model: Path
) -> None:
    path, process = started
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=20)
    assert (path / "LATEST").read_text().strip() == "iter-00001"
    run(tiny_model, "--resume", str(path))
    for kind in ("metrics", "episodes", "designs"):
        assert rows(path, kind) == rows(finished, kind)
    assert Snapshot.open(path / "snapshot").digest == Snapshot.open(finished / "snapshot").digest


@pytest.mark.parametrize("begun", [False, True], ids=["new", "resumed"])
def test_a_run_in_progress_is_not_resumed_by_another_process(
    tiny_model: Path, tmp_path: Path, begun: bool
) -> None:
    path = tmp_path / "busy"
    new = command(tiny_model, "--out", str(path), settings=["iterations=500"])
    if begun:
        with subprocess.Popen(new, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as first:
            wait_for(path / "LATEST", first)
            first.kill()
    latest = (path / "LATEST").read_text() if begun else ""
    running = command(tiny_model, "--resume", str(path)) if begun else new
    with subprocess.Popen(running, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        wait_until(
            lambda: (path / "LATEST").exists() and (path / "LATEST").read_text() != latest, process
        )
        other = subprocess.run(
            command(tiny_model, "--resume", str(path)),
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        still_running = process.poll() is None
        process.kill()
    assert (other.returncode, still_running) == (2, True)
    assert f"{path} is in use" in other.stderr


def test_ctrl_c_says_how_to_go_on_and_leaves_no_process_behind(
    started: tuple[Path, subprocess.Popen[str]],
) -> None:
    path, process = started
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"spade-loop run --resume {path}" in stderr
    assert "Traceback" not in stderr
    assert not list(path.glob("*.tmp"))
    deadline = time.monotonic() + 10
    while orphans(str(path)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert orphans(str(path)) == []


def test_a_finished_run_resumes_to_its_report(finished: Path, tiny_model: Path) -> None:
    before = rows(finished, "metrics")
    (finished / "report.html").unlink()
    run(tiny_model, "--resume", str(finished))
    assert rows(finished, "metrics") == before
    assert (finished / "report.html").is_file()


def test_an_earlier_runs_snapshot_is_a_registry_to_start_from(
    finished: Path, tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "next"
    settings = [f"registry={finished / 'snapshot'}", "iterations=1", "agent.pool_share=1.0"]
    run(tiny_model, "--out", str(path), settings=settings)
    played = {json.loads(line)["digest"] for line in rows(path, "episodes").splitlines()}
    assert played <= {entry.digest for entry in Snapshot.open(finished / "snapshot")}
    assert len(played) == 2
