from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import TimeLimit

import synthgym
from synthgym.errors import ConfigError, EnvNotFoundError
from synthgym.registration import load_spec, register_snapshot
from synthgym.registry import Snapshot, write_snapshot
from synthgym.spec import EnvRecord, SynthEnvSpec

ROOT = Path(__file__).parents[1]
LOCKER = (ROOT / "tests" / "data" / "good_envs" / "locker.py").read_text()


@pytest.fixture
def registry() -> Iterator[dict[str, EnvSpec]]:
    """Gymnasium's registry, put back afterwards."""
    before = dict(gymnasium.registry)
    yield gymnasium.registry
    gymnasium.registry.clear()
    gymnasium.registry.update(before)


@pytest.fixture(scope="module")
def spec() -> SynthEnvSpec:
    record = EnvRecord(source=LOCKER, entry="LockerEnv", max_turns=8, requires=("random",))
    return SynthEnvSpec(record=record, name="TestLocker", title="A locker")


@pytest.fixture(scope="module")
def folder(spec: SynthEnvSpec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snapshots") / "one"
    write_snapshot(path, [spec], name="one", version="1")
    return path


def test_a_snapshot_registers_each_environment_under_both_ids_once(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec
) -> None:
    before = set(registry)
    assert register_snapshot(folder) == ["synthgym/TestLocker-v0"]
    assert set(registry) - before == {spec.env_id, spec.pinned_id}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert register_snapshot(Snapshot.open(folder)) == ["synthgym/TestLocker-v0"]


def test_specs_are_json_and_build_the_environment_without_the_registry(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec
) -> None:
    register_snapshot(folder)
    known = registry[spec.env_id]
    assert known.kwargs == {"digest": spec.digest, "snapshot": str(folder.resolve())}
    travelled = EnvSpec.from_json(known.to_json())
    registry.clear()
    env = gymnasium.make(travelled)
    assert env.unwrapped.spec_card == spec  # type: ignore[attr-defined]
    env.close()


def test_an_id_that_stands_for_other_content_is_refused_and_nothing_is_registered(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec, tmp_path: Path
) -> None:
    register_snapshot(folder)
    changed = replace(spec, record=replace(spec.record, max_turns=9))
    another = replace(spec, name="Another", record=replace(spec.record, max_turns=10))
    write_snapshot(tmp_path / "two", [another, changed], name="two", version="1")
    before = dict(registry)
    with pytest.raises(ConfigError, match="already stands for"):
        register_snapshot(tmp_path / "two")
    assert registry == before


def test_make_and_make_vec_honour_a_smaller_limit(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec
) -> None:
    register_snapshot(folder)
    env = gymnasium.make(spec.env_id, max_episode_steps=2)
    assert isinstance(env, TimeLimit)
    env.reset(seed=1)
    assert [env.step("look")[3] for _ in range(2)] == [False, True]
    env.close()
    envs = gymnasium.make_vec(
        spec.pinned_id, num_envs=2, max_episode_steps=2, autoreset_mode="SameStep"
    )
    assert isinstance(envs, synthgym.SynthVectorEnv)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    envs.reset(seed=1)
    assert [envs.step(("look", "look"))[3].tolist() for _ in range(2)] == [[False] * 2, [True] * 2]
    envs.close()


def test_render_modes_are_checked_and_wrapped(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec
) -> None:
    register_snapshot(folder)
    env = gymnasium.make(spec.env_id, render_mode="ansi_list")
    env.reset(seed=1)
    env.step("take key")
    frames = env.render()
    assert isinstance(frames, list)
    assert len(frames) == 2
    env.close()


def test_the_default_of_async_vector_envs_fails_loudly_and_the_other_works(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec
) -> None:
    register_snapshot(folder)
    with pytest.raises(ValueError, match="shared_memory=False"):
        gymnasium.make_vec(spec.env_id, num_envs=2, vectorization_mode="async")
    envs = gymnasium.make_vec(
        spec.env_id,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False, "context": "spawn"},
    )
    observations, _ = envs.reset(seed=1)
    plain = gymnasium.make(spec.env_id)
    assert observations[0] == plain.reset(seed=1)[0]
    assert observations[1] == plain.reset(seed=2)[0]
    plain.close()
    envs.close()


def test_a_digest_that_the_snapshot_gained_later_is_found(
    spec: SynthEnvSpec, tmp_path: Path
) -> None:
    path = tmp_path / "growing"
    other = replace(spec, name="Other", record=replace(spec.record, max_turns=9))
    write_snapshot(path, [spec], name="growing", version="1")
    with pytest.raises(EnvNotFoundError):
        load_spec(other.digest, str(path))
    write_snapshot(path, [spec, other], name="growing", version="2", replace=True)
    assert load_spec(other.digest, str(path)) == other


def run(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_spec_made_in_another_process_plays_there(folder: Path, spec: SynthEnvSpec) -> None:
    code = (
        "import gymnasium\n"
        "from gymnasium.envs.registration import EnvSpec\n"
        f"spec = EnvSpec('synthgym/T-v0', entry_point='synthgym.registration:make_env', "
        f"kwargs={{'digest': {spec.digest!r}, 'snapshot': {str(folder)!r}}})\n"
        "env = gymnasium.make(spec)\n"
        "print(env.reset(seed=4)[1]['seed'])\n"
        "env.close()"
    )
    assert run(code) == "4"
