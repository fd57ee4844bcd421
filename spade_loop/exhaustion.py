"""Memory and disks that are full: told as what they are, with what helps and how to go on."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spade_loop.errors import ResourceError

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_ALLOCATION: Final = ("out of memory", "can't allocate memory", "not enough memory")
"""How torch says it, on a GPU and on a CPU."""


@contextmanager
def explained(run: Path, go_on: str = "") -> Iterator[None]:
    """Turn "no memory" and "no space" inside the block into a `ResourceError`; everything else passes.

    Nothing is lost: the run stands at its last complete iteration. `go_on` says how to go on from there; a run is
    resumed.
    """
    go_on = go_on or f"`spade-loop run --resume {run}`"
    try:
        yield
    except MemoryError as error:
        raise ResourceError(_no_memory(go_on)) from error
    except OSError as error:
        if error.errno not in _FULL:
            raise
        where = f" ({error.filename})" if error.filename else ""
        raise ResourceError(
            f"the disk is full{where}: make room, then go on with {go_on}"
        ) from error
    except RuntimeError as error:
        # torch.OutOfMemoryError is a RuntimeError, as is what the allocator of a CPU raises.
        if not any(text in str(error).lower() for text in _ALLOCATION):
            raise
        raise ResourceError(_no_memory(go_on)) from error


def _no_memory(go_on: str) -> str:
    return (
        "out of memory. What sets memory: trainer.rows_per_step (rows of one forward pass), agent.batch_rows (episodes "
        "at once), agent.context and designer.max_tokens (their length), policy.lora_rank. Lower one of them in a new "
        f"run, or go on with {go_on} once there is more; `spade-loop plan` tells what a "
        "recipe needs"
    )
