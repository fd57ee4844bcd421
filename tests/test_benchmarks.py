"""The benchmarks run and do equal work; how fast they are is not a test's business."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "benchmarks/vector_steps.py", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_contestant_does_the_same_work_and_is_timed() -> None:
    done = run("--num-envs", "2", "--rounds", "1", "--steps", "5")
    assert done.returncode == 0, done.stderr
    for name in ("LoomDarn, 2 environments", "MineSurvey, 2 environments"):
        assert name in done.stdout
    rows = [line for line in done.stdout.splitlines() if "sandboxed" in line or "plain" in line]
    assert len(rows) == 8
    assert all(int(row[40:50].replace(",", "")) > 0 for row in rows)


def test_a_number_that_makes_no_sense_is_refused() -> None:
    done = run("--rounds", "0")
    assert done.returncode == 2
    assert "at least 1" in done.stderr
