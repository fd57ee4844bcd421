"""No memory, no space: a sentence, and the way on."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from spade_loop.errors import ResourceError
from spade_loop.exhaustion import explained

RUN = Path("runs/mine")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "trainer.rows_per_step"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "agent.batch_rows"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
            "agent.context",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "runs/mine/x"),
            r"disk is full \(runs/mine/x\)",
        ),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "disk is full: make room"),
    ],
)
def test_it_is_told_what_to_do(error: Exception, said: str) -> None:
    with pytest.raises(ResourceError, match=said) as caught, explained(RUN):
        raise error
    assert "spade-loop run --resume runs/mine" in str(caught.value)
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    "error", [OSError(errno.EACCES, "denied"), RuntimeError("a bug"), ValueError("x")]
)
def test_everything_else_passes(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, explained(RUN):
        raise error
    assert caught.value is error


def test_torch_says_it_as_we_read_it() -> None:
    torch = pytest.importorskip("torch")
    with pytest.raises(ResourceError), explained(RUN):
        torch.empty(2**62, dtype=torch.uint8)
