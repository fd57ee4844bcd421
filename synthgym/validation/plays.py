"""Whole episodes of scripted agents, many at once, and what they say against an environment."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, NamedTuple, Self, cast

import msgspec

from synthgym.agents import Agent, Script
from synthgym.contract import MAX_ACTION_CHARS, REWARD_TOLERANCE
from synthgym.envs.episode import RewardProblem, cut_action, reward_problem
from synthgym.sandbox import Pool, Session
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded, ResetResult, StepResult
from synthgym.spec import EnvRecord, Limits
from synthgym.validation.reasons import Reason
from synthgym.validation.report import Finding, reason_of
from synthgym.validation.telling import Reader

COSTLY: Final = frozenset({FaultKind.TIMEOUT, FaultKind.MEMORY, FaultKind.CRASH})
"""Faults that kill the worker: one is enough, another twenty would only take their time."""
MAX_SEEN_CHARS: Final = 32_000_000
"""Characters of observations after which no more is played: a light environment shows half a million."""
_REPLACED: Final = "<replaced>"
"""Key by which the sandbox says that an info is not what the environment returned."""
_BATCH: Final = 128
"""Episodes that are stepped together."""
_AT_ONCE: Final = 256
_SECONDS_AT_ONCE: Final = 0.1
"""Steps of scripts that are sent in one go: so many, and no more than take that long by those before."""

_BY_PROBLEM: Final = {
    RewardProblem.NOT_FINITE: Reason.REWARD_NOT_FINITE,
    RewardProblem.OUT_OF_RANGE: Reason.REWARD_OUT_OF_RANGE,
    RewardProblem.FULL_WITHOUT_END: Reason.FULL_REWARD_WITHOUT_END,
}


class Undecided(Exception):
    """A check cannot decide; the environment is refused for that, and the text says why."""


class Cast(NamedTuple):
    """Who plays which instance."""

    seed: int
    agent: Agent
    horizon: int | None = None
    """Turns after which the agent is stopped; `max_turns` of the environment when None."""


class Play(msgspec.Struct, frozen=True):
    """One episode as it went."""

    seed: int
    reset: ResetResult | EnvFault
    actions: tuple[str, ...] = ()
    steps: tuple[StepResult | EnvFault, ...] = ()
    """One for each action; a fault can only be the last."""
    success: bool = False
    problem: RewardProblem | None = None
    """What is wrong with the last reward."""
    empty_turn: int | None = None
    """The first turn whose observation has no text, though the episode went on."""
    replaced_turn: int | None = None
    """The first turn whose info is not what the environment returned; 0 is the reset."""

    @property
    def fault(self) -> EnvFault | None:
        """What went wrong in the environment itself; rewards are `problem`."""
        last = self.steps[-1] if self.steps else self.reset
        return last if isinstance(last, EnvFault) else None

    @property
    def results(self) -> tuple[StepResult, ...]:
        """The steps that gave something."""
        found = self.steps if self.fault is None else self.steps[:-1]
        return cast("tuple[StepResult, ...]", found)  # only the last can be a fault

    @property
    def observations(self) -> tuple[str, ...]:
        """What was seen, the observation of reset first."""
        first = () if isinstance(self.reset, EnvFault) else (self.reset.observation,)
        return (*first, *[step.observation for step in self.results])

    @property
    def rewards(self) -> tuple[float, ...]:
        """What each step paid."""
        return tuple([step.reward for step in self.results])

    @property
    def done(self) -> bool:
        """Whether the environment itself ended the episode."""
        last = self.steps[-1] if self.steps else None
        return isinstance(last, StepResult) and (last.terminated or last.truncated)

    def evidence(self, reason: Reason, detail: str = "", turn: int | None = None) -> Finding:
        """A finding that this episode shows, at its end or after that many actions."""
        actions = self.actions if turn is None else self.actions[:turn]
        seen = self.observations[: len(actions) + 1]
        return Finding(reason, detail, self.seed, None, actions, seen[-1] if seen else "")

    def findings(self) -> Iterator[Finding]:
        """What this episode says against the environment, whoever played it."""
        if self.fault is not None:
            where = f"turn {len(self.steps)}: " if self.steps else ""
            detail = f"{where}{self.fault.kind}: {self.fault.detail}"
            yield self.evidence(reason_of(self.fault), detail)
        elif self.problem is not None:
            total = sum(self.rewards)
            detail = f"turn {len(self.steps)}: {self.problem} (it is {total:g})"
            yield self.evidence(_BY_PROBLEM[self.problem], detail)
        if self.empty_turn is not None:
            yield self.evidence(Reason.STEP_EMPTY, f"turn {self.empty_turn}", self.empty_turn)
        if self.replaced_turn is not None:
            turn = self.replaced_turn
            yield self.evidence(Reason.INFO_NOT_JSON, f"turn {turn}", turn)


@dataclass(slots=True)
class _Course:
    """An episode in the making."""

    session: Session
    agent: Agent
    script: Sequence[str]
    """All that the agent will do, where that is known."""
    seed: int
    horizon: int
    reset: ResetResult | EnvFault
    observation: str = ""
    paid: float = 0.0
    live: bool = True
    success: bool = False
    problem: RewardProblem | None = None
    empty_turn: int | None = None
    replaced_turn: int | None = None
    actions: list[str] = field(default_factory=list)
    steps: list[StepResult | EnvFault] = field(default_factory=list)

    def next_action(self) -> str | None:
        """What the agent does next; None when the episode is over or the agent is."""
        if not self.live:
            return None
        action = self.agent(self.observation)
        if action is None or len(action) <= MAX_ACTION_CHARS:
            return action
        return cut_action(action)

    def take(self, action: str, result: StepResult | EnvFault, floor: float) -> int:
        """Enter one more turn, by the rules of `synthgym.envs.episode`; the characters that it showed."""
        self.actions.append(action)
        self.steps.append(result)
        if isinstance(result, EnvFault):
            self.live = False
            return 0
        turn, observation = len(self.actions), result.observation
        if (
            turn < self.horizon
            and not (result.reward or result.terminated or result.truncated or result.info)
            and observation
            and not observation.isspace()
        ):  # most turns, and none of what follows would do anything
            self.observation = observation
            return len(observation)
        if result.info and _REPLACED in result.info and self.replaced_turn is None:
            self.replaced_turn = turn
        if result.reward or result.terminated:
            self.problem = reward_problem(self.paid, result.reward, result.terminated, floor)
            self.paid += result.reward
        self.observation = observation
        if self.problem is not None or result.terminated or result.truncated:
            self.live = False
            full = self.paid >= 1.0 - REWARD_TOLERANCE
            self.success = self.problem is None and result.terminated and full
            return len(observation)
        if not observation or observation.isspace():
            self.empty_turn = self.empty_turn or turn
        if turn >= self.horizon:
            self.live = False
        return len(observation)

    def take_all(
        self, actions: Sequence[str], results: Sequence[StepResult | EnvFault], floor: float
    ) -> int:
        """`take`, turn by turn, until the episode is over; the turns in which nothing happens in one go."""
        shown = count = 0
        for result in results[: max(0, self.horizon - 1 - len(self.actions))]:
            if isinstance(result, EnvFault) or result.reward or result.terminated:
                break
            observation = result.observation
            if result.truncated or result.info or not observation or observation.isspace():
                break
            self.observation = observation
            shown += len(observation)
            count += 1
        self.actions += actions[:count]
        self.steps += results[:count]
        for action, result in zip(actions[count:], results[count:], strict=False):
            if not self.live:
                break  # what comes after a reward that is not allowed does not count
            shown += self.take(action, result, floor)
        return shown

    def play(self) -> Play:
        """What it came to."""
        return Play(
            self.seed,
            self.reset,
            tuple(self.actions),
            tuple(self.steps),
            self.success,
            self.problem,
            self.empty_turn,
            self.replaced_turn,
        )


class Trial:
    """The sessions that a candidate is tried in, and what the checks have learnt of it."""

    def __init__(self, record: EnvRecord, pool: Pool, seeds: Sequence[int], limits: Limits) -> None:
        self.record = record
        self.pool = pool
        self.seeds = tuple(seeds)
        self.limits = limits
        self.loaded: Loaded | None = None
        self.first: dict[int, ResetResult] = {}
        """What the first reset with each seed gave."""
        self.witnesses: dict[int, tuple[str, ...]] = {}
        """What `solution()` gave, by seed."""
        self.wins: dict[int, Play] = {}
        """The winning plays of the witnesses, by seed."""
        self.hints: dict[tuple[int, int], str] = {}
        """By seed and level."""
        self.idle: list[Play] = []
        """Plays in which nothing but nonsense was sent."""
        self.kept: list[Play] = []
        """Plays of agents that understand nothing; the determinism check plays some again."""
        self.reader: Reader | None = None
        """Reads texts for the checks of leaks; there is one as soon as the witnesses are known."""
        self.tally: dict[str, tuple[int, int]] = {}
        """(episodes won, episodes played) of each agent that understands nothing."""
        self.seconds_per_step = 0.0
        """Of the last call of `play`, in wall-clock time, all its episodes together; resets do not count."""
        self._step_seconds = 0.0
        self._at_once = 1
        self._against: dict[Reason, Finding] = {}
        self._seen_chars = 0
        self._stepped = False
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

    @property
    def few(self) -> tuple[int, ...]:
        """The first seeds, for agents that do the same on every instance."""
        return self.seeds[:5]

    @property
    def horizon(self) -> int:
        """Turns that agents which understand nothing get: half as many again as the longest witness needs."""
        longest = max((len(play.actions) for play in self.wins.values()), default=100)
        return min(self.record.max_turns, longest + longest // 2 + 4)

    @property
    def first_observation(self) -> str:
        """That of the first seed; empty when its reset failed."""
        found = self.first.get(self.seeds[0]) if self.seeds else None
        return "" if found is None else found.observation

    def session(self, index: int = 0) -> Session:
        """The session of that number; they are opened as they are needed and used again."""
        while len(self._sessions) <= index:
            session = self.pool.open(self.record, self.limits)
            self._open.callback(session.close)
            self._sessions.append(session)
        return self._sessions[index]

    def play(self, cast: Sequence[Cast], *, judged: bool = True) -> list[Play]:
        """Play episodes, in order; unless `judged` is False, note what they say against the environment.

        The first ones of a trial go alone: they may kill the worker. After one that does, no other
        is played, so there may be fewer plays than were asked for. `Undecided` when far too much
        text was seen.
        """
        plays: list[Play] = []
        alone = 0 if self._stepped else 1
        batches = [cast[:alone]] if alone else []
        batches += [cast[start : start + _BATCH] for start in range(alone, len(cast), _BATCH)]
        self._step_seconds, steps = 0.0, 0
        for batch in batches:
            plays += self._play_batch(batch)
            if any(play.fault is not None and play.fault.kind in COSTLY for play in plays):
                break
        for play in plays:
            steps += len(play.steps)
            self._note_reset(play)
            if judged:
                for finding in play.findings():
                    self._against.setdefault(finding.reason, finding)
        self._stepped = self._stepped or steps > 0
        self.seconds_per_step = self._step_seconds / max(steps, 1)
        return plays

    def against(self) -> list[Finding]:
        """What judged plays have said against the environment since the last call."""
        found = list(self._against.values())
        self._against.clear()
        return found

    def _note_reset(self, play: Play) -> None:
        if isinstance(play.reset, EnvFault):
            return
        first = self.first.setdefault(play.seed, play.reset)
        if play.reset != first:
            finding = play.evidence(Reason.NOT_DETERMINISTIC, "a second reset() differs", 0)
            self._against.setdefault(finding.reason, finding)

    def _play_batch(self, cast: Sequence[Cast]) -> list[Play]:
        floor = self.record.reward_floor
        self.session(len(cast) - 1)
        calls = list(zip(self._sessions, [part.seed for part in cast], strict=False))
        courses = [
            self._begin(session, part, reset)
            for (session, _), part, reset in zip(
                calls, cast, self.pool.reset_many(calls), strict=True
            )
        ]
        self._play_scripts([course for course in courses if course.script])
        live = [course for course in courses if not course.script]
        while live:
            moves = [course.next_action() for course in live]
            live = [course for course, move in zip(live, moves, strict=True) if move is not None]
            if not live:
                break
            actions = [move for move in moves if move is not None]
            sessions = [course.session for course in live]
            began = time.perf_counter()
            results = self.pool.step_many(list(zip(sessions, actions, strict=True)))
            self._step_seconds += time.perf_counter() - began
            for course, action, result in zip(live, actions, results, strict=True):
                self._seen_chars += course.take(action, result, floor)
            self._check_chars()
        return [course.play() for course in courses]

    def _play_scripts(self, courses: Sequence[_Course]) -> None:
        """Play to their ends those whose actions are known: many turns in one go, as long as steps are quick."""
        floor = self.record.reward_floor
        live = [course for course in courses if course.live]
        while live:
            scripts = [course.script[len(course.actions) :] for course in live]
            began = time.perf_counter()
            sessions = [course.session for course in live]
            found = self.pool.step_through(sessions, scripts, self._at_once)
            seconds = time.perf_counter() - began
            self._step_seconds += seconds
            for course, script, results in zip(live, scripts, found, strict=True):
                self._seen_chars += course.take_all(script, results, floor)
            self._check_chars()
            a_step = seconds / sum(map(len, found))
            self._at_once = int(min(_AT_ONCE, _SECONDS_AT_ONCE / a_step))
            live = [item for item in live if item.live and len(item.actions) < len(item.script)]

    def _check_chars(self) -> None:
        if self._seen_chars > MAX_SEEN_CHARS:
            raise Undecided(f"its observations have more than {MAX_SEEN_CHARS} characters")

    def _begin(self, session: Session, part: Cast, reset: ResetResult | EnvFault) -> _Course:
        horizon = self.record.max_turns
        if part.horizon is not None:
            horizon = min(horizon, part.horizon)
        script: Sequence[str] = ()
        if isinstance(part.agent, Script):
            script = part.agent.first(horizon)
            if max(map(len, script), default=0) > MAX_ACTION_CHARS:
                script = [cut_action(action) for action in script]
        course = _Course(session, part.agent, script, part.seed, horizon, reset)
        if isinstance(reset, EnvFault):
            course.live = False
        else:
            course.observation = reset.observation
            course.replaced_turn = 0 if _REPLACED in reset.info else None
        return course
