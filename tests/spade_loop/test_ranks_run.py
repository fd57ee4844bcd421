"""Whole runs in two processes: committed once an iteration, ended together, resumed."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ranks import processes_environment, torchrun
from whole_runs import SETTINGS

from spade_loop.config import Config, load_config
from spade_loop.errors import WorldError
from spade_loop.progress import Silent
from spade_loop.world import leave
from synthgym.registry import Snapshot

pytestmark = pytest.mark.slow


def command(tiny_model: Path, out: Path) -> list[str]:
    overrides = [f"--set={o}" for o in [*SETTINGS, f"policy.model={tiny_model}"]]
    return ["-m", "spade_loop", "run", *overrides, "--out", str(out)]


def rows(path: Path, kind: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / f"{kind}.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def alone(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run in one process."""
    path = tmp_path_factory.mktemp("runs") / "alone"
    done = subprocess.run(
        [sys.executable, *command(tiny_model, path)],
        env=processes_environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return path


def is_the_run(path: Path, alone: Path) -> None:
    """Whether a run came to what it comes to in one process, up to the rounding of what was trained."""
    assert (path / "LATEST").read_text().strip() == "iter-00002"
    for kind in ("designs", "episodes"):
        assert rows(path, kind) == rows(alone, kind)
    for mine, other in zip(rows(path, "metrics"), rows(alone, "metrics"), strict=True):
        assert mine.keys() == other.keys()
        assert mine["regret"] == other["regret"]
        for key in ("rows", "live_rows", "skipped"):
            assert mine["update"][key] == other["update"][key]
        assert mine["update"]["grad_norm"] == pytest.approx(other["update"]["grad_norm"], rel=1e-3)
    assert Snapshot.open(path / "snapshot").digest == Snapshot.open(alone / "snapshot").digest
    assert (path / "report.html").is_file()
    assert not (path / ".trainer").exists()


def test_two_processes_do_the_run_of_one_and_the_first_alone_prints(
    alone: Path, tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "two"
    done = torchrun(command(tiny_model, path), seconds=200)
    assert done.returncode == 0, done.stderr
    is_the_run(path, alone)
    assert done.stderr.count("[iteration 1/2] done") == 1
    assert done.stderr.count("\nreport ") == 1
    assert "rank1" not in done.stderr + done.stdout


def test_an_interrupted_run_ends_on_both_and_goes_on_on_both(
    alone: Path, tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "broken"
    done = torchrun([__file__, str(tiny_model), str(path)], seconds=200)
    assert done.returncode == 0, done.stderr
    leader, follower = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2))
    assert leader["ended"] == "KeyboardInterrupt: "
    assert follower["ended"] == "WorldError: rank 0 failed: KeyboardInterrupt: "
    assert [told["latest"] for told in (leader, follower)] == ["iter-00001"] * 2
    assert [told["report"] for told in (leader, follower)] == [str(path / "report.html")] * 2
    is_the_run(path, alone)


class Impatient(Silent):
    """Somebody who interrupts the second iteration while it plays."""

    def iteration(self, index: int, total: int) -> None:
        self.index = index

    def phase(self, name: str, steps: int) -> None:
        if name == "play" and self.index == 1:
            raise KeyboardInterrupt


def _in_a_process(config: Config, path: Path) -> None:
    from spade_loop.run import resume, start

    told: dict[str, Any] = {}
    try:
        start(config, path, Impatient())
    except (KeyboardInterrupt, WorldError) as error:
        told["ended"] = f"{type(error).__name__}: {error}"
    gc.collect()  # what the error held on to has the lock on the run
    told["latest"] = (path / "LATEST").read_text().strip()
    told["report"] = str(resume(path, Silent()))
    (path.parent / f"{os.environ['RANK']}.json").write_text(json.dumps(told))


if __name__ == "__main__":
    _in_a_process(
        load_config("tiny", [*SETTINGS, f"policy.model={sys.argv[1]}"]), Path(sys.argv[2])
    )
    leave(0)
