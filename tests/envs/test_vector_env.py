from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from synthgym.envs import SynthEnv, SynthVectorEnv
from synthgym.errors import ConfigError, ResetNeeded
from synthgym.sandbox import Pool
from synthgym.spec import SynthEnvSpec

HELLO = ("hello", "hello", "hello")


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_it_equals_a_sync_vector_env_over_synth_envs(
    misbehaving: SynthEnvSpec, pool: Pool, mode: AutoresetMode
) -> None:
    ours = SynthVectorEnv(misbehaving, 3, autoreset_mode=mode, pool=pool)
    theirs = SyncVectorEnv([lambda: SynthEnv(misbehaving, pool=pool)] * 3, autoreset_mode=mode)
    assert ours.reset(seed=20)[0] == theirs.reset(seed=20)[0]
    for turn in range(16):
        actions = (
            "hello",
            "stop" if turn == 2 else "hello",
            "pay 1.0 end" if turn % 4 == 1 else "",
        )
        mine, his = ours.step(actions), theirs.step(actions)
        assert mine[0] == his[0]
        for index in (1, 2, 3):
            np.testing.assert_array_equal(mine[index], his[index])
        for key in ("seed", "turn", "success", "_seed"):
            np.testing.assert_array_equal(mine[4][key], his[4][key])
        if "final_obs" in his[4]:
            assert list(mine[4]["final_obs"]) == list(his[4]["final_obs"])
            np.testing.assert_array_equal(mine[4]["_final_info"], his[4]["_final_info"])
            np.testing.assert_array_equal(
                mine[4]["final_info"]["turn"], his[4]["final_info"]["turn"]
            )
    ours.close()
    theirs.close()


def test_next_step_ignores_the_action_after_the_end(misbehaving: SynthEnvSpec, pool: Pool) -> None:
    envs = SynthVectorEnv(misbehaving, 2, pool=pool)
    envs.reset(seed=[1, 2])
    _, rewards, terminations, _, infos = envs.step(("pay 1.0 end", "hello"))
    assert rewards.tolist() == [1.0, 0.0]
    assert terminations.tolist() == [True, False]
    assert infos["success"].tolist() == [True, False]
    observations, rewards, terminations, truncations, infos = envs.step(("raise", "hello"))
    assert observations[0] == f"Instance {infos['seed'][0]}."
    assert rewards.tolist() == [0.0, 0.0]
    assert not terminations.any()
    assert not truncations.any()
    assert infos["turn"].tolist() == [0, 2]
    envs.close()


def test_disabled_leaves_the_reset_to_the_caller(misbehaving: SynthEnvSpec, pool: Pool) -> None:
    envs = SynthVectorEnv(misbehaving, 2, autoreset_mode="Disabled", pool=pool)
    envs.reset(seed=1)
    envs.step(("pay 1.0 end", "hello"))
    with pytest.raises(ResetNeeded, match=r"\[0\]"):
        envs.step(("hello", "hello"))
    options = {"reset_mask": np.array([True, False])}
    observations, infos = envs.reset(seed=[9, None], options=options)
    assert observations == ("Instance 9.", "You said 5 characters.")
    assert infos["_seed"].tolist() == [True, False]
    assert "reset_mask" in options
    assert envs.step(("hello", "hello"))[4]["turn"].tolist() == [1, 2]
    envs.close()


def test_a_fault_of_one_leaves_the_others_alone(misbehaving: SynthEnvSpec, pool: Pool) -> None:
    envs = SynthVectorEnv(misbehaving, 3, pool=pool)
    envs.reset(seed=1)
    envs.step(HELLO)
    _, rewards, terminations, truncations, infos = envs.step(("hello", "hang", "pay 1.0 end"))
    assert rewards.tolist() == [0.0, 0.0, 1.0]
    assert terminations.tolist() == [False, False, True]
    assert truncations.tolist() == [False, True, False]
    assert infos["fault"].tolist() == [None, {"kind": "timeout", "call": "step"}, None]
    assert infos["_fault"].tolist() == [False, True, False]
    assert envs.step(HELLO)[4]["turn"].tolist() == [3, 0, 0]
    envs.close()


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_fault_in_reset_is_a_value(misbehaving: SynthEnvSpec, pool: Pool, mode: str) -> None:
    envs = SynthVectorEnv(misbehaving, 2, autoreset_mode=mode, pool=pool)
    observations, infos = envs.reset(seed=[13, 2])
    assert observations == ("", "Instance 2.")
    assert infos["fault"][0] == {"kind": "error", "call": "reset"}
    _, rewards, terminations, truncations, infos = envs.step(("hello", "hello"))
    assert rewards.tolist() == [0.0, 0.0]
    assert not terminations.any()
    assert truncations.tolist() == [True, False]
    shown = infos if mode == "NextStep" else infos["final_info"]
    assert shown["fault"][0] == {"kind": "error", "call": "reset"}
    envs.step(("hello", "hello"))
    assert envs.step(("hello", "hello"))[0][0].startswith("You said")
    envs.close()


def test_a_smaller_limit_of_the_user_is_kept_and_a_larger_one_is_not(
    misbehaving: SynthEnvSpec, pool: Pool
) -> None:
    for limit, expected in ((2, 2), (99, 6), (None, 6)):
        envs = SynthVectorEnv(misbehaving, 1, max_episode_steps=limit, pool=pool)
        envs.reset(seed=1)
        turns = 1
        while not envs.step(("hello",))[3][0]:
            turns += 1
        assert turns == expected
        envs.close()


def test_spaces_metadata_and_transcripts(locker: SynthEnvSpec, pool: Pool) -> None:
    envs = SynthVectorEnv(locker, 2, render_mode="ansi", autoreset_mode="SameStep", pool=pool)
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert "autoreset_mode" not in SynthVectorEnv.metadata
    observations, _ = envs.reset(seed=3)
    assert observations in envs.observation_space
    envs.step(("take key", "look"))
    drawn = envs.render()
    assert drawn is not None
    assert drawn[0].startswith("[seed 3]")
    assert "> look" in drawn[1]
    envs.close()
    envs.close()


def test_wrong_use_is_refused(locker: SynthEnvSpec, pool: Pool) -> None:
    envs = SynthVectorEnv(locker, 2, pool=pool)
    with pytest.raises(ResetNeeded):
        envs.step(("a", "b"))
    with pytest.raises(ResetNeeded):
        envs.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ConfigError, match="2 seeds"):
        envs.reset(seed=[1])
    envs.reset(seed=1)
    for actions in (("a",), "ab", ("a", 5)):
        with pytest.raises(ConfigError):
            envs.step(actions)  # type: ignore[arg-type]
    for mask in ([True, False], np.array([1, 0]), np.array([False, False]), np.array([True])):
        with pytest.raises(ConfigError, match="reset_mask"):
            envs.reset(options={"reset_mask": mask})
    envs.close()
    for arguments in ({"num_envs": 0}, {"render_mode": "human"}, {"max_episode_steps": 0}):
        with pytest.raises(ConfigError):
            SynthVectorEnv(locker, **({"num_envs": 1} | arguments), pool=pool)  # type: ignore[arg-type]


def test_groups_play_the_same_instance_through_every_autoreset(
    locker: SynthEnvSpec, misbehaving: SynthEnvSpec, pool: Pool
) -> None:
    envs = SynthVectorEnv([misbehaving, locker], 8, group_size=2, pool=pool)
    assert envs.spec_cards == (misbehaving, locker)
    for seed in (30, None):
        seeds = envs.reset(seed=seed)[1]["seed"]
        for _ in range(9):
            assert (seeds[0::2] == seeds[1::2]).all()
            seeds = envs.step(("hello",) * 8)[4]["seed"]
        assert len(set(seeds.tolist())) == 4
    envs.close()
    with pytest.raises(ConfigError, match="group_size"):
        SynthVectorEnv([misbehaving, locker], 8, group_size=3, pool=pool)
    with pytest.raises(ConfigError, match="multiple of the 2 specs"):
        SynthVectorEnv([misbehaving, locker], 7, pool=pool)
