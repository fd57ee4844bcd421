"""One instance of one source, as its user sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self, cast

from synthgym.contract import DEFAULT_HINT_LEVEL, HINT_LEVELS, MAX_ACTION_CHARS
from synthgym.errors import ConfigError, ResetNeeded, SandboxError
from synthgym.sandbox.batch import Episode, Job, Result, Source
from synthgym.sandbox.protocol import Hint, Op, Reset, Solution, Step
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded, ResetResult, StepResult

_MAX_TEXTS: Final = 4096
"""Hints and solutions remembered for one source."""
_MAX_SEED: Final = (1 << 63) - 1
_UNFINISHED: Final = EnvFault(FaultKind.ERROR, "reset", "the last reset did not finish")


class Session:
    """One instance of one source, by way of its pool. Not thread-safe: one call at a time.

    A step is recorded, so that the instance can be brought back when its worker is gone. After a
    fault of `reset` every step gives that fault again until a reset succeeds.
    """

    def __init__(
        self,
        source: Source,
        episode: Episode,
        run: Callable[[Sequence[Job]], None],
        release: Callable[[Source, Episode], None],
    ) -> None:
        self._source = source
        self._episode = episode
        self._run = run
        self._release = release
        self._closed = False

    def load(self) -> Loaded | EnvFault:
        """Checks, compiles and runs the source, once for all its sessions; what it holds."""
        if isinstance(self._source.loaded, Loaded):
            return self._source.loaded
        job = self._job("load", self._source.limits.load_seconds, None)
        return cast(Loaded | EnvFault, self._result(job))

    def reset(self, seed: int) -> ResetResult | EnvFault:
        """Make the instance anew and reset it with `seed`.

        `ConfigError` when that is not an int in 0..2**63-1.
        """
        return cast(ResetResult | EnvFault, self._result(self.reset_job(seed)))

    def step(self, action: str) -> StepResult | EnvFault:
        """Step the instance.

        `ResetNeeded` before the first reset. Actions are cut to 4096 characters.
        """
        return cast(StepResult | EnvFault, self._result(self.step_job(action)))

    def hint(self, seed: int, level: int = DEFAULT_HINT_LEVEL) -> str | EnvFault:
        """Return the hint for the state just after a reset with `seed`.

        It comes from another instance, so it cannot disturb this one, and is remembered.
        """
        if level not in HINT_LEVELS:
            raise ConfigError(f"hint level must be one of {HINT_LEVELS}, got {level!r}")
        seconds = self._source.limits.hint_seconds
        return cast(
            str | EnvFault,
            self._text("hint", _checked(seed), level, seconds, lambda n: Hint(n, seed, level)),
        )

    def solution(self, seed: int) -> tuple[str, ...] | EnvFault:
        """Return the actions that win from the state just after a reset with `seed`.

        They come from another instance, so they cannot disturb this one, and are remembered.
        """
        seconds = self._source.limits.solution_seconds
        return cast(
            tuple[str, ...] | EnvFault,
            self._text("solution", _checked(seed), 0, seconds, lambda n: Solution(n, seed)),
        )

    def close(self) -> None:
        """Give the instance up; the worker ends with the last session of its source. Twice is fine."""
        if not self._closed:
            self._closed = True
            self._release(self._source, self._episode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def reset_job(self, seed: int) -> Job:
        """Return the call of `reset(seed)`, for the pool to run with others."""
        _checked(seed)
        episode = self._episode
        job = self._job(
            "reset", self._source.limits.reset_seconds, lambda n: Reset(n, episode.instance, seed)
        )
        episode.home, episode.broken = None, _UNFINISHED
        return job

    def step_job(self, action: str) -> Job:
        """Return the call of `step(action)`, for the pool to run with others."""
        episode = self._episode
        if episode.seed is None and episode.broken is None:
            raise ResetNeeded("call reset(seed) before the first step")
        if not isinstance(action, str):
            raise ConfigError(f"action must be a str, got {type(action).__name__}")
        text = action[:MAX_ACTION_CHARS]
        if not text.isascii():  # a lone surrogate cannot be sent
            text = text.encode("utf-8", "replace").decode()
        limits = self._source.limits
        seconds = min(limits.step_seconds, limits.episode_seconds - episode.spent)
        job = self._job("step", seconds, lambda n: Step(n, episode.instance, text))
        if episode.broken is not None:
            job.result = episode.broken
        elif seconds <= 0:
            job.fail(
                FaultKind.TIMEOUT, f"the episode has used its {limits.episode_seconds:g} seconds"
            )
        return job

    def _text(
        self, call: str, seed: int, level: int, seconds: float, make: Callable[[int], Op]
    ) -> Result | EnvFault | None:
        known = self._source.texts.get((call, seed, level))
        if known is not None:
            return known
        result = self._result(self._job(call, self._source.limits.reset_seconds + seconds, make))
        if result is not None and not isinstance(result, EnvFault):
            if len(self._source.texts) >= _MAX_TEXTS:
                self._source.texts.clear()
            self._source.texts[call, seed, level] = result
        return result

    def _job(self, call: str, seconds: float, make: Callable[[int], Op] | None) -> Job:
        if self._closed:
            raise SandboxError("the session is closed")
        return Job(self._source, self._episode, call, seconds, make)

    def _result(self, job: Job) -> Result | EnvFault | None:
        self._run([job])
        return job.result


def _checked(seed: int) -> int:
    if type(seed) is not int or not 0 <= seed <= _MAX_SEED:
        raise ConfigError(f"seed must be an int in 0..2**63-1, got {seed!r}")
    return seed
