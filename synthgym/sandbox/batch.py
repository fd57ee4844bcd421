"""Answers to many calls at once, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, TypeVar

from synthgym.sandbox.protocol import MESSAGE_BYTES, TERMINATED, TRUNCATED, weight_of
from synthgym.sandbox.results import EnvFault, ResetResult, StepResult

if TYPE_CHECKING:
    from synthgym.sandbox.session import Session

_T = TypeVar("_T")


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


def in_turns(scripts: Sequence[Sequence[str]], at_once: int) -> tuple[list[int], list[str]]:
    """Return which script speaks in each row, and what it says: all their first actions, then all their second ones.

    Only whole turns, as many as are no more than `at_once` rows and fit into one operation; the first one always.
    """
    speakers: list[int] = []
    actions: list[str] = []
    weight = 0
    for turn in zip_longest(*scripts):
        these = [number for number, action in enumerate(turn) if action is not None]
        said = [action for action in turn if action is not None]
        weight += weight_of(said)
        if actions and (len(actions) + len(said) > at_once or weight > MESSAGE_BYTES):
            break
        speakers += these
        actions += said
    return speakers, actions


def step_results(batch: Batch) -> list[StepResult | EnvFault]:
    """Return all rows of a batch of steps."""
    columns = zip(batch.observations, batch.rewards, strict=True)
    found: list[StepResult | EnvFault] = [
        StepResult(observation, reward, False, False, {}) for observation, reward in columns
    ]
    ends = [row for row, flag in enumerate(batch.flags) if flag] if any(batch.flags) else ()
    for row in (*ends, *batch.infos, *batch.faults):  # few, nearly always
        found[row] = step_result(batch, row)
    return found


def up_to_end(
    batch: Batch, speakers: Sequence[int], count: int
) -> list[list[StepResult | EnvFault]]:
    """Return the rows of each of `count` speakers, up to the first that is an end or a fault."""
    found: list[list[StepResult | EnvFault]] = [[] for _ in range(count)]
    results = step_results(batch)
    if not (batch.faults or any(batch.flags)):
        for speaker, result in zip(speakers, results, strict=True):
            found[speaker].append(result)
        return found
    over: set[int] = set()
    for row, (speaker, result) in enumerate(zip(speakers, results, strict=True)):
        if speaker not in over:
            found[speaker].append(result)
            if batch.flags[row] or row in batch.faults:
                over.add(speaker)
    return found


def part_of(rows: list[int]) -> Sequence[int]:
    """Return `rows` as a range when they are consecutive, so that columns can be copied whole."""
    return range(rows[0], rows[-1] + 1) if rows[-1] - rows[0] == len(rows) - 1 else rows


def pick(column: Sequence[_T], part: Sequence[int]) -> Sequence[_T]:
    """Return the items of `column` in these rows."""
    if isinstance(part, range):
        return column[part.start : part.stop]
    return [column[row] for row in part]
