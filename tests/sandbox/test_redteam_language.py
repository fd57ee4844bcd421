from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import synthgym

REDTEAM = Path(__file__).parents[1] / "redteam"
MANIFEST = json.loads((REDTEAM / "manifest.json").read_text())
LANGUAGE = [entry for entry in MANIFEST if entry["layer"] == "lang"]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, str]:
    for entry in LANGUAGE:
        Path(entry["marker"]).unlink(missing_ok=True)
    root = Path(synthgym.__file__).parents[1]
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("redteam_runner.py")),
            *(str(REDTEAM / entry["file"]) for entry in LANGUAGE),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": "0"},
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("entry", LANGUAGE, ids=lambda entry: entry["file"])
def test_a_language_payload_is_contained(entry: dict[str, str], outcomes: dict[str, str]) -> None:
    outcome = outcomes[entry["file"]]
    assert not outcome.startswith("observed PWNED"), entry["description"]
    assert not Path(entry["marker"]).exists(), entry["description"]


def test_every_payload_of_the_manifest_is_here() -> None:
    assert {entry["file"] for entry in MANIFEST} == {path.name for path in REDTEAM.glob("*.py")}


def test_some_payloads_get_past_the_compiler_so_that_the_guards_are_tested(
    outcomes: dict[str, str],
) -> None:
    ran = [name for name, outcome in outcomes.items() if outcome != "refused"]
    assert len(ran) >= 10
