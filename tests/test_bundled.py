"""Every environment of the bundled registry, as a user of Gymnasium meets it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import synthgym
from synthgym.registry import Entry, Snapshot, bundled_root
from synthgym.testing import ScriptedAgent, check_synth_env

ROOT = Path(__file__).parents[1]
MANIFEST = bundled_root() / "manifest.json"
ENTRIES = list(Snapshot.open(bundled_root())) if MANIFEST.is_file() else []

each_entry = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)


@pytest.fixture(autouse=True)
def _registered() -> None:
    synthgym.register_snapshot(bundled_root())


@each_entry
def test_it_keeps_the_rules_of_gymnasium_and_of_the_contract(entry: Entry) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make(entry.env_id)
        check_synth_env(env)
        env.close()


@each_entry
def test_its_witness_wins_through_make_and_through_the_pinned_id(entry: Entry) -> None:
    for env_id in (entry.env_id, entry.pinned_id):
        env = gymnasium.make(env_id)
        env.reset(seed=3)
        agent = ScriptedAgent(env.unwrapped.solution())  # type: ignore[attr-defined]
        last = agent.play(env, seed=3)[-1]
        assert last.info["success"], last
        env.close()


@each_entry
def test_it_plays_as_a_vector_environment(entry: Entry) -> None:
    envs = gymnasium.make_vec(entry.env_id, num_envs=3)
    assert isinstance(envs, synthgym.SynthVectorEnv)
    observations, infos = envs.reset(seed=5)
    plain = gymnasium.make(entry.env_id)
    assert [plain.reset(seed=5 + i)[0] for i in range(3)] == list(observations)
    assert infos["seed"].tolist() == [5, 6, 7]
    stepped = envs.step(("look",) * 3)
    assert stepped[0] in envs.observation_space
    assert np.isfinite(stepped[1]).all()
    plain.close()
    envs.close()


def test_the_manifest_is_there_and_everything_in_it_is_as_promised() -> None:
    assert ENTRIES, f"{MANIFEST} is missing or empty"
    assert Snapshot.open(bundled_root()).verify() == ()


def test_code_that_imports_only_gymnasium_finds_every_environment() -> None:
    code = (
        "import sys, gymnasium\n"
        "for env_id in sys.argv[1:]:\n"
        "    env = gymnasium.make('synthgym:' + env_id)\n"
        "    observation, info = env.reset(seed=1)\n"
        "    print(env_id, info['seed'], bool(observation))\n"
        "    env.close()\n"
    )
    ids = [entry.env_id for entry in ENTRIES]
    command = [sys.executable, "-W", "error", "-c", code, *ids]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{env_id} 1 True" for env_id in ids]
