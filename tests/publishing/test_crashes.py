"""Real processes, killed at any moment, or many at once. `benchmarks/crashes.py` does it at length."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "crashes.py"


@pytest.mark.slow
def test_kills_leave_the_old_or_the_new_and_writers_lose_nothing() -> None:
    command = [sys.executable, str(SCRIPT), "--kills", "8", "--writers", "3", "--releases", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for what in ("publish", "pull"):
        assert sum(found[what].get(how, 0) for how in ("killed", "finished first")) == 8
        assert found[what]["killed"] >= 3, found
    assert found["publish"]["then 1.0.0"] >= 1
    assert found["writers"] == {"releases": 12, "serial": 12}
