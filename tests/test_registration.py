from __future__ import annotations

import json
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
from synthgym.registration import env_spec, load_spec, register_snapshot
from synthgym.registry import Snapshot, bundled_root, write_snapshot
from synthgym.registry.archive import pack
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


@pytest.mark.parametrize("kind", ["shards", "packed"])
def test_any_place_registers_and_plays_the_same(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec, tmp_path: Path, kind: str
) -> None:
    if kind == "packed":
        place = pack(Snapshot.open(folder), tmp_path / "one.sgz")
    else:
        place = write_snapshot(
            tmp_path / "one", [spec], name="one", version="1", layout="shards"
        ).path
    assert register_snapshot(str(place)) == [spec.env_id]
    known = registry[spec.pinned_id]
    assert known.kwargs == {"digest": spec.digest, "snapshot": str(place)}
    travelled = EnvSpec.from_json(json.dumps(json.loads(known.to_json())))
    assert travelled.kwargs == known.kwargs
    env, same = gymnasium.make(travelled), gymnasium.make(env_spec(folder, spec.digest))
    assert env.reset(seed=3) == same.reset(seed=3)
    assert env.step("look") == same.step("look")
    env.close()
    same.close()


def test_one_environment_is_made_without_registering_anything(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec
) -> None:
    before = dict(registry)
    for wanted in (spec.env_id, spec.pinned_id, spec.digest, "TestLocker-v0"):
        found = env_spec(folder, wanted)
        assert (found.id, found.max_episode_steps) == (spec.pinned_id, 8)
        env = gymnasium.make(found)
        assert env.unwrapped.spec_card == spec  # type: ignore[attr-defined]
        env.close()
    assert registry == before
    with pytest.raises(EnvNotFoundError, match="did you mean 'synthgym/TestLocker-v0'"):
        env_spec(folder, "synthgym/TestLoker-v0")


def test_the_bundled_snapshot_needs_no_path(registry: dict[str, EnvSpec]) -> None:
    bundled = Snapshot.open(bundled_root())
    entry = next(iter(bundled))
    assert env_spec(bundled, entry.env_id).kwargs == {"digest": entry.digest}
    assert env_spec(str(bundled_root()), entry.env_id).kwargs == {"digest": entry.digest}
    assert registry[entry.env_id].kwargs == {"digest": entry.digest}


def test_an_id_that_is_taken_leaves_the_pinned_one(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec, tmp_path: Path
) -> None:
    register_snapshot(folder)
    changed = replace(spec, record=replace(spec.record, max_turns=9))
    another = replace(spec, name="Another", record=replace(spec.record, max_turns=10))
    write_snapshot(tmp_path / "two", [another, changed], name="two", version="1")
    for _ in range(2):  # and doing it again changes nothing
        ids = register_snapshot(tmp_path / "two", on_conflict="pinned")
        assert ids == [another.env_id, changed.pinned_id]
    assert registry[spec.env_id].kwargs["digest"] == spec.digest
    assert registry[changed.pinned_id].kwargs["digest"] == changed.digest
    for env_id, turns in zip(ids, (10, 9), strict=True):
        env = gymnasium.make(env_id)
        assert env.spec is not None
        assert env.spec.max_episode_steps == turns
        env.close()
    with pytest.raises(ConfigError, match="must be error or pinned, got 'ignore'"):
        register_snapshot(tmp_path / "two", on_conflict="ignore")


def test_an_id_of_somebody_else_is_not_taken(
    registry: dict[str, EnvSpec], folder: Path, spec: SynthEnvSpec
) -> None:
    gymnasium.register(spec.env_id, entry_point="somewhere:Else")
    with pytest.raises(ConfigError, match=r"already stands for somewhere:Else.*on_conflict"):
        register_snapshot(folder)
    assert spec.pinned_id not in registry
    assert register_snapshot(folder, on_conflict="pinned") == [spec.pinned_id]


def test_more_than_the_limit_is_refused_and_says_what_else_can_be_done(
    registry: dict[str, EnvSpec], spec: SynthEnvSpec, tmp_path: Path
) -> None:
    specs = [replace(spec, name=f"T{n}", record=replace(spec.record, max_turns=n)) for n in (5, 6)]
    two = write_snapshot(tmp_path / "two", specs, name="two", version="1")
    before = dict(registry)
    with pytest.raises(ConfigError, match=r"2 environments, more than 1: .*env_spec.*limit=None"):
        register_snapshot(two, limit=1)
    assert registry == before
    assert len(register_snapshot(two, limit=2)) == len(register_snapshot(two, limit=None)) == 2


def test_spawned_workers_make_what_is_packed(
    folder: Path, spec: SynthEnvSpec, tmp_path: Path
) -> None:
    found = env_spec(pack(Snapshot.open(folder), tmp_path / "one.sgz"), spec.env_id)
    envs = gymnasium.make_vec(
        found,
        num_envs=2,
        vectorization_mode="async",
        vector_kwargs={"shared_memory": False, "context": "spawn"},
    )
    plain = gymnasium.make(found)
    observations, _ = envs.reset(seed=5)
    assert observations == tuple(plain.reset(seed=5 + n)[0] for n in range(2))
    rewards = envs.step(("take key", "look"))[1]
    assert rewards.tolist() == [0.25, 0.0]
    plain.close()
    envs.close()


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
