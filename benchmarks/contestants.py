"""Ways to step many environments at once. All play the same episodes in the autoreset mode `NEXT_STEP`.

A contestant is made ready by its constructor and has `reset()`, `step(actions)`, `pids` (its other
processes) and `close()`. After an episode has ended, the next `step` of that environment resets it:
the action is ignored and the reward is 0.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import string
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, Protocol

import gymnasium
from gymnasium.spaces import Text
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from workload import Cast, load_class

from synthgym import Pool, SynthEnvSpec, SynthVectorEnv
from synthgym.spec import EnvRecord

Tick = tuple[Sequence[str], Sequence[float], Sequence[bool], Sequence[bool]]
"""Observations, rewards, terminated, truncated, one each an environment."""
_THREADS: Final = 128
_STEP_SECONDS: Final = 30
_CHARSET: Final = string.ascii_letters + string.digits + string.punctuation + " \n"


class Contestant(Protocol):
    """What the benchmarks ask for."""

    pids: list[int]
    """Processes beside this one that take part; the CPU time of all of them counts."""

    def reset(self) -> Sequence[str]:
        """First observations, from the first seeds of the cast."""

    def step(self, actions: list[str]) -> Tick:
        """One action everywhere."""

    def close(self) -> None:
        """End all processes and threads."""


# --- ours ---


def records(cast: Cast) -> list[EnvRecord]:
    """The record of every source."""
    load = cast.workload
    return [EnvRecord(source=s, entry=load.entry, max_turns=load.max_turns) for s in load.sources]


class PoolCore:
    """Sessions of a `Pool` and `Pool.play` in a loop: sandboxed, without Gymnasium's layer."""

    def __init__(self, cast: Cast, *, sources_per_worker: int = 1) -> None:
        known = records(cast)
        workers = -(-len(known) // sources_per_worker)
        self._pool = Pool(max_workers=workers, sources_per_worker=sources_per_worker)
        self._sessions = [
            self._pool.open(known[cast.source(env)], None) for env in range(cast.num_envs)
        ]
        self._first, self._later = cast.first_seeds(), cast.later_seeds()
        self._over: list[int] = []
        self.pids: list[int] = []

    def reset(self) -> Sequence[str]:
        """Starts the workers, too."""
        _, batch = self._pool.play(steps=((), ()), resets=(self._sessions, self._first))
        _refuse_faults(batch.faults)
        self.pids = self._pool.pids()
        observations: list[str] = batch.observations
        return observations

    def step(self, actions: list[str]) -> Tick:
        """One round: steps and resets go out together."""
        if self._over:
            return self._step_and_reset(actions)
        batch, _ = self._pool.play(steps=(self._sessions, actions), resets=((), ()))
        _refuse_faults(batch.faults)
        terminated, truncated = batch.terminated, batch.truncated
        if True in terminated or True in truncated:
            self._over = _ended(terminated, truncated)
        return batch.observations, batch.rewards, terminated, truncated

    def close(self) -> None:
        """End the workers."""
        self._pool.close()

    def _step_and_reset(self, actions: list[str]) -> Tick:
        sessions, over = self._sessions, self._over
        resetting = frozenset(over)
        going = [env for env in range(len(sessions)) if env not in resetting]
        stepped, reset = self._pool.play(
            steps=([sessions[env] for env in going], [actions[env] for env in going]),
            resets=([sessions[env] for env in over], [next(self._later[env]) for env in over]),
        )
        _refuse_faults(stepped.faults)
        _refuse_faults(reset.faults)
        count = len(sessions)
        observations, rewards = [""] * count, [0.0] * count
        terminated, truncated = [False] * count, [False] * count
        columns = (stepped.observations, stepped.rewards, stepped.terminated, stepped.truncated)
        for env, observation, reward, ended, cut in zip(going, *columns, strict=True):
            observations[env], rewards[env] = observation, reward
            terminated[env], truncated[env] = ended, cut
        for env, observation in zip(over, reset.observations, strict=True):
            observations[env] = observation
        self._over = _ended(terminated, truncated)
        return observations, rewards, terminated, truncated


class OurVectorEnv:
    """`SynthVectorEnv` over all sources: sandboxed, with Gymnasium's whole layer."""

    def __init__(self, cast: Cast) -> None:
        specs = [
            SynthEnvSpec(record=record, name=f"Bench{index}")
            for index, record in enumerate(records(cast))
        ]
        self._pool = Pool(max_workers=len(specs))
        chosen = [specs[cast.source(env)] for env in range(cast.num_envs)]
        self._envs = SynthVectorEnv(chosen, cast.num_envs, pool=self._pool)
        self._first = cast.first_seeds()
        self.pids: list[int] = []

    def reset(self) -> Sequence[str]:
        """Starts the workers, too."""
        observations, _ = self._envs.reset(seed=self._first)
        self.pids = self._pool.pids()
        return observations

    def step(self, actions: list[str]) -> Tick:
        """One vector step."""
        return self._envs.step(actions)[:4]

    def close(self) -> None:
        """End the workers."""
        self._envs.close()
        self._pool.close()


def _refuse_faults(faults: dict[int, Any]) -> None:
    if faults:
        raise RuntimeError(f"our own environments must not fail: {faults}")


def _ended(terminated: Sequence[bool], truncated: Sequence[bool]) -> list[int]:
    pairs = zip(terminated, truncated, strict=True)
    return [env for env, (ended, cut) in enumerate(pairs) if ended or cut]


# --- no isolation: plain classes in this process ---


def plain_envs(cast: Cast) -> list[Any]:
    """Instances of the plain classes; a source is compiled once, whoever plays."""
    classes = [load_class(source) for source in cast.workload.sources]
    return [classes[cast.source(env)]() for env in range(cast.num_envs)]


class BareLoop:
    """A `for` loop over plain instances: nothing can be faster on one core."""

    def __init__(self, cast: Cast) -> None:
        self._envs = plain_envs(cast)
        self._first, self._later = cast.first_seeds(), cast.later_seeds()
        self._over = [False] * cast.num_envs
        self.pids: list[int] = []

    def reset(self) -> Sequence[str]:
        """First observations."""
        return [env.reset(seed)[0] for env, seed in zip(self._envs, self._first, strict=True)]

    def step(self, actions: list[str]) -> Tick:
        """One action everywhere."""
        over, later = self._over, self._later
        observations: list[str] = []
        rewards: list[float] = []
        terminated: list[bool] = []
        truncated: list[bool] = []
        for index, env in enumerate(self._envs):
            if over[index]:
                observation, _ = env.reset(next(later[index]))
                reward, ended, cut = 0.0, False, False
            else:
                observation, reward, ended, cut, _ = env.step(actions[index])
            over[index] = ended or cut
            observations.append(observation)
            rewards.append(reward)
            terminated.append(ended)
            truncated.append(cut)
        return observations, rewards, terminated, truncated

    def close(self) -> None:
        """Nothing to end."""


class Threads:
    """Plain instances in the trainer, every step on a thread under a timeout that cannot kill it."""

    def __init__(self, cast: Cast) -> None:
        self._envs = plain_envs(cast)
        self._first, self._later = cast.first_seeds(), cast.later_seeds()
        self._over = [False] * cast.num_envs
        self._loop = asyncio.new_event_loop()
        self._executor = ThreadPoolExecutor(_THREADS)
        self.pids: list[int] = []

    def reset(self) -> Sequence[str]:
        """First observations."""
        calls = [partial(e.reset, s) for e, s in zip(self._envs, self._first, strict=True)]
        return [observation for observation, _ in self._run(calls)]

    def step(self, actions: list[str]) -> Tick:
        """One action everywhere."""
        over = self._over
        results = self._run(
            partial(env.reset, next(self._later[index]))
            if over[index]
            else partial(env.step, actions[index])
            for index, env in enumerate(self._envs)
        )
        ticks = [
            (result[0], 0.0, False, False) if over[index] else result[:4]
            for index, result in enumerate(results)
        ]
        observations, rewards, terminated, truncated = zip(*ticks, strict=True)
        self._over = [ended or cut for ended, cut in zip(terminated, truncated, strict=True)]
        return observations, rewards, terminated, truncated

    def close(self) -> None:
        """End the threads."""
        self._executor.shutdown()
        self._loop.close()

    def _run(self, calls: Iterable[Callable[[], Any]]) -> list[Any]:
        return self._loop.run_until_complete(self._gather([self._under_timeout(c) for c in calls]))

    async def _under_timeout(self, call: Callable[[], Any]) -> Any:
        return await asyncio.wait_for(
            self._loop.run_in_executor(self._executor, call), _STEP_SECONDS
        )

    async def _gather(self, waits: Sequence[Coroutine[Any, Any, Any]]) -> list[Any]:
        return await asyncio.gather(*waits)


# --- Gymnasium ---


class PlainEnv(gymnasium.Env[str, str]):
    """A plain instance as its author would wrap it for Gymnasium."""

    def __init__(self, cast: Cast, index: int, env_class: type, later: Iterable[int]) -> None:
        space = Text(cast.workload.max_chars, min_length=0, charset=_CHARSET)
        self.observation_space = self.action_space = space
        self._env: Any = env_class()
        self._first: int = cast.first_seeds()[index]
        self._later = iter(later)
        self._text: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """An autoreset comes without a seed and takes the next of the schedule."""
        del options
        observation, info = self._env.reset(next(self._later) if seed is None else seed)
        if self._text is not None:
            self._text.update(observation.encode())
        return observation, info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One step."""
        result: tuple[str, float, bool, bool, dict[str, Any]] = self._env.step(action)
        if self._text is not None:
            self._text.update(result[0].encode())
        return result

    def start_trace(self) -> None:
        """From now on remember which text was returned."""
        self._text = hashlib.sha256()

    def end_trace(self) -> str:
        """Digest of all text since `start_trace`."""
        digest: str = self._text.hexdigest()
        self._text = None
        return digest


class GymnasiumVector:
    """One of Gymnasium's vector environments over plain instances."""

    def __init__(self, cast: Cast, make: Callable[[list[Callable[[], PlainEnv]]], Any]) -> None:
        classes = [load_class(source) for source in cast.workload.sources]
        later = cast.later_seeds()
        self.envs = make(
            [
                partial(PlainEnv, cast, env, classes[cast.source(env)], later[env])
                for env in range(cast.num_envs)
            ]
        )
        self._first = cast.first_seeds()
        processes = getattr(self.envs, "processes", ())
        self.pids = [process.pid for process in processes]

    def reset(self) -> Sequence[str]:
        """First observations."""
        observations: Sequence[str] = self.envs.reset(seed=self._first)[0]
        return observations

    def step(self, actions: list[str]) -> Tick:
        """One vector step."""
        observations, rewards, terminated, truncated, _ = self.envs.step(actions)
        return observations, rewards, terminated, truncated

    def close(self) -> None:
        """End the processes."""
        self.envs.close()


# --- GEM ---


def gem_vector(cast: Cast, *, asynchronous: bool) -> Contestant:
    """One of GEM's vector environments over plain instances."""
    from gem_contestant import GemVector  # noqa: PLC0415 (GEM is optional and slow to import)

    made: Contestant = GemVector(cast, asynchronous=asynchronous)
    return made


CORE: Final = "pool core, 24 processes"
PACKED: Final = "pool core, 2 processes"
VECTOR: Final = "SynthVectorEnv"
LOOP: Final = "bare loop"
THREADS: Final = "threads with timeouts"
ASYNC_SHARED: Final = "gymnasium Async, shared_memory=True"
ASYNC_PIPE: Final = "gymnasium Async, shared_memory=False"
SYNC: Final = "gymnasium Sync"
GEM_ASYNC: Final = "GEM Async"
GEM_SYNC: Final = "GEM Sync"

CONTESTANTS: Final[dict[str, Callable[[Cast], Contestant]]] = {
    CORE: PoolCore,
    PACKED: partial(PoolCore, sources_per_worker=12),
    VECTOR: OurVectorEnv,
    LOOP: BareLoop,
    ASYNC_SHARED: lambda cast: GymnasiumVector(cast, AsyncVectorEnv),
    ASYNC_PIPE: lambda cast: GymnasiumVector(cast, partial(AsyncVectorEnv, shared_memory=False)),
    GEM_ASYNC: partial(gem_vector, asynchronous=True),
    THREADS: Threads,
    SYNC: lambda cast: GymnasiumVector(cast, SyncVectorEnv),
    GEM_SYNC: partial(gem_vector, asynchronous=False),
}


def missing() -> dict[str, str]:
    """Contestants that cannot take part here, and why."""
    if importlib.util.find_spec("gem") is not None:
        return {}
    return dict.fromkeys((GEM_ASYNC, GEM_SYNC), "gem-llm is not installed")
