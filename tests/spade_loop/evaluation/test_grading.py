"""Graders: calls into processes that may hang, die, print and look around."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from spade_loop.errors import MissingExtraError, ModelError, ResourceError
from spade_loop.evaluation.grading import Graders, GradingError

GRADER = """
import os, pathlib, socket, sys, time

def add(a, b):
    print("this is not an answer")
    return a + b

def boom():
    raise ValueError("no such thing")

def sleep(seconds):
    time.sleep(seconds)

def multiply():
    return len(str((7 ** 40_000_000) ** 3))

def die():
    os._exit(3)

def order():
    return list({f"word{n}" for n in range(40)})

def variables():
    return sorted(os.environ)

def connect(port):
    socket.create_connection(("127.0.0.1", port), timeout=2)

def write(path):
    pathlib.Path(path).write_text("x")
"""


@pytest.fixture
def graders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graders]:
    (tmp_path / "a_grader.py").write_text(GRADER)
    monkeypatch.syspath_prepend(str(tmp_path))
    with Graders(processes=1, seconds=5.0) as made:
        yield made


def test_values_come_back_and_what_is_printed_does_not(graders: Graders) -> None:
    assert [graders.call("a_grader:add", a=n, b=2) for n in (1, 2)] == [3, 4]
    assert graders.call("a_grader:add", a="ä", b="\n") == "ä\n"


def test_an_exception_is_told_and_the_next_call_is_answered(graders: Graders) -> None:
    with pytest.raises(GradingError, match="ValueError: no such thing"):
        graders.call("a_grader:boom")
    with pytest.raises(MissingExtraError, match="no_module"):
        graders.call("no_module:x")
    with pytest.raises(GradingError, match="TypeError"):
        graders.call("a_grader:add", a=1)
    assert graders.call("a_grader:add", a=1, b=1) == 2


@pytest.mark.parametrize("call", ["multiply", "die"])
def test_a_call_that_never_ends_or_kills_its_process_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    (tmp_path / "a_grader.py").write_text(GRADER)
    monkeypatch.syspath_prepend(str(tmp_path))
    with Graders(processes=1, seconds=1.0) as graders:
        began = time.monotonic()
        with pytest.raises(GradingError, match="ended with status"):
            graders.call(f"a_grader:{call}")
        assert time.monotonic() - began < 20
        assert graders.call("a_grader:add", a=1, b=1) == 2


def test_a_grader_that_cannot_start_is_no_failure_of_the_model(
    graders: Graders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spade_loop.evaluation.grading.WORKER", Path("/nowhere/worker.py"))
    with pytest.raises(ResourceError, match="cannot be started"):
        graders.call("a_grader:add", a=1, b=1)


def test_sets_have_the_same_order_in_every_process(graders: Graders, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import a_grader; print(a_grader.order())"]
    path = {"PYTHONPATH": str(tmp_path), "PYTHONHASHSEED": "0"}
    theirs = subprocess.run(command, env=path, capture_output=True, text=True, check=True).stdout
    assert str(graders.call("a_grader:order")) == theirs.strip()


def test_no_key_is_in_sight(graders: Graders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    assert "SOME_API_KEY" not in graders.call("a_grader:variables")


def test_there_is_no_network_and_no_file_to_write_to(graders: Graders, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("confinement is Linux's")
    with pytest.raises(GradingError, match="PermissionError"):
        graders.call("a_grader:connect", port=9)
    with pytest.raises(GradingError, match="PermissionError"):
        graders.call("a_grader:write", path=str(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_closing_ends_a_call_that_is_under_way_and_leaves_nothing(graders: Graders) -> None:
    graders.call("a_grader:add", a=1, b=1)
    told: list[ModelError] = []

    def ask() -> None:
        with pytest.raises(ModelError) as raised:
            graders.call("a_grader:sleep", seconds=60)
        told.append(raised.value)

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.3)
    pids = [child._process.pid for child in graders._children]
    graders.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(told) == 1
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    with pytest.raises(ModelError, match="closed"):
        graders.call("a_grader:add", a=1, b=1)
    graders.close()
