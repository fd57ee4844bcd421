"""Tasks as episodes of one turn: what is asked, and how a reply is graded.

No code of a user's file runs in this process: a checker is put into a source of the contract, and played in the sandbox
like any environment. Its failures are the task's, never the agent's.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from spade_loop.episodes import Play
from spade_loop.errors import ConfigError, ContextError, MissingExtraError
from spade_loop.evaluation.grading import Graders, GradingError
from spade_loop.hints import LABEL, placebo
from spade_loop.speaking import Decoding, Speaker
from spade_loop.tasks import Task, normalised
from spade_loop.types import NOTHING, Arm, Message, StopReason, Trajectory, Turn
from synthgym.contract import MAX_ACTION_CHARS, MAX_TURNS, REWARD_TOLERANCE
from synthgym.envs import ActionFormat, ParseStatus, parse_action
from synthgym.errors import SynthGymError
from synthgym.sandbox import EnvFault, FaultKind, Pool, Session, StepResult, Violation
from synthgym.spec import EnvRecord

BOX: Final = r"Write your final answer in \boxed{}."
"""Follows the prompt of a task whose answer has to be found in the reply."""
FORMATS: Final = (ActionFormat.BOXED, ActionFormat.ANSWER)
READABLE: Final = "spade_loop.gap.formulas:readable"
EQUAL: Final = "spade_loop.evaluation.graders.math_answers:equal"
MAX_REPLY: Final = (MAX_ACTION_CHARS - 1) * (MAX_TURNS - 1)
"""Characters of a reply that a checker can be handed."""
_WRAPPER: Final = '''

class TaskEnv:
    """A reply, piece by piece; the last one has it graded."""

    max_turns = {turns}
    hint = "none"

    def reset(self, seed):
        self.pieces = []
        return "A reply is waited for.", {{}}

    def step(self, action):
        self.pieces.append(action[1:])
        if action[0] == "+":
            return "Go on.", 0.0, False, False, {{}}
        score = check("".join(self.pieces))
        if not isinstance(score, (bool, int, float)) or not 0.0 <= score <= 1.0:
            raise ValueError("check() must return a bool or a number in [0, 1], got " + repr(score)[:100])
        return "Graded.", float(score), True, False, {{}}

    def solution(self):
        return []
'''


class TaskPlayer:
    """Plays tasks with a `Speaker`. Owned by a `with`: it starts processes when they are first needed."""

    def __init__(
        self, speaker: Speaker, pool: Pool, tasks: Iterable[Task], decoding: Decoding
    ) -> None:
        """Checkers run in workers of `pool`.

        `ConfigError` names file and line of a checker that the sandbox refuses, and of a numeric answer that is no
        number or formula; `MissingExtraError` for numeric answers without math-verify.
        """
        self._speaker = speaker
        self._pool = pool
        self._decoding = decoding
        self._graders: Graders | None = None
        listed = list(tasks)
        self._tasks = {task.spec.digest: task for task in listed}
        try:
            for task in listed:
                self._prepare(task)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the processes that grade; the pool is left to its owner."""
        if self._graders is not None:
            self._graders.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def play(self, play: Play, seed: int) -> Trajectory:
        """Ask once and grade; called from many threads at once."""
        task = self._tasks[play.spec.digest]
        prompt = prompt_of(task, play.arm)
        try:
            reply = self._speaker.say([Message("user", prompt)], self._decoding, seed)
        except ContextError:
            return _trajectory(play, (), StopReason.CONTEXT)
        score, answer, status = self._grade(task, reply.text, play.seed, self._pool)
        if isinstance(score, EnvFault):
            turn = Turn(prompt, reply.text, "", status, 0.0)
            return _trajectory(play, (turn,), StopReason.FAULT, score)
        won = score >= 1.0 - REWARD_TOLERANCE
        turn = Turn(prompt, reply.text, answer, status, score)
        return _trajectory(play, (turn,), StopReason.SUCCESS if won else StopReason.FAILURE)

    def fails_again(self, trajectory: Trajectory) -> bool:
        """Whether the same reply makes the checker fail again in a worker of its own."""
        if not trajectory.turns:
            return False
        with Pool(max_workers=1) as pool:
            task = self._tasks[trajectory.digest]
            score, _, _ = self._grade(task, trajectory.turns[0].reply, trajectory.seed, pool)
        return isinstance(score, EnvFault) and score.kind != FaultKind.LOST

    def _prepare(self, task: Task) -> None:
        if task.check == "python":
            refuse_checker(task, self._pool)
        elif task.check == "numeric":
            if self._graders is None:
                if importlib.util.find_spec("math_verify") is None:
                    raise MissingExtraError(
                        f"{task.where}: numeric answers need the package math-verify: pip install 'synthgym[eval]'"
                    )
                self._graders = Graders()
            if not self._graders.call(READABLE, answer=task.answer):
                raise ConfigError(
                    f"{task.where}: a numeric answer must be a number or a formula, got {task.answer!r:.60}: "
                    "write one, or leave out the check to compare texts"
                )

    def _grade(
        self, task: Task, reply: str, seed: int, pool: Pool
    ) -> tuple[float | EnvFault, str, str]:
        """Score or fault, the answer that was read, and how reading it went (`ParseStatus`, or `checker`)."""
        if task.check == "python":
            text = reply.encode("utf-8", "replace").decode()
            if len(text) > MAX_REPLY:
                return 0.0, "", str(ParseStatus.TOO_LONG)
            status = ParseStatus.OK if text.strip() else ParseStatus.EMPTY
            return run_checker(task, text, seed, pool), text, str(status)
        parsed = parse_action(reply, FORMATS)
        if parsed.status is not ParseStatus.OK:
            return 0.0, "", str(parsed.status if reply.strip() else ParseStatus.EMPTY)
        if task.check == "exact":
            right = normalised(parsed.action) == normalised(task.answer)
            return float(right), parsed.action, str(parsed.status)
        assert self._graders is not None
        try:
            right = self._graders.call(EQUAL, expected=task.answer, answer=parsed.action)
        except GradingError:
            # The answer that was expected can be read: it was the agent's that could not.
            return 0.0, parsed.action, "checker"
        return float(right), parsed.action, str(parsed.status)


def prompt_of(task: Task, arm: Arm) -> str:
    """What the model reads: prompt, hint of its arm, and where the answer belongs unless a checker reads all."""
    parts = [task.prompt.strip()]
    if arm is not Arm.PLAIN:
        hint = task.hint.strip()
        parts.append(LABEL + (hint if arm is Arm.HINTED else placebo(hint)))
    if task.check != "python":
        parts.append(BOX)
    return "\n\n".join(parts)


def checker_record(task: Task) -> EnvRecord:
    """The checker as a source of the contract."""
    source = task.checker.rstrip() + "\n" + _WRAPPER.format(turns=MAX_TURNS)
    return EnvRecord(source=source, entry="TaskEnv", max_turns=MAX_TURNS)


def refuse_checker(task: Task, pool: Pool) -> None:
    """`ConfigError` with file and line for a checker that does not load: syntax, policy, no `check`, an exception."""
    try:
        record = checker_record(task)
    except SynthGymError as error:
        raise ConfigError(f"{task.where}: the checker is too long: {error}") from error
    found = pool.check(record.source)
    if isinstance(found, EnvFault):
        raise ConfigError(f"{task.where}: the checker cannot be read: {found.detail}")
    if found:
        raise ConfigError(f"{task.where}: the checker is refused, {_told(found[0])}")
    defined = EnvRecord(
        source=record.source.replace("self.pieces = []", "self.pieces = [check]"),
        entry=record.entry,
        max_turns=record.max_turns,
    )
    with pool.open(defined) as session:
        ready = session.reset(0)
    if isinstance(ready, EnvFault):
        raise ConfigError(
            f"{task.where}: the checker must be Python that defines check(reply), got {ready.kind} in {ready.call}: "
            f"{ready.detail}"
        )


def run_checker(task: Task, reply: str, seed: int, pool: Pool) -> float | EnvFault:
    """What the checker makes of a reply, in a worker; a fault when it raises, hangs, or returns no score."""
    size = MAX_ACTION_CHARS - 1
    pieces = [reply[i : i + size] for i in range(0, len(reply), size)] or [""]
    with pool.open(checker_record(task)) as session:
        ready = session.reset(seed)
        if isinstance(ready, EnvFault):
            return ready
        for piece in pieces[:-1]:
            step = session.step(f"+{piece}")
            if isinstance(step, EnvFault):
                return step
        return _last(session, pieces[-1])


def _last(session: Session, piece: str) -> float | EnvFault:
    step: StepResult | EnvFault = session.step(f"={piece}")
    return step if isinstance(step, EnvFault) else step.reward


def _told(violation: Violation) -> str:
    return f"its line {violation.line}: {violation.message}"


def _trajectory(
    play: Play, turns: tuple[Turn, ...], stop: StopReason, fault: EnvFault | None = None
) -> Trajectory:
    return Trajectory(
        digest=play.spec.digest,
        seed=play.seed,
        play=play.index,
        arm=play.arm,
        prompt_ids=(),
        completion=NOTHING,
        turns=turns,
        episode_return=sum(turn.reward for turn in turns),
        success=stop is StopReason.SUCCESS,
        stop=stop,
        fault=fault,
    )
