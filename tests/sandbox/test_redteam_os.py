"""Hostile sources in raw Python: behind the lock-down alone, and, as a positive control, behind nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from redteam import FOLDER, PAYLOADS, Payload, open_folder

import synthgym

RUNNER = Path(__file__).with_name("redteam_raw_runner.py")
ROOT = Path(synthgym.__file__).parents[1]
SECONDS = 240
OUTSIDE = ("marker", "output")
"""What a payload reaches beyond its own process, as the runner sees it."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="layers of the Linux kernel")


def play(mode: str, payloads: Sequence[Payload], hash_seed: str = "0") -> dict[str, str]:
    """What each payload came to, by file name."""
    search = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    with open_folder() as folder:
        sources, markers = folder / "sources", folder / "markers"
        shutil.copytree(FOLDER, sources)
        sources.chmod(0o755)  # a powerless user reads them
        markers.mkdir()
        markers.chmod(0o777)
        arguments = [
            ("hang:" if "hang" in item["raw"] else "") + str(sources / item["file"])
            for item in payloads
        ]
        done = subprocess.run(
            [sys.executable, "-B", str(RUNNER), mode, str(markers), *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(search),
                "PYTHONHASHSEED": hash_seed,
                "OPENBLAS_NUM_THREADS": "1",  # the runner forks: it must have one thread
            },
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def raw() -> dict[str, str]:
    return play("raw", PAYLOADS)


@pytest.fixture(scope="module")
def locked() -> dict[str, str]:
    found = play("locked", PAYLOADS)
    (first, *_) = found.values()
    if first.startswith("not locked"):
        pytest.skip(f"ISOLATION IS NOT FULL ON THIS MACHINE, the lock-down is not tested: {first}")
    return found


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: str(payload["file"])[:-3])
def test_a_payload_without_any_defence_does_what_it_is_for(
    payload: Payload, raw: dict[str, str]
) -> None:
    assert raw[payload["file"]].startswith(tuple(payload["raw"])), raw[payload["file"]]


@pytest.mark.parametrize("payload", PAYLOADS, ids=lambda payload: str(payload["file"])[:-3])
def test_raw_python_behind_the_lock_down_reaches_nothing_outside(
    payload: Payload, locked: dict[str, str]
) -> None:
    outcome = locked[payload["file"]]
    assert not outcome.startswith(OUTSIDE), outcome
    if payload["layer"] == "os":
        assert not outcome.startswith("pwned"), outcome


def test_every_layer_is_attacked_by_payloads_that_work(raw: dict[str, str]) -> None:
    alive = [item for item in PAYLOADS if not raw[item["file"]].startswith("clean")]
    for layer, least in (("lang", 40), ("os", 12), ("sup", 25)):
        assert sum(item["layer"] == layer for item in alive) >= least
    reached = [outcome for outcome in raw.values() if outcome.startswith(OUTSIDE)]
    assert len(reached) >= 5  # else a folder that nobody may write to would pass for a defence


def test_the_payload_of_hash_order_depends_on_the_hash_seed_without_a_defence() -> None:
    hashing = [item for item in PAYLOADS if item["file"].startswith("193_")]
    one, two = (play("raw", hashing, seed) for seed in ("1", "2"))
    assert one != two
    assert one == play("raw", hashing, "1")
