from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import get_args

import pytest

from synthgym.errors import ConfigError, SandboxError
from synthgym.sandbox import IsolationReport, Layer
from synthgym.sandbox.isolation import Level
from synthgym.sandbox.oversight import LEVELS, check_level, known_level, resident_bytes

oversight = importlib.import_module("synthgym.sandbox.oversight")
LAYERS = (
    Layer("memory", True, "256 MB beyond the empty worker"),
    Layer("not-root", False, "PermissionError: [Errno 1] Operation not permitted"),
    Layer("landlock", False, "OSError: [Errno 38] Function not implemented"),
    Layer("seccomp", False, "OSError: [Errno 22] Invalid argument"),
)


def test_the_levels_are_known_from_the_best_to_the_worst() -> None:
    assert get_args(Level) == LEVELS == ("full", "partial", "reduced", "none")


@pytest.mark.parametrize("reached", LEVELS)
@pytest.mark.parametrize("required", LEVELS)
def test_a_level_is_enough_when_it_is_not_below_the_required_one(
    reached: Level, required: Level
) -> None:
    found = IsolationReport(reached, LAYERS)
    if LEVELS.index(reached) <= LEVELS.index(required):
        check_level(found, required)
    else:
        with pytest.raises(SandboxError, match=f"is '{reached}', and '{required}' is required"):
            check_level(found, required)


def test_nothing_is_required_by_none() -> None:
    check_level(IsolationReport("none", LAYERS), None)


def test_the_error_names_each_missing_layer_its_reason_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(oversight, "LINUX", True)
    with pytest.raises(SandboxError) as caught:
        check_level(IsolationReport("reduced", LAYERS), "full")
    text = str(caught.value)
    for layer in LAYERS[1:]:
        assert f"missing: {layer.name} ({layer.detail})" in text
    assert "memory" not in text
    assert "Linux 5.13" in text
    assert "container profile" in text
    assert "do not run as root" in text
    assert "require='reduced'" in text


def test_elsewhere_the_error_says_to_run_on_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oversight, "LINUX", False)
    with pytest.raises(SandboxError, match="to do: run on Linux"):
        check_level(IsolationReport("reduced", LAYERS), "partial")


@pytest.mark.parametrize(
    ("wrong", "hint"), [("ful", "did you mean 'full'"), ("Partial", "did you mean 'partial'")]
)
def test_an_unknown_level_is_an_error_that_names_the_nearest(wrong: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        check_level(IsolationReport("full", LAYERS), wrong)


@pytest.mark.parametrize("wrong", ["", "everything", 3, True, ["full"]])
def test_what_is_no_level_at_all_is_an_error_too(wrong: object) -> None:
    with pytest.raises(ConfigError, match="unknown isolation level"):
        known_level(wrong)  # type: ignore[arg-type]  # as a caller without types may


# --- resident memory ---

TOUCHING = """
import sys
held = b"x" * (64 << 20)
print(len(held), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder() -> Iterator[int]:
    """Pid of a process that holds 64 MB."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", TOUCHING], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.kill()


def test_resident_memory_is_what_a_process_touches(holder: int) -> None:
    resident = resident_bytes(holder)
    assert resident is not None
    assert 64 << 20 < resident < 160 << 20


def test_a_process_that_is_gone_has_no_resident_memory() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
        assert resident_bytes(process.pid) is None
    assert resident_bytes(1 << 30) is None


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_without_proc_ps_says_the_same(holder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here = resident_bytes(holder)
    monkeypatch.setattr(oversight, "LINUX", False)
    elsewhere = resident_bytes(holder)
    assert elsewhere is not None
    assert here is None or abs(elsewhere - here) < 8 << 20
    assert resident_bytes(1 << 30) is None


def test_without_proc_and_without_ps_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oversight, "LINUX", False)
    monkeypatch.setenv("PATH", "")
    assert resident_bytes(os.getpid()) is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_reading_resident_memory_is_cheap() -> None:
    resident_bytes(os.getpid())
    start = time.process_time()
    for _ in range(200):
        resident_bytes(os.getpid())
    assert time.process_time() - start < 0.2  # 1 ms each; a process would take ten times that
