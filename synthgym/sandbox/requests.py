"""What a worker is asked, and what it means that a worker is lost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from synthgym.sandbox.protocol import TERMINATED, TRUNCATED, FrameError, Op, Reply, Rows
from synthgym.sandbox.results import FaultKind

_FLAGS: Final = bytes(range((TERMINATED | TRUNCATED) + 1))
WORKER_FAULTS: Final = frozenset(
    {FaultKind.MEMORY, FaultKind.ERROR, FaultKind.REFUSED, FaultKind.BAD_VALUE}
)
"""What a worker may say of itself; the other kinds are the parent's findings."""


class Request:
    """An operation on its way, and who takes the replies to it."""

    __slots__ = ("answered", "base", "op", "owner", "rows", "seconds", "take")

    def __init__(
        self,
        op: Op,
        rows: int,
        seconds: Callable[[Request, int], float],
        take: Take,
        owner: object = None,
    ) -> None:
        self.op = op
        self.rows = rows
        """How far the worker's counter moves."""
        self.seconds = seconds
        """Limit of a row, in seconds."""
        self.take = take
        self.owner = owner
        """The task or source that it works for."""
        self.base = 0
        """Where the counter stands before the first row."""
        self.answered = 0
        """Rows of a batch that have been answered."""


Take: TypeAlias = Callable[[Request, Reply, float, Mapping[int, float]], None]
"""Called with each reply, the seconds since the one before, and the seconds of those rows of the
request that were seen running for long. `FrameError` says that no honest worker sends this."""


@dataclass(frozen=True, slots=True)
class Lost:
    """Why a worker is no more."""

    kind: FaultKind
    """`LOST` when it is not the environment's doing."""
    detail: str
    request: Request | None = None
    """What was running, as far as the worker had told; None when nothing was."""
    row: int = 0
    """Which row of it."""


def check_rows(rows: Rows, left: int) -> None:
    """`FrameError` unless `rows` can be part of the answer to a batch of which `left` rows are due."""
    count = len(rows.observations)
    if not 0 < count <= left:
        raise FrameError(f"expected at most {left} rows")
    if len(rows.rewards) != count or len(rows.flags) != count:
        raise FrameError("columns must have one length")
    if not math.isfinite(sum(rows.rewards)) and not all(map(math.isfinite, rows.rewards)):
        raise FrameError("a reward is not finite")
    if rows.flags.translate(None, _FLAGS):
        raise FrameError("unknown flags")
    if rows.infos and not 0 <= min(rows.infos) <= max(rows.infos) < count:
        raise FrameError("an info of no row")
    for row, (kind, _) in rows.failures.items():
        if not 0 <= row < count or kind not in WORKER_FAULTS:
            raise FrameError(f"unknown kind of failure {kind!r}, or of no row")
