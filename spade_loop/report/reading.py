"""The files of a run, read without changing them: a report may be written while the run goes on.

`RunDirectory.open` is not used, because it brings a run back to its last commit and so would break a live one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from spade_loop.config import Config
from spade_loop.errors import RunStateError
from spade_loop.state import RunDirectory
from spade_loop.types import Arm, Outcome, Role


class Arms(msgspec.Struct, frozen=True, kw_only=True):
    """A mean of each arm; None when nothing was measured."""

    plain: float | None = None
    hinted: float | None = None


class MeanRegret(msgspec.Struct, frozen=True, kw_only=True):
    """Mean over the environments of an iteration."""

    mean: float | None = None
    standard_error: float | None = None


class RoleNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What one role brought to an iteration's batch."""

    rows: int = 0
    live_rows: int = 0
    trained_tokens: int = 0
    abs_advantage: float | None = None
    reward_mean: float | None = None
    zero_variance_groups: int = 0

    @property
    def reward(self) -> float | None:
        """Mean reward; None without rows, where the file holds a zero."""
        return self.reward_mean if self.rows else None


class UpdateNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What the optimiser step did."""

    rows: int = 0
    live_rows: int = 0
    skipped: bool = False
    loss: float | None = None
    grad_norm: float | None = None
    logprob_gap: float | None = None


class RehearsalNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The demonstrations of an update."""

    rows: int = 0
    trained_tokens: int = 0
    loss: float | None = None


class MetricsRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `metrics.jsonl`."""

    iteration: int
    skills: tuple[str, ...] = ()
    designs: dict[str, int] = msgspec.field(default_factory=dict)
    refused_for: dict[str, int] = msgspec.field(default_factory=dict)
    played: int = 0
    faulty: int = 0
    solve_rate: Arms = Arms()
    turns: dict[str, int] = msgspec.field(default_factory=dict)
    parse_failures: dict[str, dict[str, int]] = msgspec.field(default_factory=dict)
    regret: MeanRegret = MeanRegret()
    roles: dict[str, RoleNumbers] = msgspec.field(default_factory=dict)
    rehearsal: RehearsalNumbers = RehearsalNumbers()
    update: UpdateNumbers = UpdateNumbers()

    @property
    def made(self) -> int:
        """Designs of the iteration, whatever became of them."""
        return sum(self.designs.values())

    @property
    def admitted(self) -> int:
        """Designs that were admitted."""
        return self.designs.get(Outcome.ADMITTED, 0)

    def role(self, role: Role) -> RoleNumbers:
        """The numbers of a role; zeros when it brought nothing."""
        return self.roles.get(role, RoleNumbers())


class MeasuredNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """An environment's paired measurement in the iteration that admitted it."""

    regret: float | None = None
    standard_error: float | None = None
    solve_rate: float | None = None
    hinted_solve_rate: float | None = None
    seeds: int = 0
    fault_share: float | None = None


class DesignRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `designs.jsonl`: one attempt of the designer."""

    iteration: int
    index: int
    skill: str = ""
    document: str = ""
    designer: str = ""
    attempt: int = 0
    outcome: str = ""
    reasons: tuple[str, ...] = ()
    detail: str = ""
    env_id: str | None = None
    digest: str | None = None
    measured: MeasuredNumbers | None = None


class TurnRow(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange of an episode."""

    observation: str = ""
    reply: str = ""
    action: str = ""
    status: str = ""
    reward: float | None = None


class EpisodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `episodes.jsonl`."""

    iteration: int
    digest: str
    seed: int
    play: int = 0
    arm: Arm
    episode_return: float | None = msgspec.field(name="return", default=None)
    success: bool = False
    stop: str = ""
    fault: dict[str, Any] | None = None
    tokens: int = 0
    turns: tuple[TurnRow, ...] = ()


class TimingRow(msgspec.Struct, frozen=True, kw_only=True):
    """A line of `timings.jsonl`."""

    iteration: int
    seconds: float | None = None
    parts: dict[str, float] = msgspec.field(default_factory=dict)


RowT = TypeVar("RowT", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Run:
    """A run as its files tell it, but for the episodes, which are read one at a time."""

    path: Path
    config: Config
    metrics: tuple[MetricsRow, ...]
    """One for each complete iteration, oldest first."""
    designs: tuple[DesignRow, ...]
    seconds: dict[int, float | None]
    """Wall time by iteration."""
    parts: dict[str, float]
    """Wall time of all iterations, by what it went into."""

    @property
    def done(self) -> int:
        """Iterations that are complete."""
        return len(self.metrics)

    def episodes(self) -> Iterator[EpisodeRow]:
        """Rows of `episodes.jsonl`, one after the other: the file is the largest of a run."""
        return rows(self.path / "episodes.jsonl", EpisodeRow)


def read_run(path: Path) -> Run:
    """The run in a directory. `RunStateError` when there is none, or when a line of a file is damaged.

    Files that are missing, or empty, stand for a run that has not got that far.
    """
    if not (path / "config.json").is_file():
        raise RunStateError(
            f"{path} is not a run directory: it has no config.json; give the --out directory of a `spade-loop run`"
        )
    metrics = {row.iteration: row for row in rows(path / "metrics.jsonl", MetricsRow)}
    timings = tuple(rows(path / "timings.jsonl", TimingRow))
    parts: Counter[str] = Counter()
    for timing in timings:
        parts.update(timing.parts)
    return Run(
        path=path,
        config=RunDirectory(path).config(),
        metrics=tuple(metrics[i] for i in sorted(metrics)),
        designs=tuple(rows(path / "designs.jsonl", DesignRow)),
        seconds={t.iteration: t.seconds for t in timings},
        parts=dict(parts),
    )


def rows(path: Path, kind: type[RowT]) -> Iterator[RowT]:
    """The complete lines of a `.jsonl` file as rows. A last line without its end was cut by a kill and is left out.

    Lines end at a line feed alone: text of a model may hold every other character that Python splits lines at.
    """
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, start=1):
                if line.endswith("\n") and line.strip():
                    yield _row(line, kind, f"{path}, line {number}")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise RunStateError(f"{path} cannot be read: {error}") from error


def _row(line: str, kind: type[RowT], where: str) -> RowT:
    # The standard library's decoder, not msgspec's, which refuses the lone surrogates that hostile text may hold.
    try:
        return msgspec.convert(json.loads(line), kind)
    except (json.JSONDecodeError, msgspec.ValidationError) as error:
        raise RunStateError(
            f"{where}: expected a row as this version writes it, got {line[:80]!r}: {error}"
        ) from error
