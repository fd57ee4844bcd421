"""Environments in the processes that other libraries start: Gymnasium's workers, forks, Ray actors."""

from __future__ import annotations

import os
from functools import partial

import gymnasium
import pytest
from gymnasium.vector import AsyncVectorEnv

from synthgym.envs import SynthVectorEnv
from synthgym.sandbox import default_pool

LOOM = "synthgym/LoomDarn-v0"
ACTIONS = ("look 1 1", "look 2 5", "look 3 9")


def transcript(env_id: str, seed: int) -> list[str]:
    """The observations of one short episode, in whatever process this runs."""
    env = gymnasium.make(env_id)
    observations = [env.reset(seed=seed)[0], *(env.step(action)[0] for action in ACTIONS)]
    env.close()
    return observations


def vector_transcript(env_id: str, seed: int) -> list[tuple[str, ...]]:
    """The observations of three short episodes side by side."""
    envs = gymnasium.make_vec(env_id, num_envs=3)
    assert isinstance(envs.unwrapped, SynthVectorEnv)
    observations = [envs.reset(seed=seed)[0]]
    observations += [envs.step((action,) * 3)[0] for action in ACTIONS]
    envs.close()
    return observations


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_gymnasiums_daemonic_workers_give_the_same_episodes(context: str) -> None:
    expected = [transcript(LOOM, seed) for seed in (5, 6)]
    assert default_pool().pids()  # a fork inherits a pool that is in use
    envs = AsyncVectorEnv(
        [partial(gymnasium.make, f"synthgym:{LOOM}")] * 2, shared_memory=False, context=context
    )
    observations = [envs.reset(seed=5)[0], *(envs.step((action,) * 2)[0] for action in ACTIONS)]
    envs.close()
    assert [list(column) for column in zip(*observations, strict=True)] == expected
    assert transcript(LOOM, 5) == expected[0]  # the children took nothing of ours with them


def test_gymnasiums_default_of_shared_memory_fails_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        gymnasium.make_vec(LOOM, num_envs=2, vectorization_mode="async")


def test_make_vec_gives_the_pool_and_equals_the_serial_path() -> None:
    side_by_side = vector_transcript(LOOM, 5)
    assert [list(column) for column in zip(*side_by_side, strict=True)] == [
        transcript(LOOM, seed) for seed in (5, 6, 7)
    ]


@pytest.mark.filterwarnings("ignore")
def test_a_ray_actor_gives_the_same_episodes() -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: its actors are not tested")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        remote = ray.remote(vector_transcript)
        assert ray.get(remote.remote(f"synthgym:{LOOM}", 5)) == vector_transcript(LOOM, 5)
    finally:
        ray.shutdown()


def test_a_fork_of_a_user_of_the_default_pool_has_one_of_its_own() -> None:
    before = transcript(LOOM, 9)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writer, b"same" if transcript(LOOM, 9) == before else b"other")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"same"
    os.waitpid(child, 0)
    assert transcript(LOOM, 9) == before
