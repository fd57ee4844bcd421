"""One instance of one source, as its user sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from synthgym.contract import DEFAULT_HINT_LEVEL, HINT_LEVELS, MAX_ACTION_CHARS
from synthgym.errors import ConfigError, ResetNeeded, SandboxError
from synthgym.sandbox.link import Link
from synthgym.sandbox.protocol import Hint, Op, Solution
from synthgym.sandbox.results import EnvFault, FaultKind, Loaded, ResetResult, StepResult
from synthgym.sandbox.source import MAX_TEXTS, Source
from synthgym.sandbox.tasks import LoadTask, TextTask

if TYPE_CHECKING:
    from synthgym.sandbox.pool import Pool

_MAX_SEED: Final = (1 << 63) - 1
_Key = tuple[str, int, int]
"""What is remembered of a source: call, seed, level."""
_UNFINISHED: Final = EnvFault(FaultKind.ERROR, "reset", "the last reset did not finish")


class Session:
    """One instance of one source, by way of its pool. Not thread-safe: one call at a time.

    A step is recorded, so that the instance can be brought back when its worker is gone. After a
    fault of `reset` every step gives that fault again until a reset succeeds.
    """

    __slots__ = (
        "_closed",
        "actions",
        "awaited",
        "blocked",
        "broken",
        "busy",
        "home",
        "instance",
        "observation",
        "paid",
        "pool",
        "seed",
        "source",
        "spent",
    )

    def __init__(self, pool: Pool, source: Source, instance: int) -> None:
        self.pool = pool
        self._closed = False
        self.source = source
        self.instance = instance
        """Its number, unique in the pool."""
        self.seed: int | None = None
        """Of the last reset; None before the first."""
        self.actions: list[str] = []
        """Since the last reset, those that were answered with a failure included."""
        self.observation = ""
        """The last one; with `paid`, what a replay must arrive at."""
        self.paid = 0.0
        """Sum of the rewards since the last reset."""
        self.spent = 0.0
        """Seconds of all calls since the last reset."""
        self.home: Link | None = None
        """The worker that holds the instance, as long as it lives."""
        self.broken: EnvFault | None = None
        """Why there is nothing to step until the next reset."""
        self.busy = False
        """Whether a call is under way."""
        self.awaited = False
        """Whether `Pool.recv` has an answer to give, or will have."""
        self.blocked = True
        """Whether there is any reason not to step; `expect_step` says which."""

    def load(self) -> Loaded | EnvFault:
        """Checks, compiles and runs the source, once for all its sessions; what it holds."""
        self.check_open()
        if isinstance(self.source.loaded, Loaded):
            return self.source.loaded
        task = LoadTask(self.source)
        self.pool.run([task])
        assert task.result is not None
        return task.result

    def reset(self, seed: int) -> ResetResult | EnvFault:
        """Make the instance anew and reset it with `seed`.

        `ConfigError` when that is not an int in 0..2**63-1.
        """
        return self.pool.reset_many([(self, seed)])[0]

    def step(self, action: str) -> StepResult | EnvFault:
        """Step the instance.

        `ResetNeeded` before the first reset. Actions are cut to 4096 characters.
        """
        return self.pool.step_one(self, action)

    def hint(self, seed: int, level: int = DEFAULT_HINT_LEVEL) -> str | EnvFault:
        """Return the hint for the state just after a reset with `seed`.

        It comes from another instance, so it cannot disturb this one, and is remembered.
        """
        return self.hints([(seed, level)])[0]

    def hints(self, asked: Sequence[tuple[int, int]]) -> list[str | EnvFault]:
        """Return the hints of several (seed, level) at once, in order."""
        limit = self.source.limits.reset_seconds + self.source.limits.hint_seconds
        keys = []
        for seed, level in asked:
            if level not in HINT_LEVELS:
                raise ConfigError(f"hint level must be one of {HINT_LEVELS}, got {level!r}")
            keys.append(("hint", checked_seed(seed), level))
        found = self._texts(keys, limit, self._ask_hint)
        assert not any(isinstance(item, tuple) for item in found)
        return found  # type: ignore[return-value]  # just checked

    def solution(self, seed: int) -> tuple[str, ...] | EnvFault:
        """Return actions that win from the state just after a reset with `seed`.

        From another instance, as with `hint`.
        """
        return self.solutions([seed])[0]

    def solutions(self, seeds: Sequence[int]) -> list[tuple[str, ...] | EnvFault]:
        """Return the witnesses of several seeds at once, in order."""
        limit = self.source.limits.reset_seconds + self.source.limits.solution_seconds
        keys = [("solution", checked_seed(seed), 0) for seed in seeds]
        found = self._texts(keys, limit, self._ask_solution)
        assert not any(isinstance(item, str) for item in found)
        return found  # type: ignore[return-value]  # just checked

    def close(self) -> None:
        """Give the instance up; the worker ends with the last session of its source. Twice is fine."""
        if not self._closed:
            self._closed = self.blocked = True
            self.pool.release(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # --- for the pool ---

    def check_open(self) -> None:
        """`SandboxError` when the session is closed."""
        if self._closed:
            raise SandboxError("the session is closed")

    def expect_reset(self, seed: int) -> None:
        """Check the call of a reset. `ConfigError`, `SandboxError`."""
        checked_seed(seed)
        self._check_free()

    def forget(self) -> None:
        """Give the instance up, before a reset makes another one."""
        self.home, self.broken, self.blocked = None, _UNFINISHED, True

    def expect_step(self) -> EnvFault | None:
        """Check the call of a step; the fault when there is no use in it."""
        if self.seed is None and self.broken is None:
            raise ResetNeeded("call reset(seed) before the first step")
        self._check_free()
        return self.broken

    def began(self, seed: int, observation: str, link: Link | None) -> None:
        """Note that a reset was answered."""
        self.seed, self.observation, self.paid, self.spent = seed, observation, 0.0, 0.0
        self.actions = []
        self.home, self.broken = link, None

    def spend(self, seconds: float) -> None:
        """Put time on the account of the episode; it breaks when there is none left."""
        self.spent += seconds
        limit = self.source.limits.episode_seconds
        if self.spent >= limit and self.broken is None:
            self.blocked = True
            self.broken = EnvFault(
                FaultKind.TIMEOUT, "step", f"the episode has used its {limit:g} seconds"
            )

    def free(self) -> None:
        """Note that the call under way has ended."""
        self.busy, self.blocked = False, self.awaited or self.broken is not None

    def received(self) -> None:
        """Note that the answer to what was sent was handed out."""
        self.awaited = False
        self.free()

    def _check_free(self) -> None:
        if self._closed:
            raise SandboxError("the session is closed")
        if self.busy or self.awaited:
            raise ConfigError("a session may take part in a batch once, and in one at a time")

    def _ask_hint(self, link: Link, key: _Key) -> Op:
        return Hint(link.next_id(), self.source.program, key[1], key[2])

    def _ask_solution(self, link: Link, key: _Key) -> Op:
        return Solution(link.next_id(), self.source.program, key[1])

    @staticmethod
    def _bound(ask: Callable[[Link, _Key], Op], key: _Key) -> Callable[[Link], Op]:
        return lambda link: ask(link, key)

    def _texts(
        self, keys: Sequence[_Key], seconds: float, ask: Callable[[Link, _Key], Op]
    ) -> list[str | tuple[str, ...] | EnvFault]:
        """What is remembered, and the rest from the worker, in one go."""
        self.check_open()
        texts = self.source.texts
        tasks = {
            key: TextTask(self.source, key[0], seconds, self._bound(ask, key))
            for key in keys
            if key not in texts
        }
        if tasks:
            self.pool.run(list(tasks.values()))
        found: list[str | tuple[str, ...] | EnvFault] = []
        for key in keys:
            result = tasks[key].result if key in tasks else texts[key]
            assert result is not None
            found.append(result)
        for key, task in tasks.items():
            if len(texts) >= MAX_TEXTS:
                texts.clear()
            if not isinstance(task.result, EnvFault) and task.result is not None:
                texts[key] = task.result
        return found


def checked_seed(seed: int) -> int:
    """`seed` when it is an int in 0..2**63-1; `ConfigError` otherwise."""
    if type(seed) is not int or not 0 <= seed <= _MAX_SEED:
        raise ConfigError(f"seed must be an int in 0..2**63-1, got {seed!r}")
    return seed


def sendable(actions: Sequence[str]) -> Sequence[str]:
    """`actions`, each cut to 4096 characters and without lone surrogates.

    `ConfigError` when one is not a str.
    """
    try:
        if all(map(str.isascii, actions)) and max(map(len, actions), default=0) <= MAX_ACTION_CHARS:
            return actions
    except TypeError:
        pass  # one of them is of another type
    return [
        action
        if type(action) is str and len(action) <= MAX_ACTION_CHARS and action.isascii()
        else _sendable(action)
        for action in actions
    ]


def _sendable(action: str) -> str:
    if not isinstance(action, str):
        raise ConfigError(f"action must be a str, got {type(action).__name__}")
    text = action[:MAX_ACTION_CHARS]
    return str(text) if text.isascii() else text.encode("utf-8", "replace").decode()


def check_calls(sessions: Sequence[Session], arguments: Sequence[object]) -> None:
    """`ConfigError` unless there is one argument a session, and each session is named once."""
    if len(sessions) != len(arguments):
        raise ConfigError(
            f"expected one argument a session, got {len(arguments)} for {len(sessions)}"
        )
    if len(set(sessions)) < len(sessions):
        raise ConfigError("a session may take part in a batch once")


def positions(sessions: Sequence[Session], pool: Pool) -> tuple[dict[Source, list[int]], list[int]]:
    """Return where the sessions of each source stand, and which sessions are blocked.

    `ConfigError` for a session of another pool.
    """
    found: dict[Source, list[int]] = {}
    blocked: list[int] = []
    previous: Source | None = None
    rows: list[int] = []
    for position, session in enumerate(sessions):
        source = session.source
        if source is not previous:  # neighbours often have the same
            if session.pool is not pool:  # a source is of one pool, with all its sessions
                raise ConfigError("a session can be played by the pool that opened it alone")
            rows = found.setdefault(source, [])
            previous = source
        rows.append(position)
        if session.blocked:
            blocked.append(position)
    return found, blocked
