"""The processes of a run: one leads, the others help it to generate and to train.

Rank 0 designs, plays, measures and commits. The others sample their share of the conversations and train on their share
of the rows. They speak in Python objects over a gloo group of their own, whose patience is counted in hours: while the
leader plays environments nobody waits in a collective of the training backend, whose timeout is minutes.

torch is imported where there is more than one process, and not before.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, Protocol

from spade_loop.errors import WorldError

PATIENCE = timedelta(hours=24)
"""How long a rank waits for another: longer than any leader plays."""


class World(Protocol):
    """The processes of a run, seen from one of them."""

    rank: int
    """Of this process; 0 leads."""
    size: int
    """Number of processes."""

    def broadcast(self, value: Any) -> Any:
        """The leader's `value`, on every rank; what the others pass is not looked at. `WorldError` when one is gone."""

    def gather(self, value: Any) -> Sequence[Any]:
        """On the leader the values of all ranks, by rank; nothing elsewhere. `WorldError` when one is gone."""


class Alone:
    """A run in one process."""

    rank = 0
    size = 1

    def broadcast(self, value: Any) -> Any:
        """The value itself."""
        return value

    def gather(self, value: Any) -> Sequence[Any]:
        """The one value."""
        return [value]


class Ranks:
    """A run in several processes. Every rank of the default process group has to make one, at the same point."""

    def __init__(self, patience: timedelta = PATIENCE) -> None:
        import torch.distributed as dist

        self._dist = dist
        self.rank: int = dist.get_rank()
        self.size: int = dist.get_world_size()
        self._group = dist.new_group(backend="gloo", timeout=patience)

    def broadcast(self, value: Any) -> Any:
        """The leader's value, pickled on the way."""
        box = [value if self.rank == 0 else None]
        with _others():
            self._dist.broadcast_object_list(box, src=0, group=self._group)
        return box[0]

    def gather(self, value: Any) -> Sequence[Any]:
        """The values of all ranks, pickled on the way."""
        values: list[Any] | None = [None] * self.size if self.rank == 0 else None
        with _others():
            self._dist.gather_object(value, values, dst=0, group=self._group)
        return values or []


@contextmanager
def _others() -> Iterator[None]:
    """Names the failure of a collective for what it is."""
    try:
        yield
    except RuntimeError as error:
        raise WorldError(
            "another process of the run is gone or does not answer; its own output says why"
        ) from error


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong on one rank, for the leader to read."""

    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Kind and message of an exception."""
        return cls(f"{type(error).__name__}: {error}")


def refuse_failures(answers: Sequence[Any]) -> None:
    """`WorldError` that names the first rank whose answer is a `Failure`."""
    for rank, answer in enumerate(answers):
        if isinstance(answer, Failure):
            raise WorldError(f"rank {rank} failed: {answer.text}")


@contextmanager
def telling(world: World) -> Iterator[None]:
    """On the leader, before a broadcast that the others `hear`: what is raised inside is raised on all of them."""
    try:
        yield
    except Exception as error:
        world.broadcast(Failure.of(error))
        raise


def hear(world: World) -> Any:
    """On another rank: what the leader broadcasts. `WorldError` when it failed instead."""
    value = world.broadcast(None)
    if isinstance(value, Failure):
        raise WorldError(f"rank 0 failed: {value.text}")
    return value


def agree(world: World, work: Callable[[], object]) -> None:
    """Let the leader do `work` while the others wait; `WorldError` on them when it fails there."""
    if world.rank:
        hear(world)
        return
    with telling(world):
        work()
    world.broadcast(None)


def outlive(world: World, seconds: float = 30.0) -> None:
    """On another rank of a run that failed: wait until the leader is gone, `seconds` at most."""

    def wait() -> None:
        with suppress(WorldError):
            world.broadcast(None)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(seconds)


def launched() -> tuple[int, int]:
    """(rank of this process, number of processes) as torchrun or accelerate started it; (0, 1) without a launcher."""
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def leave(code: int) -> NoReturn:
    """End one of several processes without taking the interpreter apart.

    Communication threads of torch may outlive their groups, and abort a process that is taken apart around them
    ("terminate called without an active exception"): a launcher then fails a run that succeeded.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody listens any more
            stream.flush()
    os._exit(code)


_FOUNDED: set[int] = set()
"""Processes whose default group was made here, and not by whoever embeds us."""


@contextmanager
def joined() -> Iterator[World]:
    """The world that a launcher started; `Alone` without one.

    Takes this process's GPU, if there are any: before a model is loaded, or all would load it onto the first.
    """
    if launched()[1] == 1:
        yield Alone()
        return
    import torch
    import torch.distributed as dist

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    if not dist.is_initialized():
        dist.init_process_group()  # gloo between CPUs and, where there are GPUs, NCCL between them
        _FOUNDED.add(os.getpid())
    yield Ranks()
    # Only after success: a group whose members failed may not come to an end together. One that an earlier run of this
    # process left behind ends here too: with its threads alive the interpreter may abort when it exits.
    if os.getpid() in _FOUNDED:
        dist.destroy_process_group()
        _FOUNDED.discard(os.getpid())
