"""Several ranks in a test: as threads that speak through queues, or as processes that torchrun starts."""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from processes import descendants

from spade_loop.errors import WorldError

SECONDS = 10.0
"""A rank that waits longer for another is in a deadlock."""


class Thread:
    """One rank of several threads. What is sent is pickled, as between processes."""

    def __init__(
        self, rank: int, size: int, down: list[queue.Queue], up: list[queue.Queue]
    ) -> None:
        self.rank, self.size = rank, size
        self._down, self._up = down, up

    def broadcast(self, value: Any) -> Any:
        if self.rank == 0:
            sent = pickle.dumps(("broadcast", value))
            for other in self._down[1:]:
                other.put(sent)
            return value
        return self._take(self._down[self.rank], "broadcast")

    def gather(self, value: Any) -> Sequence[Any]:
        if self.rank > 0:
            self._up[self.rank].put(pickle.dumps(("gather", value)))
            return []
        return [value, *(self._take(other, "gather") for other in self._up[1:])]

    def _take(self, source: queue.Queue, kind: str) -> Any:
        try:
            came, value = pickle.loads(source.get(timeout=SECONDS))
        except queue.Empty:
            raise WorldError(f"rank {self.rank} waited for a {kind} in vain") from None
        assert came == kind
        return value


def in_threads(size: int, work: Callable[[Any], Any]) -> list[Any]:
    """What `work(world)` returns on each rank, or the exception it raised."""
    down: list[queue.Queue] = [queue.Queue() for _ in range(size)]
    up: list[queue.Queue] = [queue.Queue() for _ in range(size)]

    def one(rank: int) -> Any:
        try:
            return work(Thread(rank, size, down, up))
        except BaseException as error:  # noqa: BLE001  # what a rank raised is what the test looks at
            return error

    with ThreadPoolExecutor(size) as pool:
        results = list(pool.map(one, range(size)))
    # Whatever was sent was also waited for: nobody spoke past another.
    assert all(box.empty() for box in [*down, *up])
    return results


def torchrun(
    arguments: Sequence[str], *, size: int = 2, seconds: float = 120.0
) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` in `size` processes on this machine; all of them are killed after `seconds`."""
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={size}"]
    with subprocess.Popen(
        [*launcher, "--standalone", *arguments],
        env=processes_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            # The launcher gives each rank a session of its own.
            for pid in (process.pid, *descendants(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            out, err = process.communicate()
            raise AssertionError(f"the ranks did not end in {seconds:g} s:\n{out}\n{err}") from None
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def processes_environment() -> dict[str, str]:
    """The environment of a launcher: one thread a rank, no network, our support modules at hand."""
    support = str(Path(__file__).parent)
    return {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "PYTHONPATH": os.pathsep.join([support, os.environ.get("PYTHONPATH", "")]),
    }
