"""GEM's vector environments (package gem-llm) as contestants. Importing this imports GEM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from gem.core import Env
from gem.vector.async_vector_env import AsyncVectorEnv
from gem.vector.sync_vector_env import SyncVectorEnv
from gem.vector.vector_env import AutoresetMode
from workload import Cast, load_class


class GemEnv(Env):  # type: ignore[misc]
    """A plain instance as its author would wrap it for GEM."""

    def __init__(self, env_class: type, later: Iterable[int]) -> None:
        super().__init__()
        self._env: Any = env_class()
        self._later = iter(later)

    def reset(self, seed: int | None = None) -> tuple[str, dict[str, Any]]:
        """An autoreset comes without a seed and takes the next of the schedule."""
        result: tuple[str, dict[str, Any]] = self._env.reset(
            next(self._later) if seed is None else seed
        )
        return result

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """One step."""
        result: tuple[str, float, bool, bool, dict[str, Any]] = self._env.step(action)
        return result


class GemVector:
    """One of the two; the asynchronous one is a pool with a thread for each environment."""

    def __init__(self, cast: Cast, *, asynchronous: bool) -> None:
        classes = [load_class(source) for source in cast.workload.sources]
        later = cast.later_seeds()
        make = [
            partial(GemEnv, classes[cast.source(env)], later[env]) for env in range(cast.num_envs)
        ]
        names = [f"bench:{env}" for env in range(cast.num_envs)]
        kind = AsyncVectorEnv if asynchronous else SyncVectorEnv
        self._envs: Any = kind(names, make, autoreset_mode=AutoresetMode.NEXT_STEP)
        self._first = cast.first_seeds()
        self.pids: list[int] = []

    def reset(self) -> Sequence[str]:
        """First observations."""
        observations: Sequence[str] = self._envs.reset(seed=self._first)[0]
        return observations

    def step(self, actions: list[str]) -> tuple[Any, Any, Any, Any]:
        """One vector step."""
        observations, rewards, terminated, truncated, _ = self._envs.step(actions)
        return observations, rewards, terminated, truncated

    def close(self) -> None:
        """End the threads, which GEM itself leaves running."""
        executor = getattr(self._envs, "thread_pool_executer", None)
        if executor is not None:
            executor.shutdown()
