"""What processes tell each other, without a process."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest
from ranks import in_threads

from spade_loop.errors import WorldError
from spade_loop.world import (
    Alone,
    Failure,
    World,
    agree,
    hear,
    joined,
    launched,
    outlive,
    refuse_failures,
    telling,
)


def test_a_process_without_a_launcher_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert launched() == (0, 1)
    with joined() as world:
        assert isinstance(world, Alone)
        assert (world.rank, world.size) == (0, 1)
        assert world.broadcast("x") == "x"
        assert world.gather("x") == ["x"]


def test_a_launcher_says_who_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    assert launched() == (3, 8)


def test_one_process_needs_no_torch() -> None:
    code = (
        "import sys, spade_loop.world as w\n"
        "with w.joined(): pass\n"
        "assert not [m for m in sys.modules if m.split('.')[0] == 'torch']"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_leader_works_while_the_others_wait() -> None:
    done: list[str] = []

    def work(world: World) -> list[str]:
        agree(world, lambda: (time.sleep(0.2), done.append("saved")))
        return list(done)

    assert in_threads(3, work) == [["saved"]] * 3


def test_what_fails_on_the_leader_fails_everywhere() -> None:
    def work(world: World) -> None:
        def save() -> None:
            raise OSError("the disk is full")

        agree(world, save)

    leader, *others = in_threads(3, work)
    assert isinstance(leader, OSError)
    assert [str(e) for e in others] == ["rank 0 failed: OSError: the disk is full"] * 2
    assert {type(e) for e in others} == {WorldError}


def test_who_waits_for_a_broadcast_hears_of_a_failure_before_it() -> None:
    def work(world: World) -> Any:
        if world.rank:
            return hear(world)
        with telling(world):
            raise ValueError("no such model")

    results = in_threads(2, work)
    assert str(results[1]) == "rank 0 failed: ValueError: no such model"
    assert in_threads(2, lambda w: hear(w) if w.rank else w.broadcast("go")) == ["go", "go"]


def test_the_first_rank_that_failed_is_named() -> None:
    refuse_failures([1, None, "x"])
    answers = [1, Failure.of(KeyError("a")), Failure.of(ValueError("b"))]
    with pytest.raises(WorldError, match=r"rank 1 failed: KeyError: 'a'"):
        refuse_failures(answers)


def test_who_outlives_the_leader_does_not_wait_for_ever() -> None:
    class Silence(Alone):
        def broadcast(self, value: Any) -> Any:
            time.sleep(30)

    class Gone(Alone):
        def broadcast(self, value: Any) -> Any:
            raise WorldError("gone")

    started = time.monotonic()
    outlive(Silence(), seconds=0.1)
    outlive(Gone(), seconds=20)
    assert time.monotonic() - started < 10
