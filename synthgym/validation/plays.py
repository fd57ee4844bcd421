"""Whole episodes of scripted agents, many at once, and what they say against an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from synthgym.envs.episode import (
    Episode,
    RewardProblem,
    advance,
    begin,
    cut_action,
    reward_problem,
)
from synthgym.sandbox import Pool, Session
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded, ResetResult, StepResult
from synthgym.spec import EnvRecord, Limits
from synthgym.validation.reasons import Finding, Reason, reason_of

Agent = Callable[[str], str | None]
"""From the last observation to the next action; None when it has nothing more to say."""

COSTLY: Final = frozenset({FaultKind.TIMEOUT, FaultKind.MEMORY, FaultKind.CRASH})
"""Faults that kill the worker: one is enough, another twenty would only take their time."""
_BATCH: Final = 64
"""Episodes that are stepped together."""

_BY_PROBLEM: Final = {
    RewardProblem.NOT_FINITE: Reason.REWARD_NOT_FINITE,
    RewardProblem.OUT_OF_RANGE: Reason.REWARD_OUT_OF_RANGE,
    RewardProblem.FULL_WITHOUT_END: Reason.FULL_REWARD_WITHOUT_END,
}


@dataclass(frozen=True, slots=True)
class Play:
    """One episode as it went."""

    seed: int
    reset: ResetResult | EnvFault
    actions: tuple[str, ...] = ()
    steps: tuple[StepResult | EnvFault, ...] = ()
    success: bool = False
    problem: RewardProblem | None = None

    @property
    def fault(self) -> EnvFault | None:
        """What went wrong in the environment itself; rewards are `problem`."""
        last = self.steps[-1] if self.steps else self.reset
        return last if isinstance(last, EnvFault) else None

    def finding(self) -> Finding | None:
        """What this episode says against the environment, whoever played it."""
        if self.fault is not None:
            where = f"turn {len(self.steps)}: " if self.steps else ""
            detail = f"{where}{self.fault.kind}: {self.fault.detail}"
            return Finding(reason_of(self.fault), detail, self.seed)
        if self.problem is not None:
            total = sum(step.reward for step in self.steps if isinstance(step, StepResult))
            detail = f"turn {len(self.steps)}: {self.problem} (it is {total:g})"
            return Finding(_BY_PROBLEM[self.problem], detail, self.seed)
        return None


@dataclass(slots=True)
class _Course:
    """An episode in the making."""

    session: Session
    agent: Agent
    seed: int
    reset: ResetResult | EnvFault
    episode: Episode | None
    """None when `reset` failed."""
    problem: RewardProblem | None = None
    actions: list[str] = field(default_factory=list)
    steps: list[StepResult | EnvFault] = field(default_factory=list)

    def next_action(self) -> str | None:
        """What the agent does next; None when the episode is over or the agent is."""
        if self.episode is None or self.episode.done:
            return None
        action = self.agent(self.episode.observation)
        return None if action is None else cut_action(action)

    def take(self, action: str, result: StepResult | EnvFault) -> None:
        """Enter one more turn."""
        assert self.episode is not None  # there was a next action
        if isinstance(result, StepResult):
            self.problem = reward_problem(self.episode.paid, result.reward, result.terminated)
        self.episode, _ = advance(self.episode, result)
        self.actions.append(action)
        self.steps.append(result)

    def play(self) -> Play:
        """What it came to."""
        success = self.episode is not None and self.episode.success
        return Play(
            self.seed, self.reset, tuple(self.actions), tuple(self.steps), success, self.problem
        )


class Trial:
    """The sessions that a candidate is tried in, and what the checks have learnt of it."""

    def __init__(self, record: EnvRecord, pool: Pool, seeds: Sequence[int], limits: Limits) -> None:
        self.record = record
        self.pool = pool
        self.seeds = tuple(seeds)
        self.limits = limits
        self.loaded: Loaded | None = None
        self.witnesses: dict[int, tuple[str, ...]] = {}
        self.plays: list[Play] = []
        """Episodes that the determinism check plays again."""
        self.first_observation = ""
        self.witness_turns: tuple[int, ...] = ()
        self.random_wins: int | None = None
        self._sessions: list[Session] = []
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._open.close()

    def session(self, index: int = 0) -> Session:
        """The session of that number; they are opened as they are needed and used again."""
        while len(self._sessions) <= index:
            session = self.pool.open(self.record, self.limits)
            self._open.callback(session.close)
            self._sessions.append(session)
        return self._sessions[index]

    def play(self, cast: Sequence[tuple[int, Agent]]) -> list[Play]:
        """Play (seed, agent) episodes, in order. The first goes alone: it may kill the worker."""
        plays: list[Play] = []
        batches = [cast[:1]]
        batches += [cast[start : start + _BATCH] for start in range(1, len(cast), _BATCH)]
        for batch in batches:
            plays += self._play_batch(batch)
            if any(play.fault is not None and play.fault.kind in COSTLY for play in plays):
                break
        return plays

    def _play_batch(self, cast: Sequence[tuple[int, Agent]]) -> list[Play]:
        calls = [(self.session(i), seed) for i, (seed, _) in enumerate(cast)]
        resets = self.pool.reset_many(calls)
        courses = [
            _Course(session, agent, seed, reset, self._episode(seed, reset))
            for (session, seed), (_, agent), reset in zip(calls, cast, resets, strict=True)
        ]
        live = courses
        while live:
            moves = [(course, course.next_action()) for course in live]
            turns = [(course, action) for course, action in moves if action is not None]
            if not turns:
                break
            results = self.pool.step_many([(course.session, action) for course, action in turns])
            for (course, action), result in zip(turns, results, strict=True):
                course.take(action, result)
            live = [course for course, _ in turns]
        return [course.play() for course in courses]

    def _episode(self, seed: int, reset: ResetResult | EnvFault) -> Episode | None:
        if isinstance(reset, EnvFault):
            return None
        return begin(seed, self.record.max_turns, reset)[0]


def scripted(actions: Sequence[str]) -> Agent:
    """An agent that plays these actions, whatever it sees."""
    rest = iter(actions)
    return lambda _observation: next(rest, None)


def plays_against(plays: Sequence[Play]) -> Iterator[Finding]:
    """One finding a reason: the first episode that shows it."""
    seen: set[Reason] = set()
    for play in plays:
        finding = play.finding()
        if finding is not None and finding.reason not in seen:
            seen.add(finding.reason)
            yield finding
