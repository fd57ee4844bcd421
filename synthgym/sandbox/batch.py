"""Answers to many calls at once, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from synthgym.sandbox.protocol import TERMINATED, TRUNCATED
from synthgym.sandbox.results import EnvFault, ResetResult, StepResult

if TYPE_CHECKING:
    from synthgym.sandbox.session import Session


class Batch:
    """Answers to calls of many sessions, as columns of equal length, in the order of the calls.

    A row that is a fault has an empty observation, reward 0.0 and no flags; so has a reset reward
    and flags.
    """

    __slots__ = ("faults", "flags", "infos", "observations", "rewards", "sessions")

    def __init__(self, sessions: Sequence[Session]) -> None:
        count = len(sessions)
        self.sessions = sessions
        self.observations = [""] * count
        self.rewards = [0.0] * count
        self.flags = bytearray(count)
        """`protocol.TERMINATED` and `protocol.TRUNCATED`, a byte a row."""
        self.infos: dict[int, Mapping[str, Any]] = {}
        """By row; rows with an empty info are left out."""
        self.faults: dict[int, EnvFault] = {}
        """By row."""

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def terminated(self) -> list[bool]:
        """Which rows ended with a win or a loss."""
        return _flagged(self.flags, TERMINATED)

    @property
    def truncated(self) -> list[bool]:
        """Which rows the environment itself cut short."""
        return _flagged(self.flags, TRUNCATED)


def _flagged(flags: bytearray, flag: int) -> list[bool]:
    if not any(flags):  # by far the most common
        return [False] * len(flags)
    return [bool(item & flag) for item in flags]


def gathered(rows: Sequence[tuple[Batch, int]]) -> Batch:
    """Return rows of several batches as one."""
    whole = Batch([batch.sessions[row] for batch, row in rows])
    for position, (batch, row) in enumerate(rows):
        whole.observations[position] = batch.observations[row]
        whole.rewards[position] = batch.rewards[row]
        whole.flags[position] = batch.flags[row]
        if row in batch.infos:
            whole.infos[position] = batch.infos[row]
        if row in batch.faults:
            whole.faults[position] = batch.faults[row]
    return whole


def step_result(batch: Batch, row: int) -> StepResult | EnvFault:
    """Return one row of a batch of steps."""
    fault = batch.faults.get(row)
    if fault is not None:
        return fault
    flag = batch.flags[row]
    return StepResult(
        batch.observations[row],
        batch.rewards[row],
        bool(flag & TERMINATED),
        bool(flag & TRUNCATED),
        batch.infos.get(row, {}),
    )


def reset_result(batch: Batch, row: int) -> ResetResult | EnvFault:
    """Return one row of a batch of resets."""
    fault = batch.faults.get(row)
    return fault or ResetResult(batch.observations[row], batch.infos.get(row, {}))
